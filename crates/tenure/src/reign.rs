//! What the driver's thread and the application share about one term.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{LostReason, Mono, StopReason, Term};
use tokio::sync::Notify;

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
pub(crate) struct TrustedUntil(AtomicU64);

impl TrustedUntil {
    pub(crate) fn new(until: Mono) -> Self {
        Self(AtomicU64::new(until.as_nanos()))
    }

    pub(crate) fn set(&self, until: Mono) {
        self.0.store(until.as_nanos(), Ordering::Release);
    }

    pub(crate) fn get(&self) -> Mono {
        Mono::from_nanos(self.0.load(Ordering::Acquire))
    }
}

/// One term that was won here.
#[derive(Debug)]
pub(crate) struct Reign {
    pub(crate) term: Term,
    /// One for all terms of the member where one heartbeat renews them all.
    trust: Arc<TrustedUntil>,
    over: AtomicBool,
    phase: Mutex<Phase>,
    changed: Notify,
}

impl Reign {
    pub(crate) fn new(term: Term, trust: Arc<TrustedUntil>) -> Self {
        Self {
            term,
            trust,
            over: AtomicBool::new(false),
            phase: Mutex::new(Phase::Leading),
            changed: Notify::new(),
        }
    }

    /// Whether this term may be trusted at this very instant.
    ///
    /// The order matters. Trust may be extended for a *later* term of this
    /// member after this one was marked over; whoever reads the extended trust
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

    pub(crate) fn trust(&self) -> &TrustedUntil {
        &self.trust
    }

    pub(crate) fn stop(&self, reason: StopReason, drain_until: Mono) {
        self.enter(Phase::Stopping { reason: Box::new(reason), drain_until });
    }

    /// Marks the term over. `is_current` is false from here on, for ever.
    pub(crate) fn end(&self, reason: LostReason) {
        self.over.store(true, Ordering::Release);
        self.enter(Phase::Lost(reason));
    }

    /// Where the reign stands.
    pub(crate) fn phase(&self) -> Phase {
        self.lock().clone()
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

    fn enter(&self, phase: Phase) {
        *self.lock() = phase;
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
