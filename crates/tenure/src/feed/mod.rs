//! What happens in a namespace, as it happens: hints for the driver, the journal as a
//! stream, and elections observed without standing for them.
//!
//! A connection follows a namespace once for all that want to know of it: one following, one
//! back-off, one place in the journal ([`follow`]). What is followed is passed on by a
//! task beside the driver, which never waits for a slow subscriber. Nothing here extends
//! trust.
//!
//! | who | wants | by |
//! |---|---|---|
//! | the driver of a member | hints, at once | [`Hints`] |
//! | a [`JournalStream`] | every entry after a place | [`Entries`](entries::Entries) |
//! | the observers of a client, by one watch | every entry after a look | [`Entries`](entries::Entries) |
//!
//! Journal entries are read only while there is a subscriber to them: a process that
//! only campaigns follows hints and reads no journal.

mod entries;
mod follow;
mod hints;
mod journal;
mod observe;

pub(crate) use follow::{Feed, Feeds};
pub(crate) use hints::Hints;
pub use journal::{JournalStream, Journalled};
pub use observe::{Observation, Observed, Observer};
pub(crate) use observe::{Observations, Wanted};
