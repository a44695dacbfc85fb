//! Standing for elections, and winning those that are free.

use std::cmp::Ordering;
use std::time::Duration;

use rusqlite::{Row, named_params, params};
use tenure_core::{
    Bid, Claim, Claimed, Claims, Happening, MemberRef, Priority, ReleaseCause, Term, TermNumber,
};

use crate::error::Outcome;
use crate::journal::number;
use crate::rows::{Election, instant};
use crate::txn::Txn;

impl Txn<'_> {
    /// Answers every bid, or that the caller's life is over (rule M1).
    pub(crate) fn claim(&mut self, claim: &Claim) -> Outcome<Claims> {
        if self.acting(&claim.member)?.is_none() {
            self.over.push(claim.member.incarnation);
            return Ok(Claims::Ended { superseded: self.superseded(&claim.member)? });
        }
        self.catch_up(claim.seen)?;
        let mut answers = Vec::with_capacity(claim.bids.len());
        for bid in &claim.bids {
            answers.push(self.bid(claim, bid)?);
        }
        // A win counts as a heartbeat, also when it repeats an earlier one.
        if answers.iter().any(|answer| matches!(answer, Claimed::Won(_))) {
            self.renew(&claim.member, claim.ttl)?;
        }
        self.sweep()?;
        Ok(Claims::Answered(answers))
    }

    /// One bid: the five steps of the contract, in their order.
    fn bid(&mut self, claim: &Claim, bid: &Bid) -> Outcome<Claimed> {
        let election = self.election(&bid.election)?;
        match attempt(&election, &claim.member, bid) {
            Attempt::Repeated if election.is_held_by(&claim.member) => {
                return Ok(Claimed::Won(term(&election, &claim.member)));
            }
            Attempt::Repeated | Attempt::Late => return self.held(claim, bid),
            Attempt::New => {}
        }
        self.stand(&claim.member, bid)?;
        let election = match self.end_dead_holder(&election, claim)? {
            true => self.election(&bid.election)?,
            false => election,
        };
        if self.may_win(&election, &claim.member, bid)? {
            return self.win(&election, claim, bid);
        }
        self.held(claim, bid)
    }

    /// Step 2: the candidacy stands from here on, and keeps its beginning.
    fn stand(&mut self, caller: &MemberRef, bid: &Bid) -> Outcome<()> {
        let key = params![self.ns, bid.election.as_str(), caller.id.as_str()];
        let stood = self.one(include_str!("../sql/candidate_get.sql"), key, Stood::read)?;
        let life = caller.incarnation.to_string();
        let stood = stood.filter(|s| s.incarnation == life);
        if stood.as_ref().is_some_and(|s| s.priority == bid.priority) {
            return Ok(());
        }
        if stood.is_none() {
            let election = params![self.ns, bid.election.as_str()];
            self.run(include_str!("../sql/election_make.sql"), election)?;
        }
        let (election, member) = (bid.election.clone(), caller.clone());
        let seq = self.tell(Happening::Stood { election, member, priority: bid.priority })?;
        let fresh = || Stood {
            incarnation: life.clone(),
            priority: bid.priority,
            stood: number(seq.get()),
            boot: self.judge.boot.to_owned(),
            since: instant(self.judge.now),
        };
        let stood = stood.unwrap_or_else(fresh);
        self.run(
            include_str!("../sql/candidate_put.sql"),
            named_params! {
                ":ns": self.ns,
                ":election": bid.election.as_str(),
                ":id": caller.id.as_str(),
                ":incarnation": life,
                ":priority": bid.priority.get(),
                ":stood": stood.stood,
                ":boot": stood.boot,
                ":since": stood.since,
            },
        )?;
        Ok(())
    }

    /// Step 3: nothing is taken from a dead member before it is ended, in this
    /// same step (rule M2), by the ttl it wrote itself (rule M3) or by proof
    /// (rule M4). A term whose holder's life is over is written off, now that
    /// somebody asks for it (rule M5).
    fn end_dead_holder(&mut self, election: &Election, claim: &Claim) -> Outcome<bool> {
        let Some(holder) = election.holder.as_ref().filter(|h| **h != claim.member) else {
            return Ok(false);
        };
        if let Some(row) = self.recorded(holder)? {
            let Some(cause) = self.fate(&row) else { return Ok(false) };
            if self.at_work(&row) {
                return Ok(false);
            }
            self.end(holder, cause)?;
        }
        self.settle(election, claim.heir_grace)?;
        Ok(true)
    }

    /// Step 4, the condition: not paused (rule E6), may lead, and the election
    /// is either vacant and not kept for another, or the caller's own already
    /// (rule E3: an incumbent is never preempted).
    fn may_win(&self, election: &Election, caller: &MemberRef, bid: &Bid) -> Outcome<bool> {
        if election.paused.is_some() || !bid.priority.may_lead() {
            return Ok(false);
        }
        if let Some(holder) = &election.holder {
            return Ok(holder == caller);
        }
        Ok(self.kept_for(election)?.is_none_or(|(heir, _)| heir == caller.id))
    }

    /// Step 4, the win: a new number, never one used before (H5, H6).
    fn win(&mut self, election: &Election, claim: &Claim, bid: &Bid) -> Outcome<Claimed> {
        let member = &claim.member;
        let abandoned = election.holder.is_some();
        self.vacate(election, ReleaseCause::Abandoned, None, Duration::ZERO)?;
        let life = member.incarnation.to_string();
        let mut win = self.db.prepare_cached(include_str!("../sql/election_win.sql"))?;
        let won: u64 = win.query_row(
            named_params! {
                ":ns": self.ns,
                ":name": bid.election.as_str(),
                ":id": member.id.as_str(),
                ":incarnation": life,
                ":wall": number(self.wall.unix_millis()),
                ":nonce": bid.nonce.get().cast_signed(),
            },
            |row| row.get(0),
        )?;
        if !abandoned {
            let more = params![self.ns, member.id.as_str(), life, 1];
            self.run(include_str!("../sql/member_holds.sql"), more)?;
        }
        let (election, elected_at) = (bid.election.clone(), self.wall);
        self.won = self.won.max(won);
        let number = TermNumber::new(won);
        let term = Term { election, number, member: member.clone(), elected_at };
        self.tell(Happening::Elected { term: term.clone() })?;
        Ok(Claimed::Won(term))
    }

    /// Step 5: losing is an answer, with the view (rule E2).
    fn held(&self, claim: &Claim, bid: &Bid) -> Outcome<Claimed> {
        let election = self.election(&bid.election)?;
        Ok(Claimed::Held(self.view(election, Some(&claim.member), false)?))
    }
}

