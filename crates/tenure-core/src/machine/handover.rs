//! Handing over: a term that a predecessor handed to us, without a bid of ours.
//!
//! A look says that we hold it, and for how long. That is a grant like any
//! other: no other member wins before it is over, so it may be trusted for that long,
//! counted from before the look was sent (T1). The next heartbeat names the term,
//! and once the store has answered for it, it is confirmed: ours like one that was won.
//!
//! Until then nothing may stretch that trust: not a heartbeat that the store
//! answered without knowing that we are there to confirm the term, nor the win
//! of another election. Since the member has one trust for all it holds, only one
//! that holds nothing leads before it is answered; any other bids first.
//!
//! The giving side is a release like any other, which says how long the term stands
//! unconfirmed: `Context::confirm_within`.

use alloc::vec::Vec;
use core::time::Duration;

use super::context::Context;
use super::looks::Seen;
use super::standing::{Candidacy, Stage};
use super::terms::Terms;
use super::{Decisions, Event};
use crate::{ElectionName, ElectionView, Incarnation, Mono, Term, TermBeat, TermRef};

/// A look that took long leaves no time to be answered in: what is left of trust
/// must be this many times as long.
const PATIENCE: u32 = 8;

/// How much later than its election the heartbeat goes out that confirms it.
const AFTER_THE_NEWS: Duration = Duration::from_millis(1);

/// A term we lead that the store does not know we lead.
#[derive(Clone, Debug, Hash)]
struct Unconfirmed {
    term: TermRef,
    until: Mono,
}

/// What was handed over, while that is open: at most one term.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Handed(Option<Unconfirmed>);

impl Handed {
    pub(super) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// How far the term may be trusted until it is confirmed.
    pub(super) fn until(&self) -> Option<Mono> {
        self.0.as_ref().map(|unconfirmed| unconfirmed.until)
    }

    /// What a heartbeat names.
    pub(super) fn to_confirm(&self) -> Vec<TermRef> {
        self.0.iter().map(|unconfirmed| unconfirmed.term.clone()).collect()
    }

    /// The store has answered a heartbeat. Whether it knows now that we lead what was
    /// handed over.
    pub(super) fn note_confirmation(&mut self, decide: Decisions, answers: &[TermBeat]) {
        self.0.take_if(|unconfirmed| decide.is_confirmed(&unconfirmed.term, answers));
    }

    /// Trust is over, and with it the term.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}

/// What is left of a term that was handed to us, if we may lead it.
pub(super) fn handed_to_us(
    cx: &Context<'_>,
    me: Incarnation,
    candidacy: &Candidacy,
    view: &ElectionView,
) -> Option<Duration> {
    // A store that forgot may have handed over under a number that was in use. A bid makes
    // its numbers jump first (`rollback.rs`).
    let may_lead = candidacy.priority.may_lead() && !cx.place.is_behind();
    view.handed_to(me).filter(|_| may_lead)
}

impl Terms {
    /// A look says that a term was handed to us, which has this much left.
    pub(super) fn handed_over(
        &mut self,
        cx: &mut Context<'_>,
        seen: Seen,
        view: ElectionView,
        remaining: Duration,
    ) {
        let started = cx.decide.granted_from(seen.started, cx.now);
        let until = started + cx.decide.unconfirmed_trust(cx.settings, remaining);
        // The heartbeat that confirms it may take as long as this look did.
        let took = cx.now.since(seen.started);
        let early = self.standings.held() == 0
            && !self.names.owns_any()
            && self.earliest_bid(cx.now, &view.election) <= cx.now
            && until.since(cx.now) > took * PATIENCE;
        match early {
            true => self.lead_unconfirmed(cx, view, until),
            // The store answers a bid with that same term.
            false => self.hasten(cx.now, &view.election, cx.now),
        }
    }

    fn lead_unconfirmed(&mut self, cx: &mut Context<'_>, view: ElectionView, until: Mono) {
        let Some(holder) = view.holder else { return };
        let ElectionView { election, number, .. } = view;
        self.standings.change(&election, |c| {
            c.stage = Stage::Leading(number);
            // A bid that is still on its way will be answered with this very term.
            c.open_nonce = None;
        });
        // Looks and heartbeats that were sent before this moment count other terms.
        *cx.activity += 1;
        if cx.decide.confirms_handed_terms() {
            let term = TermRef::new(election.clone(), number);
            self.handed = Handed(Some(Unconfirmed { term, until }));
        }
        // The application first: all candidates wait for its work to begin.
        self.trust.beat_by(cx.now + AFTER_THE_NEWS);
        let term = Term { election, number, member: holder.member, elected_at: holder.elected_at };
        cx.emit(Event::Elected { term, trusted_until: until });
    }

    /// The reign is over, whether or not it was confirmed. What was won since no
    /// longer hangs on it.
    pub(super) fn forget_unconfirmed(&mut self, cx: &mut Context<'_>, election: &ElectionName) {
        let over = self.handed.0.take_if(|unconfirmed| unconfirmed.term.election == *election);
        if let Some(unconfirmed) = over {
            self.tell_trust(cx, Some(unconfirmed.until));
        }
    }
}
