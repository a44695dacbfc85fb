//! The record of one name, and that of the floor below which no number of a name is given
//! out again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tenure_core::{
    Incarnation, MemberId, MemberRef, Mono, Name, Nonce, Rev, Timestamp, Token, Value,
};
use tenure_rules::NameRow;

use super::format::{nanos, text, text_option, value};
use super::{Age, FORMAT, Record, Stamp};
use crate::judge::HangsOn;
use crate::memory::Memory;
use crate::seen::Table;

/// One name. One that was dropped stays as a small record until the floor has passed its
/// number, so that no number comes back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NameRecord {
    pub(crate) tenure: u32,
    #[serde(with = "text")]
    pub(crate) name: Name,
    pub(crate) revision: u64,
    /// The revision of its last change, which the next one follows.
    pub(crate) rev: u64,
    /// How it is bound; not at all if it was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bound: Option<BoundRecord>,
    #[serde(flatten)]
    pub(crate) other: Map<String, Json>,
}

/// How a name is bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BoundRecord {
    pub(crate) token: u64,
    /// Whose it is; it has no owner if this is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<OwnerRecord>,
    /// The life that wrote it last, if a member did, and by which attempt.
    #[serde(with = "text_option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<Incarnation>,
    pub(crate) nonce: u64,
    #[serde(with = "value")]
    pub(crate) value: Value,
    /// By the taker's wall clock; for people.
    pub(crate) bound_at_ms: u64,
    #[serde(flatten)]
    pub(crate) other: Map<String, Json>,
}

/// Whose a name is. It lives as long as its member's record says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnerRecord {
    #[serde(with = "text")]
    pub(crate) member: MemberId,
    #[serde(with = "text")]
    pub(crate) incarnation: Incarnation,
    /// The ttl of the request that took it, to be waited out where nothing can be learnt
    /// from the member's own record.
    #[serde(with = "nanos")]
    pub(crate) ttl_ns: Duration,
    #[serde(flatten)]
    pub(crate) other: Map<String, Json>,
}

impl OwnerRecord {
    pub(crate) fn new(owner: &MemberRef, ttl: Duration) -> Self {
        let member = owner.id.clone();
        let incarnation = owner.incarnation;
        Self { member, incarnation, ttl_ns: ttl, other: Map::new() }
    }

    pub(crate) fn member(&self) -> MemberRef {
        MemberRef::new(self.member.clone(), self.incarnation)
    }
}

impl NameRecord {
    /// A name that is not bound.
    pub(crate) fn free(name: Name) -> Self {
        Self { tenure: FORMAT, name, revision: 0, rev: 0, bound: None, other: Map::new() }
    }

    /// The name as the rules see it; `None` if it is not bound.
    pub(crate) fn row(&self) -> Option<NameRow> {
        let bound = self.bound.as_ref()?;
        Some(NameRow {
            name: self.name.clone(),
            token: Token::new(bound.token),
            rev: Rev::new(self.rev),
            owner: bound.owner.as_ref().map(OwnerRecord::member),
            by: bound.by,
            nonce: Nonce::new(bound.nonce),
            value: bound.value.clone(),
            bound_at: Timestamp::from_unix_millis(bound.bound_at_ms),
        })
    }

    pub(crate) fn owner(&self) -> Option<&OwnerRecord> {
        self.bound.as_ref()?.owner.as_ref()
    }

    /// What the binding hangs on; nothing, if it has no owner or is not bound.
    pub(crate) fn hangs_on(&self) -> Option<HangsOn> {
        let owner = self.owner()?;
        Some(HangsOn { life: owner.member(), ttl: owner.ttl_ns })
    }

    pub(crate) fn token(&self) -> Option<Token> {
        self.bound.as_ref().map(|bound| Token::new(bound.token))
    }

    /// The same binding under another number, which is its token.
    pub(crate) fn numbered(mut self, number: u64) -> Self {
        self.rev = number;
        if let Some(bound) = &mut self.bound {
            bound.token = number;
        }
        self
    }
}

impl Record for NameRecord {
    fn stamp(&self) -> Stamp {
        (u128::from(self.rev), u64::from(self.bound.is_some()))
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    /// The record may have been removed and made anew since; its numbers go on.
    fn age(&self) -> Age {
        (0, self.rev)
    }

    fn table(memory: &mut Memory) -> &mut Table<Self> {
        &mut memory.names
    }

    fn remember(&self, key: &str, memory: &mut Memory, _now: Mono) {
        memory.binding.saw_number(key, self.rev);
        if self.bound.is_none() {
            memory.binding.is_left_over(key);
        }
    }
}

/// What the floor of names is called.
pub(crate) const FLOOR: &str = "names";

/// What the floor of term numbers is called.
pub(crate) const ELECTIONS: &str = "elections";

/// The floor of names: every number of a name that has no record is at most this. It only
/// rises. Or that of terms, above which every number is that is given out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FloorRecord {
    pub(crate) tenure: u32,
    /// Of what: [`FLOOR`] or [`ELECTIONS`].
    pub(crate) of: String,
    pub(crate) revision: u64,
    pub(crate) floor: u64,
    /// How often an operator has raised it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) eras: u64,
    #[serde(flatten)]
    pub(crate) other: Map<String, Json>,
}

impl FloorRecord {
    pub(crate) fn new() -> Self {
        Self::of(FLOOR)
    }

    pub(crate) fn of(what: &str) -> Self {
        let of = what.to_owned();
        Self { tenure: FORMAT, of, revision: 0, floor: 0, eras: 0, other: Map::new() }
    }
}

// As serde asks for it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(eras: &u64) -> bool {
    *eras == 0
}

impl Record for FloorRecord {
    fn stamp(&self) -> Stamp {
        (u128::from(self.floor), 0)
    }

    fn name(&self) -> &str {
        &self.of
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn age(&self) -> Age {
        (0, self.revision)
    }

    fn table(memory: &mut Memory) -> &mut Table<Self> {
        &mut memory.floors
    }

    fn remember(&self, _key: &str, _memory: &mut Memory, _now: Mono) {}
}
