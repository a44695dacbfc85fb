//! The store: each verb of the contract, by the type that does it.

use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Heartbeat, Join, Joined, MemberRef,
    NamesView, Namespace, Query, Release, Seq, Snapshot, WhichNames,
};

use tenure_store::{Capabilities, Clock, Following, Judge, NameTraits, Page, Result, Store, Watch};

use crate::bids::Bids;
use crate::cells::Cells;
use crate::lives::Lives;
use crate::names::{Binds, NameReader};
use crate::operators::Operators;
use crate::options::CasOptions;
use crate::poller::Poller;
use crate::register::Register;
use crate::releases::Releases;
use crate::views::Views;

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
    cells: Arc<Cells>,
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
        Ok(Self { cells: Arc::new(Cells::new(register, clock, options)) })
    }

    #[cfg(any(test, feature = "__lab"))]
    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }
}

#[async_trait]
impl Store for CasStore {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        Lives::new(&self.cells, ns).join(join).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        Lives::new(&self.cells, ns).heartbeat(beat).await
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        Lives::new(&self.cells, ns).leave(member).await
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        Bids::new(&self.cells, ns).claim(claim).await
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        Releases::new(&self.cells, ns).release(release).await
    }

    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        self.capabilities().accepts(bind)?;
        Binds::new(&self.cells, ns).bind(bind).await
    }

    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        self.capabilities().reads(which)?;
        NameReader::new(&self.cells, ns).names(which).await
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        Operators::new(&self.cells, ns).amend(amend).await
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        Views::new(&self.cells, ns).read(query).await
    }

    async fn journal(&self, _ns: &Namespace, _after: Seq) -> Result<Page> {
        Ok(Page::Entries(Vec::new()))
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        Ok(Box::new(Poller::new(self.cells.clone(), ns.clone())))
    }

    fn capabilities(&self) -> Capabilities {
        let options = &self.cells.options;
        let mut capabilities = Capabilities::judging(options.name);
        capabilities.judge = Judge::Observer;
        let tells = self.cells.tells;
        capabilities.watch = if tells { Watch::Native } else { Watch::Polled(options.poll) };
        capabilities.journal = false;
        capabilities.transactional_fence = false;
        capabilities.proof_of_death = false;
        capabilities.batch = options.batch;
        capabilities.names = Some(NameTraits::PLAIN);
        capabilities
    }
}
