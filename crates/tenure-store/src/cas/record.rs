//! What is stored: self-describing JSON, one record for each election and one
//! for each member.
//!
//! Every record says which format it is of, and fields that this version does
//! not know are kept when it is rewritten. What cannot be read is
//! [`Foreign`](crate::ErrorKind::Foreign), never guessed at.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenure_core::{
    ElectionName, Incarnation, MemberId, MemberRef, Mono, Nonce, Note, Pause, Priority, Profile,
    StepDown, TermNumber, Timestamp,
};

use super::format::{nanos, note, profile, text, text_option};
use super::keys::names;
use super::past::Past;
use super::seen::{Memory, Table};
use crate::{Error, ErrorKind, Result};

/// The format this version writes, and the newest it reads.
pub(super) const FORMAT: u32 = 1;

/// The largest record, in bytes.
pub const MAX_RECORD: usize = 1 << 20;

/// The most elections one member may stand for in such a store: its record
/// lists them, and it is written at every heartbeat.
pub const MAX_CANDIDACIES: usize = 1_000;

/// A record of either kind.
pub(super) trait Record: Clone + Serialize + DeserializeOwned + Send + Sync {
    /// The sign of life in it: changed by every renewal, and by nothing that
    /// anybody but the holder does on top of it.
    fn stamp(&self) -> Stamp;

    /// The name it goes by, which its key must end with.
    fn name(&self) -> &str;

    /// Counts the writes, so that no content ever comes back.
    fn revision(&mut self) -> &mut u64;

    /// Where a handle keeps the records of this kind that it has seen.
    fn table(memory: &mut Memory) -> &mut Table<Self>;

    /// Notes what else is to be remembered of the record.
    fn remember(&self, key: &str, memory: &mut Memory, now: Mono);

    /// Forgets the record: it is not there.
    fn forget(key: &str, memory: &mut Memory);
}

/// See [`Record::stamp`].
pub(super) type Stamp = (u128, u64);

/// One election.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ElectionRecord {
    pub(super) tenure: u32,
    #[serde(with = "text")]
    pub(super) election: ElectionName,
    pub(super) revision: u64,
    pub(super) number: u64,
    /// Counts renewals, wins and releases.
    pub(super) beat: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<HolderRecord>,
    /// Who won last and by which attempt, whether or not the term still stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) won: Option<WonRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) step_down: Option<StepDownRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) paused: Option<PauseRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reserved: Option<ReservedRecord>,
    /// The last terms, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) history: Vec<Past>,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HolderRecord {
    #[serde(with = "text")]
    pub(super) member: MemberId,
    #[serde(with = "text")]
    pub(super) incarnation: Incarnation,
    #[serde(with = "nanos")]
    pub(super) ttl_ns: Duration,
    #[serde(with = "profile")]
    pub(super) profile: Profile,
    /// By the winner's wall clock; for people.
    pub(super) elected_at_ms: u64,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WonRecord {
    #[serde(with = "text")]
    pub(super) incarnation: Incarnation,
    pub(super) nonce: u64,
}

/// Meant for the term that the record shows; gone with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StepDownRecord {
    #[serde(with = "note")]
    pub(super) reason: Note,
    #[serde(with = "note")]
    pub(super) by: Note,
    #[serde(with = "text_option", default, skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<MemberId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PauseRecord {
    #[serde(with = "note")]
    pub(super) reason: Note,
    #[serde(with = "note")]
    pub(super) by: Note,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ReservedRecord {
    #[serde(with = "text")]
    pub(super) member: MemberId,
    /// How long, from when the observer first saw the vacancy.
    #[serde(with = "nanos")]
    pub(super) grace_ns: Duration,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct MemberRecord {
    pub(super) tenure: u32,
    #[serde(with = "text")]
    pub(super) member: MemberId,
    #[serde(with = "text")]
    pub(super) incarnation: Incarnation,
    pub(super) revision: u64,
    /// Counts heartbeats.
    pub(super) beat: u64,
    #[serde(with = "nanos")]
    pub(super) ttl_ns: Duration,
    #[serde(with = "profile")]
    pub(super) profile: Profile,
    /// By its own wall clock; for people.
    pub(super) joined_at_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) condemned: bool,
    #[serde(default)]
    pub(super) attention: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) candidacies: Vec<CandidacyRecord>,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CandidacyRecord {
    #[serde(with = "text")]
    pub(super) election: ElectionName,
    pub(super) priority: u16,
    /// One more than the highest that was there when it began to stand: who
    /// waits longer, without a clock.
    pub(super) order: u64,
}

impl Record for ElectionRecord {
    fn stamp(&self) -> Stamp {
        (u128::from(self.number), self.beat)
    }

