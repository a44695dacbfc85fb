//! Elections, as `tenure status` and `tenure elections` answer.

use serde::{Deserialize, Serialize};
use tenure_core::{ElectionView, Holder, Profile};

use crate::{Cause, Moment, millis};

/// One election, as it stood at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Election {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub election: String,
    /// The newest number ever given out; 0 before the first.
    pub term: u64,
    /// The leader; `null` if the election is vacant.
    pub leader: Option<Leader>,
    /// When the leader was elected, by the store's clock.
    pub elected_at: Option<Moment>,
    /// What is left of the leader's ttl, unless it is renewed.
    pub expires_in_ms: Option<u64>,
    /// Set while no member is newly elected.
    pub paused: Option<Paused>,
    /// Set while the leader is asked to step down.
    pub step_down: Option<StepDown>,
    /// Set while the vacancy is kept for a candidate.
    pub reserved: Option<Reserved>,
    /// Set while something else than a leader keeps the vacancy from being won, as far as
    /// the store knows.
    pub held_up: Option<HeldUp>,
    /// The live candidates in order of preference, the leader among them.
    pub candidates: Vec<Candidate>,
}

/// The leader of an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The member's id.
    pub id: String,
    /// Which life of the member.
    pub incarnation: String,
    /// Where it can be reached.
    pub endpoints: Vec<String>,
    /// What it publishes.
    pub metadata: Metadata,
}

/// What a member publishes: bytes, which are mostly text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Metadata {
    /// The bytes are text.
    Text(String),
    /// The bytes are not text.
    Bytes {
        /// In hexadecimal.
        hex: String,
    },
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// Why.
    pub reason: String,
    /// The operator.
    pub by: String,
}

/// A request to step down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDown {
    /// The term that it is meant for.
    pub term: u64,
    /// Why.
    pub reason: String,
    /// The operator.
    pub by: String,
    /// The candidate to hand over to.
    pub to: Option<String>,
}

/// A vacancy that is kept for a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// The candidate.
    #[serde(rename = "for")]
    pub member: String,
    /// How much longer.
    pub expires_in_ms: u64,
}

/// What keeps a vacancy from being won.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldUp {
    /// The cause and what to do, for people.
    pub because: String,
    /// The database's process whose open transaction it is.
    pub process: Option<u32>,
    /// The last leader, if it is processes of its that still run.
    pub member: Option<String>,
}

/// A member that stands for an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The member's id.
    pub id: String,
    /// Preferred candidates have a higher one; 0 never leads.
    pub priority: u16,
    /// How long it has been standing.
    pub waiting_ms: u64,
}

/// How the last term of a vacant election ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The member that led.
    pub member: String,
    /// When it ended, by the store's clock.
    pub at: Moment,
    /// Why it ended.
    pub cause: Cause,
}

/// An election, and why it is vacant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The election.
    #[serde(flatten)]
    pub election: Election,
    /// How its last term ended, if it is vacant and the journal still says so.
    pub ended: Option<Ended>,
}

/// How the store is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreHealth {
    /// The kind of store, as in its URL.
    pub kind: String,
    /// Its URL without secrets.
    pub url: String,
    /// How long a read took, to the microsecond.
    pub round_trip_ms: f64,
    /// How changes are noticed.
    pub notifications: String,
    /// What is wrong with them, and what to do.
    pub trouble: Option<String>,
}

/// The answer of `tenure status NAME`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusOfOne {
    /// The election.
    #[serde(flatten)]
    pub status: Status,
    /// The store.
    pub store: StoreHealth,
}

/// The answer of `tenure status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusOfAll {
    /// The namespace.
    pub namespace: String,
    /// The store.
    pub store: StoreHealth,
    /// Its elections.
    pub elections: Vec<Status>,
    /// Its names, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<NameCounts>,
}

/// How many names are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameCounts {
    /// Names that are bound.
    pub bound: u64,
    /// Lives that own some of them.
    pub owners: u64,
}

/// The answer of `tenure elections`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elections {
    /// The namespace.
    pub namespace: String,
    /// Its elections, by name.
    pub elections: Vec<Election>,
}

impl Election {
    /// The election as a store tells of it.
    #[must_use]
    pub fn new(namespace: &str, view: &ElectionView) -> Self {
        let holder = view.holder.as_ref();
        let candidate = |candidate: &tenure_core::Candidate| Candidate {
            id: candidate.member.id.to_string(),
            priority: candidate.priority.get(),
            waiting_ms: millis(candidate.waiting),
        };
        Self {
            namespace: namespace.into(),
            election: view.election.to_string(),
            term: view.number.get(),
            leader: holder.map(Leader::from),
            elected_at: holder.map(|holder| holder.elected_at.into()),
            expires_in_ms: holder.map(|holder| millis(holder.remaining)),
            paused: view.paused.as_ref().map(Paused::from),
            step_down: view.step_down.as_ref().map(StepDown::from),
            reserved: view.reserved.as_ref().map(Reserved::from),
            held_up: view.held_up.as_ref().map(HeldUp::from),
            candidates: view.candidates.iter().map(candidate).collect(),
        }
    }
}

impl From<&Holder> for Leader {
    fn from(holder: &Holder) -> Self {
        Self {
            id: holder.member.id.to_string(),
            incarnation: holder.member.incarnation.to_string(),
            endpoints: holder.profile.endpoints().to_vec(),
            metadata: (&holder.profile).into(),
        }
    }
}

impl From<&Profile> for Metadata {
    fn from(profile: &Profile) -> Self {
        Self::of(profile.metadata())
    }
}

impl Metadata {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.into()),
            Err(_) => {
                let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
                Self::Bytes { hex: digits.collect() }
            }
        }
    }
}

impl From<&tenure_core::Pause> for Paused {
    fn from(pause: &tenure_core::Pause) -> Self {
        Self { reason: pause.reason.to_string(), by: pause.by.to_string() }
    }
}

impl From<&tenure_core::StepDown> for StepDown {
    fn from(asked: &tenure_core::StepDown) -> Self {
        Self {
            term: asked.number.get(),
            reason: asked.reason.to_string(),
            by: asked.by.to_string(),
            to: asked.to.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&tenure_core::Reservation> for Reserved {
    fn from(kept: &tenure_core::Reservation) -> Self {
        Self { member: kept.member.to_string(), expires_in_ms: millis(kept.remaining) }
    }
}

impl From<&tenure_core::HeldUp> for HeldUp {
    fn from(held_up: &tenure_core::HeldUp) -> Self {
        let (process, member) = match held_up {
            tenure_core::HeldUp::Transaction { process } => (*process, None),
            tenure_core::HeldUp::Processes { member } => (None, Some(member.id.to_string())),
            _ => (None, None),
        };
        Self { because: held_up.to_string(), process, member }
    }
}
