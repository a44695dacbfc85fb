//! What operators ask to be forgotten.

use core::time::Duration;

use crate::{ElectionName, Note};

/// One step in forgetting what is no longer used, bounded, so that no lock is held for
/// long: a purge is a sequence of such steps, each going on where the one before ended.
///
/// What it removes, and what it leaves, stands in the rules: `tenure_rules::purge`. No number
/// and no token that was ever given out is given out again.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::Purge;
///
/// let first = Purge::older_than(Duration::from_secs(90 * 24 * 60 * 60));
/// assert!(!first.dry_run && first.after.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Purge {
    /// Elections of which no term began or ended for this long are forgotten, by the store's
    /// wall clock. A clock that is wrong makes it sooner or later, and nothing worse.
    pub older_than: Duration,
    /// Go on after this election, in the order of their names.
    pub after: Option<ElectionName>,
    /// How many rows of a kind are looked at in this step, at most.
    pub most: usize,
    /// Only say what would be removed.
    pub dry_run: bool,
    /// Who asks.
    pub by: Note,
}

impl Purge {
    /// How many rows of a kind one step looks at unless something else is asked for: some
    /// milliseconds of work.
    pub const MOST: usize = 500;

    /// The first step.
    #[must_use]
    pub fn older_than(age: Duration) -> Self {
        let after = None;
        let by = Note::default();
        Self { older_than: age, after, most: Self::MOST, dry_run: false, by }
    }

    /// The step that follows one which was answered so; `None` if it was the last.
    #[must_use]
    pub fn following(&self, purged: &Purged) -> Option<Self> {
        purged.more.then(|| Self { after: purged.upto.clone(), ..self.clone() })
    }
}

/// What one step of a [`Purge`] removed, or would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Purged {
    /// Elections that were no longer used.
    pub elections: u64,
    /// Members whose ttl had run out and that had not been ended yet.
    pub members: u64,
    /// Names that ended with the lives of their owners, or that leaders of these elections
    /// left to successors.
    pub names: u64,
    /// Names of which it can no longer be told that they were dropped.
    pub drops: u64,
    /// Whether the journal was emptied: nothing else was left in the namespace.
    pub journal: bool,
    /// The last election that was looked at.
    pub upto: Option<ElectionName>,
    /// Whether there may be more: the next step goes on after `upto`.
    pub more: bool,
}

impl Purged {
    /// The sum of two steps, the later one given.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        Self {
            elections: self.elections + later.elections,
            members: self.members + later.members,
            names: self.names + later.names,
            drops: self.drops + later.drops,
            journal: self.journal || later.journal,
            upto: later.upto.or(self.upto),
            more: later.more,
        }
    }
}
