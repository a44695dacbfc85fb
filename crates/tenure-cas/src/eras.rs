//! The floor of term numbers, which an operator raises after records were put back (M6).
//!
//! A bucket that was rolled back, or a prefix that was copied back, has older records, or
//! lacks some: their numbers go back with them. A member that has seen higher ones goes on
//! above them by itself (`bids/bid.rs`). One that has not cannot know, and then an operator's
//! word raises the floor of the namespace: by the operator's wall clock, as eras of other
//! stores go by the store's ([`Era`]). The record goes back with the next restore, and the
//! clock does not, so that one backup may be put back any number of times.
//!
//! What could give out a number below the floor, and what prevents it:
//!
//! - **A bid that is on its way while the floor rises.** Its swap names the version that it
//!   saw, or that there is no record: the floor changes neither, so that the swap lands, under
//!   a number that was forgotten. So **a claim looks at the floor after its swaps**, and a
//!   term whose number is not above it is begun anew above it before any caller is told of it.
//!   A floor that rises after that look rises after the term was won.
//! - **That look is interrupted**, or its claimer dies. No caller was told of the term. A
//!   repeated bid finds its own term and looks again; another's bid looks for itself. Until
//!   then a reader may be shown that number.
//! - **An election whose record was lost.** The floor is one record for all elections of
//!   the namespace, and needs none of theirs.
//!
//! The look costs a claim that has won something one load. It is made while the winner's
//! heartbeat is raised, which the claim waits for anyhow. A claim that has won nothing makes
//! none. Without the look `restored` would have to write into each election's record, and a claim
//! that founds an election, which has no record yet, would need the look in any case.

use tenure_core::{Era, Namespace};
use tenure_store::Result;

use crate::cells::{ATTEMPTS, Cells, too_busy};
use crate::record::name::{ELECTIONS, FloorRecord};

/// The floor of the term numbers of one namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eras<'a> {
    cells: &'a Cells,
    ns: &'a Namespace,
}

impl<'a> Eras<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self { cells, ns }
    }
}

impl Eras<'_> {
    fn key(&self) -> String {
        self.cells.keys.floor_of_terms(self.ns)
    }

    /// The floor as it is now.
    pub(crate) async fn load(&self) -> Result<u64> {
        let seen = self.cells.load::<FloorRecord>(&self.key()).await?;
        Ok(seen.map_or(0, |seen| seen.record.floor))
    }

    /// The floor as it was last seen.
    pub(crate) fn known(&self) -> u64 {
        self.cells.known::<FloorRecord>(&self.key()).map_or(0, |seen| seen.record.floor)
    }

    /// Begins an era above the highest number that is known, and gives the one before it and
    /// the new one.
    pub(crate) async fn raise(&self, highest: u64) -> Result<(Era, Era)> {
        let key = self.key();
        for _ in 0..ATTEMPTS {
            let seen = self.cells.load::<FloorRecord>(&key).await?;
            let found = seen.as_ref().map(|seen| (*seen.record).clone());
            let mut record = found.unwrap_or_else(|| FloorRecord::of(ELECTIONS));
            let before = Era::new(record.eras, record.floor);
            let after = before.at_least(highest).raised(self.cells.clock.wall());
            (record.eras, record.floor) = (after.count(), after.floor());
            let now = self.cells.now();
            if self.cells.swap(&key, seen.as_ref(), record, now, None).await?.is_some() {
                return Ok((before, after));
            }
        }
        Err(too_busy(&key))
    }
}
