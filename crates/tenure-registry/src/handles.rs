//! What the registry hands out: names that were found, and names that are owned.

use std::sync::Arc;

use tenure::naming::{Binding, Name, Rev, Token, Value};
use tenure::store::{FenceBlocking, FenceIn};
use tenure::views::MemberRef;
use tenure::{FenceError, LostReason, Mono, Timestamp};
use tokio::sync::oneshot;

use crate::copy::Entry;
use crate::follow::Told;
use crate::{RegisterError, Registry};

/// A name as the local copy has it.
///
/// ```
/// # use tenure::Tenure;
/// # use tenure::naming::Value;
/// # use tenure_registry::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tenure = Tenure::connect("memory:").await?;
/// # let names = Registry::open(&tenure, "orders")?;
/// let mine = names.register("user/42", Value::at("10.0.0.7:9000")?).await?;
/// let found = names.lookup("user/42").unwrap();
/// assert_eq!((found.as_str(), found.token()), ("user/42", mine.token()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Found {
    entry: Arc<Entry>,
    rev: Rev,
    scope: usize,
}

impl Found {
    pub(crate) fn new(entry: Arc<Entry>, rev: Rev, scope: usize) -> Self {
        Self { entry, rev, scope }
    }

    /// The name, inside its scope.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mine = names.register("user/42", Value::at("10.0.0.7:9000")?).await?;
    /// let found = names.lookup("user/42").unwrap();
    /// assert_eq!(found.as_str(), "user/42");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.entry.name.as_str().get(self.scope..).unwrap_or_default()
    }

    /// The fencing token.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mine = names.register("user/42", Value::at("10.0.0.7:9000")?).await?;
    /// let found = names.lookup("user/42").unwrap();
    /// assert_eq!(found.token(), mine.token());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn token(&self) -> Token {
        self.entry.token
    }

    /// The revision of its last change.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mine = names.register("user/42", Value::at("10.0.0.7:9000")?).await?;
    /// let found = names.lookup("user/42").unwrap();
    /// assert_eq!(found.changed_at(), mine.rev());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn changed_at(&self) -> Rev {
        self.entry.rev
    }

    /// Which life of which member owns it; `None` if it has no owner.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mine = names.register("user/42", Value::at("10.0.0.7:9000")?).await?;
    /// let found = names.lookup("user/42").unwrap();
    /// assert_eq!(found.owner().map(|owner| &owner.id), Some(tenure.id()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn owner(&self) -> Option<&MemberRef> {
        self.entry.owner.as_ref().map(|owner| &owner.member)
    }

    /// What is published with it.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mine = names.register("user/42", Value::at("10.0.0.7:9000")?).await?;
    /// let found = names.lookup("user/42").unwrap();
    /// assert_eq!(found.value().endpoint(), Some("10.0.0.7:9000"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.entry.value
    }

    /// When it was registered, by the store's wall clock; for people.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mine = names.register("user/42", Value::at("10.0.0.7:9000")?).await?;
    /// let found = names.lookup("user/42").unwrap();
    /// println!("registered at {:?}", found.bound_at());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn bound_at(&self) -> Timestamp {
        self.entry.bound_at
    }

    /// The revision that the copy reflected.
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
    /// names.reached(mine.rev()).await?;
    /// assert!(names.lookup("user/42").unwrap().rev() >= mine.rev());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rev(&self) -> Rev {
        self.rev
    }
}

impl Found {
    /// The same as a binding, with what is left of its owner's ttl at this moment.
    pub(crate) fn binding_at(&self, now: Mono) -> Binding {
        let until = self.entry.owner.as_ref().map_or(Mono::ZERO, |owner| owner.until());
        Binding {
            name: self.entry.name.clone(),
            token: self.entry.token,
            rev: self.entry.rev,
            owner: self.owner().cloned(),
            value: self.entry.value.clone(),
            remaining: until.since(now),
            bound_at: self.entry.bound_at,
        }
    }
}

/// What [`Registry::get_or_register`] gives.
///
/// ```
/// # use tenure::Tenure;
/// # use tenure::naming::Value;
/// # use tenure_registry::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tenure = Tenure::connect("memory:").await?;
/// # let names = Registry::open(&tenure, "orders")?;
/// match names.get_or_register("user/42", Value::empty).await? {
///     Got::Registered(mine) => assert!(mine.is_current()),
///     Got::Found(by) => println!("{:?} has it", by.owner),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub enum Got {
    /// A process has it, perhaps this one.
    Found(Box<Binding>),
    /// It was registered for this process now.
    Registered(Registered),
}

