//! A store that takes its time by a clock that a test moves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Heartbeat, Join, Joined, MemberRef,
    NamesView, Namespace, Query, Release, Seq, Snapshot, WhichNames,
};
use tenure_store::{Capabilities, Clock, Following, ManualClock, Page, Result, SharedStore, Store};

/// Passes everything on, each request this much later by the manual clock.
#[derive(Clone, Debug)]
pub(super) struct Paced {
    inner: SharedStore,
    clock: Arc<ManualClock>,
    delay: Arc<Mutex<Duration>>,
}

impl Paced {
    pub(super) fn new(inner: SharedStore, clock: Arc<ManualClock>) -> Self {
        Self { inner, clock, delay: Arc::default() }
    }

    pub(super) fn slow(&self, by: Duration) {
        *self.delay.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }

    /// The store behind, without the wait.
    pub(super) fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn wait(&self) {
        let delay = *self.delay.lock().unwrap_or_else(PoisonError::into_inner);
        self.clock.reached(self.clock.now() + delay).await;
    }
}

#[async_trait]
impl Store for Paced {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        self.wait().await;
        self.inner.join(ns, join).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        self.wait().await;
        self.inner.heartbeat(ns, beat).await
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        self.wait().await;
        self.inner.leave(ns, member).await
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        self.wait().await;
        self.inner.claim(ns, claim).await
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        self.wait().await;
        self.inner.release(ns, release).await
    }

    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        self.wait().await;
        self.inner.bind(ns, bind).await
    }

    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        self.wait().await;
        self.inner.names(ns, which).await
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        self.wait().await;
        self.inner.amend(ns, amend).await
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        self.wait().await;
        self.inner.read(ns, query).await
    }

    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page> {
        self.wait().await;
        self.inner.journal(ns, after).await
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        self.inner.follow(ns).await
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}
