//! What is known of one observed election, and the stream it makes. Pure: fed
//! journal entries and views, it says what is news.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{
    ElectionView, Entry, Happening, Incarnation, Mono, Pause, Profile, Seq, Term, TermNumber,
};
use tokio::sync::broadcast;

use super::{Observation, Observed};

/// How many observations one observer may be behind before it skips some.
const KEPT: usize = 256;

/// One observed election, shared by all its observers.
#[derive(Debug)]
pub(super) struct Track {
    known: Mutex<Known>,
    news: broadcast::Sender<Arc<Observation>>,
}

/// What is known.
#[derive(Debug, Default)]
struct Known {
    /// Nothing was looked at yet.
    seen: bool,
    /// Up to where the journal is contained in this.
    seq: Seq,
    /// The newest term heard of.
    number: TermNumber,
    leader: Option<(Term, Profile)>,
    paused: Option<Pause>,
    /// When the leader's ttl will have run out, if nothing renews it.
    check_at: Option<Mono>,
}

impl Known {
    fn present(&self) -> Observation {
        let observed = match &self.leader {
            Some((term, profile)) => {
                Observed::Leads { term: term.clone(), profile: profile.clone() }
            }
            None => Observed::Vacant { number: self.number },
        };
        Observation { seq: self.seq, observed }
    }

    fn pause(&self) -> Option<Observation> {
        let pause = self.paused.clone()?;
        Some(Observation { seq: self.seq, observed: Observed::Paused(pause) })
    }
}

impl Track {
    pub(super) fn new() -> Self {
        Self { known: Mutex::default(), news: broadcast::Sender::new(KEPT) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present state, if it is known, and all news after it, in one step.
    pub(super) fn subscribe(
        &self,
    ) -> (VecDeque<Observation>, broadcast::Receiver<Arc<Observation>>) {
        let known = self.known();
        let present = known.seen.then(|| known.present()).into_iter().chain(known.pause());
        (present.collect(), self.news.subscribe())
    }

    pub(super) fn is_watched(&self) -> bool {
        self.news.receiver_count() > 0
    }

    pub(super) fn check_at(&self) -> Option<Mono> {
        self.known().check_at
    }

    /// Whether `incarnation` leads, as far as is known.
    pub(super) fn is_led_by(&self, incarnation: Incarnation) -> bool {
        let known = self.known();
        known.leader.as_ref().is_some_and(|(term, _)| term.member.incarnation == incarnation)
    }

    /// Takes a look at the store, taken at `seq` and answered at `now`.
    pub(super) fn on_view(&self, now: Mono, seq: Seq, view: &ElectionView) {
        let mut known = self.known();
        if view.number < known.number || seq < known.seq {
            // Older than what is known: an observer never goes back (N3).
            return;
        }
        let first = !known.seen;
        let before = (known.leader.as_ref().map(|(t, _)| t.number), known.paused.is_some());
        known.seen = true;
        known.seq = seq;
        known.number = view.number;
        known.paused = view.paused.clone();
        known.check_at = view.holder.as_ref().map(|holder| now + holder.remaining);
        known.leader = view.holder.as_ref().map(|holder| {
            let term = Term {
                election: view.election.clone(),
                number: view.number,
                member: holder.member.clone(),
                elected_at: holder.elected_at,
            };
            (term, holder.profile.clone())
        });
        let after = (known.leader.as_ref().map(|(t, _)| t.number), known.paused.is_some());
        if first || before.0 != after.0 {
            self.post(known.present());
        }
        match (before.1, after.1) {
            (false, true) => known.pause().into_iter().for_each(|p| self.post(p)),
            (true, false) => self.post(Observation { seq, observed: Observed::Resumed }),
            _ => {}
        }
    }

    /// Takes a journal entry about this election. `profile` is what the member
    /// elected publishes, as far as is known.
    pub(super) fn on_entry(&self, entry: &Entry, profile: Profile) {
        let mut known = self.known();
        if !known.seen || entry.seq <= known.seq {
            return;
        }
        known.seq = entry.seq;
        let seq = entry.seq;
        match &entry.what {
            Happening::Elected { term } if term.number > known.number => {
                known.number = term.number;
                known.leader = Some((term.clone(), profile));
                // Its ttl is not in the journal: look before long.
                known.check_at = Some(Mono::ZERO);
                self.post(known.present());
            }
            Happening::Released { number, .. } if *number == known.number => {
                known.check_at = None;
                if known.leader.take().is_some() {
                    self.post(known.present());
                }
            }
            Happening::StepDownAsked { number, reason, by, to, .. } => {
                let (number, to) = (*number, to.clone());
                let (reason, by) = (reason.clone(), by.clone());
                let observed = Observed::StepDownAsked { number, reason, by, to };
                self.post(Observation { seq, observed });
            }
            Happening::Paused { reason, by, .. } => {
                known.paused = Some(Pause { reason: reason.clone(), by: by.clone() });
                known.pause().into_iter().for_each(|p| self.post(p));
            }
            Happening::Resumed { .. } => {
                known.paused = None;
                self.post(Observation { seq, observed: Observed::Resumed });
            }
            _ => {}
        }
    }

    /// Begins at a place in the journal that its observer knows already.
    pub(super) fn resume(&self, after: Seq) {
        let mut known = self.known();
        known.seen = true;
        known.seq = after;
    }

    /// Part of the journal is gone: observers must know that they missed it.
    pub(super) fn on_trimmed(&self, up_to: Seq) {
        let mut known = self.known();
        if up_to > known.seq {
            let seq = known.seq;
            known.seen = false;
            self.post(Observation { seq, observed: Observed::Skipped });
        }
    }

    fn post(&self, observation: Observation) {
        // An error only says that nobody listens any more.
        let _ = self.news.send(Arc::new(observation));
    }
}

#[cfg(test)]
mod tests;
