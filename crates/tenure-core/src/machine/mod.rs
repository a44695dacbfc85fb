//! The machine: one member with any number of candidacies.
//!
//! It is fed `(now, input)` and drained of [`Output`]s; [`Machine::next_wake`]
//! says when it wants to be fed [`Input::Wake`]. It reads no clock, does no I/O
//! and blocks on nothing, so the client, the simulator and the model checker
//! run the very same code.
//!
//! # One mutation at a time
//!
//! [`Machine::handle`] is the only way to change what the machine knows, and it runs to
//! its end: it calls nothing outside, and no part of it calls it again. [`Machine::poll`]
//! takes from the queue of outputs and changes nothing else. So a driver may call `handle`
//! whenever it likes, also between two `poll`s while it drains: what that says is queued
//! behind what was said before, and the order of events is the order in which they came
//! about. What it must not do is to drop an output, or to feed inputs out of the order in
//! which its clock read `now`.
//!
//! # What must stay true, whatever is fed in whatever order
//!
//! - Before anything else is looked at, trust that is over by `now` is given
//!   up ([`Terms::expire`]); so no reply, however late, finds a leadership
//!   standing that should have ended (T1, T3, H4).
//! - Trust is counted from before the request was sent (T1), and only a reply
//!   to the request in flight counts (old numbers are ignored).
//! - A term that is no longer led is owed back to the store. Such a *debt* is
//!   kept until the store confirms it or this life is over (B8); it is not paid
//!   before the work has stopped or had the margin to stop in (E4, H1).
//! - Losing a term, rejoining, retrying: none of it needs the application.
//!
//! # The parts
//!
//! Each part owns its state and the slot of its requests, and is given what it needs of
//! the others: the [`Context`](context::Context) of the call, the [`Terms`], the
//! [`Life`](membership::Life). Only this file sees all of them.
//!
//! | part | owns | asks the store |
//! |---|---|---|
//! | [`Terms`] | candidacies ([`standing`]), [`debts`], [`names`], [`trust`], what was handed over ([`handover`]) | release, bind |
//! | [`Bids`] | claims in flight | claim |
//! | [`Beats`] | heartbeats in flight | heartbeat |
//! | [`Looks`] | what hints and doubts ask for | read |
//! | [`Membership`] | the life in the store | join, leave |
//! | [`Common`] | settings, outputs, what is known of the journal ([`rollback`]) | nothing |
//!
//! From claim to loss: `Stand` → [`bids`] sends a claim → `Won` → [`leading`] emits
//! `Elected` → [`trust`] beats, each answer extends trust → the end of trust, a step-down
//! or `Resign` → [`leading`] emits `Lost` → [`debts`] releases the term.

mod bids;
mod context;
mod debts;
mod decisions;
mod handover;
mod io;
mod leading;
mod looks;
mod membership;
#[cfg(feature = "__lab")]
mod mutation;
mod names;
mod queue;
mod rollback;
mod slot;
mod standing;
mod terms;
mod trust;

#[cfg(test)]
mod tests;

pub use io::{
    Event, Input, LostReason, NameAnswer, NameOp, NameWish, Outgoing, Output, RequestId,
    StopReason, StoreTraits,
};
#[cfg(feature = "__lab")]
#[doc(hidden)]
pub use mutation::Mutation;

use alloc::vec::Vec;

use self::bids::Bids;
use self::context::{Common, Outbox};
#[cfg(not(feature = "__lab"))]
use self::decisions::Decisions;
use self::looks::Looks;
use self::membership::{LifeOver, Membership};
#[cfg(feature = "__lab")]
use self::mutation::Breakable as Decisions;
use self::rollback::Place;
use self::slot::Flight;
use self::terms::Terms;
use self::trust::Beats;
use crate::entropy::Entropy;
use crate::{Failed, MemberId, Mono, Name, Profile, Reply, Settings};

/// One member's side of the protocol. The [crate's page](crate#the-machine) says
/// what a driver owes it.
///
/// ```
/// use tenure_core::*;
///
/// let traits = StoreTraits {
///     native_watch: true, batch: 1000, in_steps: false, elects_heirs: true,
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
#[cfg_attr(feature = "__lab", derive(Clone, Hash))]
pub struct Machine {
    common: Common,
    membership: Membership,
    terms: Terms,
    beats: Beats,
    bids: Bids,
    looks: Looks,
}