/// A name that this process has registered. Dropped, it is given back.
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
/// assert!(mine.is_current());
/// drop(mine); // the name is given back
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it gives the name back"]
pub struct Registered {
    /// Goes first: the copy does not show what the store may still have.
    shown: Shown,
    taken: tenure::naming::Registration,
}

/// That the copy of this process shows a name of its own.
#[derive(Debug)]
struct Shown {
    registry: Registry,
    name: Name,
    token: Token,
    seen: Option<oneshot::Sender<()>>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        let dropped = Told::Dropped(self.name.clone(), self.token, self.seen.take());
        // A task that is gone shows nothing.
        let _ = self.registry.follower().told.send(dropped);
    }
}

impl Registered {
    pub(crate) fn new(taken: tenure::naming::Registration, registry: Registry) -> Self {
        let name = taken.name().clone();
        let token = taken.token();
        Self { shown: Shown { registry, name, token, seen: None }, taken }
    }

    /// The name, inside its scope.
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
    /// assert_eq!(mine.as_str(), "user/42");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.shown.registry.inside(&self.shown.name).unwrap_or_default()
    }

    /// The fencing token.
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
    /// let token = mine.token();
    /// let mine = {
    ///     mine.release().await?;
    ///     names.register("user/42", Value::empty()).await?
    /// };
    /// assert!(mine.token() > token);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn token(&self) -> Token {
        self.taken.token()
    }

    /// The revision of its last change: tell it to the process that is to find the name, for
    /// [`Registry::reached`].
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
    /// names.reached(mine.rev()).await?;
    /// assert!(names.rev() >= mine.rev());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rev(&self) -> Rev {
        self.taken.binding().rev
    }

    /// Whether the name is this process's at this moment: two atomics and a clock.
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
    /// if mine.is_current() {
    ///     // no other process owns the name at this moment
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.taken.is_current()
    }

    /// Until when that holds if nothing is heard from the store any more, on this machine's
    /// boot-time clock; [`Mono::ZERO`] once the name is lost.
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
    /// assert!(mine.trusted_until() > tenure.now());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn trusted_until(&self) -> Mono {
        self.taken.trusted_until()
    }

    /// Waits until the name is lost, and says why. Fires without any request to the store.
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
    /// tenure.shutdown().await?;
    /// println!("lost: {}", mine.lost().await);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) -> LostReason {
        self.taken.lost().await
    }

    /// Publishes another value. The token stays.
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
    /// mine.set(Value::at("10.0.0.7:9001")?).await?;
    /// assert_eq!(names.lookup("user/42").unwrap().value().endpoint(), Some("10.0.0.7:9001"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set(&self, value: Value) -> Result<(), RegisterError> {
        self.show(self.taken.set(value).await?).await
    }

    /// Publishes another value if the last change of the name had exactly this revision, which
    /// [`rev`](Self::rev) tells; else the error is [`RegisterError::Changed`]. For tasks of
    /// this process that share the name.
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
    /// let seen = mine.rev();
    /// mine.set_if(seen, Value::at("10.0.0.7:9001")?).await?;
    /// let late = mine.set_if(seen, Value::empty()).await;
    /// assert!(matches!(late, Err(RegisterError::Changed(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_if(&self, expect: Rev, value: Value) -> Result<(), RegisterError> {
        self.show(self.taken.set_if(expect, value).await?).await
    }

    async fn show(&self, binding: Binding) -> Result<(), RegisterError> {
        self.shown.registry.follower().overlay(vec![binding]).await;
        Ok(())
    }

    /// Proves in the caller's own transaction that the name is bound under this token, and
    /// holds it still until the transaction ends: see
    /// [`Registration::fence`](tenure::naming::Registration::fence). Roll back on an error.
    pub async fn fence<T: FenceIn<Via>, Via>(&self, transaction: &mut T) -> Result<(), FenceError> {
        self.taken.fence(transaction).await
    }

    /// [`fence`](Self::fence) for drivers that block, as rusqlite does.
    pub fn fence_blocking<T: FenceBlocking<Via>, Via>(
        &self,
        transaction: &T,
    ) -> Result<(), FenceError> {
        self.taken.fence_blocking(transaction)
    }

    /// Gives the name back, and waits for the store's confirmation.
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
    /// mine.release().await?;
    /// assert!(names.lookup("user/42").is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(self) -> Result<(), RegisterError> {
        let Self { mut shown, taken } = self;
        let (seen, is_seen) = oneshot::channel();
        shown.seen = Some(seen);
        drop(shown);
        taken.release().await?;
        // In this process: no request is waited for.
        let _ = is_seen.await;
        Ok(())
    }
}
