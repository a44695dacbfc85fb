//! The memory store: the rules over maps, behind a lock, with a clock and a bell for those
//! who follow.

mod follow;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Heartbeat, Join, Joined, MemberRef, Mono,
    NamesView, Namespace, Query, Release, Seq, Snapshot, Timestamp, WhichNames,
};
use tenure_rules::MemoryState;
use tokio::sync::Notify;

use crate::{
    BootClock, Capabilities, Clock, Following, Identity, NameTraits, Page, Result, SharedStore,
    Store, StoreId,
};

/// A store in the memory of this process, for tests, examples, and programs
/// that elect among their own tasks. It is gone when the process is.
///
/// Its clones share what they hold.
///
/// ```
/// # use tenure_core::*;
/// # use tenure_store::{MemoryStore, Store};
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let store = MemoryStore::new();
/// let ns = Namespace::default();
/// let name = ElectionName::new("nightly-report").unwrap();
/// let seen = store.read(&ns, &Query::elections([name])).await.unwrap();
/// assert_eq!(seen.elections[0].number, TermNumber::NONE);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    namespaces: Mutex<HashMap<Namespace, MemoryState>>,
    clock: Arc<dyn Clock>,
    /// Rung after every change, for those who follow.
    bell: Notify,
    journal_bound: usize,
    id: StoreId,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store on the machine's own clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(BootClock))
    }

    /// An empty store on this clock.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self::keeping(clock, MemoryState::JOURNAL_BOUND)
    }

    /// An empty store on this clock whose journals keep `bound` entries each.
    #[must_use]
    pub fn keeping(clock: Arc<dyn Clock>, bound: usize) -> Self {
        let namespaces = Mutex::default();
        let bell = Notify::new();
        // Counted, not drawn: no other process ever sees such a store.
        static MADE: AtomicU64 = AtomicU64::new(1);
        let id = StoreId::from_u128(MADE.fetch_add(1, Ordering::Relaxed).into());
        Self { shared: Arc::new(Shared { namespaces, clock, bell, journal_bound: bound, id }) }
    }

    /// This store, as most functions take one.
    #[must_use]
    pub fn shared(self) -> SharedStore {
        Arc::new(self)
    }

    /// Does something to a namespace at one moment, and rings the bell if the
    /// journal grew or names changed.
    fn write<T>(
        &self,
        ns: &Namespace,
        verb: impl FnOnce(&mut MemoryState, Mono, Timestamp) -> T,
    ) -> T {
        let mut namespaces = self.shared.lock();
        let fresh = || MemoryState::keeping(self.shared.journal_bound);
        let state = namespaces.entry(ns.clone()).or_insert_with(fresh);
        let before = (state.seq(), state.rev());
        // The clock is read under the lock: a verb that waited for it must not
        // act on a time that has passed.
        let answer = verb(state, self.shared.clock.now(), self.shared.clock.wall());
        let changed = (state.seq(), state.rev()) != before;
        drop(namespaces);
        if changed {
            self.shared.bell.notify_waiters();
        }
        answer
    }
}

impl Shared {
    /// Looks at a namespace; `None` if nothing ever happened in it.
    fn look<T>(&self, ns: &Namespace, look: impl FnOnce(&MemoryState) -> T) -> Option<T> {
        self.lock().get(ns).map(look)
    }

    fn page(&self, ns: &Namespace, after: Seq) -> Page {
        let page = |state: &MemoryState| state.entries_after(after);
        match self.look(ns, page).unwrap_or_else(|| page(&MemoryState::new())) {
            Ok(entries) => Page::Entries(entries),
            Err(place) => Page::Trimmed(place),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Namespace, MemoryState>> {
        // No verb panics half way; a poisoned lock holds a whole state.
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        Ok(self.write(ns, |state, now, wall| state.join(now, wall, join)))
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        Ok(self.write(ns, |state, now, _| state.heartbeat(now, beat)))
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        self.write(ns, |state, _, wall| state.leave(wall, member));
        Ok(())
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        self.capabilities().within_batch("bids", claim.bids.len())?;
        Ok(self.write(ns, |state, now, wall| state.claim(now, wall, claim)))
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        self.capabilities().within_batch("releases", release.items.len())?;
        self.write(ns, |state, now, wall| state.release(now, wall, release));
        Ok(())
    }

    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        self.capabilities().accepts(bind)?;
        Ok(self.write(ns, |state, now, wall| state.bind(now, wall, bind)))
    }

    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        let now = self.shared.clock.now();
        let read = |state: &MemoryState| state.names(now, which);
        Ok(self.shared.look(ns, read).unwrap_or_else(|| read(&MemoryState::new())))
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        Ok(self.write(ns, |state, now, wall| state.amend(now, wall, amend)))
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        let clock = &self.shared.clock;
        let read = |state: &MemoryState| {
            let examined = query.examine.then(|| state.examine(clock.wall()));
            Snapshot { examined, ..state.read(clock.now(), query) }
        };
        Ok(self.shared.look(ns, read).unwrap_or_else(|| read(&MemoryState::new())))
    }

    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page> {
        Ok(self.shared.page(ns, after))
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        Ok(Box::new(follow::Follower::new(Arc::clone(&self.shared), ns.clone())))
    }

    fn capabilities(&self) -> Capabilities {
        let identity = Identity::new("memory", self.shared.id, "");
        let names = Some(NameTraits::ALL);
        Capabilities { elects_heirs: true, identity, names, ..Capabilities::judging("memory") }
    }
}
