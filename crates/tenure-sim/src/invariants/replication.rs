//! What is left of the promises once a copy that lacks the last acknowledged
//! writes takes over (B27): what must still hold, what may break, and what is
//! not judged any more.
//!
//! | | a plain copy | one whose numbers jump |
//! |---|---|---|
//! | promise 1: numbers rise, one holds a term | may break | holds |
//! | promise 2: one member trusts | may break, for a while | may break, for a while |
//! | promise 3: the fence | may break | holds, within what the copy remembers |
//! | promise 4: a member leads in time | holds | holds |
//! | N3: an observer never goes back | may break | may break |
//!
//! All that the member's own side answers for holds: trust is counted from
//! before the request, the loss is told first, a term is given back after its
//! work has stopped. What compares the store with its own past is not judged.
//!
//! Two assumptions. Clients connect anew to a promoted copy, and so look (H13):
//! a heartbeat alone compares how many terms are held, and a copy that forgot a
//! win and a release shows the right number of the wrong ones. And a plain copy that is
//! promoted follows the last one that was; one whose numbers jump may lack the last
//! promotion too.

use crate::config::StoreKind;
use crate::coverage::Situation;

/// What becomes of an invariant when a copy that forgot takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// It holds as before.
    Holds,
    /// It may break. That must happen now and then: a suite in which it never
    /// does has not shown that the promise is weaker.
    MayBreak(Situation),
    /// It compares the store with a past that is forgotten.
    NotJudged,
}

/// For what numbers that jump save.
pub(super) fn unless_jumping(store: StoreKind, broken: Situation) -> After {
    match store {
        StoreKind::Jumping => After::Holds,
        _ => After::MayBreak(broken),
    }
}
