//! Views as serde reads and writes them (the feature `serde`).
//!
//! These are the shapes in which the `tenure` program answers with `--json`, so that a
//! dashboard, a script and a service agree on one format. The types of the protocol
//! themselves implement nothing of serde: their fields may change with the protocol.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! use tenure::{Tenure, json};
//!
//! let tenure = Tenure::builder("memory:").id("web-1").connect().await?;
//! let election = tenure.election("nightly");
//! let _leadership = election.campaign().await?;
//!
//! let shown = json::Election::new("default", &election.view().await?);
//! let text = serde_json::to_string(&shown)?;
//! assert!(text.contains(r#""leader":{"id":"web-1""#));
//! let read: json::Election = serde_json::from_str(&text)?;
//! assert_eq!(read, shown);
//!
//! let members: Vec<json::Member> =
//!     tenure.members().await?.iter().map(json::Member::from).collect();
//! assert_eq!(members.len(), 1);
//! # Ok(()) })
//! # }
//! ```
//!
//! | of the library | as JSON |
//! |---|---|
//! | [`ElectionView`](crate::ElectionView) | [`Election::new`] |
//! | [`Holder`](crate::Holder) | [`Leader::from`](Leader) |
//! | [`MemberView`](crate::MemberView) | [`Member::from`](Member) |
//! | [`Binding`](crate::naming::Binding) | [`BoundName`] |
//! | [`Entry`](crate::journal::Entry) of the journal | [`Entry`] |
//! | [`Timestamp`](crate::Timestamp) | [`Moment`] |
//! | [`LostReason`](crate::LostReason) | [`Loss`] |

use tenure_core::ElectionName;

pub use tenure_api::{
    BoundName, BoundNames, Candidate, Cause, Election, ElectionHistory, Elections, Entry, Event,
    Flapping, Happening, HeldUp, Leader, Loss, Member, Members, Metadata, Moment, PastTerm, Paused,
    Reserved, StepDown,
};

/// The terms of an election, and whether its leadership flaps.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let election = tenure.election("nightly");
/// election.campaign().await?.resign().await?;
/// let shown = tenure::json::history(election.name()?, &election.history(10).await?);
/// assert_eq!(shown.terms[0].term, 1);
/// assert!(!shown.terms[0].stands);
/// # Ok(()) })
/// # }
/// ```
#[must_use]
pub fn history(election: &ElectionName, terms: &[crate::journal::PastTerm]) -> ElectionHistory {
    let starts: Vec<u64> = terms.iter().map(|past| past.term.elected_at.unix_millis()).collect();
    ElectionHistory {
        election: election.to_string(),
        terms: terms.iter().map(past_term).collect(),
        flapping: Flapping::of(&starts),
    }
}

fn past_term(past: &crate::journal::PastTerm) -> PastTerm {
    let began = past.term.elected_at.unix_millis();
    PastTerm {
        term: past.term.number.get(),
        member: past.term.member.id.to_string(),
        incarnation: past.term.member.incarnation.to_string(),
        from: past.term.elected_at.into(),
        to: past.ended.map(|(at, _)| at.into()),
        lasted_ms: past.ended.map(|(at, _)| at.unix_millis().saturating_sub(began)),
        ended: past.ended.map(|(_, cause)| cause.into()),
        stands: past.stands.is_some(),
        remaining_ms: past.stands.map(tenure_api::millis),
        seq: past.seq.get(),
    }
}
