//! The decisions on which the family's promises hang, each a function of its own. Every
//! other file asks here. For the simulator `mutation.rs` stands in for this file, with one
//! of them wrong; no other build contains it.

use std::time::Duration;

use tenure_store::Result;

use crate::judge::Hold;
use crate::reader::Reader;
use crate::record::member::{Holds, MemberRecord};

/// The decisions, as they must be.
#[derive(Debug)]
pub(crate) struct Decisions;

// Those that depend on nothing take `self` all the same: they are what can be broken.
#[allow(clippy::unused_self)]
impl Decisions {
    /// None is broken.
    pub(crate) fn sound() -> Self {
        Self
    }

    /// M2: a silent holder has to be ended before its term may be taken.
    pub(crate) fn hold(&self, hold: Hold) -> Hold {
        hold
    }

    /// M2: a win is none before the winner's heartbeat is raised.
    pub(crate) fn confirms_wins(&self) -> bool {
        true
    }

    /// M2: no member owns a name before that member's heartbeat is raised.
    pub(crate) fn confirms_bindings(&self) -> bool {
        true
    }

    /// U3: a name is not taken from a silent owner before that owner is ended.
    pub(crate) fn takes_names_of_silent(&self, _: &Hold) -> bool {
        false
    }

    /// U2: the floor that a number is compared with after the name was taken.
    pub(crate) fn floor(&self, found: u64) -> u64 {
        found
    }

    /// M6: the floor that the number of a term is compared with after it was won.
    pub(crate) fn floor_of_terms(&self, found: u64) -> u64 {
        found
    }

    /// M2: a holder whose record is missing is waited out.
    pub(crate) fn left_of_missing(&self, left: Duration) -> Duration {
        left
    }

    /// T5: the holder's clock and the observer's may drift apart between two heartbeats.
    pub(crate) fn anchor_drift(&self, declared_ppm: u32) -> u32 {
        declared_ppm
    }

    /// N3: a record that is older than what is known of its cell and life is passed over.
    pub(crate) fn passes_over(&self, goes_back: bool) -> bool {
        goes_back
    }

    /// C1: a newcomer goes by the record that it replaces. No listing is asked.
    // The stand-in asks one.
    #[allow(clippy::unused_async)]
    pub(crate) async fn is_idle(&self, _: Reader<'_>, other: &MemberRecord) -> Result<bool> {
        Ok(other.holds == Holds::Nothing)
    }
}
