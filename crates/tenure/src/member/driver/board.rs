//! What the driver's thread posts for all handles to read: the reigns of this
//! member, the changes between them in order, and how the store is doing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{
    ElectionName, ElectionView, HeldUp, LostReason, MemberRef, Mono, StopReason, Term,
};
use tokio::sync::broadcast;

use crate::member::reign::{Phase, Reign};

/// How many changes of its election a subscriber may be behind before it skips
/// some.
const CHANGES_KEPT: usize = 256;

#[derive(Debug)]
pub(crate) struct Board {
    posted: Mutex<Posted>,
    health: Mutex<Health>,
}

/// What is led, and who listens. Both change under one lock, so that the
/// present and what comes after it fit together (N2).
#[derive(Debug, Default)]
struct Posted {
    reigns: HashMap<ElectionName, Arc<Reign>>,
    /// One for each election with subscribers: however much happens in others,
    /// no subscriber falls behind because of it.
    listeners: HashMap<ElectionName, broadcast::Sender<Arc<PostedChange>>>,
}

/// A reign, and where it stood when it was looked up.
pub(crate) type Present = (Arc<Reign>, Phase);

#[derive(Clone, Debug)]
pub(crate) enum PostedChange {
    Elected(Term),
    Stopping(StopReason),
    Lost(LostReason),
}

impl Posted {
    fn post(&mut self, election: &ElectionName, change: PostedChange) {
        if let Some(listeners) = self.listeners.get(election)
            && listeners.send(Arc::new(change)).is_err()
        {
            // No subscriber is left.
            self.listeners.remove(election);
        }
    }
}

/// How the member and its store are doing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    pub(crate) member: Option<MemberRef>,
    pub(crate) conflict: Option<String>,
    pub(crate) rolled_back: Option<String>,
    pub(crate) failures: u32,
    pub(crate) last_error: Option<String>,
    pub(crate) last_success: Option<Mono>,
    pub(crate) standing: usize,
    pub(crate) held_up: BTreeMap<ElectionName, HeldUp>,
}

impl Health {
    /// What a bid or a look found out of an election that is not led here.
    pub(super) fn saw(&mut self, view: &ElectionView) {
        match &view.held_up {
            Some(held_up) => drop(self.held_up.insert(view.election.clone(), held_up.clone())),
            None => self.no_longer_waits(&view.election),
        }
    }

    /// This member does not wait for the election any more.
    pub(super) fn no_longer_waits(&mut self, election: &ElectionName) {
        self.held_up.remove(election);
    }
}

impl Board {
    pub(crate) fn new() -> Self {
        Self { posted: Mutex::default(), health: Mutex::default() }
    }

    pub(crate) fn reign(&self, election: &ElectionName) -> Option<Arc<Reign>> {
        lock(&self.posted).reigns.get(election).cloned()
    }

    pub(crate) fn led(&self) -> Vec<Arc<Reign>> {
        lock(&self.posted).reigns.values().cloned().collect()
    }

    /// The present reign and every change after it: taken in one step, so that
    /// nothing falls in between (N2).
    pub(crate) fn subscribe(
        &self,
        election: &ElectionName,
    ) -> (Option<Present>, broadcast::Receiver<Arc<PostedChange>>) {
        let mut posted = lock(&self.posted);
        posted.listeners.retain(|_, listeners| listeners.receiver_count() > 0);
        let listeners = posted.listeners.entry(election.clone());
        let listeners = listeners.or_insert_with(|| broadcast::Sender::new(CHANGES_KEPT));
        let changes = listeners.subscribe();
        let reign = posted.reigns.get(election).cloned();
        let present = reign.map(|reign| {
            let phase = reign.phase();
            (reign, phase)
        });
        (present, changes)
    }

    pub(super) fn elected(&self, reign: Arc<Reign>) {
        let term = reign.term.clone();
        let mut posted = lock(&self.posted);
        posted.reigns.insert(term.election.clone(), reign);
        posted.post(&term.election.clone(), PostedChange::Elected(term));
    }

    /// Tells the reign and then the others, in one step: a subscriber sees it
    /// in the present state or is told, not both.
    pub(super) fn stopping(&self, reign: &Reign, reason: StopReason, drain_until: Mono) {
        let mut posted = lock(&self.posted);
        reign.stop(reason.clone(), drain_until);
        posted.post(&reign.term.election, PostedChange::Stopping(reason));
    }

    /// Takes the reign down. The caller has ended it already: what holds it
    /// knows before any subscriber is told here.
    pub(super) fn lost(&self, election: &ElectionName, reason: LostReason) {
        let mut posted = lock(&self.posted);
        posted.reigns.remove(election);
        posted.post(election, PostedChange::Lost(reason));
    }

    pub(crate) fn health(&self) -> MutexGuard<'_, Health> {
        lock(&self.health)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
