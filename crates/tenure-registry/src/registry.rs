//! The registry of one scope.

use std::sync::Arc;
use std::time::Duration;

use tenure::{
    Binding, Election, Holder, MemberView, Name, NameError, Names, Rev, Tenure, TermNumber, Value,
    WhichNames,
};
use tokio::sync::oneshot;

use crate::follow::{Follower, Told};
use crate::{Found, Got, Kept, RegisterError, Registered, Watch};

/// Stands between a scope and a name in the store.
const SEPARATOR: char = ':';

/// Unique names of one scope: see the [crate's page](crate).
#[derive(Clone, Debug)]
pub struct Registry {
    tenure: Tenure,
    follower: Arc<Follower>,
    /// The scope with its separator.
    prefix: Arc<str>,
}

impl Registry {
    /// Opens a scope, and begins to copy the namespace's names. It returns without waiting for
    /// the store: see [`ready`](Self::ready). Must be called inside a tokio runtime.
    pub fn open(tenure: &Tenure, scope: &str) -> Result<Self, RegisterError> {
        tenure.capabilities().keeps_names().map_err(tenure::Error::from)?;
        let prefix = prefix(scope)?;
        let follower = Arc::new(Follower::start(tenure)?);
        Ok(Self { tenure: tenure.clone(), follower, prefix })
    }

    /// Another scope of the same namespace. It shares the copy, the heartbeat and everything
    /// else.
    pub fn scope(&self, scope: &str) -> Result<Self, RegisterError> {
        Ok(Self { prefix: prefix(scope)?, ..self.clone() })
    }

    /// Waits until the copy is complete for the first time.
    pub async fn ready(&self) {
        let mut reached = self.follower.reached.clone();
        // An error means that the follower is gone, which this handle keeps.
        let _ = reached.wait_for(Option::is_some).await;
    }

    /// The revision that the copy reflects.
    #[must_use]
    pub fn rev(&self) -> Rev {
        self.follower.copy.rev()
    }

    /// Waits until the copy reflects this revision: a process that is told a revision by
    /// another then finds whatever the other had registered.
    pub async fn reached(&self, rev: Rev) {
        if !self.follower.tells {
            // The namespace has no revision there: a look from now on sees it.
            let (seen, is_seen) = oneshot::channel();
            if self.follower.told.send(Told::Look(Some(seen))).is_ok() {
                let _ = is_seen.await;
            }
            return;
        }
        if self.rev() < rev {
            // The task ends with the last handle, and this is one.
            let _ = self.follower.told.send(Told::Look(None));
        }
        let mut reached = self.follower.reached.clone();
        let _ = reached.wait_for(|at| at.is_some_and(|at| at >= rev)).await;
    }

    /// Registers a name for this process, if it is free. It is given back when the
    /// [`Registered`] is dropped.
    pub async fn register(&self, name: &str, value: Value) -> Result<Registered, RegisterError> {
        let taken = self.names().take(self.full(name)?, value).await?;
        Ok(self.registered(taken).await)
    }

