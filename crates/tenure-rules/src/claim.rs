//! Standing for elections, and winning those that are free.

use alloc::vec::Vec;

use tenure_core::{Bid, Claim, Claimed, Claims, Happening, MemberRef, ReleaseCause};

use crate::bidding::{Bidder, Found, Inherited, Opening, Seat};
use crate::rows::{CandidacyRow, ElectionRow, Moment, WriteRows};
use crate::step::{Keep, Origin, Step};
use crate::view::View;

/// Stands for elections and wins those that are free, each bid on its own.
pub fn claim<R: WriteRows>(rows: &mut R, at: Moment, claim: &Claim) -> Result<Claims, R::Error> {
    Step::run(rows, at, |step| {
        // M1: one that is not live wins nothing.
        if step.view().acting(&claim.member)?.is_none() {
            return Ok(Claims::Ended { superseded: step.view().superseded(&claim.member)? });
        }
        // Before the first bid: no number may be given out below one that was forgotten (M6).
        step.catch_up(claim.seen)?;
        let mut claiming = Claiming { step, claim };
        let mut answers = Vec::with_capacity(claim.bids.len());
        for bid in &claim.bids {
            answers.push(claiming.answer(bid)?);
        }
        // A win counts as a heartbeat, also when it repeats an earlier one.
        // A loss renews nothing: a candidate that only bids must beat, or it is not a member.
        if answers.iter().any(|answer| matches!(answer, Claimed::Won(_))) {
            step.rows.renew_member(&claim.member, at.now, claim.ttl)?;
        }
        step.sweep()?;
        Ok(Claims::Answered(answers))
    })
}

/// The claim of a live member in one step.
struct Claiming<'s, 'a, R> {
    step: &'s mut Step<'a, R>,
    claim: &'s Claim,
}

impl<R: WriteRows> Claiming<'_, '_, R> {
    fn caller(&self) -> &MemberRef {
        &self.claim.member
    }

    fn view(&self) -> View<'_, R> {
        self.step.view()
    }

    fn answer(&mut self, bid: &Bid) -> Result<Claimed, R::Error> {
        let loaded = self.step.rows.election(&bid.election)?;
        let blank = || ElectionRow::new(bid.election.clone());
        let mut election = loaded.clone().unwrap_or_else(blank);
        let answer = self.bid(&mut election, bid)?;
        self.step.put_changed(loaded.as_ref(), &election)?;
        Ok(answer)
    }

    /// One bid: the steps of the contract, in their order. What each finds means is judged
    /// in `bidding.rs`.
    fn bid(&mut self, election: &mut ElectionRow, bid: &Bid) -> Result<Claimed, R::Error> {
        let bidder = Bidder { caller: &self.claim.member, bid };
        match bidder.opening(&self.found(election)?) {
            Opening::Own { stands } => {
                if stands {
                    self.stand(bid)?;
                }
                return self.take_on(election, bid);
            }
            Opening::Late => return self.held(election),
            Opening::Open => {}
        }
        // In this order: a bidder that stands can be the heir of the holder that it ends.
        self.stand(bid)?;
        self.end_dead_holder(election)?;
        let paused = election.paused.is_some();
        if bidder.may_win(paused) && bidder.wins(paused, self.seat(election)?) {
            return self.win(election, bid);
        }
        self.held(election)
    }

    /// Step 1: the election as the bid finds it.
    fn found<'e>(&self, election: &'e ElectionRow) -> Result<Found<'e>, R::Error> {
        let inherited = match self.view().handed(election)? {
            None => None,
            Some(_) if self.view().has_lapsed(election)? => Some(Inherited::Lapsed),
            Some(_) => Some(Inherited::Stands),
        };
        let holder = election.holder.as_ref().map(|held| &held.member);
        Ok(Found { won: election.won, holder, inherited })
    }

    /// The term that the caller holds already is confirmed.
    fn take_on(&mut self, election: &mut ElectionRow, bid: &Bid) -> Result<Claimed, R::Error> {
        let Some(term) = election.term_of(self.caller()) else { return self.held(election) };
        election.attempted(self.caller(), bid.nonce);
        election.confirm();
        Ok(Claimed::Won(term))
    }

    /// Step 2: the candidacy stands from here on, and keeps its beginning.
    fn stand(&mut self, bid: &Bid) -> Result<(), R::Error> {
        let caller = &self.claim.member;
        let found = self.step.rows.candidacy(&bid.election, &caller.id)?;
        let stood = found.filter(|row| row.member == *caller);
        // A bid that is made again and again writes nothing.
        if stood.as_ref().is_some_and(|row| row.priority == bid.priority) {
            return Ok(());
        }
        let seq = self.step.tell(Happening::Stood {
            election: bid.election.clone(),
            member: caller.clone(),
            priority: bid.priority,
        })?;
        self.step.rows.put_candidacy(&CandidacyRow {
            election: bid.election.clone(),
            member: caller.clone(),
            priority: bid.priority,
            stood: stood.as_ref().map_or(seq, |row| row.stood),
            since: stood.as_ref().map_or(self.step.at.now, |row| row.since),
        })
    }

    /// Step 3: nothing is taken from a dead member before it is ended, in this same step
    /// (rule M2), by the ttl it wrote itself (rule M3) or by proof (rule M4). A term whose
    /// holder's life is over is written off, now that a member bids for it (rule M5). What
    /// was handed over and not confirmed in time is free although its holder lives.
    fn end_dead_holder(&mut self, election: &mut ElectionRow) -> Result<(), R::Error> {
        let holder = election.holder.as_ref().map(|held| held.member.clone());
        let Some(holder) = holder.filter(|holder| holder != self.caller()) else {
            return Ok(());
        };
        let grace = self.claim.heir_grace;
        if self.step.end_if_dead(&holder)? {
            return self.step.settle(election, &holder, grace);
        }
        if self.view().has_lapsed(election)? {
            // Its candidacy ends with it, or the vacancy would be kept for the very heir that
            // did not take the term on.
            self.step.withdraw(election, &holder)?;
            let keep = Keep { grace, ..Keep::default() };
            return self.step.vacate(election, ReleaseCause::Abandoned, &keep);
        }
        Ok(())
    }

    /// Step 4: what is left for the bid, now that the holder was settled.
    fn seat<'e>(&self, election: &'e ElectionRow) -> Result<Seat<'e>, R::Error> {
        Ok(match &election.holder {
            Some(held) if held.member == *self.caller() => Seat::Own,
            Some(_) => Seat::Taken,
            None => {
                let kept = self.view().reservation(election)?;
                Seat::Vacant { kept_for: kept.map(|kept| &kept.member) }
            }
        })
    }

    /// Step 4, the win. An older term of the caller's own ends first.
    fn win(&mut self, election: &mut ElectionRow, bid: &Bid) -> Result<Claimed, R::Error> {
        self.step.vacate(election, ReleaseCause::Abandoned, &Keep::default())?;
        let origin = Origin::Bid(bid.nonce);
        Ok(Claimed::Won(self.step.elect(election, &self.claim.member, origin)?))
    }

    /// Step 5: losing is an answer, with the view (rule E2).
    fn held(&self, election: &ElectionRow) -> Result<Claimed, R::Error> {
        let view = self.view().election_view(election, Some(self.caller()), false)?;
        Ok(Claimed::Held(view))
    }
}
