//! Rules broken on purpose, for the simulator to catch. Without the feature
//! `mutations` nothing is ever broken, and the checks compile to nothing.

/// One rule of the compare-and-swap family, broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Exported only with the feature.
#[allow(unreachable_pub)]
#[cfg_attr(not(feature = "mutations"), allow(dead_code))]
pub enum CasRule {
    /// M2: a term is taken from a silent member that was not ended first.
    TakenNotEnded,
    /// M2: a win is answered before the member's heartbeat was raised.
    NoBeatAfterClaim,
    /// M2: a holder whose record is missing is taken to be over at once.
    MissingIsOver,
    /// T5: the time between two heartbeats is taken from the holder's clock as if
    /// no clock ever drifted.
    AnchorIgnoresDrift,
    /// C1: a newcomer goes by a listing of the elections, which may lag, instead of
    /// by what the record that it replaces says.
    JoinTrustsListing,
}

/// Which rule is broken, if any.
#[derive(Debug, Default)]
pub(crate) struct Broken {
    #[cfg(feature = "mutations")]
    rule: std::sync::OnceLock<CasRule>,
}

#[cfg(feature = "mutations")]
impl Broken {
    pub(crate) fn set(&self, rule: CasRule) {
        let _ = self.rule.set(rule);
    }

    pub(crate) fn is(&self, rule: CasRule) -> bool {
        self.rule.get() == Some(&rule)
    }
}

#[cfg(not(feature = "mutations"))]
impl Broken {
    #[allow(clippy::unused_self)]
    pub(crate) const fn is(&self, _: CasRule) -> bool {
        false
    }
}
