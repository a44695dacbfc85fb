//! Rules broken on purpose, for the simulator and the model checker to catch: the
//! stand-in for [`Decisions`](Sound), with at most one of them wrong. Only with the
//! feature `__lab`.

use core::time::Duration;

use super::Machine;
use super::decisions::Decisions as Sound;
use crate::{Mono, Nonce, RequestId, Settings, TermBeat, TermNumber, TermRef};

/// One rule broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutation {
    /// T1: trust is counted from when the answer came.
    TrustFromReply,
    /// T1: the drift is not taken off.
    TrustIgnoresDrift,
    /// T3: an input is looked at before trust that is over is given up.
    ExpireLast,
    /// A reply counts for whatever heartbeat is in flight, not for its own.
    StaleReplies,
    /// B5: a win is believed although its grant is over.
    LateWins,
    /// E4: the term is given back as soon as the work is told to stop.
    ReleaseFirst,
    /// E4: a lost term is given back without the margin for the work to stop.
    NoMargin,
    /// E4: a member leaves while lost work may still run.
    LeaveEarly,
    /// E5: no cooldown after stepping down.
    NoCooldown,
    /// F4: who does not win bids again at once.
    BidAtOnce,
    /// H11: who failed tries again at once.
    NoBackOff,
    /// E2: a bid whose answer was lost is not repeated; another is made.
    ForgetBids,
    /// A term that the store has and the member does not know of stays.
    KeepOrphans,
    /// N3: a look that is older than what is known is believed.
    OldLooks,
    /// N1: a hint is believed without a look.
    TrustHints,
    /// H3: who is told that its life is over goes on leading while trust lasts.
    EndedGoesOn,
    /// T1: a term that was handed over is trusted as if it had been won.
    TakeOverForTtl,
    /// A term that was handed over is taken on without a word to the store.
    TakenForGranted,
    /// M6: a store that has forgotten what it told is believed, and told nothing.
    BelieveRollbacks,
    /// M6: a store that has forgotten numbers is told the place alone, and no number.
    NumbersUntold,
    /// A heartbeat that did not name the term stretches the trust in it.
    AnyBeatTakesOn,
    /// N1: a flood of hints causes as many looks and bids as there is time for.
    HintsNotPaced,
    /// U6: a name is trusted for a ttl longer than its grant.
    NamePastGrant,
    /// E4: a name that was lost is dropped without the margin for the work to stop.
    NameDroppedEarly,
    /// E2: an operation on a name whose answer was lost is repeated under another nonce.
    NameForgetsNonce,
    /// A name that was taken for a caller that does not wait any more is kept.
    WithdrawnNameKept,
    /// U6: a store that began an era is believed to have every name that it had before.
    NamesNotDoubted,
}

impl Machine {
    /// Takes the jitter out, for the model checker.
    #[doc(hidden)]
    pub fn steady(&mut self) {
        self.common.entropy.steady();
    }

    /// Breaks a rule.
    #[doc(hidden)]
    pub fn mutate(&mut self, mutation: Mutation) {
        self.common.decide.broken = Some(mutation);
    }
}

/// The decisions, of which one may be wrong. See [`Sound`] for what each must be.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Breakable {
    broken: Option<Mutation>,
}

impl Breakable {
    pub(super) const SOUND: Self = Self { broken: None };

    fn breaks(self, mutation: Mutation) -> bool {
        self.broken == Some(mutation)
    }

    pub(super) fn ends_trust_first(self) -> bool {
        Sound::SOUND.ends_trust_first() && !self.breaks(Mutation::ExpireLast)
    }

    pub(super) fn answered(self, id: RequestId, beat: Option<RequestId>) -> RequestId {
        let sound = Sound::SOUND.answered(id, beat);
        if self.breaks(Mutation::StaleReplies) { beat.unwrap_or(sound) } else { sound }
    }

    pub(super) fn granted_from(self, started: Mono, answered: Mono) -> Mono {
        match self.broken {
            Some(Mutation::TrustFromReply) => answered,
            _ => Sound::SOUND.granted_from(started, answered),
        }
    }

    pub(super) fn trust(self, settings: &Settings) -> Duration {
        match self.broken {
            Some(Mutation::TrustIgnoresDrift) => settings.ttl() - settings.margin(),
            _ => Sound::SOUND.trust(settings),
        }
    }

    pub(super) fn unconfirmed_trust(self, settings: &Settings, remaining: Duration) -> Duration {
        match self.broken {
            Some(Mutation::TakeOverForTtl) => Sound::SOUND.trust(settings),
            _ => Sound::SOUND.unconfirmed_trust(settings, remaining),
        }
    }

