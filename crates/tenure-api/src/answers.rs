//! The answers of verbs that do or check one thing.

use serde::{Deserialize, Serialize};

use crate::Cause;

/// The answer of `tenure check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The election.
    pub election: String,
    /// The member that leads.
    pub leader: Option<String>,
    /// Whether the answer is yes.
    pub ok: bool,
}

/// The answer of `tenure fence`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceChecked {
    /// The election.
    pub election: String,
    /// The term that was asked for.
    pub term: u64,
    /// The newest term.
    pub newest: u64,
    /// Whether they are the same.
    pub ok: bool,
}

/// The answer of `tenure resign`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resigned {
    /// The election.
    pub election: String,
    /// The term that was to end.
    pub term: u64,
    /// The member that led.
    pub leader: String,
    /// Whether the leader was asked.
    pub asked: bool,
    /// How the term ended, if that was waited for.
    pub ended: Option<Cause>,
    /// The next leader, if there is one.
    pub successor: Option<Successor>,
    /// How long it took, if that was waited for.
    pub took_ms: Option<u64>,
}

/// The leader that followed another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Successor {
    /// The member's id.
    pub id: String,
    /// Its term.
    pub term: u64,
}

/// The answer of `tenure pause` and `tenure resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The election.
    pub election: String,
    /// Whether anything changed.
    pub changed: bool,
}

/// The answer of `tenure evict`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evicted {
    /// The member.
    pub member: String,
    /// Which life of it.
    pub incarnation: String,
    /// How long the member may still believe that it leads.
    pub trusts_itself_for_ms: u64,
    /// Whether what it held may be won by others.
    pub free: bool,
}

/// The answer of `tenure restored`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The era of term numbers before.
    pub era_before: u64,
    /// The era now.
    pub era_after: u64,
}

/// The answer of `tenure timing`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The ttl.
    pub ttl_ms: u64,
    /// How often a leader renews.
    pub heartbeat_ms: u64,
    /// How long a request may take.
    pub request_timeout_ms: u64,
    /// What is kept between the end of trust and the end of the ttl.
    pub margin_ms: u64,
    /// The most that clocks may drift.
    pub drift_ppm: u32,
    /// From a crash to the next leader, at worst.
    pub recover_in_ms: u64,
    /// The outage of the store that loses no term.
    pub tolerates_ms: u64,
    /// The load on the store, at most.
    pub writes_per_second: f64,
}

/// The answer of `tenure schema`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// The kind of store.
    pub store: String,
    /// The version of its tables.
    pub version: u32,
    /// What makes them.
    pub sql: String,
}

/// The answer of `tenure purge`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// The namespace.
    pub namespace: String,
    /// Whether it was only counted what would be removed.
    pub dry_run: bool,
    /// Elections that were no longer used.
    pub elections: u64,
    /// Members whose ttl had run out.
    pub members: u64,
    /// Names that ended with the lives of their owners.
    pub names: u64,
    /// Drops of names that are no longer told.
    pub drops: u64,
    /// Whether the journal was emptied, since nothing else was left.
    pub journal: bool,
    /// Whether all was looked at; otherwise an open transaction held rows.
    pub complete: bool,
}

/// The answer of `tenure release`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameReleased {
    /// The name.
    pub name: String,
    /// The token that was given.
    pub token: u64,
    /// Whether the name is free now.
    pub free: bool,
}

/// What `tenure serve` says when it serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// The server's own member.
    pub member: String,
    /// The namespace.
    pub namespace: String,
    /// The store's URL without secrets.
    pub store: String,
    /// Where it listens.
    pub addresses: Vec<String>,
    /// Where it answers as older sidecars did.
    pub compat: Option<String>,
}
