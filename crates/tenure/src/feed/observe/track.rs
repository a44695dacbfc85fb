//! What is known of one observed election, and the stream it makes of that. It reads no
//! clock and asks no store: it is fed journal entries and views, and posts what is news.
//! One lock covers what is known and what is posted, so that a new observer gets the
//! present state and everything after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{
    ElectionView, EndCause, Entry, Happening, Incarnation, Mono, Pause, Profile, Seq, Term,
    TermNumber,
};
use tokio::sync::broadcast;

use super::{Observation, Observed};

/// How many observations one observer may be behind before it skips some.
const KEPT: usize = 256;
/// The same for an observer that resumes, and may have much to catch up on.
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
    /// Whether observers were told who leads, or that the election is vacant.
    told: bool,
    /// Up to where the journal is contained in this.
    seq: Seq,
    /// The newest known term.
    number: TermNumber,
    leader: Option<(Term, Profile)>,
    paused: Option<Pause>,
    /// When to look again, since the leader's ttl will have run out if nothing renews it.
    check_at: Option<Mono>,
    /// Whether renewals and expiry are told, and so are looked for.
    renewals: bool,
    /// When the leader's ttl will have run out, as far as was told.
    ends_at: Option<Mono>,
    /// The way to the observers; gone when the member is.
    news: Option<broadcast::Sender<Arc<Observation>>>,
}

impl Known {
    fn post(&self, observation: Observation) {
        // An error only says that no observer is left.
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
    pub(super) fn new(renewals: bool) -> Self {
        Self::at(Seq::START, false, KEPT, renewals)
    }

    /// Begins at a place in the journal that its observer knows already.
    pub(super) fn resumed(after: Seq, renewals: bool) -> Self {
        Self::at(after, true, KEPT_TO_RESUME, renewals)
    }

    fn at(seq: Seq, seen: bool, kept: usize, renewals: bool) -> Self {
        let known = Known {
            seen,
            told: false,
            seq,
            number: TermNumber::NONE,
            leader: None,
            paused: None,
            check_at: None,
            renewals,
            ends_at: None,
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

    pub(super) fn tells_renewals(&self) -> bool {
        self.known().renewals
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
        // Known already by a look, or not to be understood without one: an entry says what
        // changed, and not how things stand.
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
                known.ends_at = None;
                known.post_present();
            }
            // A newer number than is known: an observer that resumes knows the leader
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
                if matches!(entry.what, Happening::Ended { cause: EndCause::Expired, .. }) {
                    known.post_expired();
                }
                known.leader = None;
                known.check_at = None;
                known.post_present();
            }
            Happening::StepDownAsked { number, reason, by, to, .. } => {
                let number = *number;
                let to = to.clone();
                let reason = reason.clone();
                let by = by.clone();
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
        let leads_on = view.holder.is_some() && before.0 == Some(view.number);
        let expired = view.holder.is_none() && before.0 == Some(view.number);
        if expired && self.ends_at.is_some_and(|end| now >= end) {
            self.post_expired();
        }
        self.take_end(now, view, leads_on);
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
        let leads_on = view.holder.is_some() && self.leader.is_some();
        let over = self.ends_at.is_some_and(|end| now >= end);
        self.take_end(now, view, leads_on);
        if view.holder.is_none() && self.leader.is_some() {
            if over {
                self.post_expired();
            }
            self.leader = None;
            self.post_present();
        }
    }

    /// Until when the leader lasts, as a view says it; news if that is later than was told of
    /// the same term. Less than an eighth of its ttl is not: a view may be late.
    fn take_end(&mut self, now: Mono, view: &ElectionView, leads_on: bool) {
        let Some(holder) = &view.holder else {
            self.check_at = None;
            self.ends_at = None;
            return;
        };
        let end = now + holder.remaining;
        self.check_at = Some(end);
        if !self.renewals {
            return;
        }
        self.check_at = Some(end.min(now + holder.ttl / 4));
        if self.told && leads_on && self.ends_at.is_some_and(|told| end > told + holder.ttl / 8) {
            let remaining = holder.remaining;
            let observed = Observed::Renewed { number: view.number, remaining };
            self.post(Observation { seq: self.seq, observed });
        } else if leads_on && self.ends_at.is_some() {
            return;
        }
        self.ends_at = Some(end);
    }

    /// Says that the leader's ttl ran out, if an observer asked for it.
    fn post_expired(&self) {
        if self.renewals && self.told {
            let observed = Observed::Expired { number: self.number };
            self.post(Observation { seq: self.seq, observed });
        }
    }
}

#[cfg(test)]
mod tests;
