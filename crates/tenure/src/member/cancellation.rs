//! What work under a term hands on to whatever is to end with it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::member::reign::{Phase, Reign};
use crate::time::Time;

/// Says when work under a term is to be cancelled: when the work should stop
/// ([`Leadership::cancellation`](crate::Leadership::cancellation)), or only when the term is
/// lost ([`Leadership::cancellation_on_loss`](crate::Leadership::cancellation_on_loss)).
///
/// Clones are the same cancellation. A [child](Self::child) is cancelled with it, and can be
/// cancelled alone. It keeps no term: work that must end before the term is released needs a
/// [hold](crate::Leadership::hold). What is cancelled stays cancelled, also when this member
/// leads again.
///
/// For a library that takes a token of its own, such as the `CancellationToken` of
/// `tokio-util`, cancel that when this is: `cancelled` is a future that can be awaited under
/// any executor.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let leadership = tenure.election("nightly").campaign().await?;
/// let cancellation = leadership.cancellation();
/// let batch = cancellation.child();
/// let worker = tokio::spawn(async move {
///     batch.cancelled().await; // or is_cancelled(), between two items
/// });
/// leadership.resign().await?;
/// worker.await?;
/// assert!(cancellation.is_cancelled());
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone)]
pub struct Cancellation {
    under: Arc<Under>,
    node: Arc<Node>,
}

/// What all that descend from one cancellation are under.
struct Under {
    reign: Arc<Reign>,
    time: Time,
    when: When,
    /// Some descendant was cancelled.
    changed: Notify,
}

/// At which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Stopping,
    Lost,
}

#[derive(Default)]
struct Node {
    cancelled: AtomicBool,
    parent: Option<Arc<Node>>,
}

impl Node {
    fn is_cancelled(&self) -> bool {
        let mut node = Some(self);
        while let Some(one) = node {
            if one.cancelled.load(Ordering::Acquire) {
                return true;
            }
            node = one.parent.as_deref();
        }
        false
    }
}

impl Cancellation {
    pub(crate) fn new(reign: Arc<Reign>, time: Time, when: When) -> Self {
        let under = Arc::new(Under { reign, time, when, changed: Notify::new() });
        Self { under, node: Arc::default() }
    }

    /// One that is cancelled with this one, and can be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        let node = Node { parent: Some(self.node.clone()), ..Node::default() };
        Self { under: self.under.clone(), node: Arc::new(node) }
    }

    /// Cancels this one, its clones and its children. The term, and what this one descends
    /// from, go on.
    pub fn cancel(&self) {
        self.node.cancelled.store(true, Ordering::Release);
        self.under.changed.notify_waiters();
    }

    /// Whether it is cancelled. Right at once when trust ends, also when the runtime is
    /// starved: it reads the clock.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled() || self.under.is_over()
    }

    /// Returns once it is cancelled.
    pub async fn cancelled(&self) {
        loop {
            let changed = self.under.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            tokio::select! {
                () = changed => {}
                _ = self.under.reign.wait_for(|phase| self.under.ends_in(phase)) => return,
            }
        }
    }
}

impl Under {
    fn ends_in(&self, phase: &Phase) -> bool {
        match self.when {
            When::Stopping => *phase != Phase::Leading,
            When::Lost => matches!(phase, Phase::Lost(_)),
        }
    }

    fn is_over(&self) -> bool {
        self.ends_in(&self.reign.phase()) || !self.reign.is_current(&self.time)
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Cancellation");
        shown.field("when", &self.under.when).field("is_cancelled", &self.is_cancelled());
        shown.finish_non_exhaustive()
    }
}
