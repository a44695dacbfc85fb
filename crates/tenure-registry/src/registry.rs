//! The registry of one scope.

use std::sync::Arc;

use tenure::Tenure;
use tenure::naming::{Binding, Name, Names, Rev, Value, WhichNames};
use tokio::sync::oneshot;

use crate::copy::{Entry, Stand, pair};
use crate::follow::{Follower, Told};
use crate::{Found, Got, RegisterError, Registered, Watch};

/// Stands between a scope and a name in the store.
pub(crate) const SEPARATOR: char = ':';

/// The scope of what leaders leave to their successors.
const LEFT: &str = "tenure-left";

/// Unique names of one scope: see the [crate's page](crate).
///
/// ```
/// # use tenure::Tenure;
/// # use tenure::naming::Value;
/// # use tenure_registry::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tenure = Tenure::connect("memory:").await?;
/// # let names = Registry::open(&tenure, "orders")?;
/// names.ready().await?;
/// let mine = names.register("user/42", Value::at("10.0.0.7:9000")?).await?;
/// assert_eq!(names.lookup("user/42").map(|found| found.token()), Some(mine.token()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Registry {
    tenure: Tenure,
    follower: Arc<Follower>,
    /// The scope with its separator.
    prefix: Arc<str>,
}

impl Registry {
    /// Opens a scope, and begins to copy the namespace's names. It returns without waiting for
    /// the store: see [`ready`](Self::ready). Must be called inside a tokio runtime. All
    /// registries of one member share one copy, in whatever scopes.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let same_copy = Registry::open(&tenure, "users")?;
    /// assert!(matches!(Registry::open(&tenure, "a:b"), Err(RegisterError::Scope(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(tenure: &Tenure, scope: &str) -> Result<Self, RegisterError> {
        tenure.capabilities().keeps_names().map_err(tenure::Error::from)?;
        let prefix = prefix(scope)?;
        let follower = Follower::of(tenure)?;
        Ok(Self { tenure: tenure.clone(), follower, prefix })
    }

    /// Another scope of the same namespace. It shares the copy, the heartbeat and everything
    /// else.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let users = names.scope("users")?;
    /// let mine = users.register("42", Value::empty()).await?;
    /// assert!(users.lookup("42").is_some() && names.lookup("42").is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope(&self, scope: &str) -> Result<Self, RegisterError> {
        Ok(Self { prefix: prefix(scope)?, ..self.clone() })
    }

    /// Waits until the copy is complete for the first time. An error says that the member was
    /// shut down.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// names.ready().await?;
    /// assert!(names.all().is_empty()); // there are none
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ready(&self) -> Result<(), RegisterError> {
        self.follower.reaches(|_| true).await
    }

    /// The revision that the copy reflects.
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
        self.follower.copy.stand().rev
    }

    /// Waits until the copy reflects this revision: a process that is told a revision by
    /// another then finds whatever the other had registered. An error says that the member was
    /// shut down.
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
    /// # let other = names.clone();
    /// other.reached(mine.rev()).await?; // told by the one that registered
    /// assert!(other.lookup("user/42").is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reached(&self, rev: Rev) -> Result<(), RegisterError> {
        if !self.follower.tells {
            // The namespace has no revision there: a look from now on sees it.
            let (seen, is_seen) = oneshot::channel();
            // A task that is gone does not answer.
            let _ = self.follower.told.send(Told::Look(Some(seen)));
            return is_seen.await.map_err(|_| tenure::Error::ShutDown.into());
        }
        if self.rev() < rev {
            let _ = self.follower.told.send(Told::Look(None));
        }
        self.follower.reaches(|at| at >= rev).await
    }

    /// Registers a name for this process, if it is free. It is given back when the
    /// [`Registered`] is dropped.
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
    /// let again = names.register("user/42", Value::empty()).await;
    /// assert!(matches!(again, Err(RegisterError::Taken(by)) if by.token == mine.token()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register(&self, name: &str, value: Value) -> Result<Registered, RegisterError> {
        let taken = self.names().take(self.full(name)?, value).await?;
        Ok(self.registered(taken).await)
    }

    /// Registers many names, in as few requests as the store's batch allows, each with an
    /// answer of its own, in order.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let shards = (0..100).map(|n| (format!("shard/{n}"), Value::empty()));
    /// let mine = names.register_all(shards).await?;
    /// assert!(mine.len() == 100 && mine.iter().all(Result::is_ok));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register_all<S: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = (S, Value)>,
    ) -> Result<Vec<Result<Registered, RegisterError>>, RegisterError> {
        let full = |(name, value): (S, Value)| Ok((self.full(name.as_ref())?, value));
        let names = names.into_iter().map(full).collect::<Result<Vec<_>, RegisterError>>()?;
        let answers = self.names().take_all(names).await?;
        let own = answers.iter().flatten().map(tenure::naming::Registration::binding).collect();
        // Handles first: a caller who stops waiting gives the names back, and says so here.
        let registered = |taken| Registered::new(taken, self.clone());
        let answers = answers.into_iter().map(|a| a.map(registered).map_err(RegisterError::from));
        let answers = answers.collect();
        self.follower.overlay(own).await;
        Ok(answers)
    }

    /// Finds a name, or registers it with what `make` gives. Of several who ask at once, one
    /// registers and the others find it.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let first = names.get_or_register("user/42", Value::empty).await?;
    /// let Got::Registered(mine) = first else { panic!("it was free") };
    /// let second = names.get_or_register("user/42", Value::empty).await?;
    /// assert!(matches!(second, Got::Found(by) if by.token == mine.token()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_or_register(
        &self,
        name: &str,
        make: impl FnOnce() -> Value,
    ) -> Result<Got, RegisterError> {
        if let Some(found) = self.lookup(name) {
            return Ok(Got::Found(Box::new(found.binding_at(self.tenure.now()))));
        }
        match self.register(name, make()).await {
            Ok(registered) => Ok(Got::Registered(registered)),
            Err(RegisterError::Taken(binding)) => Ok(Got::Found(binding)),
            Err(error) => Err(error),
        }
    }

    /// Finds a name in the copy: no lock, no request, no allocation. What another process has
    /// registered is found a little later; [`reached`](Self::reached) and
    /// [`lookup_consistent`](Self::lookup_consistent) say more.
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
    /// assert!(names.lookup("user/43").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<Found> {
        // Long names are not in the store, and the buffer holds every other one.
        let mut buffer = [0; 2 * tenure::views::MAX_NAME];
        let len = self.prefix.len() + name.len();
        let full = buffer.get_mut(..len)?;
        full[..self.prefix.len()].copy_from_slice(self.prefix.as_bytes());
        full[self.prefix.len()..].copy_from_slice(name.as_bytes());
        let (entry, rev) = self.follower.copy.get(std::str::from_utf8(full).ok()?)?;
        Some(self.found(entry, rev))
    }

    /// Finds a name in the store: what was answered to any caller before the call is seen.
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
    /// let there = names.lookup_consistent("user/42").await?;
    /// assert_eq!(there.map(|binding| binding.token), Some(mine.token()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lookup_consistent(&self, name: &str) -> Result<Option<Binding>, RegisterError> {
        let which = WhichNames::Named(vec![self.full(name)?]);
        Ok(self.names().read(which).await?.bindings.pop())
    }

    /// Every name whose value has all of these pairs in its index, in the copy, in order; with
    /// no pair, every name. It costs about a thousand steps, and one for each name that has the
    /// rarest of the pairs; other names are not looked at.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let value = Value::empty().with_index([("role", "worker"), ("zone", "a")])?;
    /// let mine = names.register("user/42", value).await?;
    /// assert_eq!(names.query([("role", "worker"), ("zone", "a")]).len(), 1);
    /// assert!(names.query([("zone", "b")]).is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn query<K: AsRef<str>, T: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (K, T)>,
    ) -> Vec<Found> {
        let pairs: Vec<_> = pairs.into_iter().collect();
        if pairs.is_empty() {
            return self.all();
        }
        let keys: Vec<_> = pairs.iter().map(|(k, t)| pair(k.as_ref(), t.as_ref())).collect();
        let has = |value: &Value| pairs.iter().all(|(k, t)| value.has(k.as_ref(), t.as_ref()));
        let wanted = |entry: &Entry| self.inside(&entry.name).is_some() && has(&entry.value);
        let (entries, stand) = self.follower.copy.query(&keys, wanted);
        self.in_order(entries, stand.rev)
    }

    /// Every name of the scope, in the copy, in order.
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
    /// assert_eq!(names.all()[0].as_str(), "user/42");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn all(&self) -> Vec<Found> {
        self.select(|_| true).0
    }

    /// The names of the scope that are wanted, in order, and where the copy stood.
    pub(crate) fn select(&self, wanted: impl Fn(&str) -> bool) -> (Vec<Found>, Stand) {
        let is_wanted = |entry: &Entry| self.inside(&entry.name).is_some_and(&wanted);
        let (entries, stand) = self.follower.copy.select(is_wanted);
        (self.in_order(entries, stand.rev), stand)
    }

    fn in_order(&self, entries: Vec<Arc<Entry>>, rev: Rev) -> Vec<Found> {
        let mut found: Vec<_> = entries.into_iter().map(|entry| self.found(entry, rev)).collect();
        found.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        found
    }

    pub(crate) fn found(&self, entry: Arc<Entry>, rev: Rev) -> Found {
        Found::new(entry, rev, self.prefix.len())
    }

    /// The names that begin with `prefix`, as they change. It begins with the present state.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mut watch = names.watch("user/");
    /// assert!(matches!(watch.next().await, Some(Change::Resynced { .. })));
    /// let mine = names.register("user/42", Value::empty()).await?;
    /// let told = watch.next().await;
    /// assert!(matches!(told, Some(Change::Registered(found)) if found.token() == mine.token()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a watch tells nothing unless it is asked"]
    pub fn watch(&self, prefix: &str) -> Watch {
        Watch::new(self.clone(), prefix)
    }

    pub(crate) async fn registered(&self, taken: tenure::naming::Registration) -> Registered {
        let binding = taken.binding();
        // The handle first: a caller who stops waiting gives the name back, and says so here.
        let registered = Registered::new(taken, self.clone());
        self.follower.overlay(vec![binding]).await;
        registered
    }

    pub(crate) fn full(&self, name: &str) -> Result<Name, RegisterError> {
        // By itself first: a scope before it hides an empty name, and a space at its beginning.
        Name::new(name).map_err(tenure::Error::from)?;
        Ok(Name::new(format!("{}{name}", self.prefix)).map_err(tenure::Error::from)?)
    }

    pub(crate) fn inside<'a>(&self, name: &'a Name) -> Option<&'a str> {
        name.as_str().strip_prefix(&*self.prefix)
    }

    pub(crate) fn scope_name(&self) -> &str {
        self.prefix.trim_end_matches(SEPARATOR)
    }

    pub(crate) fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    pub(crate) fn follower(&self) -> &Follower {
        &self.follower
    }

    pub(crate) fn names(&self) -> Names {
        self.tenure.names()
    }
}

fn prefix(scope: &str) -> Result<Arc<str>, RegisterError> {
    if scope.is_empty() || scope.contains(SEPARATOR) || scope == LEFT {
        return Err(RegisterError::Scope(scope.to_owned()));
    }
    // Refuses what no name may contain.
    Name::new(scope).map_err(tenure::Error::from)?;
    Ok(format!("{scope}{SEPARATOR}").into())
}