impl Machine {
    /// A machine for the member `id`. `seed` must be random in production: the
    /// member's incarnations come from it.
    #[must_use]
    pub fn new(
        id: MemberId,
        profile: Profile,
        settings: Settings,
        traits: StoreTraits,
        seed: u128,
    ) -> Self {
        let common = Common {
            id,
            profile,
            settings,
            // A batch of none would never get anything done.
            traits: StoreTraits { batch: traits.batch.max(1), ..traits },
            decide: Decisions::SOUND,
            entropy: Entropy::new(seed),
            out: Outbox::default(),
            place: Place::default(),
            activity: 0,
            shutdown: None,
        };
        Self {
            common,
            membership: Membership::default(),
            terms: Terms::default(),
            beats: Beats::default(),
            bids: Bids::default(),
            looks: Looks::default(),
        }
    }

    /// Takes one input. Then drain [`poll`](Self::poll) and ask
    /// [`next_wake`](Self::next_wake). It may be called while [`poll`](Self::poll) has
    /// more to give.
    pub fn handle(&mut self, now: Mono, input: Input) {
        if self.membership.is_gone() {
            return;
        }
        let ends_trust_first = self.common.decide.ends_trust_first();
        if ends_trust_first {
            self.terms.expire(&mut self.common.at(now));
        }
        self.take(now, input);
        if !ends_trust_first {
            self.terms.expire(&mut self.common.at(now));
        }
        self.step(now);
    }

    /// The next output, in order; `None` once everything was taken.
    #[must_use]
    pub fn poll(&mut self) -> Option<Output> {
        self.common.out.pop()
    }

    /// When to feed [`Input::Wake`] next; `None` if only something else can
    /// move the machine.
    #[must_use]
    pub fn next_wake(&self) -> Option<Mono> {
        if self.membership.is_gone() {
            return None;
        }
        let is_shutting_down = self.common.shutdown.is_some();
        let stands = self.needs_life();
        let is_in = self.membership.life().is_some();
        let of_member = |wake: Option<Mono>| wake.filter(|_| is_in);
        [
            self.terms.trust_end(),
            self.terms.standings.next_drain(),
            self.membership.wake(is_shutting_down, self.may_leave(), stands),
            of_member(self.beats.wake(&self.terms)),
            self.terms.debts.wake(is_in && !self.may_leave()),
            of_member(self.terms.names.wake()).filter(|_| !self.may_leave()),
            of_member(self.bids.wake(&self.terms)),
            of_member(self.looks.wake(&self.common, &self.terms, self.bids.slot.is_in_flight())),
            self.common.shutdown,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether the machine has shut down and takes nothing any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.membership.is_gone()
    }

    /// The settings it runs with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.common.settings
    }

    fn take(&mut self, now: Mono, input: Input) {
        let cx = &mut self.common.at(now);
        match input {
            Input::Wake => {}
            Input::Join => self.membership.want(),
            Input::Stand { election, priority } => self.terms.stand(cx, election, priority),
            Input::StandForAll { elections, priority } => {
                elections.into_iter().for_each(|e| self.terms.stand(cx, e, priority));
            }
            Input::Withdraw { election } => self.terms.withdraw(cx, &election),
            Input::Resign { election, number, to } => self.terms.resign(cx, &election, number, to),
            Input::StopLeading { election, number, to } => {
                self.terms.stop_own(cx, &election, number, to);
            }
            Input::Bind { ops } => self.terms.names.bind(cx, ops),
            Input::WithdrawName { name, ticket } => self.terms.names.withdraw(&name, ticket),
            Input::LetGoOfName { name, token } => self.terms.names.let_go(&name, token),
            Input::NamesFound { life, names } => {
                if self.membership.life().is_some_and(|own| own.member.incarnation == life) {
                    self.terms.names.found(names);
                }
            }
            Input::NamesForgotten { names } => self.terms.names.forgotten(cx, names),
            Input::Reply { id, result } => self.on_reply(now, id, *result),
            Input::Hint(hint) => self.looks.on_hint(cx, hint, &mut self.terms),
            Input::Shutdown => self.begin_shutdown(now),
        }
    }

