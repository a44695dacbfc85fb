//! One bid: what it is, what to do about it, and the swap that decides.

use tenure_core::{Bid, Claim, MemberId, MemberRef, Mono, Profile, ReleaseCause, Term, TermNumber};
use tenure_rules::rank::Attempt;
use tenure_store::{Error, ErrorKind, Result};

use super::Bids;
use crate::cells::{ATTEMPTS, too_busy};
use crate::judge::Hold;
use crate::reader::Found;
use crate::record::election::ElectionRecord;
use crate::record::history::Win;
use crate::seen::Seen;

/// What to do about a bid.
enum Step {
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

/// What became of a bid.
pub(super) enum Outcome {
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
    ) -> Result<Outcome> {
        let key = self.parts.cells.keys.election(self.parts.ns, &bid.election);
        let mut seen = found;
        for _ in 0..ATTEMPTS {
            let (record, heir) = match self.next_step(claiming, bid, seen.as_ref()).await? {
                Step::Lose => return Ok(Outcome::Lost(seen)),
                Step::Again(term) => return Ok(Outcome::Won(term)),
                Step::Win(record) => (record, None),
                Step::Keep(record, heir) => (record, Some(heir)),
            };
            let swapped = self
                .parts
                .cells
                .swap(&key, seen.as_ref(), record, self.parts.cells.now(), None)
                .await?;
            self.parts.cells.memory().may_have_changed(&key);
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
                return Ok(Outcome::Lost(Some(written)));
            }
            let won = written.record.term();
            return Ok(won.map_or(Outcome::Lost(Some(written)), Outcome::Won));
        }
        Err(too_busy(&key))
    }

    /// What to do about a bid on the record seen: the steps of the contract.
    async fn next_step(
        &self,
        claiming: &Claiming<'_>,
        bid: &Bid,
        seen: Option<&Seen<ElectionRecord>>,
    ) -> Result<Step> {
        let claim = claiming.claim;
        let Some(seen) = seen else {
            let record = ElectionRecord::vacant(bid.election.clone(), TermNumber::NONE);
            let may = bid.priority.may_lead();
            return if may { self.win(claiming, bid, record) } else { Ok(Step::Lose) };
        };
        let own = seen.record.is_held_by(&claim.member);
        match attempt(Some(seen), &claim.member, bid) {
            Attempt::Repeated if own => {
                return Ok(seen.record.term().map_or(Step::Lose, Step::Again));
            }
            Attempt::Repeated | Attempt::Late => return Ok(Step::Lose),
            Attempt::New => {}
        }
        let may = seen.record.paused.is_none() && bid.priority.may_lead();
        let mut record = (*seen.record).clone();
        if own {
            // E6: while paused it keeps the term it has, since a new number is a new election.
            if !may {
                return Ok(Step::Lose);
            }
            // A caller that bids anew has given its old term up: the gap in its trust has to
            // show in the number (B17).
            record.vacate(ReleaseCause::Abandoned, None, self.parts.cells.clock.wall());
            return self.win(claiming, bid, record);
        }
        // Rule M2: a silent holder is ended first, and only then is its term taken.
        match self.lives.settle(&seen.record).await? {
            Hold::Vacant if !may || self.kept_for_another(claiming, seen).await? => Ok(Step::Lose),
            Hold::Vacant => self.win(claiming, bid, record),
            Hold::Over(cause) => {
                if !claim.heir_grace.is_zero() {
                    // Who is preferred is looked up once for the whole claim.
                    self.parts.reader.refresh_members(claiming.started).await?;
                }
                let bidder = (&claim.member.id, bid.priority);
                let heir = self.parts.candidates.heir_before(&record, bidder, claim.heir_grace);
                record.vacate(cause, heir.clone(), self.parts.cells.clock.wall());
                match heir {
                    // This bid cannot win, and writes all the same: the grace of the heir
                    // begins with the vacancy, and no other may be there to begin it.
                    Some((heir, _)) => Ok(Step::Keep(record, heir)),
                    None if may => self.win(claiming, bid, record),
                    None => Ok(Step::Lose),
                }
            }
            Hold::Live(_) | Hold::Silent(_) | Hold::Unproven { .. } => Ok(Step::Lose),
        }
    }

    /// The next number after every one that this observer ever saw, so that numbers do
    /// not go back even if the record was removed or replaced by an older one.
    fn win(&self, claiming: &Claiming<'_>, bid: &Bid, record: ElectionRecord) -> Result<Step> {
        self.begin(claiming, bid, record).map(Step::Win)
    }

    fn begin(
        &self,
        claiming: &Claiming<'_>,
        bid: &Bid,
        mut record: ElectionRecord,
    ) -> Result<ElectionRecord> {
        let Claiming { claim, profile, .. } = claiming;
        let key = self.parts.cells.keys.election(self.parts.ns, &bid.election);
        let floor = TermNumber::new(self.eras.known());
        let seen = self.parts.cells.memory().newest_number(&key);
        let last = record.number().max(seen).max(floor);
        let number = last.next();
        let at = self.parts.cells.clock.wall();
        // `next` stops at the greatest number instead of going back to the first.
        if number == last {
            let what = format!("the record {key} has used up the last number, {last}");
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
    ) -> Result<Outcome> {
        let key = self.parts.cells.keys.election(self.parts.ns, &bid.election);
        for _ in 0..ATTEMPTS {
            let found = self.parts.reader.load_election(&key).await?;
            let own = found.as_ref().filter(|seen| seen.record.is_held_by(&claiming.claim.member));
            let Some(seen) = own else { return Ok(Outcome::Lost(found)) };
            // Lifted by an attempt before this one, whose answer was lost.
            let term = seen.record.term().filter(|term| term.number.get() > floor);
            if let Some(term) = term {
                return Ok(Outcome::Won(term));
            }
            let mut record = (*seen.record).clone();
            record.vacate(ReleaseCause::Abandoned, None, self.parts.cells.clock.wall());
            let record = self.begin(claiming, bid, record)?;
            let swapped = self
                .parts
                .cells
                .swap(&key, Some(seen), record, self.parts.cells.now(), None)
                .await?;
            self.parts.cells.memory().may_have_changed(&key);
            if let Some(term) = swapped.and_then(|written| written.record.term()) {
                return Ok(Outcome::Won(term));
            }
        }
        Err(too_busy(&key))
    }

    /// Whether the vacancy is kept for another who still stands.
    async fn kept_for_another(
        &self,
        claiming: &Claiming<'_>,
        seen: &Seen<ElectionRecord>,
    ) -> Result<bool> {
        let Some(kept) = &seen.record.reserved else { return Ok(false) };
        let own = kept.member == claiming.claim.member.id;
        // Counted from when this observer first saw the vacancy, which is no earlier than it
        // began: the heir has its grace in full.
        if own || self.parts.cells.now().since(seen.since) >= kept.grace_ns {
            return Ok(false);
        }
        self.parts.candidates.heir_stands(&seen.record.election, &kept.member).await
    }
}

/// What the nonce of a bid tells, on the election as it was found (rule E2).
pub(super) fn attempt(
    found: Option<&Seen<ElectionRecord>>,
    caller: &MemberRef,
    bid: &Bid,
) -> Attempt {
    let won = found.and_then(|seen| seen.record.last_win());
    tenure_rules::rank::attempt(won, caller.incarnation, bid.nonce)
}
