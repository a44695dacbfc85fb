//! Standing for elections and winning them.

use std::cmp::Ordering;
use std::time::Duration;

use tenure_core::{
    Bid, Claim, Claimed, Claims, EndCause, MemberId, MemberRef, Mono, Namespace, Profile,
    ReleaseCause, Term, TermNumber,
};

use super::handle::{ATTEMPTS, Handle, partly, too_busy};
use super::members::{Life, Need, next_order};
use super::past::Win;
use super::record::{CandidacyRecord, ElectionRecord, MAX_CANDIDACIES, MemberRecord};
use super::seen::Seen;
use crate::{Error, ErrorKind, Result};

type Look = Option<Seen<ElectionRecord>>;

/// What a bid is, seen from the last win (rule E2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// The winning bid once more.
    Repeated,
    /// A copy of a bid from before the last win.
    Late,
    /// A bid like any other.
    New,
}

/// What to do about a bid.
enum Step {
    /// Nothing: it is lost.
    Lose,
    /// Write this; it is the win, if it is written.
    Win(ElectionRecord),
    /// Write this, which ends a dead holder; the bid is lost all the same,
    /// because the vacancy is kept for somebody or nobody may take it.
    Bury(ElectionRecord, Option<MemberId>),
}

/// What became of a bid.
enum Outcome {
    Won(Term),
    /// Lost, on this record.
    Lost(Look),
}

/// One claim on its way.
struct Claiming<'a> {
    ns: &'a Namespace,
    claim: &'a Claim,
    /// What the caller publishes.
    profile: &'a Profile,
    /// When it began.
    started: Mono,
}

