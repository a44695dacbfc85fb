//! Names as they change.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tenure::{Name, Rev, Token, WhichNames};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::copy::Delta;
use crate::follow::Batch;
use crate::{Found, Registry};

/// What a [`Watch`] tells.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// A name was registered.
    Registered(Found),
    /// Its value was changed.
    Changed(Found),
    /// It is free: it was released, or its owner is gone.
    Released {
        /// The name, inside the scope.
        name: String,
        /// The binding that is over.
        token: Token,
        /// The revision at which that was known.
        rev: Rev,
    },
    /// The watch could not tell what changed in between: these are all names now. It begins
    /// with this, unless it resumes.
    Resynced {
        /// Every name under the prefix.
        names: Vec<Found>,
        /// The revision that they reflect.
        rev: Rev,
    },
}

/// The names under a prefix as they change, from [`Registry::watch`]. It never ends.
///
/// Every change carries the revision from which another watch can resume.
#[derive(Debug)]
pub struct Watch {
    registry: Registry,
    prefix: String,
    resume: Option<Rev>,
    batches: Option<Receiver<Batch>>,
    /// What is told next.
    queue: VecDeque<Change>,
    /// What was told already is passed over.
    seen: Rev,
}

impl Watch {
    pub(crate) fn new(registry: Registry, prefix: String) -> Self {
        let queue = VecDeque::new();
        Self { registry, prefix, resume: None, batches: None, queue, seen: Rev::START }
    }

    /// Goes on after this revision instead of beginning with the present state. If the store
    /// can no longer tell what changed since, it begins with [`Change::Resynced`].
    #[must_use]
    pub fn from(mut self, rev: Rev) -> Self {
        self.resume = Some(rev);
        self
    }

    /// The next change. Cancel-safe.
    pub async fn next(&mut self) -> Change {
        loop {
            if let Some(change) = self.queue.pop_front() {
                return change;
            }
            match &mut self.batches {
                None => self.begin().await,
                Some(batches) => match batches.recv().await {
                    Ok(batch) => self.take(&batch),
                    Err(RecvError::Lagged(_)) => self.resync(),
                    Err(RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }

    /// As a [`Stream`].
    pub fn stream(self) -> impl Stream<Item = Change> {
        Changes { next: Box::pin(step(self)) }
    }

    async fn begin(&mut self) {
        // First, so that nothing falls in between.
        let batches = self.registry.follower().batches.subscribe();
        self.registry.ready().await;
        let Some(rev) = self.resume.take() else {
            self.batches = Some(batches);
            return self.resync();
        };
        let read = self.registry.names().read(WhichNames::Since(rev)).await;
        self.batches = Some(batches);
        match read {
            Ok(view) if !view.whole && rev > Rev::START => {
                self.registry.reached(view.rev).await;
                for name in view.gone {
                    let of = self.registry.inside(&name).map(str::to_owned);
                    if let Some(name) = of.filter(|name| name.starts_with(&self.prefix)) {
                        let (token, rev) = (Token::new(0), view.rev);
                        self.queue.push_back(Change::Released { name, token, rev });
                    }
                }
                for binding in view.bindings {
                    let is_new = binding.token.get() > rev.get();
                    let found = self.registry.lookup_whole(&binding.name);
                    if let Some(found) = found.filter(|found| self.wants(found.name())) {
                        let told = if is_new { Change::Registered } else { Change::Changed };
                        self.queue.push_back(told(found));
                    }
                }
                self.seen = view.rev;
            }
            // The copy's word is as good as any.
            _ => self.resync(),
        }
    }

    fn wants(&self, name: &Name) -> bool {
        self.registry.inside(name).is_some_and(|name| name.starts_with(&self.prefix))
    }

    fn resync(&mut self) {
        let (names, rev) = self.registry.select(|found| found.starts_with(&self.prefix));
        self.seen = rev;
        self.queue.push_back(Change::Resynced { names, rev });
    }

    fn take(&mut self, batch: &Batch) {
        for delta in batch.deltas.iter() {
            match delta {
                Delta::Bound { entry, is_new } => {
                    if entry.rev <= self.seen || !self.wants(&entry.name) {
                        continue;
                    }
                    let found = Found::new(entry.clone(), batch.rev, self.registry.scope_len());
                    let told = if *is_new { Change::Registered } else { Change::Changed };
                    self.queue.push_back(told(found));
                }
                Delta::Gone { name, token } => {
                    if !self.wants(name) || batch.rev < self.seen {
                        continue;
                    }
                    let Some(name) = self.registry.inside(name).map(str::to_owned) else {
                        continue;
                    };
                    let (token, rev) = (*token, batch.rev);
                    self.queue.push_back(Change::Released { name, token, rev });
                }
            }
        }
    }
}

type Step = Pin<Box<dyn Future<Output = (Change, Watch)> + Send>>;

async fn step(mut watch: Watch) -> (Change, Watch) {
    (watch.next().await, watch)
}

struct Changes {
    next: Step,
}

impl Stream for Changes {
    type Item = Change;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        let (change, watch) = std::task::ready!(self.next.as_mut().poll(cx));
        self.next = Box::pin(step(watch));
        Poll::Ready(Some(change))
    }
}
