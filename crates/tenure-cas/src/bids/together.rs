//! Winning in one step, where the register writes several cells at once.
//!
//! The elections and the member's record are swapped together, so that at the moment of the
//! win the life had not been ended, and the rule that a win needs a heartbeat after it (M2) is
//! kept in the same step. Interleavings:
//!
//! - **A challenger ends the member first**: its record has another version, and nothing is
//!   won. **The batch first**: the challenger's swap conflicts, and finds a new sign of life.
//! - **One election of several has changed**, or the member's own record was noted on: nothing
//!   is written, and the bids go on one by one, each looking at what it conflicts with.
//! - **The answer is lost.** The error says that all may have been applied. The bids are
//!   repeated with their nonces, find their own terms, and the heartbeat is raised once more.
//! - **Many elections of which nothing is known** are taken to have no record, without a look.
//!   One that has makes the batch conflict, and then they are looked at.
//! - **The floor of numbers rises meanwhile**: it is looked at after the batch, as after single
//!   swaps (`eras.rs`).
//!
//! Beside each election goes the cell of its newest number, by which callers fence their own
//! transactions. It is written in the same step as the election and in no other, whose
//! version guards it.

use std::collections::BTreeSet;

use tenure_store::Result;

use super::bid::{Claiming, Fate, Step};
use super::{Bids, is_again};
use crate::cells::Swap;
use crate::members::Edit;
use crate::reader::Found;
use crate::record::election::ElectionRecord;
use crate::register::Write;
use crate::seen::Seen;

impl Bids<'_> {
    /// The bids of a claim, won in one step with the heartbeat that makes them wins. `None`
    /// if that cannot be, and they have to be made one by one.
    pub(super) async fn bid_together(
        &self,
        claiming: &Claiming<'_>,
        found: &[Result<Found>],
    ) -> Result<Option<Vec<Fate>>> {
        let cells = self.parts.cells;
        let claim = claiming.claim;
        let again = is_again(found);
        // Two cells for each election, and the member's.
        let fits = cells.register.batches().is_some_and(|b| b.most() > 2 * claim.bids.len());
        let all_found = found.iter().all(Result::is_ok);
        // Of two bids for one election the later one counts, which one step cannot tell.
        let names: BTreeSet<_> = claim.bids.iter().map(|bid| &bid.election).collect();
        let all_found = all_found && names.len() == claim.bids.len();
        if !fits || !all_found || !cells.decide.confirms_wins() {
            return Ok(None);
        }
        let Some(member) = self.parts.members.known_to_live(&claim.member) else {
            return Ok(None);
        };
        let mut fates = Vec::new();
        let mut wins = Vec::new();
        for (bid, found) in claim.bids.iter().zip(found) {
            let seen = found.as_ref().ok().and_then(Option::as_ref);
            match self.next_step(claiming, bid, seen).await? {
                Step::Lose => fates.push(Some(Fate::Lost(seen.cloned()))),
                Step::Again(term) => fates.push(Some(Fate::Won(term))),
                Step::Win(record) => {
                    let key = cells.keys.election(self.parts.ns, &bid.election);
                    wins.push((key, seen, record));
                    fates.push(None);
                }
                // It is written by itself.
                Step::Keep(..) => return Ok(None),
            }
        }
        if wins.is_empty() {
            return Ok(None);
        }
        let Some(won) = self.win_all(claiming, again, &member, wins).await? else {
            return Ok(None);
        };
        let mut won = won.into_iter();
        let mut next_won = || {
            let written = won.next()?;
            Some(written.record.term().map_or(Fate::Lost(None), Fate::Won))
        };
        let fate = |fate: Option<Fate>| fate.or_else(&mut next_won);
        Ok(fates.into_iter().map(fate).collect())
    }

    async fn win_all(
        &self,
        claiming: &Claiming<'_>,
        again: bool,
        member: &Seen<crate::record::member::MemberRecord>,
        wins: Vec<(String, Option<&Seen<ElectionRecord>>, ElectionRecord)>,
    ) -> Result<Option<Vec<Seen<ElectionRecord>>>> {
        let cells = self.parts.cells;
        let claim = claiming.claim;
        let key = cells.keys.member(self.parts.ns, &claim.member.id);
        let mut renew = |record: &mut _| self.renew_for_win(claim, again, record);
        let what = Edit::Beat(claim.ttl);
        let edited = self.parts.members.edited(&key, &claim.member, what, member, &mut renew);
        let Some((record, started, renews)) = edited else { return Ok(None) };
        let beat = Swap { key: &key, seen: Some(member), record, started, renews };
        let beside = wins.iter().map(|(_, _, record)| self.term_cell(record)).collect();
        let swaps = wins.iter().map(|(key, seen, record)| Swap {
            key,
            seen: *seen,
            record: record.clone(),
            started,
            renews: None,
        });
        let swapped = cells.swap_wins(swaps.collect(), beat, beside).await;
        let mut memory = cells.memory();
        wins.iter().for_each(|(key, _, _)| memory.may_have_changed(key));
        drop(memory);
        Ok(swapped?.map(|(won, _)| won))
    }

    /// The cell by which callers fence: the number of the election's newest term.
    pub(super) fn term_cell(&self, record: &ElectionRecord) -> Write {
        let key = self.parts.cells.keys.term(self.parts.ns, &record.election);
        Write { key, expect: None, bytes: record.number.to_string().into_bytes() }
    }
}
