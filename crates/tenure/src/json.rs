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
//! | [`Binding`](crate::Binding) | [`BoundName`] |
//! | [`Entry`](crate::Entry) of the journal | [`Entry`] |
//! | [`Timestamp`](crate::Timestamp) | [`Moment`] |
//! | [`LostReason`](crate::LostReason) | [`Loss`] |

pub use tenure_api::{
    BoundName, BoundNames, Candidate, Cause, Election, Elections, Entry, Event, Happening, HeldUp,
    Leader, Loss, Member, Members, Metadata, Moment, Paused, Reserved, StepDown,
};
