//! The record of one election.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenure_core::{
    ElectionName, Incarnation, MemberId, MemberRef, Mono, Nonce, Note, Pause, Profile, StepDown,
    TermNumber, Timestamp,
};

use super::format::{nanos, note, profile, text, text_option};
use super::history::Past;
use super::{Age, FORMAT, Record, Stamp};
use crate::judge::HangsOn;
use crate::memory::Memory;
use crate::seen::Table;

/// One election.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ElectionRecord {
    pub(crate) tenure: u32,
    #[serde(with = "text")]
    pub(crate) election: ElectionName,
    pub(crate) revision: u64,
    pub(crate) number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<HolderRecord>,
    /// Who won last and by which attempt, whether or not the term still stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) won: Option<WonRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step_down: Option<StepDownRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paused: Option<PauseRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reserved: Option<ReservedRecord>,
    /// The last terms, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) history: Vec<Past>,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// Who holds it. It lives as long as its member's record says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HolderRecord {
    #[serde(with = "text")]
    pub(crate) member: MemberId,
    #[serde(with = "text")]
    pub(crate) incarnation: Incarnation,
    /// The ttl of the claim that won, to be waited out where nothing can be
    /// learnt from the member's own record.
    #[serde(with = "nanos")]
    pub(crate) ttl_ns: Duration,
    /// What it stood with.
    pub(crate) priority: u16,
    #[serde(with = "profile")]
    pub(crate) profile: Profile,
    /// By the winner's wall clock; for people.
    pub(crate) elected_at_ms: u64,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WonRecord {
    #[serde(with = "text")]
    pub(crate) incarnation: Incarnation,
    pub(crate) nonce: u64,
}

/// Meant for the term that the record shows; gone with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StepDownRecord {
    #[serde(with = "note")]
    pub(crate) reason: Note,
    #[serde(with = "note")]
    pub(crate) by: Note,
    #[serde(with = "text_option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<MemberId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PauseRecord {
    #[serde(with = "note")]
    pub(crate) reason: Note,
    #[serde(with = "note")]
    pub(crate) by: Note,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReservedRecord {
    #[serde(with = "text")]
    pub(crate) member: MemberId,
    /// How long, from when the observer first saw the vacancy.
    #[serde(with = "nanos")]
    pub(crate) grace_ns: Duration,
}

impl Record for ElectionRecord {
    fn stamp(&self) -> Stamp {
        (u128::from(self.number), u64::from(self.holder.is_some()))
    }

    fn name(&self) -> &str {
        self.election.as_str()
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn age(&self) -> Age {
        (0, self.revision)
    }

    fn table(memory: &mut Memory) -> &mut Table<Self> {
        &mut memory.elections
    }

    fn remember(&self, key: &str, memory: &mut Memory, _now: Mono) {
        memory.saw_number(key, self.number());
    }
}

impl ElectionRecord {
    /// An election that no member has won, whose numbers go on after `number`.
    pub(crate) fn vacant(election: ElectionName, number: TermNumber) -> Self {
        Self {
            tenure: FORMAT,
            election,
            revision: 0,
            number: number.get(),
            holder: None,
            won: None,
            step_down: None,
            paused: None,
            reserved: None,
            history: Vec::new(),
            other: Map::new(),
        }
    }

    pub(crate) fn number(&self) -> TermNumber {
        TermNumber::new(self.number)
    }

    /// Whether exactly this life holds it, live or not (rule E1).
    pub(crate) fn is_held_by(&self, member: &MemberRef) -> bool {
        self.holder.as_ref().is_some_and(|h| h.incarnation == member.incarnation)
    }

    /// The life that won last, and the attempt it won with.
    pub(crate) fn last_win(&self) -> Option<(Incarnation, Nonce)> {
        self.won.as_ref().map(|won| (won.incarnation, Nonce::new(won.nonce)))
    }

    /// The step-down asked of the present term.
    pub(crate) fn step_down(&self) -> Option<StepDown> {
        self.step_down.as_ref().map(|asked| StepDown {
            number: self.number(),
            reason: asked.reason.clone(),
            by: asked.by.clone(),
            to: asked.to.clone(),
        })
    }

    pub(crate) fn pause(&self) -> Option<Pause> {
        let paused = self.paused.as_ref()?;
        Some(Pause { reason: paused.reason.clone(), by: paused.by.clone() })
    }
}

impl HolderRecord {
    pub(crate) fn member(&self) -> MemberRef {
        MemberRef::new(self.member.clone(), self.incarnation)
    }

    pub(crate) fn hangs_on(&self) -> HangsOn {
        HangsOn { life: self.member(), ttl: self.ttl_ns }
    }

    pub(crate) fn elected_at(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.elected_at_ms)
    }
}
