//! What the driver's thread and the application share about one term: where it
//! stands, and who still works under it.
//!
//! # Work holds its term
//!
//! Whatever runs under a term has a *hold* on it: the campaign that won it has one
//! from the beginning, and each job, callback and subscription takes one of its own
//! ([`Reign::hold`]). The machine hears that the work has stopped
//! (`Input::Resign`) when the **last** hold is let go, and from nowhere else. What
//! the machine then does is its own rule E4: it renews until then, and where the
//! drain or the trust ends first it says *lost* and gives the work the margin.
//!
//! Giving a term up is therefore two things: from that moment nothing new begins
//! under it ([`Reign::give_up`]), and what has begun is told to stop. Phase, holds
//! and that mark change under one lock, so that each of these has one outcome:
//!
//! - **A release while a job begins.** Either the job has its hold before the term is
//!   given up, and the release waits for it, or the term is given up first, and the
//!   job gets no hold and does not begin. The release itself is sent after the last
//!   hold is gone, when no new one can be had.
//! - **A step-down request while a callback runs.** The driver marks the reign as
//!   stopping; the callback keeps its hold until it returns. The next callback is
//!   told after that, with what is left of the drain.
//! - **A loss while the stopping callback runs.** The driver marks the reign as lost,
//!   without I/O; the waiting scope drops the callback's future, tells *lost*, and
//!   lets its hold go. The term is owed, not released: the release goes out with the
//!   last hold, or after the margin.
//! - **The campaign is dropped as it is won.** The driver lets the campaign's hold go
//!   in its place. A job that saw the reign on the board in between has its hold, is
//!   told to stop, and is waited for.
//! - **A hold let go on another thread, after a shutdown.** The command finds no
//!   driver. The driver ended every reign before it went.
//! - **A job that never ends.** The drain bounds it: *lost* is told, the scope drops
//!   it, and after the margin the term is released whether the hold is gone or not.
//! - **Two who give up at once.** The first mark counts, each is told when the store
//!   has confirmed, and the last hold sends one release.
//! - **A resignation that waits while the term is lost.** The driver takes over who
//!   waits for the confirmation when it ends the reign; one that comes after that asks
//!   the driver itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{LostReason, MemberId, Mono, StopReason, Term};
use tokio::sync::{Notify, oneshot};

use crate::time::Time;

/// Where a reign stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Leading,
    Stopping { reason: Box<StopReason>, drain_until: Mono },
    Lost(LostReason),
}

/// A moment that one thread moves and many read.
#[derive(Debug, Default)]
pub(crate) struct TrustedUntil {
    nanos: AtomicU64,
    moved: Notify,
}

impl TrustedUntil {
    pub(crate) fn set(&self, until: Mono) {
        self.nanos.store(until.as_nanos(), Ordering::Release);
        self.moved.notify_waiters();
    }

    pub(crate) fn get(&self) -> Mono {
        Mono::from_nanos(self.nanos.load(Ordering::Acquire))
    }
}

/// One term that was won here.
#[derive(Debug)]
pub(crate) struct Reign {
    pub(crate) term: Term,
    /// One for all terms of the member: one heartbeat renews them all.
    trust: Arc<TrustedUntil>,
    over: AtomicBool,
    state: Mutex<State>,
    changed: Notify,
}

/// What changes in one step.
#[derive(Debug)]
struct State {
    phase: Phase,
    /// How many work under the term.
    holds: usize,
    /// Nothing new begins under it.
    given_up: bool,
    /// What still works under a term that was given up was told to stop.
    told: bool,
    /// Whom it was given up in favour of.
    to: Option<MemberId>,
    /// Who waits for the store's word that the term is given back.
    confirm: Vec<oneshot::Sender<bool>>,
}

/// What is left to do for the caller that let a hold go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LetGo {
    /// It was the last: the work has stopped, and the term may be released.
    Last {
        /// In whose favour.
        to: Option<MemberId>,
    },
    /// The term is given up, and others must be told to stop.
    TellOthers {
        /// In whose favour.
        to: Option<MemberId>,
    },
    /// Others work on.
    Nothing,
}

impl Reign {
    pub(crate) fn new(term: Term, trust: Arc<TrustedUntil>) -> Self {
        Self {
            term,
            trust,
            over: AtomicBool::new(false),
            state: Mutex::new(State {
                phase: Phase::Leading,
                holds: 1,
                given_up: false,
                told: false,
                to: None,
                confirm: Vec::new(),
            }),
            changed: Notify::new(),
        }
    }

    /// Takes a hold, unless the term is given up or lost, or is in a phase that is
    /// not `wanted`. Each is let go once, by [`let_go`](Self::let_go).
    pub(crate) fn hold(&self, wanted: impl Fn(&Phase) -> bool) -> bool {
        let mut state = self.lock();
        let over = state.given_up || matches!(state.phase, Phase::Lost(_));
        if over || !wanted(&state.phase) {
            return false;
        }
        state.holds += 1;
        true
    }

    /// From here on nothing new begins under the term. `confirm` is told when the
    /// store has it back; it is returned if the term is lost already, when the driver
    /// must be asked.
    pub(crate) fn give_up(
        &self,
        to: Option<MemberId>,
        confirm: Option<oneshot::Sender<bool>>,
    ) -> Option<oneshot::Sender<bool>> {
        let mut state = self.lock();
        state.given_up = true;
        if to.is_some() {
            state.to = to;
            // The machine must be told, if others work on beyond the drain.
            state.told = false;
        }
        if matches!(state.phase, Phase::Lost(_)) {
            return confirm;
        }
        state.confirm.extend(confirm);
        None
    }

