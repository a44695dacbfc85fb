//! What a follower of a namespace is told, and when.

use std::collections::VecDeque;
use std::time::Duration;

use tenure_core::{Entry, Hint, Rev, Seq};
use tokio::time::Instant;

use crate::{Followed, Page};

/// What a follower by looks is told: hints made of the journal's entries, how far the
/// journal has grown, and that names changed.
///
/// The first word is always [`Hint::Anything`]: nothing is known of what happened before.
/// Each word is given once; a look that is not finished has moved nothing, so that a future
/// dropped while it waits loses nothing.
///
/// ```
/// # use tenure_core::{Hint, Rev, Seq};
/// # use tenure_store::{Followed, Page, Told};
/// let mut told = Told::new(Seq::new(7), Rev::START);
/// assert_eq!(told.pop(), Some(Followed::Hint(Hint::Anything)));
/// told.page(Page::Trimmed(Seq::new(9)));
/// assert_eq!(told.position(), Seq::new(9));
/// assert_eq!(told.pop(), Some(Followed::Hint(Hint::Anything)));
/// assert_eq!(told.pop(), Some(Followed::Grown(Seq::new(9))));
/// assert_eq!(told.pop(), None);
/// ```
#[derive(Clone, Debug)]
pub struct Told {
    /// Up to where the journal was turned into hints.
    position: Seq,
    names: ToldOfNames,
    /// What is not delivered yet.
    ready: VecDeque<Followed>,
}

impl Told {
    /// A follower that begins while the journal and the names stand here.
    #[must_use]
    pub fn new(position: Seq, rev: Rev) -> Self {
        let ready = VecDeque::from([Followed::Hint(Hint::Anything)]);
        Self { position, names: ToldOfNames::new(rev), ready }
    }

    /// Up to where the journal was turned into hints: the next page begins after it.
    #[must_use]
    pub fn position(&self) -> Seq {
        self.position
    }

    /// The next word that is not delivered yet.
    pub fn pop(&mut self) -> Option<Followed> {
        self.ready.pop_front()
    }

    /// Whether all was delivered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// A hint that is not in the journal.
    pub fn hint(&mut self, hint: Hint) {
        self.ready.push_back(Followed::Hint(hint));
    }

    /// A look found names at this revision.
    pub fn names_at(&mut self, rev: Rev) {
        self.ready.extend(self.names.hint(rev).map(Followed::Hint));
    }

    /// A look found this after [`position`](Self::position).
    pub fn page(&mut self, page: Page) {
        match page {
            Page::Entries(entries) => {
                let Some(last) = entries.last() else { return };
                self.position = last.seq;
                self.ready.extend(Entry::hints(&entries).map(Followed::Hint));
            }
            Page::Trimmed(place) => {
                self.position = place;
                self.hint(Hint::Anything);
            }
        }
        self.ready.push_back(Followed::Grown(self.position));
    }

    /// Waits until names that changed too soon after the last hint can be told of; for ever
    /// if there are none. Cancel-safe.
    pub async fn due(&self) {
        self.names.due().await;
    }
}

/// What a follower was told of names: that some changed at once, and then every
/// [`PACE`](Self::PACE) at most, however many change in between (rule N1). The last change is
/// always told of, since a look is due when the pace allows it.
#[derive(Clone, Debug)]
pub(crate) struct ToldOfNames {
    /// The revision that was told of.
    told: Rev,
    /// The revision that a look found last.
    found: Rev,
    /// Nothing is told before this.
    not_before: Option<Instant>,
}

impl ToldOfNames {
    /// The least time between two hints.
    pub(crate) const PACE: Duration = Duration::from_millis(20);

    /// A follower that begins while names stand at this revision.
    pub(crate) const fn new(rev: Rev) -> Self {
        Self { told: rev, found: rev, not_before: None }
    }

    /// Names are found at this revision: the hint to give now, if any. A revision that is lower
    /// than the last is a change too: the store was rolled back.
    pub(crate) fn hint(&mut self, found: Rev) -> Option<Hint> {
        self.found = found;
        let now = Instant::now();
        if found == self.told || self.not_before.is_some_and(|earliest| now < earliest) {
            return None;
        }
        self.told = found;
        self.not_before = Some(now + Self::PACE);
        Some(Hint::Names)
    }

    /// Waits until there is something to tell that came too soon after the last hint; for ever
    /// if there is nothing of the kind. Cancel-safe.
    pub(crate) async fn due(&self) {
        match self.not_before {
            Some(earliest) if self.found != self.told => tokio::time::sleep_until(earliest).await,
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N1: however fast names change, hints come at a pace, and the last change is told.
    #[tokio::test(start_paused = true)]
    async fn a_churn_costs_a_bounded_number_of_hints() {
        let mut told = ToldOfNames::new(Rev::START);
        let mut hints = 0;
        for rev in 1..=1_000 {
            hints += usize::from(told.hint(Rev::new(rev)).is_some());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(hints, 50);
        assert_eq!(told.hint(Rev::new(1_001)), Some(Hint::Names));
        assert_eq!(told.hint(Rev::new(1_002)), None);
        told.due().await;
        assert_eq!(told.hint(Rev::new(1_002)), Some(Hint::Names));
        assert!(tokio::time::timeout(Duration::from_secs(9), told.due()).await.is_err());
    }
}
