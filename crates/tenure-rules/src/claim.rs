//! Standing for elections, and winning those that are free.

use alloc::vec::Vec;

use tenure_core::{Bid, Claim, Claimed, Claims, Happening, MemberRef, ReleaseCause};

use crate::rank::{Attempt, attempt};
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

    /// One bid: the steps of the contract, in their order.
    fn bid(&mut self, election: &mut ElectionRow, bid: &Bid) -> Result<Claimed, R::Error> {
        let lapsed = self.view().has_lapsed(election)?;
        // Before the nonce is asked: what was handed over was won by no bid, so that the
        // nonce of none can be that of the win.
        if !lapsed && self.was_handed(election, bid)? {
            self.stand(bid)?;
            return self.take_on(election, bid);
        }
        match attempt(election.won, self.caller().incarnation, bid.nonce) {
            // A term that has lapsed is not answered again: it is free for all.
            Attempt::Repeated if !lapsed => return self.take_on(election, bid),
            Attempt::Repeated | Attempt::Late => return self.held(election),
            Attempt::New => {}
        }
        // In this order: a bidder that stands can be the heir of the holder that it ends.
        self.stand(bid)?;
        self.end_dead_holder(election)?;
        if self.may_win(election, bid)? {
            return self.win(election, bid);
        }
        self.held(election)
    }

    /// Step 1: whether the caller holds the election because it was handed over to it.
    /// Any bid of its own is answered with that term, however late it comes.
    fn was_handed(&self, election: &ElectionRow, bid: &Bid) -> Result<bool, R::Error> {
        let handed = self.view().handed(election)?;
        Ok(bid.priority.may_lead() && handed.is_some_and(|held| held.member == *self.caller()))
    }

    /// The term that the caller holds already is confirmed; if it holds none, the bid
    /// came too late.
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

    /// Step 4, the condition: not paused (rule E6), may lead, and the election is either
    /// vacant and not kept for another, or the caller's own already (rule E3: an
    /// incumbent is never preempted).
    fn may_win(&self, election: &ElectionRow, bid: &Bid) -> Result<bool, R::Error> {
        if election.paused.is_some() || !bid.priority.may_lead() {
            return Ok(false);
        }
        if let Some(held) = &election.holder {
            return Ok(held.member == *self.caller());
        }
        let kept = self.view().reservation(election)?;
        Ok(kept.is_none_or(|kept| kept.member == self.caller().id))
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
