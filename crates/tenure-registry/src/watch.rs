//! Names as they change.
//!
//! # What could break it
//!
//! - **A change between the first state and the subscription.** The subscription comes first.
//!   The state that is told has a version of the copy, and changes up to that version are
//!   passed over.
//! - **A watch that resumes** must tell what changed between its revision and the copy. The
//!   store says which names changed and which were dropped, but not which names a life had
//!   that has ended: the store does not write those down (M5). So it begins by [`Change::Lives`],
//!   and names of any other life are gone. What changed while the store was asked is in the
//!   subscription. Each name that either of them mentions is told once, as the copy has it.
//! - **A slow watch** has missed changes: it is told all names anew.

use std::collections::{BTreeSet, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tenure::naming::{Name, NamesView, Rev, Token, WhichNames};
use tenure::views::MemberRef;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::oneshot;

use crate::copy::{Delta, Entry};
use crate::follow::{Batch, Told};
use crate::{Found, Registry};

/// What a [`Watch`] tells.
///
/// ```
/// # use tenure::Tenure;
/// # use tenure::naming::Value;
/// # use tenure_registry::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tenure = Tenure::connect("memory:").await?;
/// # let names = Registry::open(&tenure, "orders")?;
/// let mine = names.register("user/42", Value::empty()).await?;
/// let mut watch = names.watch("");
/// let mut mine = Some(mine);
/// while let Some(change) = watch.next().await {
///     match change {
///         Change::Resynced { .. } => drop(mine.take()), // these are all; give it back
///         Change::Registered(found) | Change::Changed(found) => println!("{}", found.as_str()),
///         Change::Released { .. } => break,
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
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
        /// The binding that is over, where that is known.
        token: Option<Token>,
        /// The revision at which that was known.
        rev: Rev,
    },
    /// A watch that resumes begins with this: a name that belonged to any other life is gone,
    /// unless a change that follows says otherwise.
    Lives {
        /// Every life that owns names in the namespace.
        lives: Vec<MemberRef>,
        /// The revision that this reflects.
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

/// The names under a prefix as they change, from [`Registry::watch`]. It is a [`Stream`], and
/// ends when the member is shut down, as every stream of Tenure's does.
///
/// Every change carries the revision from which another watch can resume.
///
/// ```
/// # use tenure::Tenure;
/// # use tenure::naming::Value;
/// # use tenure_registry::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tenure = Tenure::connect("memory:").await?;
/// # let names = Registry::open(&tenure, "orders")?;
/// let mine = names.register("user/42", Value::empty()).await?;
/// let mut watch = names.watch("user/");
/// let first = watch.next().await;
/// assert!(matches!(first, Some(Change::Resynced { names, .. }) if names.len() == 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Watch {
    state: State,
    registry: Registry,
    prefix: Arc<str>,
    resume: Option<Rev>,
}

enum State {
    New,
    /// It waits for what comes next.
    Waiting(Pin<Box<dyn Future<Output = Option<Inner>> + Send + Sync>>),
    Ready(Box<Inner>),
    Ended,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            State::New => "New",
            State::Waiting(_) => "Waiting",
            State::Ready(_) => "Ready",
            State::Ended => "Ended",
        })
    }
}

impl Watch {
    pub(crate) fn new(registry: Registry, prefix: &str) -> Self {
        Self { state: State::New, registry, prefix: prefix.into(), resume: None }
    }

