//! Rules broken on purpose, for the simulator to catch. Without the feature
//! `mutations` nothing is ever broken, and the checks compile to nothing.

use super::Machine;

/// One rule broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
// Exported only with the feature.
#[allow(unreachable_pub)]
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
    /// A heartbeat that did not name the term stretches the trust in it.
    AnyBeatTakesOn,
    /// N1: a flood of hints causes as many looks and bids as there is time for.
    HintsNotPaced,
}

impl Machine {
    /// Takes the jitter out, for the model checker.
    #[cfg(feature = "model")]
    #[doc(hidden)]
    pub fn steady(&mut self) {
        self.entropy.steady();
    }

    /// Breaks a rule.
    #[cfg(feature = "mutations")]
    #[doc(hidden)]
    pub fn mutate(&mut self, mutation: Mutation) {
        self.mutation = Some(mutation);
    }

    /// Whether this rule is broken.
    #[cfg(feature = "mutations")]
    pub(super) fn mutated(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Whether this rule is broken: never.
    #[cfg(not(feature = "mutations"))]
    #[allow(clippy::unused_self)]
    pub(super) const fn mutated(&self, _: Mutation) -> bool {
        false
    }
}
