//! The journal of a namespace: what happened, in order, and the terms that were.
//!
//! [`Tenure::follow`](crate::Tenure::follow) reads it as it grows,
//! [`Tenure::journal`](crate::Tenure::journal) its newest entries, and
//! [`Election::history`](crate::Election::history) the terms of one election.
//!
//! What can happen, and why a term or a member ended, are closed lists: each store writes
//! every one of them down, so that a new one is a change of them all.

pub use tenure_core::{EndCause, Entry, Happening, ReleaseCause, Seq};

pub use crate::client::PastTerm;
pub use crate::feed::{JournalStream, Journalled};
