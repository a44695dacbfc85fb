//! The store as everything in this crate asks it: with a deadline for each request, on
//! the runtime that carries the store's connections.
//!
//! A member's client runs its requests on the member's own thread, so that a blocked
//! application runtime breaks no connection; an operator's on the runtime that it was
//! opened in. What a request may do to trust: nothing. Only the machine's own requests,
//! which do not come this way, extend it.

mod election;
mod history;
mod operator;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{
    Amend, Amended, Bind, Bindings, MemberId, NamesView, Namespace, Note, Query, Seq, Settings,
    Snapshot, WhichNames,
};
use tenure_store::{Capabilities, SharedStore};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

pub use election::OperatorElection;
pub use history::PastTerm;
pub use operator::Operator;

use crate::feed::{Feed, Feeds, JournalStream, Observations};
use crate::time::Time;
use crate::{Error, Result};

/// One namespace of a store.
pub(crate) struct Client {
    runtime: Handle,
    /// `None` once the client is closed.
    store: Mutex<Option<SharedStore>>,
    /// The following of the namespace that the connection has once; `None` once the
    /// client is closed.
    feed: Mutex<Option<Arc<Feed>>>,
    /// Those of the connection's other namespaces.
    feeds: Feeds,
    /// What runs until the client is closed or dropped.
    background: Mutex<JoinSet<()>>,
    ns: Namespace,
    time: Time,
    settings: Settings,
    /// Who asks, as the journal names them.
    id: MemberId,
    /// As they were at first: what never changes is read from here.
    capabilities: Capabilities,
    observations: Observations,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Client");
        shown.field("id", &self.id).field("namespace", &self.ns);
        shown.field("store", &self.capabilities.name).finish_non_exhaustive()
    }
}

/// What a client is made from, beside the store.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    pub(crate) ns: Namespace,
    pub(crate) id: MemberId,
    pub(crate) settings: Settings,
    pub(crate) time: Time,
}

/// What a request does to the store, if its answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Reads,
    Writes,
}

impl Client {
    /// Must be called inside the runtime that carries the store's connections.
    pub(crate) fn new(store: SharedStore, party: Party, feeds: Feeds) -> Self {
        let capabilities = store.capabilities();
        let feed = feeds.feed(&store, &party);
        let Party { ns, id, settings, time } = party;
        Self {
            runtime: Handle::current(),
            store: Mutex::new(Some(store)),
            feed: Mutex::new(Some(feed)),
            feeds,
            background: Mutex::default(),
            ns,
            time,
            settings,
            id,
            capabilities,
            observations: Observations::default(),
        }
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.ns
    }

    pub(crate) fn time(&self) -> &Time {
        &self.time
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn id(&self) -> &MemberId {
        &self.id
    }

    /// What never changes of the store.
    pub(crate) fn first_capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// What the store can and cannot do at present.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let store = self.store();
        store.map_or_else(|_| self.capabilities.clone(), |store| store.capabilities())
    }

    pub(crate) fn observations(&self) -> &Observations {
        &self.observations
    }

    /// The store, unless the client is closed.
    pub(crate) fn store(&self) -> Result<SharedStore> {
        lock(&self.store).clone().ok_or(Error::ShutDown)
    }

    /// What happens in the namespace, unless the client is closed.
    pub(crate) fn feed(&self) -> Result<Arc<Feed>> {
        lock(&self.feed).clone().ok_or(Error::ShutDown)
    }

    /// Runs something until the client is closed or dropped. It must not keep the
    /// client itself.
    pub(crate) fn run_in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut background = lock(&self.background);
        while background.try_join_next().is_some() {}
        background.spawn_on(work, &self.runtime);
    }

    /// Where this client's requests and timers run.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// A client of the same store, on the same runtime, for another namespace.
    fn beside(&self, party: Party) -> Result<Self> {
        let _here = self.runtime.enter();
        Ok(Self::new(self.store()?, party, self.feeds.clone()))
    }

    /// From here on every request is refused, and what runs in the background ends.
    pub(crate) fn close(&self) {
        let store = lock(&self.store).take();
        let feed = lock(&self.feed).take();
        lock(&self.background).abort_all();
        // Dropped without a lock held: it may close connections.
        drop((feed, store));
    }

    /// Runs a request on the store's runtime, and waits no longer than a request may
    /// take.
    async fn ask<T, F>(
        &self,
        effect: Effect,
        request: impl FnOnce(SharedStore, Namespace) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = tenure_store::Result<T>> + Send + 'static,
    {
        let request = request(self.store()?, self.ns.clone());
        let time = self.time.clone();
        let limit = self.settings.request_timeout();
        let asked = self.runtime.spawn(async move {
            let answer = time.within(limit, request).await;
            answer.unwrap_or_else(|| Err(no_answer(limit, effect)))
        });
        // An error means that the runtime is gone, and the store with it.
        Ok(asked.await.map_err(|_| Error::ShutDown)??)
    }

    pub(crate) async fn read(&self, query: Query) -> Result<Snapshot> {
        self.ask(Effect::Reads, |store, ns| async move { store.read(&ns, &query).await }).await
    }

    pub(crate) async fn amend(&self, amend: Amend) -> Result<Amended> {
        self.ask(Effect::Writes, |store, ns| async move { store.amend(&ns, &amend).await }).await
    }

    pub(crate) async fn bind(&self, bind: Bind) -> Result<Bindings> {
        self.ask(Effect::Writes, |store, ns| async move { store.bind(&ns, &bind).await }).await
    }

    pub(crate) async fn names(&self, which: WhichNames) -> Result<NamesView> {
        self.ask(Effect::Reads, |store, ns| async move { store.names(&ns, &which).await }).await
    }

    /// Who asks, in the journal.
    pub(crate) fn note(&self) -> Note {
        Note::new(self.id.as_str())
    }

    pub(crate) fn follow(self: &Arc<Self>, after: Option<Seq>) -> Result<JournalStream> {
        JournalStream::new(self, after)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_answer(limit: Duration, effect: Effect) -> tenure_store::Error {
    let message = format!("the store did not answer within {limit:?}");
    let error = tenure_store::Error::new(tenure_store::ErrorKind::Timeout, message)
        .remedy("check that it runs and can be reached");
    match effect {
        Effect::Reads => error,
        Effect::Writes => error.maybe_applied(),
    }
}
