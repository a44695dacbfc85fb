//! The journal's rows: one line for each happening, in columns a person can
//! read with any SQLite tool.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rusqlite::{CachedStatement, Connection, Row, named_params, types::Value};
use tenure_core::{
    Columns, ElectionName, Entry, MemberId, MemberRef, Priority, Profile, Seq, TermNumber,
    Timestamp,
};

use crate::error::{Fault, Outcome};
use crate::rows::{endpoints_text, incarnation, name, profile};

/// Writes one entry.
pub(crate) fn append(db: &Connection, ns: &str, entry: &Entry) -> Outcome<()> {
    let row = entry.what.columns();
    let member = row.member.as_deref();
    let profile = row.profile.as_deref();
    let mut insert = db.prepare_cached(include_str!("sql/journal_append.sql"))?;
    insert.execute(named_params! {
        ":ns": ns,
        ":seq": number(entry.seq.get()),
        ":at": number(entry.at.unix_millis()),
        ":kind": row.kind,
        ":election": row.election.as_deref().map(ElectionName::as_str),
        ":number": row.number.map(|n| number(n.get())),
        ":member": member.map(|m| m.id.as_str()),
        ":incarnation": member.map(|m| m.incarnation.to_string()),
        ":priority": row.priority.map(|p| p.get()),
        ":cause": row.cause,
        ":heir": row.heir.as_deref().map(MemberId::as_str),
        ":endpoints": profile.map(endpoints_text),
        ":metadata": profile.map(Profile::metadata),
        ":details": details_text(&row),
    })?;
    Ok(())
}

/// A line for each; no text has a line break in it.
fn details_text(row: &Columns<'_>) -> Option<String> {
    let lines: Vec<_> = row.details.iter().map(|(word, text)| format!("{word}={text}")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// SQLite's integers are signed; ours stay far below the sign.
pub(crate) fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
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
    let at = Timestamp::from_unix_millis(row.get("at")?);
    let damaged = || Fault::Damaged(format!("{seq} of the journal"));
    let what = columns(row, damaged)?.happening(at).ok_or_else(damaged)?;
    Ok(Entry { seq: Seq::new(seq), at, what })
}

fn columns(row: &Row<'_>, damaged: impl Fn() -> Fault) -> Outcome<Columns<'static>> {
    let text = |column: &str| row.get::<_, Option<String>>(column);
    let id = |column: &str| -> Outcome<Option<MemberId>> {
        text(column)?.map(|id| name("the journal", &id)).transpose()
    };
    let election = text("election")?.map(|e| name("the journal", &e)).transpose()?;
    let member = match (id("member")?, text("incarnation")?) {
        (Some(id), Some(life)) => Some(MemberRef::new(id, incarnation(&life)?)),
        _ => None,
    };
    let mut details = BTreeMap::new();
    for line in text("details")?.iter().flat_map(|lines| lines.split('\n')) {
        let (word, text) = line.split_once('=').ok_or_else(&damaged)?;
        details.insert(word.to_owned().into(), text.to_owned().into());
    }
    Ok(Columns {
        kind: row.get::<_, String>("kind")?.into(),
        election: election.map(Cow::Owned),
        number: row.get::<_, Option<u64>>("number")?.map(TermNumber::new),
        member: member.map(Cow::Owned),
        priority: row.get::<_, Option<u16>>("priority")?.map(Priority::new),
        cause: text("cause")?.map(Cow::Owned),
        heir: id("heir")?.map(Cow::Owned),
        profile: Some(Cow::Owned(profile(row)?)),
        details,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H26: what is written is what is read, byte for byte.
    #[test]
    fn every_happening_is_read_back_as_it_was_written() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("sql/schema.sql")).unwrap();
        let at = Timestamp::from_unix_millis(77);
        let entries: Vec<Entry> = (1..)
            .zip(tenure_testkit::happenings::each(at))
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
        assert_eq!(concerning.len(), 14);
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

    /// Rows that any program may have written: each is a line or an error.
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
        const TEXTS: [Option<&str>; 7] = [
            None,
            Some(""),
            Some("a"),
            Some("\u{1}"),
            Some("2a"),
            Some("expired"),
            Some("a=b\nc="),
        ];
        const NUMBERS: [Option<i64>; 5] = [None, Some(0), Some(-1), Some(i64::MAX), Some(70_000)];
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("sql/schema.sql")).unwrap();
        let mut dice = tenure_testkit::Dice::new(3);
        let mut below = |most: usize| dice.below(most);
        let mut lines = 0;
        let mut errors = 0;
        for _ in 0..5_000 {
            let kind = KINDS[below(KINDS.len())];
            let number = NUMBERS[below(NUMBERS.len())];
            let at = NUMBERS[1 + below(4)];
            // Every column is read, so that most have to be right for a line.
            let priority = [None, Some(3), Some(70_000)][below(3)];
            let details = [None, Some("by=a\nreason=b"), Some("a")][below(3)];
            let mut one = || if below(4) > 0 { Some("2a") } else { TEXTS[below(TEXTS.len())] };
            let text: Vec<Option<&str>> = (0..6).map(|_| one()).collect();
            db.execute("DELETE FROM tenure_journal", []).unwrap();
            db.execute(
                "INSERT INTO tenure_journal VALUES ('n', 1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
                 ?10, NULL, ?11)",
                rusqlite::params![
                    at, kind, text[0], number, text[1], text[2], priority, text[3], text[4],
                    text[5], details
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
