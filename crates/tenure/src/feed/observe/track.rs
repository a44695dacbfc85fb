//! What is known of one observed election, and the stream it makes of that. It reads no
//! clock and asks no store: it is fed journal entries and views, and posts what is news.
//! One lock covers what is known and what is posted, so that a new observer gets the
//! present state and everything after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{
    ElectionView, Entry, Happening, Incarnation, Mono, Pause, Profile, Seq, Term, TermNumber,
};
use tokio::sync::broadcast;

use super::{Observation, Observed};

/// How many observations one observer may be behind before it skips some.
const KEPT: usize = 256;
/// The same for one who resumes, and may have much to catch up on.
const KEPT_TO_RESUME: usize = 4096;

/// One observed election, shared by all its observers.
#[derive(Debug)]
pub(super) struct Track {
    known: Mutex<Known>,
}

/// The present state, if it is known, and all news after it.
pub(super) type Subscribed = (VecDeque<Observation>, broadcast::Receiver<Arc<Observation>>);

/// What is known.
#[derive(Debug)]
struct Known {
    /// Whether the state at [`seq`](Self::seq) is known, so that journal
    /// entries after it say the rest.
    seen: bool,
    /// Whether observers were told who leads, or that nobody does.
    told: bool,
    /// Up to where the journal is contained in this.
    seq: Seq,
    /// The newest term heard of.
    number: TermNumber,
    leader: Option<(Term, Profile)>,
    paused: Option<Pause>,
    /// When the leader's ttl will have run out, if nothing renews it.
    check_at: Option<Mono>,
    /// The way to the observers; gone when the member is.
    news: Option<broadcast::Sender<Arc<Observation>>>,
}

impl Known {
    fn post(&self, observation: Observation) {
        // An error only says that nobody listens any more.
        let _ = self.news.as_ref().map(|news| news.send(Arc::new(observation)));
    }

    fn post_present(&mut self) {
        self.told = true;
        self.post(self.present());
    }

