//! Members, as `tenure members` answers.

use serde::{Deserialize, Serialize};
use tenure_core::MemberView;

use crate::{Metadata, Moment, millis};

/// A live member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub id: String,
    /// Which life of it.
    pub incarnation: String,
    /// Where it can be reached.
    pub endpoints: Vec<String>,
    /// What it publishes.
    pub metadata: Metadata,
    /// When it joined, by the store's clock.
    pub joined_at: Moment,
    /// How long it lives without a heartbeat.
    pub ttl_ms: u64,
    /// What is left of that.
    pub expires_in_ms: u64,
    /// How many elections it leads.
    pub holds: u32,
}

/// The answer of `tenure members`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// The namespace.
    pub namespace: String,
    /// Its live members, by id.
    pub members: Vec<Member>,
}

impl From<&MemberView> for Member {
    fn from(view: &MemberView) -> Self {
        Self {
            id: view.member.id.to_string(),
            incarnation: view.member.incarnation.to_string(),
            endpoints: view.profile.endpoints().to_vec(),
            metadata: (&view.profile).into(),
            joined_at: view.joined_at.into(),
            ttl_ms: millis(view.ttl),
            expires_in_ms: millis(view.remaining),
            holds: view.holds,
        }
    }
}