    /// Everything that is due by `now` and whose time or turn has come. The
    /// heartbeat goes first: nothing else may delay it (N1, H12).
    fn step(&mut self, now: Mono) {
        self.give_up_overdue(now);
        self.terms.debts.ripen(now);
        self.terms.names.ripen(now);
        let may_leave = self.may_leave();
        let needs_life = self.needs_life();
        let cx = &mut self.common.at(now);
        self.membership.step(cx, needs_life);
        if let Some(life) = self.membership.life() {
            self.beats.step(cx, life, &self.terms);
            if !may_leave {
                self.terms.debts.step(cx, life);
                self.terms.names.step(cx, life);
                self.terms.names.ask_for_doubted(cx, life);
            }
            self.bids.step(cx, life, &mut self.terms, &mut self.looks);
            self.looks.step(cx, life, &mut self.terms, self.bids.slot.is_in_flight());
        }
        self.step_shutdown(now);
    }

    /// Gives a reply to the part that waits for it. None waits for an old number.
    fn on_reply(&mut self, now: Mono, id: RequestId, result: Result<Reply, Failed>) {
        let is_beat = matches!(result, Ok(Reply::Heartbeat(_)));
        let beat = self.beats.slot.in_flight().filter(|_| is_beat);
        let id = self.common.decide.answered(id, beat);
        let cx = &mut self.common.at(now);
        if let Some(flight) = self.membership.join.take(id) {
            self.membership.on_join(cx, flight, &result, &mut self.terms);
        } else if let Some(flight) = self.beats.slot.take(id) {
            self.on_beat(now, flight, result);
        } else if let Some(flight) = self.bids.slot.take(id) {
            self.on_claim(now, flight, result);
        } else if let Some(flight) = self.terms.debts.slot.take(id) {
            self.terms.on_release(cx, flight, &result);
        } else if let Some(flight) = self.terms.names.slot.take(id) {
            self.on_bind(now, flight, result);
        } else if let Some(flight) = self.terms.names.doubt.slot.take(id) {
            self.on_shown(now, flight, result);
        } else if let Some(flight) = self.looks.slot.take(id) {
            self.on_look(now, flight, result);
        } else if self.membership.leave.take(id).is_some() {
            self.on_leave(now, result == Ok(Reply::Leave));
        }
    }

    /// Requests whose deadline passed count as failed, outcome unknown. Nothing waits
    /// for their late replies.
    fn give_up_overdue(&mut self, now: Mono) {
        const UNKNOWN: Result<Reply, Failed> = Err(Failed { may_have_applied: true });
        if let Some(flight) = self.membership.join.take_overdue(now) {
            let cx = &mut self.common.at(now);
            self.membership.on_join(cx, flight, &UNKNOWN, &mut self.terms);
        }
        if let Some(flight) = self.beats.slot.take_overdue(now) {
            self.on_beat(now, flight, UNKNOWN);
        }
        if let Some(flight) = self.bids.slot.take_overdue(now) {
            self.on_claim(now, flight, UNKNOWN);
        }
        if let Some(flight) = self.terms.debts.slot.take_overdue(now) {
            self.terms.on_release(&mut self.common.at(now), flight, &UNKNOWN);
        }
        if let Some(flight) = self.terms.names.slot.take_overdue(now) {
            self.on_bind(now, flight, UNKNOWN);
        }
        if let Some(flight) = self.terms.names.doubt.slot.take_overdue(now) {
            self.on_shown(now, flight, UNKNOWN);
        }
        if let Some(flight) = self.looks.slot.take_overdue(now) {
            self.on_look(now, flight, UNKNOWN);
        }
        if self.membership.leave.take_overdue(now).is_some() {
            self.on_leave(now, false);
        }
    }

    fn on_beat(&mut self, now: Mono, flight: Flight<trust::Sent>, result: Result<Reply, Failed>) {
        let Some(life) = self.membership.life_mut() else { return };
        let cx = &mut self.common.at(now);
        let over = self.beats.on_beat(cx, flight, result, &mut self.terms, life);
        self.was_answered(now, over);
    }

    fn on_claim(&mut self, now: Mono, flight: Flight<bids::Sent>, result: Result<Reply, Failed>) {
        let Some(life) = self.membership.life() else { return };
        let me = life.member.incarnation;
        let cx = &mut self.common.at(now);
        let over = self.bids.on_claim(cx, flight, result, &mut self.terms, me);
        self.was_answered(now, over);
    }