impl Handle {
    /// See [`Store::claim`](crate::Store::claim).
    ///
    /// First a look at everything, which fails before anything is written; then
    /// the member's own record, if candidacies are new or something looks free;
    /// then each election.
    pub(super) async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        self.check_batch("bids", claim.bids.len())?;
        let started = self.now();
        let member = match self.look_at_life(ns, &claim.member).await? {
            Life::Over { superseded } => return Ok(Claims::Ended { superseded }),
            Life::Live(seen) => seen,
        };
        let keys = claim.bids.iter().map(|bid| self.keys.election(ns, &bid.election));
        let keys: Vec<String> = keys.collect();
        let looks = self.all(keys.iter().map(|key| self.load(key)).collect()).await;
        let looks: Vec<Look> = looks.into_iter().collect::<Result<_>>()?;
        let profile = &member.record.profile;
        let claiming = Claiming { ns, claim, profile, started };
        let wrote = match self.stand(&claiming, &member, &looks).await? {
            (Life::Over { superseded }, _) => return Ok(Claims::Ended { superseded }),
            (Life::Live(_), wrote) => wrote,
        };
        let bids = claim.bids.iter().zip(looks);
        let bids = bids.map(|(bid, look)| self.bid(&claiming, bid, look)).collect();
        let outcomes = self.all(bids).await;
        let won = |outcome: &Result<Outcome>| matches!(outcome, Ok(Outcome::Won(_)));
        let any_won = outcomes.iter().any(won);
        let outcomes: Result<Vec<Outcome>> = outcomes.into_iter().collect();
        let outcomes = partly(wrote || any_won, outcomes)?;
        if any_won {
            self.collect(ns).await;
        }
        Ok(Claims::Answered(self.answers(&claiming, outcomes).await))
    }

    /// Losing is an answer, with the view. The rank in it may be as old as
    /// [`CasOptions::listing_age`](super::CasOptions::listing_age); if it cannot
    /// be found out, what is known has to do.
    async fn answers(&self, claiming: &Claiming<'_>, outcomes: Vec<Outcome>) -> Vec<Claimed> {
        let Claiming { ns, claim, .. } = claiming;
        if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Lost(_))) {
            let _ = self.refresh_members(ns, self.now() - self.options.listing_age).await;
        }
        let answer = |(bid, outcome): (&Bid, Outcome)| match outcome {
            Outcome::Won(term) => Claimed::Won(term),
            Outcome::Lost(look) => {
                let asker = Some(&claim.member);
                Claimed::Held(self.view(ns, &bid.election, look.as_ref(), asker, false))
            }
        };
        claim.bids.iter().zip(outcomes).map(answer).collect()
    }

    /// Records the candidacies that are new, and, if anything looks free, beats
    /// for the member: a win counts as a heartbeat. It is written before the
    /// elections, so that whoever is found superseded here wins nothing. The
    /// ttl is never shortened by it, because the bid may yet be lost.
    async fn stand(
        &self,
        claiming: &Claiming<'_>,
        member: &Seen<MemberRecord>,
        looks: &[Look],
    ) -> Result<(Life, bool)> {
        let Claiming { ns, claim, started, .. } = claiming;
        let mut fresh: Vec<&Bid> = Vec::new();
        let mut free = false;
        for (bid, look) in claim.bids.iter().zip(looks) {
            if attempt(look.as_ref(), &claim.member, bid) == Attempt::New {
                fresh.push(bid);
            }
            free = free || self.looks_free(claiming, bid, look.as_ref()).await?;
        }
        let newly = |bid: &&Bid| member.record.candidacy(&bid.election).is_none();
        if fresh.iter().any(newly) {
            self.refresh_members(ns, *started).await?;
        }
        let mut wrote = false;
        let mut crowded = false;
        let live = self.live_members(ns);
        let edit = |record: &mut MemberRecord| {
            let mut changed = free;
            for bid in &fresh {
                changed |= enter(record, bid, || next_order(&live, &bid.election));
            }
            if free {
                record.ttl_ns = record.ttl_ns.max(claim.ttl);
            }
            crowded = record.candidacies.len() > MAX_CANDIDACIES;
            wrote = changed && !crowded;
            wrote
        };
        let life = self.edit_member(ns, &claim.member, Need::Life, free, edit).await?;
        if crowded {
            let what = format!("{} would stand for too many elections", claim.member);
            let remedy = format!("this kind of store takes {MAX_CANDIDACIES} for each member");
            return Err(Error::new(ErrorKind::Invalid, what).remedy(remedy));
        }
        Ok((life, wrote))
    }

    /// Whether a bid would change its election, as it was seen.
    async fn looks_free(
        &self,
        claiming: &Claiming<'_>,
        bid: &Bid,
        look: Option<&Seen<ElectionRecord>>,
    ) -> Result<bool> {
        let Some(seen) = look else { return Ok(bid.priority.may_lead()) };
        let own = seen.record.is_held_by(&claiming.claim.member);
        match attempt(Some(seen), &claiming.claim.member, bid) {
            Attempt::Repeated => return Ok(own),
            Attempt::Late => return Ok(false),
            Attempt::New => {}
        }
        let free = own || self.holder_left(seen).is_zero();
        let may = seen.record.paused.is_none() && bid.priority.may_lead();
        Ok(free && may && !self.kept_for_another(claiming, seen).await?)
    }

    /// One bid, from the first look at its election.
    async fn bid(&self, claiming: &Claiming<'_>, bid: &Bid, look: Look) -> Result<Outcome> {
        let key = self.keys.election(claiming.ns, &bid.election);
        let mut seen = look;
        for _ in 0..ATTEMPTS {
            let (record, renews, heir) = match self.step(claiming, bid, seen.as_ref()).await? {
                Step::Lose => return Ok(Outcome::Lost(seen)),
                Step::Win(record) => (record, Some(claiming.claim.member.incarnation), None),
                Step::Bury(record, heir) => (record, None, heir),
            };
            let Some(written) = self.swap(&key, seen.as_ref(), record, renews).await? else {
                // Somebody was faster: a rival, the holder after all, an
                // operator, or this very bid in an earlier attempt.
                seen = self.load(&key).await?;
                continue;
            };
            if let Some(heir) = heir {
                self.nudge(claiming.ns, &heir).await;
            }
            let won = written.record.term().filter(|_| renews.is_some());
            return Ok(won.map_or(Outcome::Lost(Some(written)), Outcome::Won));
        }
        Err(too_busy(&key))
    }

    /// What to do about a bid on the record seen: the steps of the contract.
    async fn step(
        &self,
        claiming: &Claiming<'_>,
        bid: &Bid,
        seen: Option<&Seen<ElectionRecord>>,
    ) -> Result<Step> {
        let Claiming { ns, claim, .. } = claiming;
        let Some(seen) = seen else {
            let record = ElectionRecord::vacant(bid.election.clone(), TermNumber::NONE);
            let may = bid.priority.may_lead();
            return if may { self.win(claiming, bid, record) } else { Ok(Step::Lose) };
        };
        let own = seen.record.is_held_by(&claim.member);
        match attempt(Some(seen), &claim.member, bid) {
            Attempt::Repeated if own => return Ok(self.repeat(claiming, seen)),
            Attempt::Repeated | Attempt::Late => return Ok(Step::Lose),
            Attempt::New => {}
        }
        let may = seen.record.paused.is_none() && bid.priority.may_lead();
        let mut record = (*seen.record).clone();
        match &seen.record.holder {
            Some(_) if own && may => {
                record.vacate(ReleaseCause::Abandoned, None, self.clock.wall());
                self.win(claiming, bid, record)
            }
            Some(_) if own => Ok(Step::Lose),
            Some(_) if !self.holder_left(seen).is_zero() => Ok(Step::Lose),
            Some(dead) => {
                // Rule M2: ended in the same swap in which its term is given
                // away. Who is preferred is looked up once for the whole claim.
                self.refresh_members(ns, claiming.started).await?;
                let heir = self.heir(ns, &record, None, claim.heir_grace);
                let own_turn = heir.as_ref().is_none_or(|(id, _)| *id == claim.member.id);
                let cause = self.fate(ns, &dead.member());
                if own_turn && may {
                    record.vacate(cause, None, self.clock.wall());
                    return self.win(claiming, bid, record);
                }
                record.vacate(cause, heir.clone(), self.clock.wall());
                Ok(Step::Bury(record, heir.map(|(id, _)| id)))
            }
            None if !may || self.kept_for_another(claiming, seen).await? => Ok(Step::Lose),
            None => self.win(claiming, bid, record),
        }
    }

    /// Why a holder whose ttl has run out is ended.
    fn fate(&self, ns: &Namespace, dead: &MemberRef) -> ReleaseCause {
        let known = self.known::<MemberRecord>(&self.keys.member(ns, &dead.id));
        let condemned =
            known.is_some_and(|s| s.record.condemned && s.record.incarnation == dead.incarnation);
        ReleaseCause::Ended(if condemned { EndCause::Evicted } else { EndCause::Expired })
    }

    /// The winning bid again: the same term, with a new sign of life, because
    /// trust is counted from this request. A term that ran out before its winner
    /// ever heard of it is not revived (rule M1).
    fn repeat(&self, claiming: &Claiming<'_>, seen: &Seen<ElectionRecord>) -> Step {
        let Claiming { ns, claim, .. } = claiming;
        let key = self.keys.election(ns, &seen.record.election);
        let ttl = seen.record.holder.as_ref().map_or(Duration::ZERO, |h| h.ttl_ns);
        if self.own_ran_out(&key, claim.member.incarnation, seen, ttl) {
            return Step::Lose;
        }
        let mut record = (*seen.record).clone();
        record.renew(claim.ttl);
        Step::Win(record)
    }

    /// The next number after every one this handle ever saw, so that numbers
    /// do not go back even if somebody removed the record or put an older one
    /// in its place.
    fn win(&self, claiming: &Claiming<'_>, bid: &Bid, mut record: ElectionRecord) -> Result<Step> {
        let Claiming { ns, claim, profile, .. } = claiming;
        let key = self.keys.election(ns, &bid.election);
        let last = record.number().max(self.memory().newest_number(&key));
        let (number, at) = (last.next(), self.clock.wall());
        if number == last {
            let what = format!("the record {key} has used up the last number, {last}");
            return Err(Error::new(ErrorKind::Foreign, what).remedy("use another election"));
        }
        let (member, nonce, ttl) = (&claim.member, bid.nonce, claim.ttl);
        record.begin(&Win { number, member, nonce, ttl, profile, at });
        Ok(Step::Win(record))
    }

    /// Whether the vacancy is kept for another who still stands.
    async fn kept_for_another(
        &self,
        claiming: &Claiming<'_>,
        seen: &Seen<ElectionRecord>,
    ) -> Result<bool> {
        let Some(kept) = &seen.record.reserved else { return Ok(false) };
        let own = kept.member == claiming.claim.member.id;
        if own || self.now().since(seen.since) >= kept.grace_ns {
            return Ok(false);
        }
        self.heir_stands(claiming.ns, &seen.record.election, &kept.member).await
    }
}

fn attempt(seen: Option<&Seen<ElectionRecord>>, who: &MemberRef, bid: &Bid) -> Attempt {
    let Some(won) = seen.and_then(|s| s.record.won_with(who)) else { return Attempt::New };
    match bid.nonce.cmp(&won) {
        Ordering::Equal => Attempt::Repeated,
        Ordering::Less => Attempt::Late,
        Ordering::Greater => Attempt::New,
    }
}

/// Records a candidacy, or changes its priority; says whether it did.
fn enter(record: &mut MemberRecord, bid: &Bid, order: impl FnOnce() -> u64) -> bool {
    let priority = bid.priority.get();
    match record.candidacies.iter_mut().find(|c| c.election == bid.election) {
        Some(stood) => std::mem::replace(&mut stood.priority, priority) != priority,
        None => {
            let (election, order) = (bid.election.clone(), order());
            record.candidacies.push(CandidacyRecord { election, priority, order });
            true
        }
    }
}
