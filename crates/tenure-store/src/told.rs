//! When those who follow are told that names changed.

use std::time::Duration;

use tenure_core::{Hint, Rev};
use tokio::time::Instant;

/// What one who follows was told of names: that some changed at once, and then every
/// [`PACE`](Self::PACE) at most, however many change in between (rule N1). The last change is
/// always told of, since a look is due when the pace allows it.
///
/// ```
/// # use tenure_core::{Hint, Rev};
/// # use tenure_store::ToldOfNames;
/// let mut told = ToldOfNames::new(Rev::new(1));
/// assert_eq!(told.hint(Rev::new(1)), None);
/// assert_eq!(told.hint(Rev::new(2)), Some(Hint::Names));
/// // Too soon after the last: `due` says when.
/// assert_eq!(told.hint(Rev::new(3)), None);
/// ```
#[derive(Clone, Debug)]
pub struct ToldOfNames {
    /// The revision that was told of.
    told: Rev,
    /// The revision that a look found last.
    found: Rev,
    /// Nothing is told before this.
    not_before: Option<Instant>,
}

impl ToldOfNames {
    /// The least time between two hints.
    pub const PACE: Duration = Duration::from_millis(20);

    /// One who begins to follow while names stand at this revision.
    #[must_use]
    pub const fn new(rev: Rev) -> Self {
        Self { told: rev, found: rev, not_before: None }
    }

    /// Names are found at this revision: the hint to give now, if any. A revision that is lower
    /// than the last is a change too: the store was rolled back.
    pub fn hint(&mut self, found: Rev) -> Option<Hint> {
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
    pub async fn due(&self) {
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
