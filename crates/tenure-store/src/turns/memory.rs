//! Rows in memory, reached as rows elsewhere are.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tenure_core::{Beat, Heartbeat, Namespace, Rev, Seq};
use tenure_rules::{Looked, MemoryState, Moment, Turn, Want};
use tokio::sync::Notify;

use super::{Rows, Turned};
use crate::{Capabilities, Clock, Identity, NameTraits, Page, Result, StoreId};

/// Rows in the memory of this process: what a service does that has [`Rows`], for the suite
/// and for tests of a store over it.
///
/// ```
/// # use std::sync::Arc;
/// # use tenure_core::*;
/// # use tenure_store::{BootClock, MemoryRows, Store, TurnStore};
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let store = TurnStore::new(Arc::new(MemoryRows::new(Arc::new(BootClock), 1_000)));
/// let name = ElectionName::new("nightly-report").unwrap();
/// let seen = store.read(&Namespace::default(), &Query::elections([name])).await.unwrap();
/// assert_eq!(seen.elections[0].number, TermNumber::NONE);
/// # });
/// ```
#[derive(Debug)]
pub struct MemoryRows {
    namespaces: Mutex<HashMap<Namespace, Versioned>>,
    clock: Arc<dyn Clock>,
    bound: usize,
    bell: Notify,
}

/// A namespace, and how many turns there were in it.
#[derive(Debug)]
struct Versioned {
    state: MemoryState,
    version: u64,
}

impl MemoryRows {
    /// No rows yet, on this clock; journals keep `bound` entries each.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, bound: usize) -> Self {
        Self { namespaces: Mutex::default(), clock, bound, bell: Notify::new() }
    }

    /// One atomic step in a namespace, with the clock read under the lock.
    fn step<T>(&self, ns: &Namespace, step: impl FnOnce(&mut Versioned, Moment) -> T) -> T {
        let mut namespaces = self.lock();
        let fresh = || Versioned { state: MemoryState::keeping(self.bound), version: 0 };
        let found = namespaces.entry(ns.clone()).or_insert_with(fresh);
        step(found, Moment { now: self.clock.now(), wall: self.clock.wall() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Namespace, Versioned>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Rows for MemoryRows {
    async fn look(&self, ns: &Namespace, wants: &BTreeSet<Want>) -> Result<Looked> {
        Ok(self.step(ns, |found, at| Looked::of(&found.state, at, found.version, wants)))
    }

    async fn turn(&self, ns: &Namespace, turn: &Turn, wants: &BTreeSet<Want>) -> Result<Turned> {
        let turned = self.step(ns, |found, at| {
            if !turn.may_apply(&found.state, at.now, found.version) {
                return Turned::Conflict(Looked::of(&found.state, at, found.version, wants));
            }
            turn.apply(&mut found.state);
            found.version += 1;
            Turned::Applied
        });
        self.bell.notify_waiters();
        Ok(turned)
    }

    async fn beat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        Ok(self.step(ns, |found, at| found.state.heartbeat(at.now, beat)))
    }

    async fn entries(&self, ns: &Namespace, after: Seq, most: usize) -> Result<Page> {
        Ok(self.step(ns, |found, _| match found.state.entries_after(after) {
            Ok(mut entries) => {
                entries.truncate(most);
                Page::Entries(entries)
            }
            Err(trimmed) => Page::Trimmed(trimmed),
        }))
    }

    async fn wait(&self, ns: &Namespace, after: Seq, since: Rev) -> Result<()> {
        let rung = self.bell.notified();
        tokio::pin!(rung);
        // Listening begins before looking, so that no change falls between.
        rung.as_mut().enable();
        let is_known =
            |found: &mut Versioned, _| found.state.seq() <= after && found.state.rev() == since;
        if self.step(ns, is_known) {
            rung.await;
        }
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        let identity = Identity::new("memory", StoreId::from_u128(0), "rows");
        let names = Some(NameTraits::ALL);
        Capabilities { elects_heirs: true, identity, names, ..Capabilities::judging("memory") }
    }
}
