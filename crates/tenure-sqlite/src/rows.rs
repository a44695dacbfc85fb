//! Rows of the tables, as values, and what they mean to the rules at one moment.

use std::str::FromStr;
use std::time::Duration;

use rusqlite::Row;
use tenure_core::{
    BadName, ElectionName, Incarnation, MemberId, MemberRef, Mono, Nonce, Note, Pause, Priority,
    Profile, Seq, StepDown, TermNumber, Timestamp,
};
use tenure_rules::{CandidacyRow, ElectionRow, Held, MemberRow, Reserved};

use crate::error::{Fault, Outcome};
use crate::journal::number;
use crate::judge::{Judge, Sighted, Stamp};

/// A span as the tables keep it.
pub(crate) fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// An instant as the tables keep it.
pub(crate) fn instant(at: Mono) -> i64 {
    number(at.as_nanos())
}

/// Endpoints hold no control characters, so a line each is unambiguous.
pub(crate) fn endpoints_text(profile: &Profile) -> String {
    profile.endpoints().join("\n")
}

/// A profile out of the columns `endpoints` and `metadata`.
pub(crate) fn profile(row: &Row<'_>) -> Outcome<Profile> {
    let endpoints: Option<String> = row.get("endpoints")?;
    let metadata: Option<Vec<u8>> = row.get("metadata")?;
    let endpoints = endpoints.unwrap_or_default();
    let lines = endpoints.split('\n').filter(|line| !line.is_empty());
    Profile::new(lines, metadata.unwrap_or_default())
        .map_err(|bad| Fault::Damaged(format!("with a member's profile: {bad}")))
}

/// A checked name out of a column.
pub(crate) fn name<T: FromStr<Err = BadName>>(of: &str, text: &str) -> Outcome<T> {
    text.parse().map_err(|bad| Fault::Damaged(format!("of {of}: {bad}")))
}

/// A life out of the columns `id` and `incarnation`.
pub(crate) fn member_ref(row: &Row<'_>) -> Outcome<MemberRef> {
    let id: String = row.get("id")?;
    let life: String = row.get("incarnation")?;
    Ok(MemberRef::new(name("tenure_members", &id)?, incarnation(&life)?))
}

pub(crate) fn incarnation(text: &str) -> Outcome<Incarnation> {
    text.parse().map_err(|_| Fault::Damaged(format!("with the incarnation {text:?}")))
}

/// A row of `tenure_members`.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) boot: String,
    /// The inode of its lock file.
    pub(crate) lock: u64,
    beat: u64,
    beat_at: Mono,
    row: MemberRow,
}

impl Member {
    pub(crate) fn read(row: &Row<'_>) -> Outcome<Self> {
        Ok(Self {
            boot: row.get("boot")?,
            lock: row.get::<_, i64>("lock")?.cast_unsigned(),
            beat: row.get("beat")?,
            beat_at: Mono::from_nanos(row.get("beat_at")?),
            row: MemberRow {
                member: member_ref(row)?,
                profile: profile(row)?,
                ttl: Duration::from_nanos(row.get("ttl")?),
                // Not before a process judges.
                until: Mono::ZERO,
                joined_at: Timestamp::from_unix_millis(row.get("joined_at")?),
                attention: row.get("attention")?,
                condemned: row.get("condemned")?,
                inherits: row.get("takes_over")?,
                holds: row.get("holds")?,
            },
        })
    }

    /// The row with the moment at which its ttl runs out on the judge's clock.
    pub(crate) fn judged(self, judge: &Judge<'_>) -> MemberRow {
        let stamp = Stamp {
            what: Sighted::Life(self.row.member.incarnation),
            count: self.beat,
            boot: self.boot,
            at: self.beat_at,
            span: self.row.ttl,
        };
        MemberRow { until: judge.until(&stamp), ..self.row }
    }

    pub(crate) fn life(&self) -> Incarnation {
        self.row.member.incarnation
    }
}

/// A row of `tenure_elections`.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    row: ElectionRow,
    /// Until when a vacancy is kept.
    kept: Option<Stamp>,
    /// Until when a term that was handed over stands unconfirmed.
    lapses: Option<Stamp>,
}

