//! Names that are waited for: locks, and names that are registered again after every loss.
//!
//! # What could break it
//!
//! - **The value is set while a request is on its way.** Each request takes the newest value;
//!   if another was set before the answer, it is published after it.
//! - **Two set the value at once.** One publishes at a time, and always the newest: what the
//!   store has last is what was set last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::naming::{Binding, Name, Token, Value};
use tenure::store::Backoff;
use tokio::sync::watch;

use crate::follow::{FIRST_PAUSE, PAUSES, until};
use crate::waiters::Waiter;
use crate::{RegisterError, Registered, Registry};

/// Where a store tells of no change, so many waiters ask again in each heartbeat's time.
const ASK_TOGETHER: u32 = 64;

impl Registry {
    /// Waits until a name is free, and registers it. Among processes that wait, the one whose
    /// request reaches the store first has it; among those who wait in one process, the one
    /// that came first.
    ///
    /// A process that dies while it has the lock frees it with its ttl. A store that does not
    /// answer is [`RegisterError::Unknown`], not a wait. A call that waits asks the store for
    /// nothing: the copy tells it when the name is free.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let lock = names.lock("migration", Value::empty()).await?;
    /// // one process at a time is here
    /// lock.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lock(&self, name: &str, value: Value) -> Result<Registered, RegisterError> {
        self.lock_with(name, || value.clone()).await
    }

    /// The same, with what is to be published by then.
    async fn lock_with(
        &self,
        name: &str,
        value: impl Fn() -> Value,
    ) -> Result<Registered, RegisterError> {
        let mut waiter = self.waiter(self.full(name)?);
        loop {
            waiter.asks();
            let answer = self.register(name, value()).await;
            if let Ok(_) | Err(RegisterError::Taken(_)) = &answer {
                waiter.is_answered();
            }
            match answer {
                Err(RegisterError::Taken(binding)) => self.freed(&binding, &waiter).await,
                other => return other,
            }
        }
    }

    /// Waits for this name from now on.
    pub(crate) fn waiter(&self, full: Name) -> Waiter {
        self.follower().waiters.wait(full)
    }

    /// Waits until a name that was found taken may be free.
    pub(crate) async fn freed(&self, taken: &Binding, waiter: &Waiter) {
        let end = self.asks_again_in(taken).map(|pause| self.tenure().now() + pause);
        tokio::select! {
            () = waiter.told() => {}
            () = until(self.tenure(), end) => {}
        }
    }

    /// When a waiter asks the store although it was told nothing; `None` if it is told for
    /// sure, because the copy has the binding that is in the way, or a later one.
    fn asks_again_in(&self, taken: &Binding) -> Option<Duration> {
        let follower = self.follower();
        let every = self.tenure().settings().heartbeat();
        // A name without an owner has no ttl that could run out.
        let left = taken.owner.as_ref().map_or(every, |_| taken.remaining);
        if !follower.tells {
            // No change is told there. Many waiters take turns, so that they do not cost more.
            let turns = u32::try_from(follower.waiters.count()).unwrap_or(u32::MAX) / ASK_TOGETHER;
            let turn = every.saturating_mul(turns.saturating_add(1));
            return Some(left.min(turn).max(FIRST_PAUSE));
        }
        let there = follower.copy.get(taken.name.as_str());
        let is_shown = there.is_some_and(|(entry, _)| entry.token >= taken.token);
        let is_told = is_shown && !follower.waiters.is_over();
        (!is_told).then_some(left.max(FIRST_PAUSE))
    }

    /// Keeps a name registered for this process: it registers it as soon as it is free, and
    /// again after every loss, until the [`Kept`] is dropped or the member is shut down.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mut kept = names.keep("user/42", Value::empty())?;
    /// let token = kept.held().await.unwrap();
    /// assert_eq!(names.lookup("user/42").map(|found| found.token()), Some(token));
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep(&self, name: &str, value: Value) -> Result<Kept, RegisterError> {
        let full = self.full(name)?;
        self.names().accepts(&full, &value)?;
        let (tell, current) = watch::channel(None);
        let wish = Arc::new(Wish::new(value));
        let registry = self.clone();
        let name = name.to_owned();
        let of = wish.clone();
        let task = tokio::spawn(async move { keep(&registry, &name, &of, &tell).await });
        Ok(Kept { task: task.abort_handle(), registry: self.clone(), full, wish, current })
    }
}

/// What a kept name is to be published with.
#[derive(Debug)]
struct Wish {
    /// The value, and how often it was set.
    value: Mutex<(u64, Value)>,
    /// Which of them the store has. Held by the task that publishes.
    published: tokio::sync::Mutex<u64>,
}

impl Wish {
    fn new(value: Value) -> Self {
        Self { value: Mutex::new((0, value)), published: tokio::sync::Mutex::new(0) }
    }

