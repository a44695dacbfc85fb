//! The record of what one member waits for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenure_core::{ElectionName, Incarnation, MemberId, MemberRef, Mono};

use super::format::{candidacies, text};
use super::{Age, FORMAT, Record, Stamp};
use crate::memory::Memory;
use crate::seen::Table;

/// The most elections one member may wait for in such a store: one record lists
/// them. What it holds is not counted.
pub const MAX_CANDIDACIES: usize = 10_000;

/// What a member waits for. Written only when that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CandidaciesRecord {
    pub(crate) tenure: u32,
    #[serde(with = "text")]
    pub(crate) member: MemberId,
    /// Whose candidacies these are: those of an older life count for nothing.
    #[serde(with = "text")]
    pub(crate) incarnation: Incarnation,
    pub(crate) revision: u64,
    #[serde(with = "candidacies", default)]
    pub(crate) elections: BTreeMap<ElectionName, CandidacyRecord>,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// Written as `[priority, order]`: there may be thousands of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CandidacyRecord {
    pub(crate) priority: u16,
    /// One more than the highest that was there when it began to stand: who
    /// waits longer, without a clock.
    pub(crate) order: u64,
}

impl CandidaciesRecord {
    pub(crate) fn new(member: &MemberRef, revision: u64) -> Self {
        let id = member.id.clone();
        let incarnation = member.incarnation;
        let elections = BTreeMap::new();
        let other = Map::new();
        Self { tenure: FORMAT, member: id, incarnation, revision, elections, other }
    }
}

impl Record for CandidaciesRecord {
    fn stamp(&self) -> Stamp {
        (self.incarnation.as_u128(), self.revision)
    }

    fn name(&self) -> &str {
        self.member.as_str()
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn age(&self) -> Age {
        (self.incarnation.as_u128(), self.revision)
    }

    fn table(memory: &mut Memory) -> &mut Table<Self> {
        &mut memory.standings
    }

    fn remember(&self, key: &str, memory: &mut Memory, now: Mono) {
        memory.saw_candidacies(key, self, now);
    }
}
