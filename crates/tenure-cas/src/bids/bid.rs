//! One bid: what it is, what to do about it, and the swap that decides.

use std::time::Duration;

use tenure_core::{Bid, Claim, Era, MemberId, Mono, Profile, ReleaseCause, Term, TermNumber};
use tenure_rules::bidding::{self, Bidder, Opening, Seat};
use tenure_store::{Error, ErrorKind, Result};

use super::Bids;
use crate::cells::{ATTEMPTS, Swap, too_busy};
use crate::judge::Hold;
use crate::reader::Found;
use crate::record::election::ElectionRecord;
use crate::record::history::Win;
use crate::seen::Seen;

/// What to do about a bid.
pub(super) enum Step {
    /// Nothing: it is lost.
    Lose,
    /// Nothing: it was won already, and the member's heartbeat is all it takes.
    Again(Term),
    /// Write this; it is the win, if it is written and the heartbeat after it.
    Win(ElectionRecord),
    /// Write this, which keeps the vacancy of a dead holder for another member;
    /// the bid is lost.
    Keep(ElectionRecord, MemberId),
}

/// What a bid finds once the holder was settled.
enum Settled {
    /// The caller's own older term.
    Own,
    /// The term of another, who lives or may live.
    Taken,
    /// A vacancy.
    Vacant,
    /// A term whose holder is over, and which ends with the win or with the reservation.
    Over(ReleaseCause),
}

/// What became of a bid.
pub(super) enum Fate {
    /// Won, once the member's heartbeat is raised.
    Won(Term),
    /// Lost, on this record.
    Lost(Found),
    /// Not known: its requests failed.
    Open,
}

/// One claim on its way.
pub(super) struct Claiming<'a> {
    pub(super) claim: &'a Claim,
    /// What the caller publishes.
    pub(super) profile: &'a Profile,
    /// When it began.
    pub(super) started: Mono,
}