    fn newest(&self) -> MutexGuard<'_, (u64, Value)> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, value: Value) {
        let mut newest = self.newest();
        *newest = (newest.0 + 1, value);
    }

    /// Publishes the newest value, if the store does not have it.
    async fn publish(&self, registered: &Registered) -> Result<(), RegisterError> {
        let mut published = self.published.lock().await;
        let (count, value) = self.newest().clone();
        if *published != count {
            registered.set(value).await?;
            *published = count;
        }
        Ok(())
    }

    /// Publishes it, however often that takes.
    async fn settle(&self, registered: &Registered, registry: &Registry) {
        let mut pauses = PAUSES;
        while let Err(error) = self.publish(registered).await {
            tracing::warn!(target: "tenure", %error, name = registered.as_str(), "the value of a kept name could not be published");
            if matches!(error, RegisterError::Gone(_)) || !error.may_pass() {
                return;
            }
            rest(registry, &mut pauses).await;
        }
    }
}

/// A pause after a failure, longer each time.
async fn rest(registry: &Registry, pauses: &mut Backoff) {
    let tenure = registry.tenure();
    tenure.sleep_until(tenure.now() + pauses.pause()).await;
}

async fn keep(
    registry: &Registry,
    name: &str,
    wish: &Wish,
    tell: &watch::Sender<Option<Arc<Registered>>>,
) {
    let mut pauses = PAUSES;
    loop {
        let count = AtomicU64::new(0);
        let value = || {
            let (set, value) = wish.newest().clone();
            count.store(set, Ordering::Relaxed);
            value
        };
        match registry.lock_with(name, value).await {
            Ok(registered) => {
                pauses.reset();
                let registered = Arc::new(registered);
                *wish.published.lock().await = count.load(Ordering::Relaxed);
                tell.send_replace(Some(registered.clone()));
                let settled = async {
                    wish.settle(&registered, registry).await;
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    _ = registered.lost() => {}
                    () = settled => {}
                }
                // Whatever the reason was: after a shutdown the next attempt says so.
                tell.send_replace(None);
            }
            Err(error) if error.may_pass() => {
                tracing::warn!(target: "tenure", %error, name, "a name that is to be kept could not be registered");
                rest(registry, &mut pauses).await;
            }
            Err(error) => {
                tracing::warn!(target: "tenure", %error, name, "a name is not kept any more");
                return;
            }
        }
    }
}

/// A name that is registered again after every loss, from [`Registry::keep`].
///
/// ```
/// # use tenure::Tenure;
/// # use tenure::naming::Value;
/// # use tenure_registry::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tenure = Tenure::connect("memory:").await?;
/// # let names = Registry::open(&tenure, "orders")?;
/// let mut kept = names.keep("user/42", Value::empty())?;
/// kept.held().await;
/// assert!(kept.is_current());
/// drop(kept); // the name is given back
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it gives the name back"]
pub struct Kept {
    task: tokio::task::AbortHandle,
    registry: Registry,
    full: Name,
    wish: Arc<Wish>,
    current: watch::Receiver<Option<Arc<Registered>>>,
}

impl Kept {
    /// The token, while the name is this process's.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mut kept = names.keep("user/42", Value::empty())?;
    /// let held = kept.held().await;
    /// assert_eq!(kept.token(), held);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        let current = self.current.borrow();
        current.as_ref().filter(|registered| registered.is_current()).map(|r| r.token())
    }

    /// Whether the name is this process's at this moment.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mut kept = names.keep("user/42", Value::empty())?;
    /// kept.held().await;
    /// assert!(kept.is_current());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.token().is_some()
    }

    /// Waits until the name is this process's. `None` once it is not kept any more: the member
    /// was shut down, or the store refuses the name or its value.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mut kept = names.keep("user/42", Value::empty())?;
    /// assert!(kept.held().await.is_some());
    /// tenure.shutdown().await?;
    /// assert!(kept.held().await.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn held(&mut self) -> Option<Token> {
        loop {
            if let Some(token) = self.token() {
                return Some(token);
            }
            self.current.changed().await.ok()?;
        }
    }

    /// Publishes another value, now if the name is this process's, and with every
    /// registration from now on. A value that no name can have is refused, and the one before
    /// it stays. After any other error it is published with the next registration.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mut kept = names.keep("user/42", Value::at("10.0.0.7:9000")?)?;
    /// kept.held().await;
    /// kept.set(Value::at("10.0.0.7:9001")?).await?;
    /// assert_eq!(names.lookup("user/42").unwrap().value().endpoint(), Some("10.0.0.7:9001"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set(&self, value: Value) -> Result<(), RegisterError> {
        self.registry.names().accepts(&self.full, &value)?;
        self.wish.set(value);
        let current = self.current.borrow().clone();
        match current {
            Some(registered) => match self.wish.publish(&registered).await {
                // It was lost meanwhile.
                Err(RegisterError::Gone(_)) => Ok(()),
                published => published,
            },
            None => Ok(()),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.task.abort();
    }
}
