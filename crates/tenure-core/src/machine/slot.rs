//! Requests in flight: at most one of each kind, each with its deadline and its
//! own patience after failures.

use core::time::Duration;

use super::RequestId;
use super::context::Context;
use crate::{Mono, Request, Seq};

/// One kind of request: what is in flight, and when the next may go out.
#[derive(Clone, Debug, Hash)]
pub(super) struct Slot<T> {
    flight: Option<Flight<T>>,
    failures: u32,
    not_before: Mono,
}

/// A request in flight and what it will be needed for when the reply comes.
#[derive(Clone, Debug, Hash)]
pub(super) struct Flight<T> {
    pub(super) id: RequestId,
    /// Before the request was sent: trust is counted from here (rule T1).
    pub(super) started: Mono,
    pub(super) deadline: Mono,
    /// What was known of the journal then.
    pub(super) seen: Seq,
    pub(super) what: T,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { flight: None, failures: 0, not_before: Mono::ZERO }
    }
}

impl<T> Slot<T> {
    pub(super) fn is_free(&self, now: Mono) -> bool {
        self.flight.is_none() && now >= self.not_before
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.flight.is_some()
    }

    /// The number of the request in flight.
    pub(super) fn in_flight(&self) -> Option<RequestId> {
        self.flight.as_ref().map(|flight| flight.id)
    }

    /// Sends a request, and keeps what it will be needed for.
    pub(super) fn send(&mut self, cx: &mut Context<'_>, request: Request, what: T) {
        debug_assert!(self.flight.is_none(), "one request of a kind at a time");
        self.flight = Some(cx.send(request, what));
    }

    /// The request in flight, if it is the one with this number. Old numbers
    /// get nothing.
    #[must_use]
    pub(super) fn take(&mut self, id: RequestId) -> Option<Flight<T>> {
        self.flight.take_if(|f| f.id == id)
    }

    /// The request in flight, if its time is over.
    #[must_use]
    pub(super) fn take_overdue(&mut self, now: Mono) -> Option<Flight<T>> {
        self.flight.take_if(|f| now >= f.deadline)
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.not_before = Mono::ZERO;
    }

    /// Backs off: doubled with each failure in a row, jittered, never beyond
    /// `at_most` (rule F1, H11).
    pub(super) fn failed(&mut self, cx: &mut Context<'_>, at_most: Duration) {
        if !cx.decide.backs_off() {
            return;
        }
        let settings = cx.settings;
        let doubled = settings.retry_least() * (1 << self.failures.min(16));
        let pause = doubled.min(settings.retry_most()).min(at_most).max(settings.retry_least());
        self.failures = self.failures.saturating_add(1);
        self.not_before = cx.now + cx.entropy.jittered(pause);
    }

    /// Not before this moment, whatever happened so far.
    pub(super) fn hold_until(&mut self, until: Mono) {
        self.not_before = self.not_before.max(until);
    }

    /// At once, unless it backs off after a failure.
    pub(super) fn hurry(&mut self) {
        if self.failures == 0 {
            self.not_before = Mono::ZERO;
        }
    }

    /// Forgets the request in flight: its reply will find no one.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// When this slot next needs attention: its deadline if something is in
    /// flight; else `wanted`, but not before the back-off ends.
    pub(super) fn wake(&self, wanted: Option<Mono>) -> Option<Mono> {
        match &self.flight {
            Some(flight) => Some(flight.deadline),
            None => wanted.map(|at| at.max(self.not_before)),
        }
    }
}
