//! Standing for elections, and winning those that are free.

use alloc::vec::Vec;

use tenure_core::{Bid, Claim, Claimed, Claims, Happening, MemberRef, ReleaseCause};

use crate::rank::{Attempt, attempt};
use crate::rows::{CandidacyRow, ElectionRow, Moment, WriteRows};
use crate::step::{Keep, Origin, Step};

/// Stands for elections and wins those that are free, each bid on its own.
pub fn claim<R: WriteRows>(rows: &mut R, at: Moment, claim: &Claim) -> Result<Claims, R::Error> {
    Step::run(rows, at, |step| step.claim(claim))
}

impl<R: WriteRows> Step<'_, R> {
    fn claim(&mut self, claim: &Claim) -> Result<Claims, R::Error> {
        // M1: one that is not live wins nothing.
        if self.view().acting(&claim.member)?.is_none() {
            return Ok(Claims::Ended { superseded: self.view().superseded(&claim.member)? });
        }
        self.catch_up(claim.seen)?;
        let mut answers = Vec::with_capacity(claim.bids.len());
        for bid in &claim.bids {
            let loaded = self.rows.election(&bid.election)?;
            let blank = || ElectionRow::new(bid.election.clone());
            let mut election = loaded.clone().unwrap_or_else(blank);
            answers.push(self.bid(&mut election, claim, bid)?);
            self.put_changed(loaded.as_ref(), &election)?;
        }
        // A win counts as a heartbeat, also when it repeats an earlier one.
        if answers.iter().any(|answer| matches!(answer, Claimed::Won(_))) {
            self.rows.renew_member(&claim.member, self.at.now, claim.ttl)?;
        }
        self.sweep()?;
        Ok(Claims::Answered(answers))
    }

    /// One bid: the steps of the contract, in their order.
    fn bid(
        &mut self,
        election: &mut ElectionRow,
        claim: &Claim,
        bid: &Bid,
    ) -> Result<Claimed, R::Error> {
        let lapsed = self.view().has_lapsed(election)?;
        if !lapsed && self.was_handed(election, &claim.member, bid)? {
            self.stand(&claim.member, bid)?;
            return self.take_on(election, claim, bid);
        }
        match attempt(election.won, claim.member.incarnation, bid.nonce) {
            Attempt::Repeated if !lapsed => return self.take_on(election, claim, bid),
            Attempt::Repeated | Attempt::Late => return self.held(election, claim),
            Attempt::New => {}
        }
        self.stand(&claim.member, bid)?;
        self.end_dead_holder(election, claim)?;
        if self.may_win(election, &claim.member, bid)? {
            return self.win(election, claim, bid);
        }
        self.held(election, claim)
    }

    /// Step 1: whether the caller holds the election because it was handed over to it.
    /// Any bid of its own is answered with that term, however late it comes.
    fn was_handed(
        &self,
        election: &ElectionRow,
        caller: &MemberRef,
        bid: &Bid,
    ) -> Result<bool, R::Error> {
        let handed = self.view().handed(election)?;
        Ok(bid.priority.may_lead() && handed.is_some_and(|held| held.member == *caller))
    }

    /// The term that the caller holds already is confirmed; if it holds none, the bid
    /// came too late.
    fn take_on(
        &mut self,
        election: &mut ElectionRow,
        claim: &Claim,
        bid: &Bid,
    ) -> Result<Claimed, R::Error> {
        let Some(term) = election.term_of(&claim.member) else {
            return self.held(election, claim);
        };
        election.attempted(&claim.member, bid.nonce);
        election.confirm();
        Ok(Claimed::Won(term))
    }

    /// Step 2: the candidacy stands from here on, and keeps its beginning.
    fn stand(&mut self, caller: &MemberRef, bid: &Bid) -> Result<(), R::Error> {
        let found = self.rows.candidacy(&bid.election, &caller.id)?;
        let stood = found.filter(|row| row.member == *caller);
        if stood.as_ref().is_some_and(|row| row.priority == bid.priority) {
            return Ok(());
        }
        let seq = self.tell(Happening::Stood {
            election: bid.election.clone(),
            member: caller.clone(),
            priority: bid.priority,
        })?;
        self.rows.put_candidacy(&CandidacyRow {
            election: bid.election.clone(),
            member: caller.clone(),
            priority: bid.priority,
            stood: stood.as_ref().map_or(seq, |row| row.stood),
            since: stood.as_ref().map_or(self.at.now, |row| row.since),
        })
    }

    /// Step 3: nothing is taken from a dead member before it is ended, in this same step
    /// (rule M2), by the ttl it wrote itself (rule M3) or by proof (rule M4). A term whose
    /// holder's life is over is written off, now that somebody asks for it (rule M5). What
    /// was handed over and not confirmed in time is free although its holder lives.
    fn end_dead_holder(
        &mut self,
        election: &mut ElectionRow,
        claim: &Claim,
    ) -> Result<(), R::Error> {
        let holder = election.holder.as_ref().map(|held| held.member.clone());
        let Some(holder) = holder.filter(|holder| *holder != claim.member) else {
            return Ok(());
        };
        if self.end_if_dead(&holder)? {
            return self.settle(election, &holder, claim.heir_grace);
        }
        if self.view().has_lapsed(election)? {
            self.withdraw(election, &holder)?;
            let keep = Keep { grace: claim.heir_grace, ..Keep::default() };
            return self.vacate(election, ReleaseCause::Abandoned, &keep);
        }
        Ok(())
    }

    /// Ends a holder that may be ended, and says whether its life is over.
    fn end_if_dead(&mut self, holder: &MemberRef) -> Result<bool, R::Error> {
        let Some(row) = self.view().recorded(holder)? else { return Ok(true) };
        let Some(cause) = self.view().fate(&row)? else { return Ok(false) };
        if self.rows.is_at_work(&row)? {
            return Ok(false);
        }
        self.end(holder, cause)?;
        Ok(true)
    }

    /// Step 4, the condition: not paused (rule E6), may lead, and the election is either
    /// vacant and not kept for another, or the caller's own already (rule E3: an
    /// incumbent is never preempted).
    fn may_win(
        &self,
        election: &ElectionRow,
        caller: &MemberRef,
        bid: &Bid,
    ) -> Result<bool, R::Error> {
        if election.paused.is_some() || !bid.priority.may_lead() {
            return Ok(false);
        }
        if let Some(held) = &election.holder {
            return Ok(held.member == *caller);
        }
        Ok(self.view().reservation(election)?.is_none_or(|kept| kept.member == caller.id))
    }

    /// Step 4, the win. An older term of the caller's own ends first.
    fn win(
        &mut self,
        election: &mut ElectionRow,
        claim: &Claim,
        bid: &Bid,
    ) -> Result<Claimed, R::Error> {
        self.vacate(election, ReleaseCause::Abandoned, &Keep::default())?;
        Ok(Claimed::Won(self.elect(election, &claim.member, Origin::Bid(bid.nonce))?))
    }

    /// Step 5: losing is an answer, with the view (rule E2).
    fn held(&self, election: &ElectionRow, claim: &Claim) -> Result<Claimed, R::Error> {
        let view = self.view().election_view(election, Some(&claim.member), false)?;
        Ok(Claimed::Held(view))
    }
}
