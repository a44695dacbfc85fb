//! The journal's rows: one line for each happening, in columns a person can
//! read with any SQLite tool.

use rusqlite::{CachedStatement, Connection, Row, named_params, types::Value};
use tenure_core::{
    ElectionName, EndCause, Entry, Happening, Incarnation, MemberId, MemberRef, Note, Priority,
    Profile, ReleaseCause, Seq, Term, TermNumber, Timestamp,
};

use crate::error::{Fault, Outcome};
use crate::rows::{endpoints_text, name, profile};

/// Writes one entry.
pub(crate) fn append(db: &Connection, ns: &str, entry: &Entry) -> Outcome<()> {
    let mut line = Line::default();
    line.fill(&entry.what);
    let mut insert = db.prepare_cached(include_str!("sql/journal_append.sql"))?;
    insert.execute(named_params! {
        ":ns": ns,
        ":seq": number(entry.seq.get()),
        ":at": number(entry.at.unix_millis()),
        ":kind": line.kind,
        ":election": line.election,
        ":number": line.number.map(|n| number(n.get())),
        ":member": line.member.map(|m| m.id.as_str()),
        ":incarnation": line.member.map(|m| m.incarnation.to_string()),
        ":priority": line.priority.map(|p| p.get()),
        ":cause": line.cause,
        ":reason": line.reason,
        ":by": line.by,
        ":heir": line.heir,
        ":endpoints": line.profile.map(endpoints_text),
        ":metadata": line.profile.map(Profile::metadata),
    })?;
    Ok(())
}

/// SQLite's integers are signed; ours stay far below the sign.
pub(crate) fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The columns of an entry, before they are written.
#[derive(Default)]
struct Line<'a> {
    kind: &'static str,
    election: Option<&'a str>,
    number: Option<TermNumber>,
    member: Option<&'a MemberRef>,
    priority: Option<Priority>,
    cause: Option<&'static str>,
    reason: Option<&'a str>,
    by: Option<&'a str>,
    heir: Option<&'a str>,
    profile: Option<&'a Profile>,
}

impl<'a> Line<'a> {
    fn fill(&mut self, what: &'a Happening) {
        self.election = what.election().map(ElectionName::as_str);
        match what {
            Happening::Joined { member, profile } => {
                (self.kind, self.member, self.profile) = ("joined", Some(member), Some(profile));
            }
            Happening::Left { member } => (self.kind, self.member) = ("left", Some(member)),
            Happening::Ended { member, cause } => {
                (self.kind, self.member) = ("ended", Some(member));
                self.cause = Some(end_word(*cause));
            }
            Happening::Stood { member, priority, .. } => {
                (self.kind, self.member) = ("stood", Some(member));
                self.priority = Some(*priority);
            }
            Happening::Elected { term } => {
                (self.kind, self.member) = ("elected", Some(&term.member));
                self.number = Some(term.number);
            }
            Happening::Released { number, member, cause, heir, .. } => {
                (self.kind, self.member) = ("released", Some(member));
                (self.number, self.cause) = (Some(*number), Some(release_word(*cause)));
                self.heir = heir.as_ref().map(MemberId::as_str);
            }
            Happening::StepDownAsked { number, reason, by, to, .. } => {
                (self.kind, self.number) = ("step-down asked", Some(*number));
                (self.reason, self.by) = (Some(reason.as_str()), Some(by.as_str()));
                self.heir = to.as_ref().map(MemberId::as_str);
            }
            Happening::Paused { reason, by, .. } => {
                self.kind = "paused";
                (self.reason, self.by) = (Some(reason.as_str()), Some(by.as_str()));
            }
            Happening::Resumed { by, .. } => {
                (self.kind, self.by) = ("resumed", Some(by.as_str()));
            }
        }
    }
}

const ENDS: [(EndCause, &str, &str); 4] = [
    (EndCause::Expired, "expired", "ended: expired"),
    (EndCause::ProvenDead, "proven dead", "ended: proven dead"),
    (EndCause::Superseded, "superseded", "ended: superseded"),
    (EndCause::Evicted, "evicted", "ended: evicted"),
];

const RELEASES: [(ReleaseCause, &str); 4] = [
    (ReleaseCause::Resigned, "resigned"),
    (ReleaseCause::SteppedDown, "stepped down"),
    (ReleaseCause::Abandoned, "abandoned"),
    (ReleaseCause::Left, "left"),
];

fn end_word(cause: EndCause) -> &'static str {
    ENDS.iter().find(|(c, ..)| *c == cause).map_or("expired", |(_, word, _)| word)
}

fn release_word(cause: ReleaseCause) -> &'static str {
    if let ReleaseCause::Ended(end) = cause {
        return ENDS.iter().find(|(c, ..)| *c == end).map_or("ended: expired", |(.., word)| word);
    }
    RELEASES.iter().find(|(c, _)| *c == cause).map_or("abandoned", |(_, word)| word)
}

fn end_cause(word: &str) -> Option<EndCause> {
    ENDS.iter().find(|(_, w, _)| *w == word).map(|(cause, ..)| *cause)
}

