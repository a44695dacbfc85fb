//! What every part of the machine works with: who it is, its settings and the store's
//! traits; the newest place of the journal that it knows; where its words go.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::rollback::Place;
use super::slot::Flight;
use super::{Decisions, Event, Outgoing, Output, RequestId, StoreTraits};
use crate::entropy::Entropy;
use crate::{MemberId, Mono, Nonce, Profile, Request, Settings};

/// What outlives one call of [`Machine::handle`](super::Machine::handle) and belongs to
/// no part alone.
#[derive(Clone, Debug, Hash)]
pub(super) struct Common {
    pub(super) id: MemberId,
    pub(super) profile: Profile,
    pub(super) settings: Settings,
    pub(super) traits: StoreTraits,
    pub(super) decide: Decisions,
    pub(super) entropy: Entropy,
    pub(super) out: Outbox,
    pub(super) place: Place,
    /// Rises with every claim or release sent or answered: two equal readings
    /// mean that what is held did not change in between.
    pub(super) activity: u64,
    /// Set once the machine shuts down: when it gives up waiting.
    pub(super) shutdown: Option<Mono>,
}

impl Common {
    /// What the parts get while one input is handled.
    pub(super) fn at(&mut self, now: Mono) -> Context<'_> {
        Context {
            now,
            id: &self.id,
            profile: &self.profile,
            settings: &self.settings,
            traits: self.traits,
            decide: self.decide,
            is_shutting_down: self.shutdown.is_some(),
            entropy: &mut self.entropy,
            out: &mut self.out,
            place: &mut self.place,
            activity: &mut self.activity,
        }
    }
}

/// The surroundings in which a part handles one input.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) now: Mono,
    pub(super) id: &'a MemberId,
    pub(super) profile: &'a Profile,
    pub(super) settings: &'a Settings,
    pub(super) traits: StoreTraits,
    pub(super) decide: Decisions,
    pub(super) is_shutting_down: bool,
    pub(super) entropy: &'a mut Entropy,
    pub(super) out: &'a mut Outbox,
    pub(super) place: &'a mut Place,
    pub(super) activity: &'a mut u64,
}

impl Context<'_> {
    pub(super) fn emit(&mut self, event: Event) {
        self.out.queue.push_back(Output::Event(event));
    }

    /// Puts a request in the outbox; a [`Slot`](super::slot::Slot) keeps the flight.
    pub(super) fn send<T>(&mut self, request: Request, what: T) -> Flight<T> {
        self.out.last_request += 1;
        let id = RequestId(self.out.last_request);
        let deadline = self.now + self.time_for(&request);
        self.out.queue.push_back(Output::Send(Outgoing { id, request, deadline }));
        Flight { id, started: self.now, deadline, seen: self.place.seq(), what }
    }

    /// How long a request may take. A heartbeat never longer than the settings
    /// say, since a second one must fit into what is left of trust.
    fn time_for(&self, request: &Request) -> Duration {
        let in_steps = self.traits.in_steps && !matches!(request, Request::Heartbeat(_));
        self.settings.request_timeout() * if in_steps { 2 } else { 1 }
    }

    /// `rank` places behind the first: later, but never too late to matter
    /// (rule F4).
    pub(super) fn stagger(&self, rank: u32) -> Duration {
        self.settings.stagger().saturating_mul(rank).min(self.settings.ttl() / 2)
    }

    /// A vacancy is kept for its heir only where the heir is told at once.
    pub(super) fn heir_grace(&self) -> Duration {
        if self.traits.native_watch { self.settings.heir_grace() } else { Duration::ZERO }
    }

    /// How long an heir has to confirm a term; zero where no heir is elected, because the
    /// store cannot or because its hints come late.
    pub(super) fn confirm_within(&self) -> Duration {
        let can = self.traits.elects_heirs && self.traits.native_watch;
        if can { self.settings.confirm_within() } else { Duration::ZERO }
    }
}

/// What waits to be taken by [`Machine::poll`](super::Machine::poll), and the numbers
/// given out so far.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Outbox {
    queue: VecDeque<Output>,
    last_request: u64,
    last_nonce: u64,
}

impl Outbox {
    pub(super) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    pub(super) fn next_nonce(&mut self) -> Nonce {
        self.last_nonce += 1;
        Nonce::new(self.last_nonce)
    }
}
