//! The verbs of candidates and holders: claim and release.

use std::time::Duration;

use tenure_core::{
    Bid, Claim, Claimed, Claims, Happening, MemberRef, Mono, Release, ReleaseCause, ReleaseItem,
    Term, Timestamp,
};

use super::state::{Candidacy, Election, Keep, MemoryState};

impl MemoryState {
    /// Stands for elections and wins those that are free; see
    /// [`Store::claim`](crate::Store::claim).
    pub fn claim(&mut self, now: Mono, wall: Timestamp, claim: &Claim) -> Claims {
        // M1: whoever is not live wins nothing.
        if self.acting(now, &claim.member).is_none() {
            return Claims::Ended { superseded: self.superseded(&claim.member) };
        }
        self.catch_up(wall, claim.seen);
        let bids = claim.bids.iter().map(|bid| self.bid(now, wall, claim, bid));
        let answers = bids.collect();
        self.sweep();
        Claims::Answered(answers)
    }

    /// One bid: the steps of the contract, in their order.
    fn bid(&mut self, now: Mono, wall: Timestamp, claim: &Claim, bid: &Bid) -> Claimed {
        if self.was_handed(now, &claim.member, bid) {
            self.stand(now, wall, &claim.member, bid);
            return self.take_on(now, claim, bid);
        }
        match self.attempt(&claim.member, bid) {
            Attempt::Repeated => return self.won_already(now, claim, bid),
            Attempt::Late => return self.held(now, claim, bid),
            Attempt::New => {}
        }
        self.stand(now, wall, &claim.member, bid);
        self.end_dead_holder(now, wall, claim, bid);
        if self.may_win(now, &claim.member, bid) {
            return self.win(now, wall, claim, bid);
        }
        self.held(now, claim, bid)
    }

    /// Step 1: what the nonce tells of a bid by the last winner (rule E2).
    fn attempt(&self, caller: &MemberRef, bid: &Bid) -> Attempt {
        let won = self.elections.get(&bid.election).and_then(|e| e.won);
        let Some((_, nonce)) = won.filter(|(winner, _)| *winner == caller.incarnation) else {
            return Attempt::New;
        };
        match bid.nonce.cmp(&nonce) {
            std::cmp::Ordering::Equal => Attempt::Repeated,
            std::cmp::Ordering::Less => Attempt::Late,
            std::cmp::Ordering::Greater => Attempt::New,
        }
    }

    /// The answer to a repeated winning bid: the same term, if it still stands.
    fn won_already(&mut self, now: Mono, claim: &Claim, bid: &Bid) -> Claimed {
        let election = self.elections.get(&bid.election).filter(|e| !e.has_lapsed(now));
        match election.and_then(|e| e.term(bid, &claim.member)) {
            Some(_) => self.take_on(now, claim, bid),
            None => self.held(now, claim, bid),
        }
    }

    /// Step 2: the candidacy stands from here on.
    fn stand(&mut self, now: Mono, wall: Timestamp, caller: &MemberRef, bid: &Bid) {
        let election = self.elections.entry(bid.election.clone()).or_default();
        let stood = election.candidates.get(&caller.id);
        let stood = stood.filter(|c| c.incarnation == caller.incarnation);
        if stood.is_some_and(|c| c.priority == bid.priority) {
            return;
        }
        let since = stood.map_or(now, |c| c.since);
        let (incarnation, priority) = (caller.incarnation, bid.priority);
        let candidacy = Candidacy { incarnation, priority, since };
        election.candidates.insert(caller.id.clone(), candidacy);
        if let Some(member) = self.members.get_mut(&caller.id) {
            member.stands.insert(bid.election.clone());
        }
        let (election, member) = (bid.election.clone(), caller.clone());
        self.journal.write(wall, Happening::Stood { election, member, priority });
    }

    /// Step 3: nothing is taken from an expired member before it is ended, in
    /// this same step (rule M2), by the ttl it wrote itself (rule M3). A term whose
    /// holder's life is over is written off, now that somebody asks for it (rule
    /// M5). What was handed over and not taken on in time is free although its
    /// holder lives.
    fn end_dead_holder(&mut self, now: Mono, wall: Timestamp, claim: &Claim, bid: &Bid) {
        let holder = self.elections.get(&bid.election).and_then(|e| e.holder.as_ref());
        let dead = holder.and_then(|h| self.recorded(&h.member)).filter(|m| !m.is_live(now));
        if let Some((member, cause)) = dead.map(|m| (m.member.clone(), m.fate())) {
            self.end(wall, &member, cause);
        }
        self.settle(now, wall, &bid.election, claim.heir_grace);
        let lapsed = |e: &&Election| e.has_lapsed(now) && !e.is_held_by(&claim.member);
        let held = self.elections.get(&bid.election).filter(lapsed).and_then(|e| e.holder.clone());
        if let Some(held) = held {
            self.withdraw(&bid.election, &held.member);
            let keep = Keep { grace: claim.heir_grace, ..Keep::default() };
            self.vacate(now, wall, &bid.election, ReleaseCause::Abandoned, &keep);
        }
    }