fn release_cause(word: &str) -> Option<ReleaseCause> {
    let plain = RELEASES.iter().find(|(_, w)| *w == word).map(|(cause, _)| *cause);
    let end = || ENDS.iter().find(|(.., w)| *w == word).map(|(c, ..)| ReleaseCause::Ended(*c));
    plain.or_else(end)
}

/// At most `limit` entries after `after`, oldest first.
pub(crate) fn after(db: &Connection, ns: &str, after: Seq, limit: usize) -> Outcome<Vec<Entry>> {
    let mut select = db.prepare_cached(include_str!("sql/journal_after.sql"))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    collect(&mut select, &[Value::from(ns.to_owned()), number(after.get()).into(), limit.into()])
}

/// The newest `limit` entries, oldest first; of one election if it is named.
pub(crate) fn newest(
    db: &Connection,
    ns: &str,
    election: Option<&ElectionName>,
    limit: usize,
) -> Outcome<Vec<Entry>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut found = match election {
        None => {
            let mut select = db.prepare_cached(include_str!("sql/journal_newest.sql"))?;
            collect(&mut select, &[Value::from(ns.to_owned()), limit.into()])?
        }
        Some(election) => {
            let mut select = db.prepare_cached(include_str!("sql/journal_of.sql"))?;
            let election = Value::from(election.as_str().to_owned());
            collect(&mut select, &[Value::from(ns.to_owned()), election, limit.into()])?
        }
    };
    found.reverse();
    Ok(found)
}

fn collect(select: &mut CachedStatement<'_>, params: &[Value]) -> Outcome<Vec<Entry>> {
    let mut rows = select.query(rusqlite::params_from_iter(params))?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(entry(row)?);
    }
    Ok(entries)
}

/// The entry in this row. A value that no entry can have is damage, and is
/// told with its place.
fn entry(row: &Row<'_>) -> Outcome<Entry> {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    read(row).map_err(|fault| match fault {
        Fault::Sql(
            FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..),
        ) => Fault::Damaged(format!("{} of the journal", place(row))),
        // A part of it was refused, by what knows nothing of where it stands.
        Fault::Damaged(part) if !part.ends_with(" of the journal") => {
            Fault::Damaged(format!("{} of the journal, {part},", place(row)))
        }
        other => other,
    })
}

fn place(row: &Row<'_>) -> i64 {
    row.get("seq").unwrap_or_default()
}