    /// Goes on after this revision instead of beginning with the present state. If the store
    /// can no longer tell what changed since, it begins with [`Change::Resynced`].
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let from = names.register("user/42", Value::empty()).await?.rev();
    /// let mine = names.register("user/43", Value::empty()).await?;
    /// let mut watch = names.watch("user/").from(from);
    /// assert!(matches!(watch.next().await, Some(Change::Lives { .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn from(mut self, rev: Rev) -> Self {
        self.resume = Some(rev);
        self
    }

    /// The next change; `None` once the member is shut down. Cancel-safe.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mut watch = names.watch("");
    /// assert!(watch.next().await.is_some());
    /// tenure.shutdown().await?;
    /// assert!(watch.next().await.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next(&mut self) -> Option<Change> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Watch {
    type Item = Change;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        loop {
            self.state = match &mut self.state {
                State::New => {
                    let registry = self.registry.clone();
                    let prefix = self.prefix.clone();
                    State::Waiting(Box::pin(Inner::begin(registry, prefix, self.resume)))
                }
                State::Waiting(waiting) => match std::task::ready!(waiting.as_mut().poll(cx)) {
                    Some(inner) => State::Ready(Box::new(inner)),
                    None => State::Ended,
                },
                State::Ready(inner) => match inner.queue.pop_front() {
                    Some(change) => return Poll::Ready(Some(change)),
                    None => match std::mem::replace(&mut self.state, State::Ended) {
                        State::Ready(inner) => State::Waiting(Box::pin(inner.more())),
                        other => other,
                    },
                },
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}

/// A watch that has begun.
struct Inner {
    registry: Registry,
    prefix: Arc<str>,
    batches: Receiver<Batch>,
    /// What is told next.
    queue: VecDeque<Change>,
    /// Up to this version of the copy all is told.
    version: u64,
}

impl Inner {
    async fn begin(registry: Registry, prefix: Arc<str>, resume: Option<Rev>) -> Option<Self> {
        // First, so that nothing falls in between.
        let batches = registry.follower().batches.subscribe();
        registry.ready().await.ok()?;
        let mut inner = Self { registry, prefix, batches, queue: VecDeque::new(), version: 0 };
        let since = match resume {
            Some(rev) if rev > Rev::START && inner.registry.follower().tells => {
                inner.registry.names().read(WhichNames::Since(rev)).await.ok()
            }
            _ => None,
        };
        match (since, resume) {
            (Some(view), Some(rev)) if !view.whole => inner.catch_up(&view, rev).await?,
            // The copy's word is as good as any.
            _ => inner.resync(),
        }
        Some(inner)
    }

    /// Waits for what comes next.
    async fn more(mut self: Box<Self>) -> Option<Self> {
        while self.queue.is_empty() {
            let registry = self.registry.clone();
            let received = tokio::select! {
                biased;
                received = self.batches.recv() => received,
                () = registry.follower().ended() => return None,
            };
            match received {
                Ok(batch) => self.take(&batch),
                Err(RecvError::Lagged(_)) => self.resync(),
                Err(RecvError::Closed) => return None,
            }
        }
        Some(*self)
    }

    /// Tells what changed after `since`, of which the store has told, up to the copy as it is.
    async fn catch_up(&mut self, view: &NamesView, since: Rev) -> Option<()> {
        self.registry.reached(view.rev).await.ok()?;
        let (answer, lives) = oneshot::channel();
        self.registry.follower().told.send(Told::Lives(answer)).ok()?;
        let (lives, mut stand) = lives.await.ok()?;
        let bound = view.bindings.iter().map(|binding| &binding.name);
        let mut names: BTreeSet<Name> = bound.chain(&view.gone).cloned().collect();
        loop {
            match self.batches.try_recv() {
                Ok(batch) => {
                    stand = if batch.stand.version > stand.version { batch.stand } else { stand };
                    names.extend(batch.deltas.iter().map(|delta| delta.name().clone()));
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                Err(TryRecvError::Lagged(_)) => {
                    self.resync();
                    return Some(());
                }
            }
        }
        names.retain(|name| self.wants(name));
        // Of what the copy has by now, and this watch was not told yet, it is told again.
        let found = self.registry.follower().copy.get_all(names.iter());
        self.version = stand.version;
        self.queue.push_back(Change::Lives { lives, rev: stand.rev });
        for (name, entry) in found {
            match entry {
                Some(entry) if entry.rev <= since => {}
                Some(entry) => {
                    let is_new = entry.token.get() > since.get();
                    self.tell_bound(entry, is_new, stand.rev);
                }
                None => self.tell_gone(name, None, stand.rev),
            }
        }
        Some(())
    }

    fn wants(&self, name: &Name) -> bool {
        self.registry.inside(name).is_some_and(|name| name.starts_with(&*self.prefix))
    }

    fn resync(&mut self) {
        let (names, stand) = self.registry.select(|found| found.starts_with(&*self.prefix));
        self.version = stand.version;
        self.queue.push_back(Change::Resynced { names, rev: stand.rev });
    }

    fn take(&mut self, batch: &Batch) {
        if batch.stand.version <= self.version {
            return;
        }
        for delta in batch.deltas.iter() {
            match delta {
                delta if !self.wants(delta.name()) => {}
                Delta::Bound { entry, is_new } => {
                    self.tell_bound(entry.clone(), *is_new, batch.stand.rev);
                }
                Delta::Gone { name, token } => {
                    self.tell_gone(name, Some(*token), batch.stand.rev);
                }
            }
        }
    }

    fn tell_bound(&mut self, entry: Arc<Entry>, is_new: bool, rev: Rev) {
        let found = self.registry.found(entry, rev);
        let told = if is_new { Change::Registered } else { Change::Changed };
        self.queue.push_back(told(found));
    }

    fn tell_gone(&mut self, name: &Name, token: Option<Token>, rev: Rev) {
        if let Some(name) = self.registry.inside(name).map(str::to_owned) {
            self.queue.push_back(Change::Released { name, token, rev });
        }
    }
}