    fn post_pause(&self) {
        self.pause().into_iter().for_each(|pause| self.post(pause));
    }

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
        Self::at(Seq::START, false, KEPT)
    }

    /// Begins at a place in the journal that its observer knows already.
    pub(super) fn resumed(after: Seq) -> Self {
        Self::at(after, true, KEPT_TO_RESUME)
    }

    fn at(seq: Seq, seen: bool, kept: usize) -> Self {
        let known = Known {
            seen,
            told: false,
            seq,
            number: TermNumber::NONE,
            leader: None,
            paused: None,
            check_at: None,
            news: Some(broadcast::Sender::new(kept)),
        };
        Self { known: Mutex::new(known) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present state, if it is known, and all news after it, in one step.
    pub(super) fn subscribe(&self) -> Subscribed {
        let known = self.known();
        let present = known.told.then(|| known.present()).into_iter();
        let present = present.chain(known.pause().filter(|_| known.told)).collect();
        let news = match &known.news {
            Some(news) => news.subscribe(),
            None => broadcast::channel(1).1,
        };
        (present, news)
    }

    pub(super) fn is_watched(&self) -> bool {
        self.known().news.as_ref().is_some_and(|news| news.receiver_count() > 0)
    }

    /// Nothing more will come: every observer's stream ends.
    pub(super) fn close(&self) {
        self.known().news = None;
    }

    pub(super) fn check_at(&self) -> Option<Mono> {
        self.known().check_at
    }

    /// Up to where this knows the journal.
    pub(super) fn seq(&self) -> Seq {
        self.known().seq
    }

    /// Whether `incarnation` leads, as far as is known.
    pub(super) fn is_led_by(&self, incarnation: Incarnation) -> bool {
        self.known().is_led_by(incarnation)
    }

    /// Takes a look at the store, taken at `seq` and answered at `now`.
    ///
    /// Where there is a journal it says all that happens, in order, and a look
    /// must not run ahead of it, or what lies between would be skipped. A look
    /// adds only what no journal says: how long the leader's ttl lasts, and
    /// that it ran out (B6).
    pub(super) fn on_view(&self, now: Mono, seq: Seq, view: &ElectionView) {
        let mut known = self.known();
        let journal = seq > Seq::START;
        if known.seen && journal && seq > known.seq {
            known.on_later_view(now, view);
        } else if view.number >= known.number && seq >= known.seq {
            // Anything older is ignored: an observer never goes back (N3).
            known.on_whole_view(now, seq, view);
        }
    }

    /// Takes a look that says exactly how things stood at the place that this
    /// has caught up with.
    pub(super) fn caught_up(&self, now: Mono, seq: Seq, view: &ElectionView) {
        let mut known = self.known();
        if seq >= known.seq && view.number >= known.number {
            known.on_whole_view(now, seq, view);
        }
    }

    /// Takes a journal entry about this election or its leader. `profile` is what the member
    /// elected publishes, as far as is known.
    pub(super) fn on_entry(&self, entry: &Entry, profile: Profile) {
        let mut known = self.known();
        if !known.seen || entry.seq <= known.seq {
            return;
        }
        known.seq = entry.seq;
        let seq = entry.seq;
        match &entry.what {
            Happening::Elected { term, .. } if term.number > known.number => {
                known.number = term.number;
                known.leader = Some((term.clone(), profile));
                // Its ttl is not in the journal: look before long.
                known.check_at = Some(Mono::ZERO);
                known.post_present();
            }
            // A newer number than is known: one who resumes knows the leader
            // from an earlier life.
            Happening::Released { number, .. } if *number >= known.number => {
                let news = known.leader.take().is_some() || *number > known.number;
                known.number = *number;
                known.check_at = None;
                if news {
                    known.post_present();
                }
            }
            // Its terms are over with it, whether or not that is written down for
            // each (M5).
            Happening::Left { member, .. } | Happening::Ended { member, .. }
                if known.is_led_by(member.incarnation) =>
            {
                known.leader = None;
                known.check_at = None;
                known.post_present();
            }
            Happening::StepDownAsked { number, reason, by, to, .. } => {
                let (number, to) = (*number, to.clone());
                let (reason, by) = (reason.clone(), by.clone());
                let observed = Observed::StepDownAsked { number, reason, by, to };
                known.post(Observation { seq, observed });
            }
            Happening::Paused { reason, by, .. } => {
                known.paused = Some(Pause { reason: reason.clone(), by: by.clone() });
                known.post_pause();
            }
            Happening::Resumed { .. } => {
                known.paused = None;
                known.post(Observation { seq, observed: Observed::Resumed });
            }
            _ => {}
        }
    }

    /// Part of the journal is gone: observers must know that they missed it.
    pub(super) fn on_trimmed(&self, up_to: Seq) {
        let mut known = self.known();
        if up_to > known.seq {
            known.forget();
        }
    }

    /// The place in the journal that was known does not exist.
    pub(super) fn start_over(&self) {
        let mut known = self.known();
        known.seq = Seq::START;
        known.forget();
    }
}

impl Known {
    fn is_led_by(&self, incarnation: Incarnation) -> bool {
        self.leader.as_ref().is_some_and(|(term, _)| term.member.incarnation == incarnation)
    }

    fn forget(&mut self) {
        self.seen = false;
        self.told = false;
        self.post(Observation { seq: self.seq, observed: Observed::Skipped });
    }

    /// All of the state at `seq`.
    fn on_whole_view(&mut self, now: Mono, seq: Seq, view: &ElectionView) {
        let before = (self.leader.as_ref().map(|(t, _)| t.number), self.paused.is_some());
        self.seen = true;
        self.seq = seq;
        self.number = view.number;
        self.paused = view.paused.clone();
        self.check_at = view.holder.as_ref().map(|holder| now + holder.remaining);
        self.leader = view.holder.as_ref().map(|holder| {
            let term = Term {
                election: view.election.clone(),
                number: view.number,
                member: holder.member.clone(),
                elected_at: holder.elected_at,
            };
            (term, holder.profile.clone())
        });
        let after = (self.leader.as_ref().map(|(t, _)| t.number), self.paused.is_some());
        if !self.told || before.0 != after.0 {
            self.post_present();
        }
        match (before.1, after.1) {
            (false, true) => self.post_pause(),
            (true, false) => self.post(Observation { seq, observed: Observed::Resumed }),
            _ => {}
        }
    }

    /// A look from further on in the journal than this has been told of.
    fn on_later_view(&mut self, now: Mono, view: &ElectionView) {
        if view.number != self.number {
            // The entries that say why are on their way.
            self.check_at = None;
            return;
        }
        self.check_at = view.holder.as_ref().map(|holder| now + holder.remaining);
        if view.holder.is_none() && self.leader.take().is_some() {
            self.post_present();
        }
    }
}

#[cfg(test)]
mod tests;