    /// One of those that worked under the term has stopped.
    pub(crate) fn let_go(&self) -> LetGo {
        let mut state = self.lock();
        debug_assert!(state.holds > 0, "a hold was let go twice");
        state.holds = state.holds.saturating_sub(1);
        if state.holds == 0 {
            state.given_up = true;
            return LetGo::Last { to: state.to.take() };
        }
        if state.given_up && !state.told {
            state.told = true;
            return LetGo::TellOthers { to: state.to.clone() };
        }
        LetGo::Nothing
    }

    /// How many work under the term.
    pub(crate) fn holds(&self) -> usize {
        self.lock().holds
    }

    /// Whether this term may be trusted at this very instant.
    ///
    /// The order matters. Trust may be extended for a *later* term of this
    /// member after this one was marked over; a reader of the extended trust
    /// also sees the mark, because the mark was made first. The clock is read
    /// last: a process that is stopped in between finds it advanced.
    #[inline]
    pub(crate) fn is_current(&self, time: &Time) -> bool {
        let until = self.trust.get();
        let over = self.over.load(Ordering::Acquire);
        !over && time.now() < until
    }

    pub(crate) fn trusted_until(&self) -> Mono {
        if self.over.load(Ordering::Acquire) { Mono::ZERO } else { self.trust.get() }
    }

    pub(crate) fn stop(&self, reason: StopReason, drain_until: Mono) {
        self.enter(Phase::Stopping { reason: Box::new(reason), drain_until });
    }

    /// Marks the term over. `is_current` is false from here on, for ever. Gives back
    /// who waits to hear that the term is given back.
    pub(crate) fn end(&self, reason: LostReason) -> Vec<oneshot::Sender<bool>> {
        self.over.store(true, Ordering::Release);
        self.enter(Phase::Lost(reason));
        std::mem::take(&mut self.lock().confirm)
    }

    /// Where the reign stands.
    pub(crate) fn phase(&self) -> Phase {
        self.lock().phase.clone()
    }

    /// Waits for a phase that `wanted` accepts. Ten thousand of these are held
    /// at once, so this is a lock and a bell, not a channel.
    pub(crate) async fn wait_for(&self, wanted: impl Fn(&Phase) -> bool) -> Phase {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let phase = self.phase();
            if wanted(&phase) {
                return phase;
            }
            changed.await;
        }
    }

    /// Waits until the term may be trusted until another moment than `seen`; `None` once it
    /// is over.
    pub(crate) async fn renewed(&self, seen: Mono) -> Option<Mono> {
        loop {
            let moved = self.trust.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            let until = self.trusted_until();
            if until != seen {
                return (until != Mono::ZERO).then_some(until);
            }
            tokio::select! {
                () = moved => {}
                _ = self.wait_for(|phase| matches!(phase, Phase::Lost(_))) => return None,
            }
        }
    }

    fn enter(&self, phase: Phase) {
        self.lock().phase = phase;
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tenure_core::{ElectionName, Incarnation, MemberRef, TermNumber, Timestamp};

    use super::*;

    fn reign() -> Reign {
        let term = Term {
            election: ElectionName::new("e").unwrap(),
            number: TermNumber::new(1),
            member: MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(1)),
            elected_at: Timestamp::from_unix_millis(0),
        };
        Reign::new(term, Arc::default())
    }

    /// L2: many threads begin and end work while the term is given up. The release is
    /// sent once, when no work is under way, and none begins after it.
    #[test]
    fn the_last_of_many_threads_releases_and_none_works_after_it() {
        for round in 0..50 {
            let reign = reign();
            let working = AtomicUsize::new(1);
            let released = AtomicUsize::new(0);
            let end = || {
                working.fetch_sub(1, Ordering::SeqCst);
                if let LetGo::Last { .. } = reign.let_go() {
                    assert_eq!(working.load(Ordering::SeqCst), 0, "work is under way");
                    released.fetch_add(1, Ordering::SeqCst);
                }
            };
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        while reign.hold(|_| true) {
                            working.fetch_add(1, Ordering::SeqCst);
                            assert_eq!(released.load(Ordering::SeqCst), 0, "it is released");
                            end();
                        }
                    });
                }
                scope.spawn(|| {
                    (0..round).for_each(|_| std::hint::spin_loop());
                    reign.give_up(None, None);
                    end();
                });
            });
            assert_eq!(released.load(Ordering::SeqCst), 1);
            assert_eq!(reign.holds(), 0);
        }
    }

    /// L2: a caller that resigns is told by the driver, before the loss or after it.
    #[test]
    fn who_waits_for_the_release_is_handed_to_the_driver() {
        let reign = reign();
        assert!(reign.hold(|_| true));
        let (first, _) = oneshot::channel();
        assert!(reign.give_up(None, Some(first)).is_none(), "kept for the driver");
        assert_eq!(reign.let_go(), LetGo::TellOthers { to: None });
        assert_eq!(reign.end(LostReason::DrainTimeout).len(), 1);
        let (second, _) = oneshot::channel();
        assert!(reign.give_up(None, Some(second)).is_some(), "the driver must be asked");
        assert_eq!(reign.let_go(), LetGo::Last { to: None });
        assert!(!reign.hold(|_| true));
    }
}