    /// Registers many names, in as few requests as the store's batch allows, each with an
    /// answer of its own, in order.
    pub async fn register_all<S: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = (S, Value)>,
    ) -> Result<Vec<Result<Registered, RegisterError>>, RegisterError> {
        let full = |(name, value): (S, Value)| Ok((self.full(name.as_ref())?, value));
        let names = names.into_iter().map(full).collect::<Result<Vec<_>, RegisterError>>()?;
        let answers = self.names().take_all(names).await?;
        let mut registered = Vec::with_capacity(answers.len());
        for answer in answers {
            registered.push(match answer {
                Ok(taken) => Ok(self.registered(taken).await),
                Err(error) => Err(error.into()),
            });
        }
        Ok(registered)
    }

    /// Finds a name, or registers it with what `make` gives. Of several who ask at once, one
    /// registers and the others find it.
    pub async fn get_or_register(
        &self,
        name: &str,
        make: impl FnOnce() -> Value,
    ) -> Result<Got, RegisterError> {
        if let Some(found) = self.lookup(name) {
            return Ok(Got::Found(Box::new(found.binding())));
        }
        match self.register(name, make()).await {
            Ok(registered) => Ok(Got::Registered(registered)),
            Err(RegisterError::Taken(binding)) => Ok(Got::Found(binding)),
            Err(error) => Err(error),
        }
    }

    /// Waits until a name is free, and registers it. Among several who wait, the order is the
    /// store's.
    pub async fn lock(&self, name: &str, value: Value) -> Result<Registered, RegisterError> {
        let mut watch = self.watch(name);
        loop {
            match self.register(name, value.clone()).await {
                Err(RegisterError::Taken(binding)) => {
                    let limit = binding.remaining.max(Duration::from_millis(10));
                    let freed = async {
                        loop {
                            match watch.next().await {
                                crate::Change::Released { name: of, .. } if of == name => return,
                                crate::Change::Resynced { .. } if self.lookup(name).is_none() => {
                                    return;
                                }
                                _ => {}
                            }
                        }
                    };
                    tokio::select! {
                        () = freed => {}
                        () = self.tenure.sleep_until(self.tenure.now() + limit) => {}
                    }
                }
                other => return other,
            }
        }
    }

    /// Keeps a name registered for this process: it registers it as soon as it is free, and
    /// again after every loss, until the [`Kept`] is dropped.
    pub fn keep(&self, name: &str, value: Value) -> Result<Kept, RegisterError> {
        self.full(name)?;
        let (tell, current) = tokio::sync::watch::channel(None);
        let registry = self.clone();
        let name = name.to_owned();
        let task = tokio::spawn(async move {
            let mut pause = Duration::from_millis(50);
            loop {
                match registry.lock(&name, value.clone()).await {
                    Ok(registered) => {
                        pause = Duration::from_millis(50);
                        tell.send_replace(Some(registered.token()));
                        let reason = registered.lost().await;
                        tell.send_replace(None);
                        if !crate::follow::may_come_back(reason) {
                            return;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(target: "tenure", %error, name, "a name that is to be kept could not be registered");
                        let tenure = &registry.tenure;
                        tenure.sleep_until(tenure.now() + pause).await;
                        pause = (pause * 2).min(Duration::from_secs(5));
                    }
                }
            }
        });
        Ok(Kept::new(task.abort_handle(), current))
    }

    /// Finds a name in the copy: no lock, no request, no allocation. What another process has
    /// registered is found a little later; [`reached`](Self::reached) and
    /// [`lookup_consistent`](Self::lookup_consistent) say more.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<Found> {
        // Long names are not in the store, and the buffer holds every other one.
        let mut buffer = [0; 2 * tenure::MAX_NAME];
        let len = self.prefix.len() + name.len();
        let full = buffer.get_mut(..len)?;
        full[..self.prefix.len()].copy_from_slice(self.prefix.as_bytes());
        full[self.prefix.len()..].copy_from_slice(name.as_bytes());
        let (entry, rev) = self.follower.copy.get(std::str::from_utf8(full).ok()?)?;
        Some(Found::new(entry, rev, self.prefix.len()))
    }

    /// Finds a name in the store: whatever was answered to anybody before the call is seen.
    pub async fn lookup_consistent(&self, name: &str) -> Result<Option<Binding>, RegisterError> {
        let which = WhichNames::Named(vec![self.full(name)?]);
        Ok(self.names().read(which).await?.bindings.pop())
    }

    /// Every name whose value has all of these pairs in its index, in the copy.
    #[must_use]
    pub fn query<K: AsRef<str>, T: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (K, T)>,
    ) -> Vec<Found> {
        let pairs: Vec<_> = pairs.into_iter().collect();
        let has = |value: &Value| pairs.iter().all(|(k, t)| value.has(k.as_ref(), t.as_ref()));
        let (entries, rev) = self
            .follower
            .copy
            .select(|entry| entry.name.as_str().starts_with(&*self.prefix) && has(&entry.value));
        entries.into_iter().map(|entry| Found::new(entry, rev, self.prefix.len())).collect()
    }

    /// Every name of the scope, in the copy, in order.
    #[must_use]
    pub fn all(&self) -> Vec<Found> {
        self.select(|_| true).0
    }

    pub(crate) fn select(&self, wanted: impl Fn(&str) -> bool) -> (Vec<Found>, Rev) {
        let (entries, rev) = self
            .follower
            .copy
            .select(|entry| entry.name.as_str().strip_prefix(&*self.prefix).is_some_and(&wanted));
        let found = |entry| Found::new(entry, rev, self.prefix.len());
        let mut found: Vec<_> = entries.into_iter().map(found).collect();
        found.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        (found, rev)
    }

    /// The names that begin with `prefix`, as they change. It begins with the present state.
    pub fn watch(&self, prefix: &str) -> Watch {
        Watch::new(self.clone(), prefix.to_owned())
    }

    /// Runs `work` in one process at a time, and publishes that process under the name: an
    /// election of the scope's and the name's, and its binding under the fence of the term.
    /// Returns when the work does; if the leadership is lost first, it stands again.
    pub async fn singleton<W, F, T>(
        &self,
        name: &str,
        value: Value,
        mut work: W,
    ) -> Result<T, RegisterError>
    where
        W: FnMut(tenure::Leadership) -> F,
        F: Future<Output = T>,
    {
        let full = self.full(name)?;
        let election = self.tenure.election(full.as_str());
        loop {
            let leadership = election.campaign().await?;
            let taken =
                match self.names().take_fenced(full.clone(), value.clone(), &leadership).await {
                    Ok(taken) => self.registered(taken).await,
                    Err(NameError::Fenced { .. }) => continue,
                    // The predecessor's life is not over yet, but its term is.
                    Err(NameError::Taken(binding)) => {
                        let limit = binding.remaining.max(Duration::from_millis(10));
                        self.tenure.sleep_until(self.tenure.now() + limit).await;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
            tokio::select! {
                done = work(leadership.clone()) => {
                    // The name first: whoever finds it finds somebody who leads.
                    taken.release().await?;
                    leadership.resign().await?;
                    return Ok(done);
                }
                _ = leadership.lost() => {}
                _ = taken.lost() => {}
            }
        }
    }

    /// The election for the leader of the scope.
    #[must_use]
    pub fn leader_election(&self) -> Election {
        self.tenure.election(self.leader_key())
    }

    /// The name of that election: other languages find the leader under it.
    #[must_use]
    pub fn leader_key(&self) -> String {
        format!("registry{SEPARATOR}{}", self.prefix.trim_end_matches(SEPARATOR))
    }

    /// Who leads the scope, if somebody does. No registration depends on it.
    pub async fn leader(&self) -> Result<Option<Holder>, RegisterError> {
        Ok(self.leader_election().leader().await?)
    }

    /// How many leaders the scope has had: the number of the newest term.
    pub async fn epoch(&self) -> Result<TermNumber, RegisterError> {
        Ok(self.leader_election().view().await?.number)
    }

    /// The members of the namespace, from the store.
    pub async fn members(&self) -> Result<Vec<MemberView>, RegisterError> {
        Ok(self.tenure.members().await?)
    }

    async fn registered(&self, taken: tenure::Registration) -> Registered {
        let (seen, is_seen) = oneshot::channel();
        if self.follower.told.send(Told::Own(taken.binding(), seen)).is_ok() {
            // In this process: no request is waited for.
            let _ = is_seen.await;
        }
        Registered::new(taken, self.clone())
    }

    fn full(&self, name: &str) -> Result<Name, RegisterError> {
        Ok(Name::new(format!("{}{name}", self.prefix)).map_err(tenure::Error::from)?)
    }

    pub(crate) fn inside<'a>(&self, name: &'a Name) -> Option<&'a str> {
        name.as_str().strip_prefix(&*self.prefix)
    }

    pub(crate) fn lookup_whole(&self, name: &Name) -> Option<Found> {
        self.lookup(self.inside(name)?)
    }

    pub(crate) fn scope_len(&self) -> usize {
        self.prefix.len()
    }

    pub(crate) fn follower(&self) -> &Follower {
        &self.follower
    }

    pub(crate) fn names(&self) -> Names {
        self.tenure.names()
    }
}

fn prefix(scope: &str) -> Result<Arc<str>, RegisterError> {
    if scope.is_empty() || scope.contains(SEPARATOR) {
        return Err(RegisterError::Scope(scope.to_owned()));
    }
    // Refuses what no name may contain.
    Name::new(scope).map_err(tenure::Error::from)?;
    Ok(format!("{scope}{SEPARATOR}").into())
}