/// What a bid is, seen from the last win.
enum Attempt {
    /// The winning bid once more.
    Repeated,
    /// A copy of a bid from before the last win.
    Late,
    /// A bid like any other.
    New,
}

/// Step 1: what the nonce tells of a bid by the last winner (rule E2).
fn attempt(election: &Election, caller: &MemberRef, bid: &Bid) -> Attempt {
    let Some((_, nonce)) = election.winner.filter(|(winner, _)| *winner == caller.incarnation)
    else {
        return Attempt::New;
    };
    match bid.nonce.get().cmp(&nonce) {
        Ordering::Equal => Attempt::Repeated,
        Ordering::Less => Attempt::Late,
        Ordering::Greater => Attempt::New,
    }
}

fn term(election: &Election, member: &MemberRef) -> Term {
    let (number, elected_at) = (election.number, election.elected_at);
    Term { election: election.name.clone(), number, member: member.clone(), elected_at }
}

/// A candidacy as it stands in its table.
struct Stood {
    incarnation: String,
    priority: Priority,
    stood: i64,
    boot: String,
    since: i64,
}

impl Stood {
    fn read(row: &Row<'_>) -> Outcome<Self> {
        Ok(Self {
            incarnation: row.get("incarnation")?,
            priority: Priority::new(row.get("priority")?),
            stood: row.get("stood")?,
            boot: row.get("boot")?,
            since: row.get("since")?,
        })
    }
}