    fn name(&self) -> &str {
        self.election.as_str()
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn table(memory: &mut Memory) -> &mut Table<Self> {
        &mut memory.elections
    }

    fn remember(&self, key: &str, memory: &mut Memory, _now: Mono) {
        memory.saw_number(key, self.number());
    }

    fn forget(key: &str, memory: &mut Memory) {
        memory.elections.forget(key);
    }
}

impl Record for MemberRecord {
    fn stamp(&self) -> Stamp {
        (self.incarnation.as_u128(), self.beat)
    }

    fn name(&self) -> &str {
        self.member.as_str()
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn table(memory: &mut Memory) -> &mut Table<Self> {
        &mut memory.members
    }

    fn remember(&self, key: &str, memory: &mut Memory, now: Mono) {
        memory.saw_candidacies(key, self, now);
    }

    fn forget(key: &str, memory: &mut Memory) {
        memory.forget_member(key);
    }
}

/// The bytes of a record.
pub(super) fn encode<R: Record>(key: &str, record: &R) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(record).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("writing the record {key} failed"))
            .caused_by(error)
            .remedy("report this as a defect")
    })?;
    if bytes.len() > MAX_RECORD {
        let size = bytes.len();
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("the record {key} would be {size} bytes: the limit is {MAX_RECORD} bytes"),
        )
        .remedy("stand for fewer elections, or publish less metadata"));
    }
    Ok(bytes)
}

/// Only what tells whether the rest can be read.
#[derive(Deserialize)]
struct Header {
    tenure: u32,
}

/// The record in these bytes.
pub(super) fn decode<R: Record>(key: &str, bytes: &[u8]) -> Result<R> {
    let foreign = |what: String| {
        Error::new(ErrorKind::Foreign, what).remedy(
            "use another prefix, or repair the record by hand: its term number must not go back",
        )
    };
    if bytes.len() > MAX_RECORD {
        let size = bytes.len();
        return Err(foreign(format!("the record {key} is {size} bytes: no record of ours")));
    }
    let header: Header = serde_json::from_slice(bytes).map_err(|error| {
        foreign(format!("the record {key} is damaged or not of Tenure")).caused_by(error)
    })?;
    if header.tenure > FORMAT {
        let found = header.tenure;
        let what =
            format!("the record {key} is of format {found}, and this version reads up to {FORMAT}");
        return Err(Error::new(ErrorKind::Foreign, what).remedy("upgrade this program"));
    }
    let record: R = serde_json::from_slice(bytes)
        .map_err(|error| foreign(format!("the record {key} is damaged")).caused_by(error))?;
    if !names(key, record.name()) {
        let name = record.name();
        return Err(foreign(format!("the record {key} was copied here: it is of {name:?}")));
    }
    Ok(record)
}

impl ElectionRecord {
    /// An election nobody has won, whose numbers go on after `number`.
    pub(super) fn vacant(election: ElectionName, number: TermNumber) -> Self {
        Self {
            tenure: FORMAT,
            election,
            revision: 0,
            number: number.get(),
            beat: 0,
            holder: None,
            won: None,
            step_down: None,
            paused: None,
            reserved: None,
            history: Vec::new(),
            other: Map::new(),
        }
    }

    pub(super) fn number(&self) -> TermNumber {
        TermNumber::new(self.number)
    }

    /// Whether exactly this life holds it, live or not (rule E1).
    pub(super) fn is_held_by(&self, member: &MemberRef) -> bool {
        self.holder.as_ref().is_some_and(|h| h.incarnation == member.incarnation)
    }

    /// The attempt this life won with, if it was the last to win.
    pub(super) fn won_with(&self, member: &MemberRef) -> Option<Nonce> {
        let won = self.won.as_ref().filter(|w| w.incarnation == member.incarnation);
        won.map(|w| Nonce::new(w.nonce))
    }

    /// The step-down asked of the present term.
    pub(super) fn step_down(&self) -> Option<StepDown> {
        self.step_down.as_ref().map(|asked| StepDown {
            number: self.number(),
            reason: asked.reason.clone(),
            by: asked.by.clone(),
            to: asked.to.clone(),
        })
    }

    pub(super) fn pause(&self) -> Option<Pause> {
        let paused = self.paused.as_ref()?;
        Some(Pause { reason: paused.reason.clone(), by: paused.by.clone() })
    }
}

impl HolderRecord {
    pub(super) fn member(&self) -> MemberRef {
        MemberRef::new(self.member.clone(), self.incarnation)
    }

    pub(super) fn elected_at(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.elected_at_ms)
    }
}

impl MemberRecord {
    pub(super) fn member(&self) -> MemberRef {
        MemberRef::new(self.member.clone(), self.incarnation)
    }

    pub(super) fn candidacy(&self, election: &ElectionName) -> Option<&CandidacyRecord> {
        self.candidacies.iter().find(|c| c.election == *election)
    }
}

impl CandidacyRecord {
    pub(super) fn priority(&self) -> Priority {
        Priority::new(self.priority)
    }
}

#[cfg(test)]
mod tests;
