//! The decisions on which the promise hangs, each by its rule.
//!
//! The parts of the machine ask here and nowhere else, so that the simulator and the
//! model checker can break one rule at a time: with the feature `__lab`, `mutation.rs`
//! stands in for [`Decisions`]. No other file of the machine knows of it.

use core::time::Duration;

use crate::{
    MAX_TTL, Mono, Nonce, RequestId, Settings, TermBeat, TermNumber, TermOutcome, TermRef,
};

/// The decisions, as they must be.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Decisions;

// Those that depend on nothing take `self` all the same: they are what can be broken.
#[allow(clippy::unused_self)]
impl Decisions {
    /// None is broken.
    pub(super) const SOUND: Self = Self;

    /// T3: trust that is over is given up before an input is looked at.
    pub(super) fn ends_trust_first(self) -> bool {
        true
    }

    /// A reply counts for the request whose number it has, and for no other.
    pub(super) fn answered(self, id: RequestId, _beat: Option<RequestId>) -> RequestId {
        id
    }

    /// T1: a grant counts from before its request was sent, not from its answer.
    pub(super) fn granted_from(self, started: Mono, _answered: Mono) -> Mono {
        started
    }

    /// T1: the ttl less drift and margin.
    pub(super) fn trust(self, settings: &Settings) -> Duration {
        settings.trust()
    }

    /// T1: what a term that was handed over has left, less drift and margin. A heartbeat
    /// of ours that is on its way may yet write our own ttl.
    pub(super) fn unconfirmed_trust(self, settings: &Settings, remaining: Duration) -> Duration {
        settings.trust_in(remaining.min(settings.ttl()))
    }

    /// B5: a win whose grant is over already is not believed.
    pub(super) fn believes_win(self, now: Mono, until: Mono) -> bool {
        now < until
    }

    /// E4: a term is not given back while the work drains.
    pub(super) fn releases_while_draining(self) -> bool {
        false
    }

    /// E4: work that was told *lost* has the margin to stop in, or longer.
    pub(super) fn release_from(self, now: Mono, settings: &Settings) -> Mono {
        now + settings.release_after()
    }

    /// E4: a member does not leave while lost work may still run.
    pub(super) fn waits_for_work(self, may_run: bool) -> bool {
        may_run
    }

    /// E5: who stepped down does not bid for a while.
    pub(super) fn cooldown(self, settings: &Settings) -> Duration {
        settings.cooldown()
    }

    /// F4, H16: a candidate waits for its turn, but not for ever on a store's word.
    pub(super) fn wait(self, turn: Duration) -> Duration {
        turn.min(MAX_TTL)
    }

    /// H11: after a failure the next try waits.
    pub(super) fn backs_off(self) -> bool {
        true
    }

    /// E2: a bid whose answer was lost is repeated under its nonce.
    pub(super) fn repeats(self, nonce: Nonce) -> Option<Nonce> {
        Some(nonce)
    }

    /// A term that the store has under our name and that we do not know of is given back.
    pub(super) fn gives_back_unknown(self) -> bool {
        true
    }

    /// U6: a name is trusted as far as its grant, and no further.
    pub(super) fn binding_until(self, granted: Mono, _settings: &Settings) -> Mono {
        granted
    }

    /// E4: work under a name that was lost has the margin to stop in before it is dropped.
    pub(super) fn drop_from(self, now: Mono, settings: &Settings) -> Mono {
        now + settings.margin()
    }

    /// E2: an operation on a name whose answer was lost is repeated under its nonce.
    pub(super) fn repeats_operation(self, nonce: Nonce) -> Option<Nonce> {
        Some(nonce)
    }

    /// A name that was taken for a caller that does not wait any more is dropped.
    pub(super) fn drops_withdrawn(self) -> bool {
        true
    }

    /// U6: of a store that began an era it is not believed that it still has what it bound.
    pub(super) fn doubts_names(self) -> bool {
        true
    }

    /// N3: a look sent at one reading of the activity says nothing of what was answered
    /// at a later one.
    pub(super) fn is_current(self, look: u64, known: u64) -> bool {
        look >= known
    }

    /// N1: a hint is not believed without a look.
    pub(super) fn believes_hints(self) -> bool {
        false
    }

    /// N1, P12: how far apart looks are that a flood of hints asks for.
    pub(super) fn look_pace(self, settings: &Settings) -> Duration {
        settings.look_pace()
    }

    /// H3: a life that the store says is over is over, whatever it leads.
    pub(super) fn believes_end(self, _leads: bool) -> bool {
        true
    }

    /// A term that was handed over has to be confirmed.
    pub(super) fn confirms_handed_terms(self) -> bool {
        true
    }

    /// Only an answer for this very term confirms it.
    pub(super) fn is_confirmed(self, term: &TermRef, answers: &[TermBeat]) -> bool {
        let renewed = |outcome: &TermOutcome| matches!(outcome, TermOutcome::Renewed { .. });
        answers.iter().any(|answer| answer.term == *term && renewed(&answer.outcome))
    }

    /// M6: a store that has forgotten what it told is not believed, and is told.
    pub(super) fn heeds_rollbacks(self) -> bool {
        true
    }

    /// M6: a store that has forgotten numbers is told the highest that was seen.
    pub(super) fn told(self, number: TermNumber) -> TermNumber {
        number
    }
}
