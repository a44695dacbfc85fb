//! What the driver's thread posts for everybody to read: the reigns of this
//! member, the changes between them in order, and how the store is doing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{ElectionName, LostReason, MemberRef, Mono, StopReason, Term};
use tokio::sync::broadcast;

use crate::reign::Reign;

/// How many changes a subscriber may be behind before it skips some.
pub(crate) const CHANGES_KEPT: usize = 1024;

#[derive(Debug)]
pub(crate) struct Board {
    reigns: Mutex<HashMap<ElectionName, Arc<Reign>>>,
    changes: broadcast::Sender<Arc<Posted>>,
    health: Mutex<Health>,
}

/// A change of one election, as posted.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    pub(crate) election: ElectionName,
    pub(crate) change: PostedChange,
}

#[derive(Clone, Debug)]
pub(crate) enum PostedChange {
    Elected(Term),
    Stopping(StopReason),
    Lost(LostReason),
}

/// How the member and its store are doing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    pub(crate) member: Option<MemberRef>,
    pub(crate) conflict: Option<String>,
    pub(crate) failures: u32,
    pub(crate) last_error: Option<String>,
    pub(crate) last_success: Option<Mono>,
    pub(crate) watch_error: Option<String>,
    pub(crate) standing: usize,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self {
            reigns: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES_KEPT),
            health: Mutex::default(),
        }
    }

    pub(crate) fn reign(&self, election: &ElectionName) -> Option<Arc<Reign>> {
        lock(&self.reigns).get(election).cloned()
    }

    pub(crate) fn led(&self) -> Vec<Arc<Reign>> {
        lock(&self.reigns).values().cloned().collect()
    }

    /// The present reign and every change after it: taken in one step, so that
    /// nothing falls in between (N2).
    pub(crate) fn subscribe(
        &self,
        election: &ElectionName,
    ) -> (Option<Arc<Reign>>, broadcast::Receiver<Arc<Posted>>) {
        let reigns = lock(&self.reigns);
        (reigns.get(election).cloned(), self.changes.subscribe())
    }

    pub(super) fn elected(&self, reign: Arc<Reign>) {
        let term = reign.term.clone();
        let mut reigns = lock(&self.reigns);
        reigns.insert(term.election.clone(), reign);
        self.post(term.election.clone(), PostedChange::Elected(term));
    }

    pub(super) fn stopping(&self, election: &ElectionName, reason: StopReason) {
        let _order = lock(&self.reigns);
        self.post(election.clone(), PostedChange::Stopping(reason));
    }

    /// Takes the reign down. The caller has ended it already: whoever holds it
    /// knows before anybody hears of it here.
    pub(super) fn lost(&self, election: &ElectionName, reason: LostReason) {
        let mut reigns = lock(&self.reigns);
        reigns.remove(election);
        self.post(election.clone(), PostedChange::Lost(reason));
    }

    fn post(&self, election: ElectionName, change: PostedChange) {
        if self.changes.receiver_count() > 0 {
            // An error only says that nobody listens any more.
            let _ = self.changes.send(Arc::new(Posted { election, change }));
        }
    }

    pub(crate) fn health(&self) -> MutexGuard<'_, Health> {
        lock(&self.health)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
