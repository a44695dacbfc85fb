//! What the server knows of the store, read at most so often.
//!
//! Requests share one read: those that come while one is under way get its answer. What was read
//! counts from *before* it was asked for, so that its age is never said too young. The journal
//! marks it as old when something happens; renewals are not in the journal, so that it is read
//! anew after [`MOST`] in any case.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure::views::Snapshot;
use tenure::{ElectionName, ElectionView, Mono, Tenure};
use tokio::sync::Mutex as Turn;

use crate::problem::{Answer, Problem};

/// How old an answer may be that is given without asking the store.
const MOST: Duration = Duration::from_secs(1);

/// One look at everything.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) snapshot: Snapshot,
    /// Before the store was asked.
    at: Mono,
}

impl Seen {
    pub(crate) fn find(&self, name: &ElectionName) -> Option<&ElectionView> {
        let elections = &self.snapshot.elections;
        let sorted = elections.binary_search_by(|view| view.election.cmp(name));
        sorted.ok().map(|at| &elections[at])
    }
}

/// What the server knows.
#[derive(Debug)]
pub(crate) struct Board {
    tenure: Tenure,
    seen: Mutex<Option<Arc<Seen>>>,
    /// Held by the one who asks the store.
    turn: Turn<()>,
    /// Something happened after this moment.
    stirred: Mutex<Mono>,
}

impl Board {
    pub(crate) fn new(tenure: Tenure) -> Self {
        Self { tenure, seen: Mutex::default(), turn: Turn::default(), stirred: Mutex::default() }
    }

    /// Something happened: what was read before is old.
    pub(crate) fn stir(&self) {
        let now = self.tenure.now();
        *self.stirred.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// How old a look is.
    pub(crate) fn age(&self, seen: &Seen) -> Duration {
        self.tenure.now().since(seen.at)
    }

    /// The newest look, whatever its age; no I/O.
    pub(crate) fn last(&self) -> Option<Arc<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn recent(&self, since: Mono) -> Option<Arc<Seen>> {
        self.last().filter(|seen| seen.at >= since)
    }

    /// What the store says, `fresh` or at most [`MOST`] old. If the store does not answer, what
    /// is known is given, however old: its age says so.
    pub(crate) async fn look(&self, fresh: bool) -> Answer<Arc<Seen>> {
        let now = self.tenure.now();
        let stirred = *self.stirred.lock().unwrap_or_else(PoisonError::into_inner);
        let old = Mono::ZERO + now.since(Mono::ZERO).saturating_sub(MOST);
        let wanted = if fresh { now } else { stirred.max(old) };
        if let Some(seen) = self.recent(wanted) {
            return Ok(seen);
        }
        let _turn = self.turn.lock().await;
        if let Some(seen) = self.recent(wanted) {
            return Ok(seen);
        }
        let at = self.tenure.now();
        match self.tenure.operator().snapshot().await {
            Ok(mut snapshot) => {
                snapshot.elections.sort_by(|a, b| a.election.cmp(&b.election));
                let seen = Arc::new(Seen { snapshot, at });
                *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen.clone());
                Ok(seen)
            }
            Err(error) if fresh => Err(error.into()),
            Err(error) => self.last().ok_or_else(|| Problem::from(error)),
        }
    }

    /// The view of an election, with what has passed of the leader's ttl since it was read. One
    /// whose leader's ttl may be over is stale: a name that may be wrong is not given.
    pub(crate) fn aged(&self, seen: &Seen, view: &ElectionView) -> Answer<ElectionView> {
        let age = self.age(seen);
        let mut view = view.clone();
        if let Some(holder) = &mut view.holder {
            if age >= holder.remaining {
                return Err(Problem::stale(age));
            }
            holder.remaining -= age;
        }
        if let Some(kept) = &mut view.reserved {
            kept.remaining = kept.remaining.saturating_sub(age);
        }
        Ok(view)
    }
}
