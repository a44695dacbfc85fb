//! Past terms, as `tenure history` answers.

use serde::{Deserialize, Serialize};

use crate::{Cause, Moment};

/// A term, with its end if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastTerm {
    /// Its number.
    pub term: u64,
    /// The member that led.
    pub member: String,
    /// Which life of the member.
    pub incarnation: String,
    /// When it began, by the store's clock.
    pub from: Moment,
    /// When it ended; `null` while it stands, and if that is not written down.
    pub to: Option<Moment>,
    /// From its beginning to its end.
    pub lasted_ms: Option<u64>,
    /// Why it ended.
    pub ended: Option<Cause>,
    /// Whether it stands.
    pub stands: bool,
    /// While it stands: what is left of the leader's ttl.
    pub remaining_ms: Option<u64>,
    /// Where its beginning stands in the journal.
    pub seq: u64,
}

/// Too many terms in too short a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flapping {
    /// How many terms began.
    pub terms: usize,
    /// Within what time.
    pub within_ms: u64,
}

/// The terms of one election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectionHistory {
    /// The election.
    pub election: String,
    /// Its newest terms, oldest first.
    pub terms: Vec<PastTerm>,
    /// Set if its leadership flaps.
    pub flapping: Option<Flapping>,
}

/// The answer of `tenure history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The namespace.
    pub namespace: String,
    /// Its elections.
    pub elections: Vec<ElectionHistory>,
}
