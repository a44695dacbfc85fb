//! What the registry hands out: names that were found, and names that are owned.

use std::sync::Arc;

use tenure::{
    Binding, FenceBlocking, FenceError, FenceIn, LostReason, MemberRef, Mono, Name, Rev, Timestamp,
    Token, Value,
};
use tokio::sync::oneshot;

use crate::copy::Entry;
use crate::follow::Told;
use crate::{RegisterError, Registry};

/// A name as the local copy has it.
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
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.entry.name.as_str().get(self.scope..).unwrap_or_default()
    }

    /// The fencing token.
    #[must_use]
    pub fn token(&self) -> Token {
        self.entry.token
    }

    /// The revision of its last change.
    #[must_use]
    pub fn changed_at(&self) -> Rev {
        self.entry.rev
    }

    /// Which life of which member owns it; `None` if it is bound to nobody.
    #[must_use]
    pub fn owner(&self) -> Option<&MemberRef> {
        self.entry.owner.as_ref().map(|owner| &owner.member)
    }

    /// What is published with it.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.entry.value
    }

    /// When it was registered, by the store's wall clock; for people.
    #[must_use]
    pub fn bound_at(&self) -> Timestamp {
        self.entry.bound_at
    }

    /// The revision that the copy reflected.
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
#[derive(Debug)]
pub enum Got {
    /// Somebody has it, perhaps this process.
    Found(Box<Binding>),
    /// It was registered for this process now.
    Registered(Registered),
}

/// A name that this process has registered. Dropped, it is given back.
#[derive(Debug)]
#[must_use = "dropping it gives the name back"]
pub struct Registered {
    /// Goes first: the copy does not show what the store may still have.
    shown: Shown,
    taken: tenure::Registration,
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
    pub(crate) fn new(taken: tenure::Registration, registry: Registry) -> Self {
        let (name, token) = (taken.name().clone(), taken.token());
        Self { shown: Shown { registry, name, token, seen: None }, taken }
    }

    /// The name, inside its scope.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.shown.registry.inside(&self.shown.name).unwrap_or_default()
    }

    /// The fencing token.
    #[must_use]
    pub fn token(&self) -> Token {
        self.taken.token()
    }

    /// The revision of its last change: tell it to whoever is to find the name, for
    /// [`Registry::reached`].
    #[must_use]
    pub fn rev(&self) -> Rev {
        self.taken.binding().rev
    }

    /// Whether the name is this process's at this moment: two atomics and a clock.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.taken.is_current()
    }

    /// Until when that holds if nothing is heard from the store any more, on this machine's
    /// boot-time clock; [`Mono::ZERO`] once the name is lost.
    #[must_use]
    pub fn trusted_until(&self) -> Mono {
        self.taken.trusted_until()
    }

    /// Waits until the name is lost, and says why. Fires without any request to the store.
    pub async fn lost(&self) -> LostReason {
        self.taken.lost().await
    }

    /// Publishes another value. The token stays.
    pub async fn set(&self, value: Value) -> Result<(), RegisterError> {
        self.show(self.taken.set(value).await?).await
    }

    /// Publishes another value if the last change of the name had exactly this revision, which
    /// [`rev`](Self::rev) tells; else the error is [`RegisterError::Changed`]. For tasks of
    /// this process that share the name.
    pub async fn set_if(&self, expect: Rev, value: Value) -> Result<(), RegisterError> {
        self.show(self.taken.set_if(expect, value).await?).await
    }

    async fn show(&self, binding: Binding) -> Result<(), RegisterError> {
        self.shown.registry.follower().overlay(vec![binding]).await;
        Ok(())
    }

    /// Proves in the caller's own transaction that the name is bound under this token, and
    /// holds it still until the transaction ends: see
    /// [`Registration::fence`](tenure::Registration::fence). Roll back on an error.
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