    pub(super) fn believes_win(self, now: Mono, until: Mono) -> bool {
        Sound::SOUND.believes_win(now, until) || self.breaks(Mutation::LateWins)
    }

    pub(super) fn releases_while_draining(self) -> bool {
        Sound::SOUND.releases_while_draining() || self.breaks(Mutation::ReleaseFirst)
    }

    pub(super) fn release_from(self, now: Mono, settings: &Settings) -> Mono {
        match self.broken {
            Some(Mutation::NoMargin) => Mono::ZERO,
            _ => Sound::SOUND.release_from(now, settings),
        }
    }

    pub(super) fn waits_for_work(self, may_run: bool) -> bool {
        Sound::SOUND.waits_for_work(may_run) && !self.breaks(Mutation::LeaveEarly)
    }

    pub(super) fn cooldown(self, settings: &Settings) -> Duration {
        match self.broken {
            Some(Mutation::NoCooldown) => Duration::ZERO,
            _ => Sound::SOUND.cooldown(settings),
        }
    }

    pub(super) fn wait(self, turn: Duration) -> Duration {
        match self.broken {
            Some(Mutation::BidAtOnce) => Duration::ZERO,
            _ => Sound::SOUND.wait(turn),
        }
    }

    pub(super) fn backs_off(self) -> bool {
        Sound::SOUND.backs_off() && !self.breaks(Mutation::NoBackOff)
    }

    pub(super) fn repeats(self, nonce: Nonce) -> Option<Nonce> {
        Sound::SOUND.repeats(nonce).filter(|_| !self.breaks(Mutation::ForgetBids))
    }

    pub(super) fn gives_back_unknown(self) -> bool {
        Sound::SOUND.gives_back_unknown() && !self.breaks(Mutation::KeepOrphans)
    }

    pub(super) fn binding_until(self, granted: Mono, settings: &Settings) -> Mono {
        let sound = Sound::SOUND.binding_until(granted, settings);
        let past = self.breaks(Mutation::NamePastGrant);
        if past { sound + settings.ttl() } else { sound }
    }

    pub(super) fn drop_from(self, now: Mono, settings: &Settings) -> Mono {
        match self.broken {
            Some(Mutation::NameDroppedEarly) => Mono::ZERO,
            _ => Sound::SOUND.drop_from(now, settings),
        }
    }

    pub(super) fn repeats_operation(self, nonce: Nonce) -> Option<Nonce> {
        let forgets = self.breaks(Mutation::NameForgetsNonce);
        Sound::SOUND.repeats_operation(nonce).filter(|_| !forgets)
    }

    pub(super) fn drops_withdrawn(self) -> bool {
        Sound::SOUND.drops_withdrawn() && !self.breaks(Mutation::WithdrawnNameKept)
    }

    pub(super) fn doubts_names(self) -> bool {
        Sound::SOUND.doubts_names() && !self.breaks(Mutation::NamesNotDoubted)
    }

    pub(super) fn is_current(self, look: u64, known: u64) -> bool {
        Sound::SOUND.is_current(look, known) || self.breaks(Mutation::OldLooks)
    }

    pub(super) fn believes_hints(self) -> bool {
        Sound::SOUND.believes_hints() || self.breaks(Mutation::TrustHints)
    }

    pub(super) fn look_pace(self, settings: &Settings) -> Duration {
        match self.broken {
            Some(Mutation::HintsNotPaced) => Duration::ZERO,
            _ => Sound::SOUND.look_pace(settings),
        }
    }

    pub(super) fn believes_end(self, leads: bool) -> bool {
        Sound::SOUND.believes_end(leads) && !(leads && self.breaks(Mutation::EndedGoesOn))
    }

    pub(super) fn confirms_handed_terms(self) -> bool {
        Sound::SOUND.confirms_handed_terms() && !self.breaks(Mutation::TakenForGranted)
    }

    pub(super) fn is_confirmed(self, term: &TermRef, answers: &[TermBeat]) -> bool {
        Sound::SOUND.is_confirmed(term, answers) || self.breaks(Mutation::AnyBeatTakesOn)
    }

    pub(super) fn heeds_rollbacks(self) -> bool {
        Sound::SOUND.heeds_rollbacks() && !self.breaks(Mutation::BelieveRollbacks)
    }

    pub(super) fn told(self, number: TermNumber) -> TermNumber {
        match self.breaks(Mutation::NumbersUntold) {
            true => TermNumber::NONE,
            false => Sound::SOUND.told(number),
        }
    }
}