fn read(row: &Row<'_>) -> Outcome<Entry> {
    let seq: u64 = row.get("seq")?;
    let damaged = || Fault::Damaged(format!("{seq} of the journal"));
    let text = |column: &str| row.get::<_, Option<String>>(column);
    let note = |column: &str| text(column).map(|t| Note::new(t.unwrap_or_default()));
    let optional_id = |column: &str| -> Outcome<Option<MemberId>> {
        text(column)?.map(|id| name("the journal", &id)).transpose()
    };
    let election = || -> Outcome<ElectionName> {
        name("the journal", &text("election")?.ok_or_else(damaged)?)
    };
    let member = || -> Outcome<MemberRef> {
        let id = optional_id("member")?.ok_or_else(damaged)?;
        let life: Option<Incarnation> = text("incarnation")?.and_then(|hex| hex.parse().ok());
        Ok(MemberRef::new(id, life.ok_or_else(damaged)?))
    };
    let term_number = || row.get::<_, u64>("number").map(TermNumber::new);
    let at = Timestamp::from_unix_millis(row.get("at")?);
    let what = match row.get::<_, String>("kind")?.as_str() {
        "joined" => Happening::Joined { member: member()?, profile: profile(row)? },
        "left" => Happening::Left { member: member()? },
        "ended" => {
            let cause = text("cause")?.and_then(|w| end_cause(&w)).ok_or_else(damaged)?;
            Happening::Ended { member: member()?, cause }
        }
        "stood" => Happening::Stood {
            election: election()?,
            member: member()?,
            priority: Priority::new(row.get("priority")?),
        },
        "elected" => Happening::Elected {
            term: Term {
                election: election()?,
                number: term_number()?,
                member: member()?,
                elected_at: at,
            },
        },
        "released" => Happening::Released {
            election: election()?,
            number: term_number()?,
            member: member()?,
            cause: text("cause")?.and_then(|w| release_cause(&w)).ok_or_else(damaged)?,
            heir: optional_id("heir")?,
        },
        "step-down asked" => Happening::StepDownAsked {
            election: election()?,
            number: term_number()?,
            reason: note("reason")?,
            by: note("by_whom")?,
            to: optional_id("heir")?,
        },
        "paused" => Happening::Paused {
            election: election()?,
            reason: note("reason")?,
            by: note("by_whom")?,
        },
        "resumed" => Happening::Resumed { election: election()?, by: note("by_whom")? },
        _ => return Err(damaged()),
    };
    Ok(Entry { seq: Seq::new(seq), at, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_happening() -> Vec<Happening> {
        let member = MemberRef::new(MemberId::new("m").unwrap(), Incarnation::from_u128(u128::MAX));
        let election = ElectionName::new("wählen").unwrap();
        let number = TermNumber::new(3);
        let profile = Profile::new(["h:1", "h:2"], [0, 255, 10]).unwrap();
        let (reason, by) = (Note::new("why"), Note::new("who"));
        let heir = Some(MemberId::new("h").unwrap());
        let elected_at = Timestamp::from_unix_millis(77);
        let mut all = vec![
            Happening::Joined { member: member.clone(), profile: profile.clone() },
            Happening::Joined { member: member.clone(), profile: Profile::default() },
            Happening::Left { member: member.clone() },
            Happening::Stood {
                election: election.clone(),
                member: member.clone(),
                priority: Priority::new(u16::MAX),
            },
            Happening::Elected {
                term: Term {
                    election: election.clone(),
                    number,
                    member: member.clone(),
                    elected_at,
                },
            },
            Happening::StepDownAsked {
                election: election.clone(),
                number,
                reason: reason.clone(),
                by: by.clone(),
                to: heir.clone(),
            },
            Happening::Paused { election: election.clone(), reason, by: by.clone() },
            Happening::Resumed { election: election.clone(), by },
        ];
        let ends = ENDS.map(|(cause, ..)| cause);
        let released = RELEASES.map(|(cause, _)| cause).into_iter();
        for cause in released.chain(ends.map(ReleaseCause::Ended)) {
            let (election, member, heir) = (election.clone(), member.clone(), heir.clone());
            all.push(Happening::Released { election, number, member, cause, heir });
        }
        all.extend(ends.map(|cause| Happening::Ended { member: member.clone(), cause }));
        all
    }

    /// H26: what is written is what is read, byte for byte.
    #[test]
    fn every_happening_is_read_back_as_it_was_written() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("sql/schema.sql")).unwrap();
        let at = Timestamp::from_unix_millis(77);
        let entries: Vec<Entry> = (1..)
            .zip(every_happening())
            .map(|(seq, what)| Entry { seq: Seq::new(seq), at, what })
            .collect();
        for entry in &entries {
            append(&db, "ns", entry).unwrap();
        }
        assert_eq!(after(&db, "ns", Seq::START, 1_000).unwrap(), entries);
        assert_eq!(newest(&db, "ns", None, 2).unwrap(), entries[entries.len() - 2..]);
        let of = ElectionName::new("wählen").unwrap();
        let concerning = newest(&db, "ns", Some(&of), 1_000).unwrap();
        assert!(concerning.iter().all(|e| e.what.election() == Some(&of)));
        assert_eq!(concerning.len(), 13);
        assert_eq!(after(&db, "other", Seq::START, 10).unwrap(), []);
    }

    #[test]
    fn a_line_that_cannot_be_ours_is_an_error_and_not_a_panic() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("sql/schema.sql")).unwrap();
        db.execute("INSERT INTO tenure_journal (ns, seq, at, kind) VALUES ('n', 1, 0, 'left')", [])
            .unwrap();
        let error = after(&db, "n", Seq::START, 10).unwrap_err();
        assert!(error.to_string().contains("1 of the journal"), "{error}");
    }

    /// Rows that anybody may have written: each is a line or an error.
    #[test]
    fn any_row_is_a_line_or_an_error() {
        const KINDS: [&str; 10] = [
            "joined",
            "left",
            "ended",
            "stood",
            "elected",
            "released",
            "step-down asked",
            "paused",
            "resumed",
            "",
        ];
        const TEXTS: [Option<&str>; 7] =
            [None, Some(""), Some("a"), Some("\u{1}"), Some("2a"), Some("expired"), Some("a\nb")];
        const NUMBERS: [Option<i64>; 5] = [None, Some(0), Some(-1), Some(i64::MAX), Some(70_000)];
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("sql/schema.sql")).unwrap();
        let mut dice = tenure_testkit::Dice::new(3);
        let mut below = |most: usize| dice.below(most);
        let (mut lines, mut errors) = (0, 0);
        for _ in 0..5_000 {
            let (kind, number) = (KINDS[below(KINDS.len())], NUMBERS[below(NUMBERS.len())]);
            let (priority, at) = (NUMBERS[below(NUMBERS.len())], NUMBERS[1 + below(4)]);
            let text: Vec<Option<&str>> = (0..8).map(|_| TEXTS[below(TEXTS.len())]).collect();
            db.execute("DELETE FROM tenure_journal", []).unwrap();
            db.execute(
                "INSERT INTO tenure_journal VALUES ('n', 1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
                 ?10, ?11, ?12, NULL)",
                rusqlite::params![
                    at, kind, text[0], number, text[1], text[2], priority, text[3], text[4],
                    text[5], text[6], text[7]
                ],
            )
            .unwrap();
            match after(&db, "n", Seq::START, 10) {
                Ok(read) => lines += read.len(),
                Err(error) => {
                    errors += 1;
                    assert!(error.to_string().contains("is not one that Tenure writes"), "{error}");
                }
            }
        }
        assert!(lines > 50 && errors > 500, "{lines} lines, {errors} errors: too one-sided");
    }
}