impl Election {
    pub(crate) fn read(row: &Row<'_>) -> Outcome<Self> {
        let text = |column: &str| row.get::<_, Option<String>>(column);
        let id = |column: &str| -> Outcome<Option<MemberId>> {
            text(column)?.map(|id| name("tenure_elections", &id)).transpose()
        };
        let life = |column: &str| -> Outcome<Option<Incarnation>> {
            text(column)?.map(|hex| incarnation(&hex)).transpose()
        };
        let own: ElectionName = name("tenure_elections", &row.get::<_, String>("name")?)?;
        let number = TermNumber::new(row.get("number")?);
        let heir = id("heir")?;
        let handed = row.get("handed")?;
        let elected_at = Timestamp::from_unix_millis(row.get("elected_at")?);
        let nonce = Nonce::new(row.get::<_, i64>("nonce")?.cast_unsigned());
        let pause = text("pause_reason")?.zip(text("pause_by")?);
        let step_down = match text("step_reason")?.zip(text("step_by")?) {
            Some((reason, by)) => {
                let to = id("step_to")?;
                Some(StepDown { number, reason: Note::new(reason), by: Note::new(by), to })
            }
            None => None,
        };
        let place = (row.get::<_, String>("ns")?, own.as_str().to_owned());
        Ok(Self {
            kept: match heir {
                Some(_) => stamp(row, "heir", Sighted::Vacancy(place.clone()), number)?,
                None => None,
            },
            lapses: stamp(row, "lapse", Sighted::Handed(place), number)?,
            row: ElectionRow {
                name: own,
                number,
                era: row.get("era")?,
                won: life("winner")?.map(|winner| (winner, nonce)),
                holder: id("holder")?.zip(life("incarnation")?).map(|(id, life)| Held {
                    member: MemberRef::new(id, life),
                    elected_at,
                    handed,
                    lapses: None,
                }),
                step_down,
                paused: pause
                    .map(|(reason, by)| Pause { reason: Note::new(reason), by: Note::new(by) }),
                reserved: heir.map(|member| Reserved { member, until: Mono::ZERO }),
                changed_at: Timestamp::from_unix_millis(row.get("changed_at")?),
            },
        })
    }

    /// The row with its instants on the judge's clock.
    pub(crate) fn judged(self, judge: &Judge<'_>) -> ElectionRow {
        let mut row = self.row;
        if let (Some(reserved), Some(kept)) = (&mut row.reserved, &self.kept) {
            reserved.until = judge.until(kept);
        }
        if let Some(held) = &mut row.holder {
            held.lapses = self.lapses.as_ref().map(|lapses| judge.until(lapses));
        }
        row
    }
}

/// The instant and span in the columns that begin with `column`; none without a boot.
fn stamp(row: &Row<'_>, column: &str, what: Sighted, number: TermNumber) -> Outcome<Option<Stamp>> {
    let part = |part: &str| format!("{column}_{part}");
    let Some(boot) = row.get(part("boot").as_str())? else { return Ok(None) };
    Ok(Some(Stamp {
        what,
        count: number.get(),
        boot,
        at: Mono::from_nanos(row.get(part("from").as_str())?),
        span: Duration::from_nanos(row.get(part("span").as_str())?),
    }))
}

/// A candidacy out of a row that has its member's `id` and `incarnation`; the boot it
/// began in is in the column `boot`.
pub(crate) fn candidacy(
    row: &Row<'_>,
    election: &ElectionName,
    boot: &str,
    judge: &Judge<'_>,
) -> Outcome<CandidacyRow> {
    let boot: String = row.get(boot)?;
    let since = Mono::from_nanos(row.get("since")?);
    Ok(CandidacyRow {
        election: election.clone(),
        member: member_ref(row)?,
        priority: Priority::new(row.get("priority")?),
        stood: Seq::new(row.get("stood")?),
        // How long ago an instant of another boot was cannot be known.
        since: if boot == judge.boot { since } else { judge.now },
    })
}
