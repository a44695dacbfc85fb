//! The machine: one member with any number of candidacies.
//!
//! It is fed `(now, input)` and drained of [`Output`]s; [`Machine::next_wake`]
//! says when it wants to be fed [`Input::Wake`]. It reads no clock, does no I/O
//! and blocks on nothing, so the client, the simulator and the model checker
//! run the very same code.
//!
//! What must stay true, whatever is fed in whatever order:
//!
//! - Before anything else is looked at, trust that is over by `now` is given
//!   up ([`Machine::expire`]); so no reply, however late, finds a leadership
//!   standing that should have ended (T1, T3, H4).
//! - Trust is counted from before the request was sent (T1), and only a reply
//!   to the request in flight counts (old numbers are ignored).
//! - A term that is no longer led is owed back to the store. Such a *debt* is
//!   kept until the store confirms it or this life is over (B8); it is not paid
//!   before the work has stopped or had the margin to stop in (E4, H1).
//! - Losing a term, rejoining, retrying: none of it needs the application.
//!
//! A path through the code: `Stand` → [`bids`] sends a claim → `Won` →
//! [`leading`] emits `Elected` ([`handover`] is the other way to begin) →
//! [`membership`] beats, each answer extends trust → the end of trust, a step-down
//! ([`looks`]) or `Resign` → `Lost` → [`debts`] releases the term.

mod bids;
mod debts;
mod handover;
mod io;
mod leading;
mod looks;
mod membership;
mod mutation;
mod rollback;
mod slot;
mod standing;

#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

pub use io::{Event, Input, LostReason, Outgoing, Output, RequestId, StopReason, StoreTraits};
#[cfg(feature = "mutations")]
#[doc(hidden)]
pub use mutation::Mutation;

use self::bids::Bidding;
use self::debts::Debts;
use self::handover::Taking;
use self::looks::Looks;
use self::membership::Membership;
use self::mutation::Mutation as Rule;
use self::slot::{Flight, Slot};
use self::standing::Standings;
use crate::entropy::Entropy;
use crate::{ElectionName, Failed, MemberId, Mono, Nonce, Profile, Reply, Request, Seq, Settings};

/// One member's side of the protocol. The [crate's page](crate#the-machine) says
/// what a driver owes it.
///
/// ```
/// use tenure_core::*;
///
/// let traits = StoreTraits {
///     native_watch: true, batch: 1000, in_steps: false, hands_over: true,
/// };
/// let id = MemberId::new("web-1").unwrap();
/// let mut machine = Machine::new(id, Profile::default(), Settings::default(), traits, 42);
///
/// let now = Mono::from_millis(1);
/// let election = ElectionName::new("nightly").unwrap();
/// machine.handle(now, Input::Stand { election, priority: Priority::default() });
/// let Some(Output::Send(out)) = machine.poll() else { panic!("it joins first") };
/// assert!(matches!(out.request, Request::Join(_)));
/// ```
#[derive(Debug)]
// Two clones would act as one member, so only the model checker may clone.
#[cfg_attr(feature = "model", derive(Clone, Hash))]
pub struct Machine {
    id: MemberId,
    profile: Profile,
    settings: Settings,
    traits: StoreTraits,
    entropy: Entropy,
    outbox: VecDeque<Output>,
    last_request: u64,
    last_nonce: u64,

    membership: Membership,
    standings: Standings,
    bidding: Bidding,
    debts: Debts,
    looks: Looks,
    /// The newest journal position heard of.
    seq: Seq,
    /// Whether the store has less than that, as far as is known.
    behind: bool,
    /// Rises with every claim or release sent or answered: two equal readings
    /// mean that what is held did not change in between.
    activity: u64,
    /// Who stepped down from what does not bid before this (rule E5).
    cooldowns: BTreeMap<ElectionName, Mono>,
    /// Led, but the store has not answered for it yet.
    taking: Option<Taking>,
    /// Set once the machine shuts down: when it gives up waiting.
    shutdown: Option<Mono>,
    #[cfg(feature = "mutations")]
    mutation: Option<mutation::Mutation>,
}

impl Machine {
    /// A machine for the member `id`. `seed` must be random in production: the
    /// member's incarnations come from it.
    pub fn new(
        id: MemberId,
        profile: Profile,
        settings: Settings,
        traits: StoreTraits,
        seed: u128,
    ) -> Self {
        // A batch of none would never get anything done.
        let traits = StoreTraits { batch: traits.batch.max(1), ..traits };
        Self {
            id,
            profile,
            settings,
            traits,
            entropy: Entropy::new(seed),
            outbox: VecDeque::new(),
            last_request: 0,
            last_nonce: 0,
            membership: Membership::default(),
            standings: Standings::default(),
            bidding: Bidding::default(),
            debts: Debts::default(),
            looks: Looks::default(),
            seq: Seq::START,
            behind: false,
            activity: 0,
            cooldowns: BTreeMap::new(),
            taking: None,
            shutdown: None,
            #[cfg(feature = "mutations")]
            mutation: None,
        }
    }

