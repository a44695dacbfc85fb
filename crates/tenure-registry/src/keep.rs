//! Names that are waited for: locks, and names that are registered again after every loss.

use std::sync::{Arc, Mutex, PoisonError};

use tenure::{Binding, Token, Value};
use tokio::sync::watch;

use crate::follow::{FIRST_PAUSE, PAUSES};
use crate::{Change, RegisterError, Registered, Registry, Watch};

impl Registry {
    /// Waits until a name is free, and registers it. Among several who wait, whose request
    /// reaches the store first has it.
    ///
    /// A process that dies while it has the lock frees it with its ttl. A store that does not
    /// answer is [`RegisterError::Unknown`], not a wait.
    pub async fn lock(&self, name: &str, value: Value) -> Result<Registered, RegisterError> {
        let mut watch = self.watch(name);
        loop {
            match self.register(name, value.clone()).await {
                Err(RegisterError::Taken(binding)) => self.freed(name, &binding, &mut watch).await,
                other => return other,
            }
        }
    }

    /// Waits until a name that was found taken may be free.
    pub(crate) async fn freed(&self, name: &str, taken: &Binding, watch: &mut Watch) {
        let tenure = self.tenure();
        let left = if self.follower().tells {
            taken.remaining
        } else {
            // Nobody is told there.
            taken.remaining.min(tenure.settings().heartbeat())
        };
        let limit = tenure.now() + left.max(FIRST_PAUSE);
        tokio::select! {
            () = told_free(name, watch) => {}
            () = tenure.sleep_until(limit) => {}
        }
    }

    /// Keeps a name registered for this process: it registers it as soon as it is free, and
    /// again after every loss, until the [`Kept`] is dropped or the member is shut down.
    pub fn keep(&self, name: &str, value: Value) -> Result<Kept, RegisterError> {
        self.full(name)?;
        let (tell, current) = watch::channel(None);
        let value = Arc::new(Mutex::new(value));
        let (registry, name, of) = (self.clone(), name.to_owned(), value.clone());
        let task = tokio::spawn(async move { keep(&registry, &name, &of, &tell).await });
        Ok(Kept { task: task.abort_handle(), value, current })
    }
}

async fn told_free(name: &str, watch: &mut Watch) {
    while let Some(change) = watch.next().await {
        match change {
            Change::Released { name: of, .. } if of == name => return,
            Change::Resynced { names, .. } if names.iter().all(|found| found.as_str() != name) => {
                return;
            }
            _ => {}
        }
    }
}

async fn keep(
    registry: &Registry,
    name: &str,
    value: &Mutex<Value>,
    tell: &watch::Sender<Option<Arc<Registered>>>,
) {
    let mut pauses = PAUSES;
    loop {
        let now = value.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match registry.lock(name, now).await {
            Ok(registered) => {
                pauses.reset();
                let registered = Arc::new(registered);
                tell.send_replace(Some(registered.clone()));
                registered.lost().await;
                // Whatever the reason was: after a shutdown the next attempt says so.
                tell.send_replace(None);
            }
            Err(error) if error.may_pass() => {
                tracing::warn!(target: "tenure", %error, name, "a name that is to be kept could not be registered");
                registry.tenure().sleep_until(registry.tenure().now() + pauses.pause()).await;
            }
            Err(error) => {
                tracing::warn!(target: "tenure", %error, name, "a name is not kept any more");
                return;
            }
        }
    }
}

/// A name that is registered again after every loss, from [`Registry::keep`].
#[derive(Debug)]
#[must_use = "dropping it gives the name back"]
pub struct Kept {
    task: tokio::task::AbortHandle,
    value: Arc<Mutex<Value>>,
    current: watch::Receiver<Option<Arc<Registered>>>,
}

impl Kept {
    /// The token, while the name is this process's.
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        let current = self.current.borrow();
        current.as_ref().filter(|registered| registered.is_current()).map(|r| r.token())
    }

    /// Whether the name is this process's at this moment.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.token().is_some()
    }

    /// Waits until the name is this process's. `None` once it is not kept any more: the member
    /// was shut down, or the store refuses the name or its value.
    pub async fn held(&mut self) -> Option<Token> {
        loop {
            if let Some(token) = self.token() {
                return Some(token);
            }
            self.current.changed().await.ok()?;
        }
    }

    /// Publishes another value, now if the name is this process's, and with every
    /// registration from now on.
    pub async fn set(&self, value: Value) -> Result<(), RegisterError> {
        value.clone_into(&mut self.value.lock().unwrap_or_else(PoisonError::into_inner));
        let current = self.current.borrow().clone();
        match current {
            Some(registered) => registered.set(value).await,
            None => Ok(()),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.task.abort();
    }
}
