//! What the registry hands out: names that were found, and names that are owned.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Binding, LostReason, MemberRef, Name, Rev, Timestamp, Token, Value};
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

    pub(crate) fn name(&self) -> &Name {
        &self.entry.name
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
    /// The same as a binding.
    #[must_use]
    pub fn binding(&self) -> Binding {
        Binding {
            name: self.entry.name.clone(),
            token: self.entry.token,
            rev: self.entry.rev,
            owner: self.owner().cloned(),
            value: self.entry.value.clone(),
            remaining: Duration::ZERO,
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
    /// Until it is released.
    taken: Option<tenure::Registration>,
    registry: Registry,
}

impl Registered {
    pub(crate) fn new(taken: tenure::Registration, registry: Registry) -> Self {
        Self { taken: Some(taken), registry }
    }

    fn taken(&self) -> Option<&tenure::Registration> {
        self.taken.as_ref()
    }

    /// The fencing token.
    #[must_use]
    pub fn token(&self) -> Token {
        self.taken().map_or(Token::new(0), tenure::Registration::token)
    }

    /// The revision of its last change: tell it to whoever is to find the name, for
    /// [`Registry::reached`].
    #[must_use]
    pub fn rev(&self) -> Rev {
        self.taken().map_or(Rev::START, |taken| taken.binding().rev)
    }

    /// Whether the name is this process's at this moment: two atomics and a clock.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.taken().is_some_and(tenure::Registration::is_current)
    }

    /// Waits until the name is lost, and says why. Fires without any request to the store.
    pub async fn lost(&self) -> LostReason {
        match self.taken() {
            Some(taken) => taken.lost().await,
            None => LostReason::Resigned,
        }
    }

    /// Publishes another value. The token stays.
    pub async fn set(&self, value: Value) -> Result<(), RegisterError> {
        let Some(taken) = self.taken() else { return Ok(()) };
        let binding = taken.set(value).await?;
        let (seen, is_seen) = oneshot::channel();
        if self.registry.follower().told.send(Told::Own(binding, seen)).is_ok() {
            let _ = is_seen.await;
        }
        Ok(())
    }

    /// Gives the name back, and waits for the store's confirmation.
    pub async fn release(mut self) -> Result<(), RegisterError> {
        let Some(taken) = self.taken.take() else { return Ok(()) };
        let (seen, is_seen) = oneshot::channel();
        self.forget(&taken, Some(seen));
        taken.release().await?;
        // In this process: no request is waited for.
        let _ = is_seen.await;
        Ok(())
    }

    fn forget(&self, taken: &tenure::Registration, seen: Option<oneshot::Sender<()>>) {
        let dropped = Told::Dropped(taken.name().clone(), taken.token(), seen);
        // The task ends with the last handle, and this is one.
        let _ = self.registry.follower().told.send(dropped);
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.forget(&taken, None);
        }
    }
}

/// A name that is registered again after every loss, from [`Registry::keep`].
#[derive(Debug)]
#[must_use = "dropping it gives the name back"]
pub struct Kept {
    task: tokio::task::AbortHandle,
    current: tokio::sync::watch::Receiver<Option<Token>>,
}

impl Kept {
    pub(crate) fn new(
        task: tokio::task::AbortHandle,
        current: tokio::sync::watch::Receiver<Option<Token>>,
    ) -> Self {
        Self { task, current }
    }

    /// The token, while the name is this process's.
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        *self.current.borrow()
    }

    /// Waits until the name is this process's.
    pub async fn held(&mut self) -> Option<Token> {
        self.current.wait_for(Option::is_some).await.ok().and_then(|token| *token)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.task.abort();
    }
}
