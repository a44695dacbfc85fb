//! Rules broken on purpose, for the simulator to catch: the stand-in for
//! [`Decisions`](Sound), with at most one of them wrong. Only with the feature `__lab`.

use std::sync::OnceLock;
use std::time::Duration;

use tenure_core::{EndCause, ReleaseCause};
use tenure_store::Result;

use crate::decisions::Decisions as Sound;
use crate::judge::Hold;
use crate::reader::Reader;
use crate::record::member::MemberRecord;

/// One rule of the compare-and-swap family, broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// N3: a record that is older than what is known is taken for the newest.
    GoesBack,
    /// U3: a name is taken from a silent owner that was not ended first.
    NameTakenNotEnded,
    /// M2: a name is answered as bound before the owner's heartbeat was raised.
    NoBeatAfterBind,
    /// M6: a winner does not look at the floor.
    FloorNotLookedAt,
    /// U2: a taker of a name does not look at the floor again.
    NoSecondLook,
}

impl crate::CasStore {
    /// Breaks a rule on purpose.
    #[doc(hidden)]
    pub fn mutate(&self, rule: CasRule) {
        let _ = self.cells().decide.broken.set(rule);
    }
}

/// The decisions, of which one may be wrong. See [`Sound`] for what each must be.
#[derive(Debug)]
pub(crate) struct Breakable {
    broken: OnceLock<CasRule>,
    sound: Sound,
}

impl Breakable {
    pub(crate) fn sound() -> Self {
        Self { broken: OnceLock::new(), sound: Sound::sound() }
    }

    fn breaks(&self, rule: CasRule) -> bool {
        self.broken.get() == Some(&rule)
    }

    pub(crate) fn hold(&self, hold: Hold) -> Hold {
        match self.sound.hold(hold) {
            Hold::Silent(_) if self.breaks(CasRule::TakenNotEnded) => {
                Hold::Over(ReleaseCause::Ended(EndCause::Expired))
            }
            sound => sound,
        }
    }

    pub(crate) fn confirms_wins(&self) -> bool {
        self.sound.confirms_wins() && !self.breaks(CasRule::NoBeatAfterClaim)
    }

    pub(crate) fn confirms_bindings(&self) -> bool {
        self.sound.confirms_bindings() && !self.breaks(CasRule::NoBeatAfterBind)
    }

    pub(crate) fn takes_names_of_silent(&self, hold: &Hold) -> bool {
        let silent = matches!(hold, Hold::Silent(_));
        self.sound.takes_names_of_silent(hold) || silent && self.breaks(CasRule::NameTakenNotEnded)
    }

    pub(crate) fn floor(&self, found: u64) -> u64 {
        if self.breaks(CasRule::NoSecondLook) { 0 } else { self.sound.floor(found) }
    }

    pub(crate) fn floor_of_terms(&self, found: u64) -> u64 {
        if self.breaks(CasRule::FloorNotLookedAt) { 0 } else { self.sound.floor_of_terms(found) }
    }

    pub(crate) fn left_of_missing(&self, left: Duration) -> Duration {
        let broken = self.breaks(CasRule::MissingIsOver);
        if broken { Duration::ZERO } else { self.sound.left_of_missing(left) }
    }

    pub(crate) fn anchor_drift(&self, declared_ppm: u32) -> u32 {
        let broken = self.breaks(CasRule::AnchorIgnoresDrift);
        if broken { 0 } else { self.sound.anchor_drift(declared_ppm) }
    }

    pub(crate) fn passes_over(&self, goes_back: bool) -> bool {
        self.sound.passes_over(goes_back) && !self.breaks(CasRule::GoesBack)
    }

    pub(crate) async fn is_idle(&self, reader: Reader<'_>, other: &MemberRecord) -> Result<bool> {
        if !self.breaks(CasRule::JoinTrustsListing) {
            return self.sound.is_idle(reader, other).await;
        }
        let elections = reader.load_every_election().await?;
        Ok(!elections.iter().any(|seen| seen.record.is_held_by(&other.member())))
    }
}
