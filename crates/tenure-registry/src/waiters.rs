//! Who waits in this process for a name to be free.
//!
//! A waiter is found by its name, so that a change costs the same however many names are
//! waited for, and a name without a waiter costs one look into a map.
//!
//! # What could break it
//!
//! - **The name becomes free between the refusal and the wait.** A waiter is here before it
//!   asks the store for the first time, and what it is told meanwhile is kept for it.
//! - **Many wait for one name.** The first is told, and asks. It stays the first until it has
//!   the name or gives up; only then the next is told. So a release makes one request and
//!   not as many as there are waiters.
//! - **The first gives up after it was told.** It passes that on when it is dropped.
//! - **The copy does not know the binding that refused the waiter**: it is behind, or has
//!   dropped the name because the store could not be asked. Then no change is told, and the
//!   waiter asks again by itself (`Registry::freed`).
//! - **The task that tells is gone.** All waiters are told; each learns from the member what is
//!   wrong, or asks by itself from then on.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure::naming::Name;
use tokio::sync::Notify;

/// Those who wait, by name, each in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    by_name: Mutex<HashMap<Name, BTreeMap<u64, Arc<Place>>>>,
    last: AtomicU64,
    /// How many there are: with none, nothing is told and no lock is taken.
    count: AtomicU64,
    is_over: AtomicBool,
}

/// What one waiter is told.
#[derive(Debug, Default)]
struct Place {
    told: Notify,
    /// How often it was told. Changed with the lock of the waiters held.
    calls: AtomicU64,
}

impl Place {
    fn call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.told.notify_one();
    }
}

impl Waiters {
    /// Waits for this name from now on.
    pub(crate) fn wait(self: &Arc<Self>, name: Name) -> Waiter {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let place = Arc::new(Place::default());
        self.lock().entry(name.clone()).or_default().insert(number, place.clone());
        self.count.fetch_add(1, Ordering::SeqCst);
        Waiter { waiters: self.clone(), name, number, place, asked: 0, settled: 0 }
    }

    /// How many wait, for whatever name.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Whether the task that tells is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// These names may be free.
    pub(crate) fn free<'a>(&self, names: impl IntoIterator<Item = &'a Name>) {
        let by_name = self.lock();
        for name in names {
            if let Some(first) = by_name.get(name).and_then(|all| all.values().next()) {
                first.call();
            }
        }
    }

    /// The task that tells is gone.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.lock().values().flat_map(BTreeMap::values).for_each(|place| place.call());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, BTreeMap<u64, Arc<Place>>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wait for a name, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiter {
    waiters: Arc<Waiters>,
    name: Name,
    number: u64,
    place: Arc<Place>,
    /// How often it had been told when it last asked for the name.
    asked: u64,
    /// Of so many calls the store's answer is known.
    settled: u64,
}

impl Waiter {
    /// Returns when the name may be free; at once if that was told since the last call.
    /// Cancel-safe.
    pub(crate) async fn told(&self) {
        self.place.told.notified().await;
    }

    /// It is about to ask for the name.
    pub(crate) fn asks(&mut self) {
        self.asked = self.place.calls.load(Ordering::Relaxed);
    }

    /// It has the name, or knows who has it.
    pub(crate) fn is_answered(&mut self) {
        self.settled = self.asked;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut by_name = self.waiters.lock();
        self.waiters.count.fetch_sub(1, Ordering::SeqCst);
        let Some(all) = by_name.get_mut(&self.name) else { return };
        all.remove(&self.number);
        match all.values().next() {
            Some(next) if self.place.calls.load(Ordering::Relaxed) > self.settled => next.call(),
            Some(_) => {}
            None => drop(by_name.remove(&self.name)),
        }
    }
}
