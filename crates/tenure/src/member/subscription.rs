//! A member's own changes in one election, in order (rule N2).

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tenure_core::{ElectionName, LostReason, StopReason, Term, TermNumber};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::member::Shared;
use crate::member::driver::{PostedChange, Present, wait_for_end};
use crate::member::reign::Phase;
use crate::stream::{Stepping, Steps};
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
/// no other.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::{Change, Tenure};
///
/// let tenure = Tenure::connect("memory:").await?;
/// let election = tenure.election("nightly");
/// let mut changes = election.subscribe()?;
/// assert_eq!(changes.next().await, Some(Change::Following));
/// let leadership = election.campaign().await?;
/// assert!(matches!(changes.next().await, Some(Change::Leading(term)) if term.number.get() == 1));
/// drop(leadership);
/// tenure.shutdown().await?;
/// assert!(matches!(changes.next().await, Some(Change::Lost(_))));
/// assert_eq!(changes.next().await, None); // the member is shut down
/// # Ok(()) })
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is polled"]
pub struct Subscription {
    changes: Stepping<Changes>,
}

impl Subscription {
    pub(crate) fn new(shared: Arc<Shared>, election: ElectionName) -> Self {
        Self { changes: Stepping::new(Changes::new(shared, election)) }
    }

    /// The next change; `None` at the [end](crate#streams): once the member is shut down.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Change> {
        self.changes.next().await
    }
}

impl Stream for Subscription {
    type Item = Change;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Change>> {
        self.get_mut().changes.poll(context)
    }
}

/// The present state, and the changes after it.
#[derive(Debug)]
struct Changes {
    shared: Arc<Shared>,
    election: ElectionName,
    present: VecDeque<Change>,
    changes: broadcast::Receiver<Arc<PostedChange>>,
}

impl Steps for Changes {
    type Item = Change;

    async fn step(&mut self) -> Option<Change> {
        loop {
            if let Some(change) = self.present.pop_front() {
                return Some(change);
            }
            match self.posted().await {
                Ok(posted) => return Some(told(&posted)),
                Err(RecvError::Lagged(skipped)) => self.start_again(skipped),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Changes {
    fn new(shared: Arc<Shared>, election: ElectionName) -> Self {
        let (reign, changes) = shared.board.subscribe(&election);
        let present = present(reign).collect();
        Self { shared, election, present, changes }
    }

    /// What the driver posts next. The board outlives the driver, which is why its end is
    /// waited for beside it; what it posted before is told first.
    async fn posted(&mut self) -> Result<Arc<PostedChange>, RecvError> {
        tokio::select! {
            biased;
            posted = self.changes.recv() => posted,
            () = wait_for_end(&self.shared.ended) => match self.changes.try_recv() {
                Ok(posted) => Ok(posted),
                Err(TryRecvError::Lagged(skipped)) => Err(RecvError::Lagged(skipped)),
                Err(TryRecvError::Empty | TryRecvError::Closed) => Err(RecvError::Closed),
            },
        }
    }

    /// Until something has changed, or has been skipped; false if nothing ever will.
    async fn changed(&mut self) -> bool {
        self.present.clear();
        !matches!(self.posted().await, Err(RecvError::Closed))
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
/// let held = leaderships.next().await.ok_or("the member was shut down")?;
/// let worker = tokio::spawn(async move {
///     held.stopping().await;
///     // … finish what cannot be left half done; then `held` is dropped
/// });
/// campaign.resign().await?; // returns after the worker has ended
/// # worker.await?; Ok(()) })
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is polled"]
pub struct HoldingSubscription {
    leaderships: Stepping<Leaderships>,
}

impl HoldingSubscription {
    pub(crate) fn new(election: Election, name: ElectionName) -> Self {
        let changes = Changes::new(election.shared.clone(), name);
        let last = TermNumber::NONE;
        Self { leaderships: Stepping::new(Leaderships { election, changes, last }) }
    }

    /// The next leadership; `None` at the [end](crate#streams): once the member is shut
    /// down. Cancel-safe.
    pub async fn next(&mut self) -> Option<Leadership> {
        self.leaderships.next().await
    }
}

impl Stream for HoldingSubscription {
    type Item = Leadership;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Leadership>> {
        self.get_mut().leaderships.poll(context)
    }
}

/// This member's own leaderships, each as it begins.
struct Leaderships {
    election: Election,
    changes: Changes,
    /// The term that was given out last.
    last: TermNumber,
}

impl Steps for Leaderships {
    type Item = Leadership;

    async fn step(&mut self) -> Option<Leadership> {
        loop {
            if let Some(leadership) = self.election.hold_to_begin()
                && leadership.number() > self.last
            {
                self.last = leadership.number();
                return Some(leadership);
            }
            if !self.changes.changed().await {
                return None;
            }
        }
    }
}

fn told(posted: &PostedChange) -> Change {
    match posted {
        PostedChange::Elected(term) => Change::Leading(term.clone()),
        PostedChange::Stopping(reason) => Change::Stopping(reason.clone()),
        PostedChange::Lost(reason) => Change::Lost(*reason),
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