    fn on_bind(&mut self, now: Mono, flight: Flight<Vec<Name>>, result: Result<Reply, Failed>) {
        let Some(life) = self.membership.life() else { return };
        let me = life.member.incarnation;
        let over = names::on_bind(&mut self.terms, &mut self.common.at(now), flight, result, me);
        self.was_answered(now, over);
    }

    fn on_shown(&mut self, now: Mono, flight: Flight<names::Asked>, result: Result<Reply, Failed>) {
        let Some(life) = self.membership.life() else { return };
        let me = life.member.incarnation;
        let over = names::on_shown(&mut self.terms, &mut self.common.at(now), flight, result, me);
        self.was_answered(now, over);
    }

    fn on_look(&mut self, now: Mono, flight: Flight<looks::Look>, result: Result<Reply, Failed>) {
        let Some(life) = self.membership.life() else { return };
        let me = life.member.incarnation;
        self.looks.on_look(&mut self.common.at(now), flight, result, &mut self.terms, me);
    }

    /// A heartbeat or a claim was answered: the life goes on, or is over.
    fn was_answered(&mut self, now: Mono, over: Result<(), LifeOver>) {
        match over {
            Err(over) => self.end_life(now, over),
            Ok(()) if self.terms.trust.was_granted() => self.membership.join.succeeded(),
            Ok(()) => {}
        }
    }

    /// This life is over: everything held is lost, everything owed is moot, and
    /// who still stands stands again in the next life.
    fn end_life(&mut self, now: Mono, over: LifeOver) {
        let Some(life) = self.membership.life() else { return };
        let member = life.member.clone();
        let was_granted = self.terms.trust.was_granted();
        let cx = &mut self.common.at(now);
        for election in self.terms.standings.led() {
            self.terms.lose(cx, &election, LostReason::Superseded);
        }
        for (election, number) in self.terms.debts.forgive_all() {
            cx.emit(Event::GivenBack { election, number });
        }
        self.terms.names.end(cx);
        self.beats.slot.clear();
        self.bids.slot.clear();
        self.looks.forget();
        self.terms.begin_anew(now);
        *cx.activity += 1;
        self.membership.end_life(cx, over, was_granted);
        cx.emit(Event::MemberEnded { member, superseded: over.superseded });
    }

    fn begin_shutdown(&mut self, now: Mono) {
        if self.common.shutdown.is_some() {
            return;
        }
        let settings = &self.common.settings;
        let patience = settings.drain() + settings.release_after();
        self.common.shutdown = Some(now + patience + settings.request_timeout() * 3);
        let cx = &mut self.common.at(now);
        self.terms.stop_all(cx);
        self.terms.names.stop(cx);
    }

    /// Whether there is a reason to be a member.
    fn needs_life(&self) -> bool {
        !self.terms.standings.is_empty() || self.terms.names.wants_any()
    }

    /// Whether it is time to leave: asked to, and nothing is led any more.
    fn may_leave(&self) -> bool {
        self.common.shutdown.is_some() && self.terms.is_free_to_leave(self.common.decide)
    }

    fn step_shutdown(&mut self, now: Mono) {
        let Some(give_up) = self.common.shutdown else { return };
        if now >= give_up {
            return self.go(now, false);
        }
        if !self.may_leave() {
            return;
        }
        if self.membership.is_out() {
            return self.go(now, true);
        }
        self.membership.leave(&mut self.common.at(now));
    }

    fn on_leave(&mut self, now: Mono, confirmed: bool) {
        if self.membership.on_leave(&mut self.common.at(now), confirmed) {
            self.go(now, confirmed);
        }
    }

    /// The member has left, or is left to its ttl: the machine is done.
    fn go(&mut self, now: Mono, confirmed: bool) {
        let cx = &mut self.common.at(now);
        for election in self.terms.standings.led() {
            self.terms.lose(cx, &election, LostReason::DrainTimeout);
        }
        let owed = self.terms.debts.forgive_all();
        for (election, number) in owed.into_iter().filter(|_| confirmed) {
            cx.emit(Event::GivenBack { election, number });
        }
        self.membership.go();
        cx.emit(Event::Left { confirmed });
    }
}
