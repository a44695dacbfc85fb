//! Taking over: a term that a predecessor handed to us, without a bid of ours.
//!
//! A look says that we hold it, and for how long. That is a grant like any
//! other: nobody else wins before it is over, so it may be trusted for that long,
//! counted from before the look was sent (T1). The next heartbeat names the term,
//! and once the store has answered for it, it is ours like one that was won.
//!
//! Until then nothing may stretch that trust: not a heartbeat that the store
//! answered without knowing that we are there to take on the term, nor the win
//! of another election. Since the member has one trust for all it holds, only one
//! that holds nothing leads before it is answered; any other bids first.

use alloc::vec::Vec;
use core::time::Duration;

use super::standing::Stage;
use super::{Event, Machine, Rule};
use crate::{ElectionName, ElectionView, Mono, Term, TermBeat, TermOutcome, TermRef};

/// A look that took long leaves no time to be answered in: what is left of trust
/// must be this many times as long.
const PATIENCE: u32 = 8;

/// How much later than its election the heartbeat goes out that takes it on.
const AFTER_THE_NEWS: Duration = Duration::from_millis(1);

/// A term we lead that the store does not know we have taken on.
#[derive(Clone, Debug, Hash)]
pub(super) struct Taking {
    term: TermRef,
    pub(super) until: Mono,
}

impl Machine {
    /// How long a term that we give up stands for an heir without a word from it.
    pub(super) fn hand_over(&self) -> Duration {
        let can = self.traits.hands_over && self.traits.native_watch;
        if can { self.settings.hand_over() } else { Duration::ZERO }
    }

    /// A look sent at `started` says that a term was handed to us, which has this
    /// much left.
    pub(super) fn handed_over(
        &mut self,
        now: Mono,
        started: Mono,
        activity: u64,
        view: ElectionView,
        remaining: Duration,
    ) {
        if activity != self.activity && !self.mutated(Rule::OldLooks) {
            // It may be what we have given back since: look again.
            return self.look_at(view.election);
        }
        let until = self.trusted_until(now, started, remaining);
        let took = now.since(started);
        let early = self.standings.held() == 0
            && self.earliest_bid(now, &view.election) <= now
            && until.since(now) > took * PATIENCE;
        match early {
            true => self.take_over(now, view, until),
            // The store answers a bid with that same term.
            false => self.hasten(now, &view.election, now),
        }
    }

    fn trusted_until(&self, now: Mono, started: Mono, remaining: Duration) -> Mono {
        if self.mutated(Rule::TakeOverForTtl) {
            return self.trusted_from(started);
        }
        let started = if self.mutated(Rule::TrustFromReply) { now } else { started };
        // A beat of ours that is on its way may yet write our own ttl.
        started + self.settings.trust_in(remaining.min(self.settings.ttl()))
    }

    fn take_over(&mut self, now: Mono, view: ElectionView, until: Mono) {
        let (Some(holder), election, number) = (view.holder, view.election, view.number) else {
            return;
        };
        self.standings.change(&election, |c| {
            c.stage = Stage::Leading(number);
            // A bid that is still on its way will be answered with this very term.
            c.open_nonce = None;
        });
        self.activity += 1;
        if !self.mutated(Rule::TakenForGranted) {
            let term = TermRef { election: election.clone(), number };
            self.taking = Some(Taking { term, until });
        }
        // The application first: it is who everybody waits for.
        self.membership.beat_by(now + AFTER_THE_NEWS);
        let (member, elected_at) = (holder.member, holder.elected_at);
        let term = Term { election, number, member, elected_at };
        self.emit(Event::Elected { term, trusted_until: until });
    }

    /// What a heartbeat names: what was handed over.
    pub(super) fn taken_on(&self) -> Vec<TermRef> {
        self.taking.iter().map(|taking| taking.term.clone()).collect()
    }

    /// The store has answered a heartbeat. Whether it knows now that we have
    /// taken on what was handed over.
    pub(super) fn hear_of_taking(&mut self, terms: &[TermBeat]) {
        let Some(taking) = &self.taking else { return };
        let renewed = |beat: &TermBeat| {
            beat.term == taking.term && matches!(beat.outcome, TermOutcome::Renewed { .. })
        };
        if terms.iter().any(renewed) || self.mutated(Rule::AnyBeatTakesOn) {
            self.taking = None;
        }
    }

    /// The reign is over, whether or not it was taken on. What was won since no
    /// longer hangs on it.
    pub(super) fn forget_taking(&mut self, now: Mono, election: &ElectionName) {
        if let Some(taking) = self.taking.take_if(|taking| taking.term.election == *election) {
            self.tell_trust(now, Some(taking.until));
        }
    }
}
