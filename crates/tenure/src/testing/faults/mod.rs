//! A store that fails on demand, for tests of whatever stands on a store.
//!
//! Everything here is decided by the test that holds the [`FaultyStore`]:
//! nothing is random, and nothing has to be waited for by the clock.

mod control;
mod follow;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Heartbeat, Hint, Join, Joined, MemberRef,
    NamesView, Namespace, Query, Release, Request, Seq, Snapshot, WhichNames,
};

pub use control::{Counts, Fault, HintFault, StoreVerb};

use control::{Control, Late};
use tenure_store::{Capabilities, Following, Page, Result, SharedStore, Store, perform};

/// A store in front of another, that fails, delays, doubles and forgets as it is
/// told, and counts what it is asked. Clones share everything.
///
/// ```
/// # use tenure_core::*;
/// # use tenure::testing::{Fault, FaultyStore, StoreVerb};
/// # use tenure_store::*;
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let store = FaultyStore::new(MemoryStore::new().shared());
/// let ns = Namespace::default();
///
/// // The next read is lost; the one after it is answered.
/// store.script(StoreVerb::Read, [Fault::FailBefore]);
/// assert!(store.read(&ns, &Query::nothing()).await.is_err());
/// assert!(store.read(&ns, &Query::nothing()).await.is_ok());
/// assert_eq!(store.counts().calls(StoreVerb::Read), 2);
///
/// // Nothing gets through until it is over.
/// store.outage(true);
/// let error = store.read(&ns, &Query::nothing()).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Unreachable);
/// store.outage(false);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct FaultyStore {
    inner: SharedStore,
    control: Arc<Control>,
}

impl FaultyStore {
    /// A store that does no wrong until it is told to.
    #[must_use]
    pub fn new(inner: SharedStore) -> Self {
        Self { inner, control: Arc::default() }
    }

    /// This store, as most functions take one.
    #[must_use]
    pub fn shared(&self) -> SharedStore {
        Arc::new(self.clone())
    }

    /// Adds faults for the coming calls of a verb, one call each, in order.
    /// After them its calls go through again.
    pub fn script(&self, verb: StoreVerb, faults: impl IntoIterator<Item = Fault>) {
        self.control.change(|state| state.script(verb, faults));
    }

    /// Begins or ends an outage: nothing gets through and everything fails at
    /// once, having written nothing. Followers fail once and go on when it is
    /// over, with a hint to look at everything (H13).
    pub fn outage(&self, on: bool) {
        self.control.change(|state| state.outage = on);
    }

    /// Makes every request take this much longer before it reaches the store.
    pub fn slow(&self, by: Duration) {
        self.control.change(|state| state.delay = by);
    }

    /// What becomes of hints from now on.
    pub fn hints(&self, fault: HintFault) {
        self.control.change(|state| state.hints = fault);
    }

    /// Gives a hint that nothing stands behind to all that follow
    /// (rule N1).
    pub fn forge(&self, hint: Hint) {
        self.control.change(|state| state.forged.push(hint));
    }

    /// Lets everything go on that [`Fault::Hold`] and [`Fault::HoldReply`] hold
    /// at this moment.
    pub fn let_go(&self) {
        self.control.change(|state| state.let_go());
    }

    /// Delivers the requests that [`Fault::Late`] kept back, oldest first, and
    /// says how many there were. Their answers are dropped.
    pub async fn deliver_late(&self) -> Result<usize> {
        let late = self.control.change(|state| std::mem::take(&mut state.late));
        for (ns, request) in &late {
            match request {
                Late::Request(request) => drop(perform(&*self.inner, ns, request).await?),
                Late::Amend(amend) => drop(self.inner.amend(ns, amend).await?),
                Late::Bind(bind) => drop(self.inner.bind(ns, bind).await?),
            }
        }
        Ok(late.len())
    }