    /// Takes one input. Then drain [`poll`](Self::poll) and ask
    /// [`next_wake`](Self::next_wake).
    pub fn handle(&mut self, now: Mono, input: Input) {
        if self.membership.is_gone() {
            return;
        }
        if !self.mutated(Rule::ExpireLast) {
            self.expire(now);
        }
        match input {
            Input::Wake => {}
            Input::Join => self.membership.want(),
            Input::Stand { election, priority } => self.stand(now, election, priority),
            Input::StandForAll { elections, priority } => {
                elections.into_iter().for_each(|election| self.stand(now, election, priority));
            }
            Input::Withdraw { election } => self.withdraw(now, &election),
            Input::Resign { election, number, to } => self.resign(now, &election, number, to),
            Input::StopLeading { election, number } => self.stop_own(now, &election, number),
            Input::Reply { id, result } => self.on_reply(now, id, *result),
            Input::Hint(hint) => self.on_hint(now, hint),
            Input::Shutdown => self.begin_shutdown(now),
        }
        if self.mutated(Rule::ExpireLast) {
            self.expire(now);
        }
        self.step(now);
    }

    /// The next output, in order; `None` once everything was taken.
    pub fn poll(&mut self) -> Option<Output> {
        self.outbox.pop_front()
    }

    /// When to feed [`Input::Wake`] next; `None` if only something else can
    /// move the machine.
    pub fn next_wake(&self) -> Option<Mono> {
        if self.membership.is_gone() {
            return None;
        }
        [
            self.trust_end(),
            self.standings.next_drain(),
            self.membership_wake(),
            self.debts_wake(),
            self.bids_wake(),
            self.looks_wake(),
            self.shutdown,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether the machine has shut down and takes nothing any more.
    pub fn is_done(&self) -> bool {
        self.membership.is_gone()
    }

    /// The settings it runs with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Everything that is due by `now` and whose time or turn has come. The
    /// heartbeat goes first: nothing else may delay it (N1, H12).
    fn step(&mut self, now: Mono) {
        self.give_up_overdue(now);
        self.step_membership(now);
        self.step_debts(now);
        self.step_bids(now);
        self.step_looks(now);
        self.step_shutdown(now);
    }

    fn on_reply(&mut self, now: Mono, id: RequestId, result: Result<Reply, Failed>) {
        let stale = self.mutated(Rule::StaleReplies) && matches!(result, Ok(Reply::Heartbeat(_)));
        let id = self.membership.beat.in_flight().filter(|_| stale).unwrap_or(id);
        if let Some(flight) = self.membership.join.take(id) {
            self.on_join(now, flight, result);
        } else if let Some(flight) = self.membership.beat.take(id) {
            self.on_beat(now, flight, result);
        } else if let Some(flight) = self.bidding.slot.take(id) {
            self.on_claim(now, flight, result);
        } else if let Some(flight) = self.debts.slot.take(id) {
            self.on_release(now, flight, result == Ok(Reply::Release));
        } else if let Some(flight) = self.looks.slot.take(id) {
            self.on_look(now, flight, result);
        } else if self.membership.leave.take(id).is_some() {
            self.on_leave(now, result == Ok(Reply::Leave));
        }
    }

    /// Requests whose deadline passed count as failed, outcome unknown. Their
    /// late replies will find no one.
    fn give_up_overdue(&mut self, now: Mono) {
        const UNKNOWN: Failed = Failed { may_have_applied: true };
        if let Some(flight) = self.membership.join.take_overdue(now) {
            self.on_join(now, flight, Err(UNKNOWN));
        }
        if let Some(flight) = self.membership.beat.take_overdue(now) {
            self.on_beat(now, flight, Err(UNKNOWN));
        }
        if let Some(flight) = self.bidding.slot.take_overdue(now) {
            self.on_claim(now, flight, Err(UNKNOWN));
        }
        if let Some(flight) = self.debts.slot.take_overdue(now) {
            self.on_release(now, flight, false);
        }
        if let Some(flight) = self.looks.slot.take_overdue(now) {
            self.on_look(now, flight, Err(UNKNOWN));
        }
        if self.membership.leave.take_overdue(now).is_some() {
            self.on_leave(now, false);
        }
    }

    fn emit(&mut self, event: Event) {
        self.outbox.push_back(Output::Event(event));
    }

    /// Puts a request in the outbox; the caller keeps the [`Flight`].
    fn send<T>(&mut self, now: Mono, request: Request, what: T) -> Flight<T> {
        self.last_request += 1;
        let id = RequestId(self.last_request);
        let deadline = now + self.time_for(&request);
        self.outbox.push_back(Output::Send(Outgoing { id, request, deadline }));
        Flight { id, started: now, deadline, seen: self.seq, what }
    }

    /// How long a request may take. A heartbeat never longer than the settings
    /// say, since a second one must fit into what is left of trust.
    fn time_for(&self, request: &Request) -> Duration {
        let in_steps = self.traits.in_steps && !matches!(request, Request::Heartbeat(_));
        self.settings.request_timeout() * if in_steps { 2 } else { 1 }
    }

    fn next_nonce(&mut self) -> Nonce {
        self.last_nonce += 1;
        Nonce::new(self.last_nonce)
    }

    /// `rank` places behind the first: later, but never too late to matter
    /// (rule F4).
    fn stagger(&self, rank: u32) -> Duration {
        self.settings.stagger().saturating_mul(rank).min(self.settings.ttl() / 2)
    }

    fn back_off<T>(&mut self, now: Mono, which: fn(&mut Self) -> &mut Slot<T>, most: Duration) {
        if self.mutated(Rule::NoBackOff) {
            return;
        }
        let settings = self.settings.clone();
        let mut entropy = self.entropy.clone();
        which(self).failed(now, &settings, &mut entropy, most);
        self.entropy = entropy;
    }
}
