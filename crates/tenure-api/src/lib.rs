#![doc = include_str!("../README.md")]

mod answers;
mod doctor;
mod election;
mod history;
mod journal;
mod member;
mod moment;
mod name;
pub mod span;
mod words;

// All of them: the answer of a new verb needs no line here.
pub use answers::*;
pub use doctor::{Finding, Findings};
pub use election::{
    Candidate, Election, Elections, Ended, HeldUp, Leader, Metadata, NameCounts, Paused, Reserved,
    Status, StatusOfAll, StatusOfOne, StepDown, StoreHealth,
};
pub use history::{ElectionHistory, Flapping, History, PastTerm};
pub use journal::{Entry, Happening};
pub use member::{Member, Members};
pub use moment::{BadMoment, Moment};
pub use name::{BoundName, BoundNames, NameChange, NameNews, NameOwner, NameOwners};
pub use words::{Cause, Event, Loss, UnknownWord, Verdict, because};

/// A duration as answers have it: whole milliseconds.
///
/// ```
/// assert_eq!(tenure_api::millis(std::time::Duration::from_micros(2_500)), 2);
/// ```
#[must_use]
pub fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