impl Bids<'_> {
    /// One bid on the election as it was found: decides, swaps, and begins again with
    /// what it finds after a conflict.
    pub(super) async fn bid(
        &self,
        claiming: &Claiming<'_>,
        bid: &Bid,
        found: Found,
    ) -> Result<Fate> {
        let key = self.parts.cells.keys.election(self.parts.ns, &bid.election);
        let mut seen = found;
        for _ in 0..ATTEMPTS {
            let (record, heir) = match self.next_step(claiming, bid, seen.as_ref()).await? {
                Step::Lose => return Ok(Fate::Lost(seen)),
                Step::Again(term) => return Ok(Fate::Won(term)),
                Step::Win(record) => (record, None),
                Step::Keep(record, heir) => (record, Some(heir)),
            };
            let swapped = self.swap_election(&key, seen.as_ref(), record).await?;
            let Some(written) = swapped else {
                // Another write was first: a rival's, an operator's, or that of this
                // very bid in an earlier attempt.
                let begun = self.parts.cells.step();
                seen = self.parts.reader.load_election(&key).await?;
                self.parts.reader.load_holders_of(seen.iter(), begun).await?;
                continue;
            };
            if let Some(heir) = heir {
                // It saves the heir time. If it fails, the heir notices by itself.
                let _ = self.parts.members.raise_attention(&heir).await;
                return Ok(Fate::Lost(Some(written)));
            }
            let won = written.record.term();
            return Ok(won.map_or(Fate::Lost(Some(written)), Fate::Won));
        }
        Err(too_busy(&key))
    }

    /// What to do about a bid on the record seen: the steps of the contract, as
    /// [`tenure_rules::bidding`] judges what each finds. A judgement that is out of date when
    /// it is acted on writes nothing, since the swap names the version that was judged: a
    /// rival's win, a pause or a release in between is a conflict, and is judged anew.
    pub(super) async fn next_step(
        &self,
        claiming: &Claiming<'_>,
        bid: &Bid,
        seen: Option<&Seen<ElectionRecord>>,
    ) -> Result<Step> {
        let bidder = Bidder { caller: &claiming.claim.member, bid };
        match opening(seen, bidder) {
            Opening::Own { .. } => {
                let term = seen.and_then(|seen| seen.record.term());
                return Ok(term.map_or(Step::Lose, Step::Again));
            }
            Opening::Late => return Ok(Step::Lose),
            Opening::Open => {}
        }
        let founded = || ElectionRecord::vacant(bid.election.clone(), TermNumber::NONE);
        let mut record = seen.map_or_else(founded, |seen| (*seen.record).clone());
        let paused = record.paused.is_some();
        let (hold, heir) = self.settle(claiming, bidder, seen, &record).await?;
        let kept_for = heir.as_ref().map(|(heir, _)| heir);
        let wins = bidder.wins(
            paused,
            match &hold {
                Settled::Own => Seat::Own,
                Settled::Taken => Seat::Taken,
                Settled::Vacant | Settled::Over(_) => Seat::Vacant { kept_for },
            },
        );
        if wins {
            let cause = match hold {
                Settled::Over(cause) => cause,
                // A caller that bids anew has given its old term up: the gap in its trust has
                // to show in the number (B17).
                _ => ReleaseCause::Abandoned,
            };
            record.vacate(cause, None, self.parts.cells.clock.wall());
            return self.begin(claiming, bid, record).map(Step::Win);
        }
        match (hold, heir) {
            (Settled::Over(cause), Some((heir, grace))) if heir != bidder.caller.id => {
                // This bid cannot win, and writes all the same: the grace of the heir begins
                // with the vacancy, and no other may be there to begin it.
                let kept = Some((heir.clone(), grace));
                record.vacate(cause, kept, self.parts.cells.clock.wall());
                Ok(Step::Keep(record, heir))
            }
            _ => Ok(Step::Lose),
        }
    }

    /// What holds the election, and for whom its vacancy is kept. A silent holder is ended
    /// first, and only then is its term taken (rule M2).
    async fn settle(
        &self,
        claiming: &Claiming<'_>,
        bidder: Bidder<'_>,
        seen: Option<&Seen<ElectionRecord>>,
        record: &ElectionRecord,
    ) -> Result<(Settled, Option<(MemberId, Duration)>)> {
        let claim = claiming.claim;
        if record.is_held_by(&claim.member) {
            return Ok((Settled::Own, None));
        }
        let may = bidder.may_win(record.paused.is_some());
        Ok(match self.lives.settle(record).await? {
            Hold::Vacant if may => (Settled::Vacant, self.reserved_for(claiming, seen).await?),
            // For whom it is kept decides nothing, and costs a look.
            Hold::Vacant => (Settled::Vacant, None),
            Hold::Over(cause) => {
                if !claim.heir_grace.is_zero() {
                    // Who is preferred is looked up once for the whole claim.
                    self.parts.reader.refresh_members(claiming.started).await?;
                }
                let heir = self.parts.candidates.heir_of(record, bidder, claim.heir_grace);
                (Settled::Over(cause), heir)
            }
            Hold::Live(_) | Hold::Silent(_) | Hold::Unproven { .. } => (Settled::Taken, None),
        })
    }

    /// Writes the caller's term, under a number that follows every one that this observer
    /// ever saw: numbers do not go back even if the record was removed or replaced by an
    /// older one.
    fn begin(
        &self,
        claiming: &Claiming<'_>,
        bid: &Bid,
        mut record: ElectionRecord,
    ) -> Result<ElectionRecord> {
        let Claiming { claim, profile, .. } = claiming;
        let key = self.parts.cells.keys.election(self.parts.ns, &bid.election);
        let floor = self.eras.known();
        let seen = self.parts.cells.memory().newest_number(&key);
        let last = record.number().max(seen);
        let number = Era::START.at_least(floor.saturating_add(1)).number_after(last, 0);
        let at = self.parts.cells.clock.wall();
        // The number after stops at the greatest instead of going back to the first.
        if number <= last || number.get() <= floor {
            let what = format!("the record {key} has used up the last number, {number}");
            return Err(Error::new(ErrorKind::Foreign, what).remedy("use another election"));
        }
        record.begin(&Win {
            number,
            member: &claim.member,
            nonce: bid.nonce,
            ttl: claim.ttl,
            priority: bid.priority,
            profile,
            at,
        });
        Ok(record)
    }

    /// Begins a term anew that was won under a number not above the floor. No caller was told
    /// of it.
    pub(super) async fn begin_above(
        &self,
        claiming: &Claiming<'_>,
        bid: &Bid,
        floor: u64,
    ) -> Result<Fate> {
        let key = self.parts.cells.keys.election(self.parts.ns, &bid.election);
        for _ in 0..ATTEMPTS {
            let found = self.parts.reader.load_election(&key).await?;
            let own = found.as_ref().filter(|seen| seen.record.is_held_by(&claiming.claim.member));
            let Some(seen) = own else { return Ok(Fate::Lost(found)) };
            // Lifted by an attempt before this one, whose answer was lost.
            let term = seen.record.term().filter(|term| term.number.get() > floor);
            if let Some(term) = term {
                return Ok(Fate::Won(term));
            }
            let mut record = (*seen.record).clone();
            record.vacate(ReleaseCause::Abandoned, None, self.parts.cells.clock.wall());
            let record = self.begin(claiming, bid, record)?;
            let swapped = self.swap_election(&key, Some(seen), record).await?;
            if let Some(term) = swapped.and_then(|written| written.record.term()) {
                return Ok(Fate::Won(term));
            }
        }
        Err(too_busy(&key))
    }

    /// Swaps an election, and with it the cell of its number where the register writes
    /// several at once.
    async fn swap_election(
        &self,
        key: &str,
        seen: Option<&Seen<ElectionRecord>>,
        record: ElectionRecord,
    ) -> Result<Found> {
        let cells = self.parts.cells;
        let begun = record.holder.is_some() && cells.register.batches().is_some();
        let beside = if begun { vec![self.term_cell(&record)] } else { Vec::new() };
        let swap = Swap { key, seen, record, started: cells.now(), renews: None };
        let swapped = cells.swap_beside(swap, beside).await?;
        cells.memory().may_have_changed(key);
        Ok(swapped)
    }

    /// For whom the vacancy is kept, if that one still stands. Whether the caller itself
    /// stands needs no look.
    async fn reserved_for(
        &self,
        claiming: &Claiming<'_>,
        seen: Option<&Seen<ElectionRecord>>,
    ) -> Result<Option<(MemberId, Duration)>> {
        let Some(seen) = seen else { return Ok(None) };
        let Some(kept) = &seen.record.reserved else { return Ok(None) };
        // Counted from when this observer first saw the vacancy, which is no earlier than it
        // began: the heir has its grace in full.
        let left = kept.grace_ns.saturating_sub(self.parts.cells.now().since(seen.since));
        if left.is_zero() {
            return Ok(None);
        }
        let own = kept.member == claiming.claim.member.id;
        let candidates = &self.parts.candidates;
        let stands = own || candidates.heir_stands(&seen.record.election, &kept.member).await?;
        Ok(stands.then(|| (kept.member.clone(), left)))
    }
}

/// What a bid is, on the election as it was found.
pub(super) fn opening(found: Option<&Seen<ElectionRecord>>, bidder: Bidder<'_>) -> Opening {
    let holder = found.and_then(|seen| Some(seen.record.holder.as_ref()?.member()));
    let won = found.and_then(|seen| seen.record.last_win());
    bidder.opening(&bidding::Found { won, holder: holder.as_ref(), inherited: None })
}
