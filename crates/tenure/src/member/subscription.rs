//! A member's own changes in one election, in order (rule N2).

use std::collections::VecDeque;
use std::sync::Arc;

use tenure_core::{ElectionName, LostReason, StopReason, Term, TermNumber};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::member::Shared;
use crate::member::driver::{PostedChange, Present};
use crate::member::reign::Phase;
use crate::{Election, Leadership};

/// What a subscriber is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// This member does not lead: the present state, at the beginning or after
    /// [`Change::Skipped`].
    Following,
    /// This member leads: the present state, or news.
    Leading(Term),
    /// It is asked to stop its work.
    Stopping(StopReason),
    /// It no longer leads.
    Lost(LostReason),
    /// The subscriber was so slow that this many changes are gone; the present
    /// state follows.
    Skipped(u64),
}

/// A stream of [`Change`]s: the present state first, then each change, none
/// skipped unless the stream says so. However slow its reader is, it blocks
/// nobody.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::{Change, Tenure};
///
/// let tenure = Tenure::connect("memory:").await?;
/// let election = tenure.election("nightly");
/// let mut changes = election.subscribe()?;
/// assert_eq!(changes.next().await, Change::Following);
/// let leadership = election.campaign().await?;
/// assert!(matches!(changes.next().await, Change::Leading(term) if term.number.get() == 1));
/// # drop(leadership); Ok(()) })
/// # }
/// ```
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<Shared>,
    election: ElectionName,
    present: VecDeque<Change>,
    changes: broadcast::Receiver<Arc<PostedChange>>,
}

impl Subscription {
    pub(crate) fn new(shared: Arc<Shared>, election: ElectionName) -> Self {
        let (reign, changes) = shared.board.subscribe(&election);
        let present = present(reign).collect();
        Self { shared, election, present, changes }
    }

    /// The next change. Never ends: after a shutdown nothing more comes.
    pub async fn next(&mut self) -> Change {
        loop {
            if let Some(change) = self.present.pop_front() {
                return change;
            }
            match self.changes.recv().await {
                Ok(posted) => {
                    return match &*posted {
                        PostedChange::Elected(term) => Change::Leading(term.clone()),
                        PostedChange::Stopping(reason) => Change::Stopping(reason.clone()),
                        PostedChange::Lost(reason) => Change::Lost(*reason),
                    };
                }
                Err(RecvError::Lagged(skipped)) => self.start_again(skipped),
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Until something has changed, or has been skipped.
    async fn changed(&mut self) {
        self.present.clear();
        if let Err(RecvError::Closed) = self.changes.recv().await {
            std::future::pending().await
        }
    }

    fn start_again(&mut self, skipped: u64) {
        let (reign, changes) = self.shared.board.subscribe(&self.election);
        // What was still waiting is skipped too: it is older than the present.
        let waiting = self.changes.len() as u64;
        self.changes = changes;
        self.present.push_back(Change::Skipped(skipped + waiting));
        self.present.extend(present(reign));
    }
}

/// This member's own leaderships of one election, each as it begins, and each with a
/// hold of its own: the term is not released before the leadership that came from
/// here is dropped, within the drain. What to do in between, that leadership says:
/// [`stopping`](Leadership::stopping), [`lost`](Leadership::lost).
///
/// A reign that was asked to stop, or that was over, before it was asked for here is
/// left out: no work began under it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let election = tenure.election("nightly");
/// let mut leaderships = election.subscribe_holding()?;
/// let campaign = election.campaign().await?;
/// let held = leaderships.next().await;
/// let worker = tokio::spawn(async move {
///     held.stopping().await;
///     // … finish what cannot be left half done; then `held` is dropped
/// });
/// campaign.resign().await?; // returns after the worker has ended
/// # worker.await?; Ok(()) })
/// # }
/// ```
#[derive(Debug)]
pub struct HoldingSubscription {
    election: Election,
    changes: Subscription,
    /// The term that was given out last.
    last: TermNumber,
}

impl HoldingSubscription {
    pub(crate) fn new(election: Election, changes: Subscription) -> Self {
        Self { election, changes, last: TermNumber::NONE }
    }

    /// The next leadership. Never ends: after a shutdown nothing more comes.
    pub async fn next(&mut self) -> Leadership {
        loop {
            if let Some(leadership) = self.election.hold_to_begin()
                && leadership.number() > self.last
            {
                self.last = leadership.number();
                return leadership;
            }
            self.changes.changed().await;
        }
    }
}

/// The present state as a subscriber is told it: also that the work should
/// stop, if it should.
fn present(reign: Option<Present>) -> impl Iterator<Item = Change> {
    let (first, second) = match reign {
        None => (Change::Following, None),
        Some((reign, Phase::Stopping { reason, .. })) => {
            (Change::Leading(reign.term.clone()), Some(Change::Stopping(*reason)))
        }
        Some((reign, _)) => (Change::Leading(reign.term.clone()), None),
    };
    std::iter::once(first).chain(second)
}