    /// What was asked of the store so far, whatever became of it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.control.look(|state| state.counts.clone())
    }

    /// Counts from zero again.
    pub fn reset_counts(&self) {
        self.control.change(|state| state.counts = Counts::default());
    }

    /// Returns once `verb` was called `times` times since the counts began.
    pub async fn called(&self, verb: StoreVerb, times: u64) {
        self.control.until(|state| state.counts.calls(verb) >= times).await;
    }

    /// One request, with whatever is to happen to it.
    async fn pass<T, F>(
        &self,
        verb: StoreVerb,
        count: impl FnOnce(&mut Counts),
        late: impl FnOnce() -> Option<(Namespace, Late)>,
        request: impl Fn() -> F + Send + Sync,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let (fault, delay) = self.control.begin(verb, count)?;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let Some(fault) = fault else { return request().await };
        match fault {
            Fault::FailBefore => Err(control::failed_before(verb)),
            Fault::FailAfter => {
                request().await?;
                Err(control::answer_lost(verb))
            }
            Fault::LoseRequest => Err(control::answer_lost(verb)),
            Fault::Late => {
                self.control.change(|state| state.late.extend(late()));
                Err(control::answer_lost(verb))
            }
            Fault::Double => {
                request().await?;
                request().await
            }
            Fault::Delay(by) => {
                tokio::time::sleep(by).await;
                request().await
            }
            Fault::DelayReply(by) => {
                let reply = request().await;
                tokio::time::sleep(by).await;
                reply
            }
            Fault::Hold => {
                self.control.held().await;
                request().await
            }
            Fault::HoldReply => {
                let reply = request().await;
                self.control.held().await;
                reply
            }
            Fault::Hang => std::future::pending().await,
        }
    }
}

/// A request of the machine's, kept for later.
fn later(ns: &Namespace, request: Request) -> Option<(Namespace, Late)> {
    Some((ns.clone(), Late::Request(request)))
}

#[async_trait]
impl Store for FaultyStore {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        let late = || later(ns, Request::Join(join.clone()));
        self.pass(StoreVerb::Join, |_| {}, late, || self.inner.join(ns, join)).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        let late = || later(ns, Request::Heartbeat(beat.clone()));
        let count = |counts: &mut Counts| counts.terms += beat.held.len() as u64;
        self.pass(StoreVerb::Heartbeat, count, late, || self.inner.heartbeat(ns, beat)).await
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        let late = || later(ns, Request::Leave(member.clone()));
        self.pass(StoreVerb::Leave, |_| {}, late, || self.inner.leave(ns, member)).await
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        let late = || later(ns, Request::Claim(claim.clone()));
        let count = |counts: &mut Counts| counts.bids += claim.bids.len() as u64;
        self.pass(StoreVerb::Claim, count, late, || self.inner.claim(ns, claim)).await
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        let late = || later(ns, Request::Release(release.clone()));
        let count = |counts: &mut Counts| counts.releases += release.items.len() as u64;
        self.pass(StoreVerb::Release, count, late, || self.inner.release(ns, release)).await
    }

    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        let late = || Some((ns.clone(), Late::Bind(bind.clone())));
        let count = |counts: &mut Counts| counts.names += bind.ops.len() as u64;
        self.pass(StoreVerb::Bind, count, late, || self.inner.bind(ns, bind)).await
    }

    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        self.pass(StoreVerb::Names, |_| {}, || None, || self.inner.names(ns, which)).await
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        let late = || Some((ns.clone(), Late::Amend(amend.clone())));
        self.pass(StoreVerb::Amend, |_| {}, late, || self.inner.amend(ns, amend)).await
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        self.pass(StoreVerb::Read, |_| {}, || None, || self.inner.read(ns, query)).await
    }

    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page> {
        self.pass(StoreVerb::Journal, |_| {}, || None, || self.inner.journal(ns, after)).await
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        let inner = self.pass(StoreVerb::Follow, |_| {}, || None, || self.inner.follow(ns)).await?;
        Ok(Box::new(follow::Follower::new(inner, Arc::clone(&self.control))))
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}