    /// Whether the caller holds the election because it was handed over to it. Any
    /// bid of its own is answered with that term, however late it comes.
    fn was_handed(&self, now: Mono, caller: &MemberRef, bid: &Bid) -> bool {
        let election = self.elections.get(&bid.election).filter(|e| !e.has_lapsed(now));
        let handed = election.and_then(|e| e.holder.as_ref()).filter(|held| held.handed);
        handed.is_some_and(|held| held.member == *caller) && bid.priority.may_lead()
    }

    /// The term the caller holds already is its own from here on.
    fn take_on(&mut self, now: Mono, claim: &Claim, bid: &Bid) -> Claimed {
        self.beat(now, &claim.member, claim.ttl);
        let held = self.elections.get_mut(&bid.election);
        let taken = held.and_then(|election| {
            election.won_by(&claim.member, bid.nonce);
            election.holder.as_mut()?.lapses = None;
            election.term(bid, &claim.member)
        });
        taken.map_or_else(|| self.held(now, claim, bid), Claimed::Won)
    }

    /// Step 4, the condition: not paused (rule E6), may lead, and the election
    /// is either vacant and not kept for another, or the caller's own already
    /// (rule E3: an incumbent is never preempted).
    fn may_win(&self, now: Mono, caller: &MemberRef, bid: &Bid) -> bool {
        let Some(election) = self.elections.get(&bid.election) else { return false };
        if election.paused.is_some() || !bid.priority.may_lead() {
            return false;
        }
        match &election.holder {
            Some(holder) => holder.member == *caller,
            None => self.reservation(now, election).is_none_or(|r| r.member == caller.id),
        }
    }

    /// Step 4, the win: a new number, never one used before (H5, H6).
    fn win(&mut self, now: Mono, wall: Timestamp, claim: &Claim, bid: &Bid) -> Claimed {
        let (name, caller) = (&bid.election, &claim.member);
        self.vacate(now, wall, name, ReleaseCause::Abandoned, &Keep::default());
        self.beat(now, caller, claim.ttl);
        Claimed::Won(self.elect(wall, name, caller.clone(), Some(bid.nonce), None))
    }

    /// Step 5: losing is an answer, with the view (rule E2).
    fn held(&self, now: Mono, claim: &Claim, bid: &Bid) -> Claimed {
        Claimed::Held(self.view(now, &bid.election, Some(&claim.member), false))
    }

    /// A win counts as a heartbeat.
    fn beat(&mut self, now: Mono, caller: &MemberRef, ttl: Duration) {
        if let Some(member) = self.acting(now, caller) {
            member.beaten = now;
            member.ttl = ttl;
        }
    }

    /// Ends candidacies and terms; see [`Store::release`](crate::Store::release).
    pub fn release(&mut self, now: Mono, wall: Timestamp, release: &Release) {
        for item in &release.items {
            self.release_item(now, wall, release, item);
            self.forget_if_unused(&item.election);
        }
    }

    fn release_item(&mut self, now: Mono, wall: Timestamp, release: &Release, item: &ReleaseItem) {
        let Some(election) = self.elections.get(&item.election) else { return };
        // E1: exactly this life and exactly this number, or it is too late. What a
        // life held that was ended is no longer its own to give back.
        let lives = self.recorded(&release.member).is_some();
        let exact = |n| lives && n == election.number && election.is_held_by(&release.member);
        if !item.number.is_none_or(exact) {
            return;
        }
        self.withdraw(&item.election, &release.member);
        if item.number.is_some() {
            let (successor, grace) = (item.successor.as_ref(), release.heir_grace);
            let keep = Keep { successor, grace, hand_over: release.hand_over };
            self.vacate(now, wall, &item.election, item.cause, &keep);
        }
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

impl Election {
    /// The present term, if this life holds it.
    fn term(&self, bid: &Bid, caller: &MemberRef) -> Option<Term> {
        let holder = self.holder.as_ref().filter(|h| h.member == *caller)?;
        let (election, elected_at) = (bid.election.clone(), holder.elected_at);
        Some(Term { election, number: self.number, member: caller.clone(), elected_at })
    }
}
