//! Rows of the tables, as values.

use std::str::FromStr;
use std::time::Duration;

use rusqlite::Row;
use tenure_core::{
    BadName, ElectionName, Incarnation, MemberId, MemberRef, Mono, Note, Pause, Priority, Profile,
    StepDown, TermNumber, Timestamp,
};

use crate::error::{Fault, Outcome};
use crate::journal::number;
use crate::judge::{Sighted, Stamp};

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

fn incarnation(text: &str) -> Outcome<Incarnation> {
    text.parse().map_err(|_| Fault::Damaged(format!("with the incarnation {text:?}")))
}

/// A row of `tenure_members`.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) member: MemberRef,
    pub(crate) boot: String,
    /// The inode of its lock file.
    pub(crate) lock: u64,
    beat: u64,
    beat_at: Mono,
    pub(crate) ttl: Duration,
    pub(crate) holds: u32,
    pub(crate) attention: u64,
    pub(crate) condemned: bool,
    pub(crate) joined_at: Timestamp,
    pub(crate) profile: Profile,
}

impl Member {
    pub(crate) fn read(row: &Row<'_>) -> Outcome<Self> {
        Ok(Self {
            member: member_ref(row)?,
            boot: row.get("boot")?,
            lock: row.get::<_, i64>("lock")?.cast_unsigned(),
            beat: row.get("beat")?,
            beat_at: Mono::from_nanos(row.get("beat_at")?),
            ttl: Duration::from_nanos(row.get("ttl")?),
            holds: row.get("holds")?,
            attention: row.get("attention")?,
            condemned: row.get("condemned")?,
            joined_at: Timestamp::from_unix_millis(row.get("joined_at")?),
            profile: profile(row)?,
        })
    }

    /// What its life is judged by.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            what: Sighted::Life(self.member.incarnation),
            count: self.beat,
            boot: self.boot.clone(),
            at: self.beat_at,
            span: self.ttl,
        }
    }
}

/// A row of `tenure_elections`.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    pub(crate) name: ElectionName,
    pub(crate) number: TermNumber,
    pub(crate) holder: Option<MemberRef>,
    pub(crate) elected_at: Timestamp,
    /// Who won last and by which attempt, whether or not the term still stands.
    pub(crate) winner: Option<(Incarnation, u64)>,
    pub(crate) paused: Option<Pause>,
    pub(crate) step_down: Option<StepDown>,
    pub(crate) reserved: Option<Reserved>,
}

/// A vacancy that is kept for somebody.
#[derive(Clone, Debug)]
pub(crate) struct Reserved {
    pub(crate) heir: MemberId,
    pub(crate) stamp: Stamp,
}

impl Election {
    /// An election without a row.
    pub(crate) fn unknown(name: ElectionName) -> Self {
        let (number, elected_at) = (TermNumber::NONE, Timestamp::default());
        let (holder, winner, paused, step_down, reserved) = (None, None, None, None, None);
        Self { name, number, holder, elected_at, winner, paused, step_down, reserved }
    }

    pub(crate) fn read(row: &Row<'_>) -> Outcome<Self> {
        let text = |column: &str| row.get::<_, Option<String>>(column);
        let id = |column: &str| -> Outcome<Option<MemberId>> {
            text(column)?.map(|id| name("tenure_elections", &id)).transpose()
        };
        let life = |column: &str| -> Outcome<Option<Incarnation>> {
            text(column)?.map(|hex| incarnation(&hex)).transpose()
        };
        let own: String = row.get("name")?;
        let own = name("tenure_elections", &own)?;
        let number = TermNumber::new(row.get("number")?);
        let nonce = row.get::<_, i64>("nonce")?.cast_unsigned();
        let pause = (text("pause_reason")?, text("pause_by")?);
        let step = (text("step_reason")?, text("step_by")?);
        Ok(Self {
            holder: id("holder")?.zip(life("incarnation")?).map(|(i, l)| MemberRef::new(i, l)),
            elected_at: Timestamp::from_unix_millis(row.get("elected_at")?),
            winner: life("winner")?.map(|winner| (winner, nonce)),
            paused: pause
                .0
                .zip(pause.1)
                .map(|(reason, by)| Pause { reason: Note::new(reason), by: Note::new(by) }),
            step_down: match step {
                (Some(reason), Some(by)) => {
                    let (reason, by) = (Note::new(reason), Note::new(by));
                    Some(StepDown { number, reason, by, to: id("step_to")? })
                }
                _ => None,
            },
            reserved: reserved(row, &own, number, id("heir")?)?,
            name: own,
            number,
        })
    }

    pub(crate) fn is_held_by(&self, member: &MemberRef) -> bool {
        self.holder.as_ref() == Some(member)
    }
}

fn reserved(
    row: &Row<'_>,
    election: &ElectionName,
    number: TermNumber,
    heir: Option<MemberId>,
) -> Outcome<Option<Reserved>> {
    let Some(heir) = heir else { return Ok(None) };
    let stamp = Stamp {
        what: Sighted::Vacancy(row.get("ns")?, election.as_str().to_owned()),
        count: number.get(),
        boot: row.get("heir_boot")?,
        at: Mono::from_nanos(row.get("heir_from")?),
        span: Duration::from_nanos(row.get("heir_span")?),
    };
    Ok(Some(Reserved { heir, stamp }))
}

/// A candidacy and the member it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) member: Member,
    pub(crate) priority: Priority,
    pub(crate) boot: String,
    pub(crate) since: Mono,
}

impl Standing {
    pub(crate) fn read(row: &Row<'_>) -> Outcome<Self> {
        Ok(Self {
            member: Member::read(row)?,
            priority: Priority::new(row.get("priority")?),
            boot: row.get("stood_boot")?,
            since: Mono::from_nanos(row.get("since")?),
        })
    }
}
