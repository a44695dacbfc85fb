//! The store: the handle's verbs behind the contract.

use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{
    Amend, Amended, Beat, Claim, Claims, Heartbeat, Join, Joined, MemberRef, Namespace, Query,
    Release, Snapshot,
};

use super::handle::Handle;
use super::options::CasOptions;
use super::register::Register;
use super::watch::Poller;
use tenure_store::{Capabilities, Clock, Following, From, Judge, Result, Store, Watch};

/// A store over a [`Register`]: the family in which **the observer judges**.
///
/// What it promises and how is told at the head of the [module](crate).
/// One value of this type is one observer, with one clock and one memory of
/// what it has seen; share it by [`Arc`] within a process.
///
/// ```
/// use std::sync::Arc;
/// use tenure_cas::{CasOptions, CasStore, MemoryRegister};
/// use tenure_store::{BootClock, Judge, Store};
///
/// let register = Arc::new(MemoryRegister::new());
/// let store = CasStore::new(register, Arc::new(BootClock), CasOptions::default())?;
/// assert_eq!(store.capabilities().judge, Judge::Observer);
/// # Ok::<(), tenure_store::Error>(())
/// ```
#[derive(Debug)]
pub struct CasStore {
    handle: Arc<Handle>,
}

impl CasStore {
    /// An observer of `register`, by `clock`. Fails if the options cannot hold
    /// ([`CasOptions::check`]).
    pub fn new(
        register: Arc<dyn Register>,
        clock: Arc<dyn Clock>,
        options: CasOptions,
    ) -> Result<Self> {
        options.check()?;
        Ok(Self { handle: Arc::new(Handle::new(register, clock, options)) })
    }

    /// Breaks a rule on purpose.
    #[cfg(feature = "mutations")]
    #[doc(hidden)]
    pub fn mutate(&self, rule: super::CasRule) {
        self.handle.mutate(rule);
    }
}

#[async_trait]
impl Store for CasStore {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        self.handle.join(ns, join).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        self.handle.heartbeat(ns, beat).await
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        self.handle.leave(ns, member).await
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        self.handle.claim(ns, claim).await
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        self.handle.release(ns, release).await
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        self.handle.amend(ns, amend).await
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        self.handle.read(ns, query).await
    }

    async fn follow(&self, ns: &Namespace, _from: From) -> Result<Box<dyn Following>> {
        Ok(Box::new(Poller::new(self.handle.clone(), ns.clone())))
    }

    fn capabilities(&self) -> Capabilities {
        let options = &self.handle.options;
        let mut capabilities = Capabilities::judging(options.name);
        capabilities.judge = Judge::Observer;
        capabilities.watch = Watch::Polled(options.poll);
        capabilities.journal = false;
        capabilities.transactional_fence = false;
        capabilities.proof_of_death = false;
        capabilities.batch = options.batch;
        capabilities
    }
}
