//! T1: trust is counted from before the request was sent, and ends before the
//! store's grant does.
//!
//! A promoted copy may have forgotten what its original answered. Two checks allow for
//! that, and for no more:
//!
//! - **How long the store keeps a life** is known here by the heartbeats and wins that were
//!   applied. Trust by either of them is within what that very request wrote, whatever a
//!   copy forgets later. Trust in a term that was handed over is counted from a *look*,
//!   which writes nothing: it goes by the ttl that the store has of the life. That is the
//!   newest that was written, and never longer than the longest; except where a copy has
//!   the join, with the long ttl of an idle member, and has forgotten the win that made it
//!   short. Then the join's ttl is what the copy keeps the life for, and no other is
//!   elected before. (A copy that forgot the join as well knows no such member, and shows
//!   it nothing to trust.) So the join counts after a promotion, for a life that leads what
//!   it was handed and has not confirmed.
//! - **How long what was handed over stands** is known by the newest look. A look at a copy
//!   that forgot the confirmation shows a term as unconfirmed which its holder trusts, by
//!   the word of the original, for longer. That is what replication does to the promise,
//!   and what `one_trusts` reckons with; a term that was never confirmed is checked after a
//!   promotion too.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    Beat, BindAnswer, Bindings, Claimed, Claims, Event, Incarnation, Input, Joined, Mono,
    NameAnswer, Reply, Request, TermOutcome, TermRef,
};

use super::{Invariant, Setup, binds};
use crate::clock::{Clock, Nanos};
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct TrustWithinGrant {
    /// What may be trusted of a grant, worked out here from the ttl, by process.
    trust: Vec<std::time::Duration>,
    sent: BTreeMap<(Who, u64), Mono>,
    /// When the newest request was sent that a process got a good answer to.
    granted: BTreeMap<Who, Mono>,
    /// Until when the store keeps a life, in true time; the longest it ever did.
    kept: BTreeMap<Incarnation, Nanos>,
    /// The same by its join alone.
    joined: BTreeMap<Incarnation, Nanos>,
    lives: BTreeMap<Who, Incarnation>,
    /// What was handed to a life that has not taken it on: how long that stands, in
    /// true time, by the newest look.
    handed: BTreeMap<(Incarnation, TermRef), Nanos>,
    /// What was handed to a life and taken on, or won by it.
    confirmed: BTreeSet<(Incarnation, TermRef)>,
    /// Which of them is led.
    leads: BTreeMap<Who, TermRef>,
    /// A copy may have forgotten that it was taken on.
    promoted: bool,
    /// `None` while a clock may be beyond the bound.
    store_clock: Option<Clock>,
}

impl TrustWithinGrant {
    pub(super) fn new(setup: &Setup) -> Self {
        let trust = setup.settings.iter().map(|s| {
            let drift = s.ttl().as_nanos() * u128::from(s.drift_ppm()) / 1_000_000;
            let drift = std::time::Duration::from_nanos(u64::try_from(drift).unwrap_or(u64::MAX));
            s.ttl().saturating_sub(drift).saturating_sub(s.margin())
        });
        let judged = setup.config.clocks_keep_the_bound();
        Self {
            trust: trust.collect(),
            sent: BTreeMap::new(),
            granted: BTreeMap::new(),
            kept: BTreeMap::new(),
            joined: BTreeMap::new(),
            lives: BTreeMap::new(),
            handed: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            leads: BTreeMap::new(),
            promoted: false,
            store_clock: judged.then_some(setup.store_clock),
        }
    }

    fn keep(&mut self, store: Mono, life: Incarnation, ttl: std::time::Duration) {
        if let Some(clock) = self.store_clock {
            let until = clock.reaches(store + ttl);
            let kept = self.kept.entry(life).or_default();
            *kept = until.max(*kept);
        }
    }

    fn applied(&mut self, store: Mono, request: &Request, reply: &Reply) {
        match (request, reply) {
            (Request::Heartbeat(beat), Reply::Heartbeat(Beat::Alive { terms, .. })) => {
                let life = beat.member.incarnation;
                self.keep(store, life, beat.ttl);
                let renewed =
                    |t: &&tenure_core::TermBeat| matches!(t.outcome, TermOutcome::Renewed { .. });
                for term in terms.iter().filter(renewed) {
                    self.taken_on(life, term.term.clone());
                }
            }
            (Request::Join(join), Reply::Join(Joined::In { .. })) => {
                if let Some(clock) = self.store_clock {
                    let until = clock.reaches(store + join.ttl);
                    self.joined.insert(join.member.incarnation, until);
                }
            }
            (Request::Read(_), Reply::Read(seen)) => {
                for view in &seen.elections {
                    let Some(holder) = view.holder.as_ref().filter(|h| h.unconfirmed) else {
                        continue;
                    };
                    let Some(clock) = self.store_clock else { continue };
                    let term = TermRef { election: view.election.clone(), number: view.number };
                    let until = clock.reaches(store + holder.remaining);
                    let handed = (holder.member.incarnation, term);
                    if !(self.promoted && self.confirmed.contains(&handed)) {
                        self.handed.insert(handed, until);
                    }
                }
            }
            (Request::Claim(claim), Reply::Claim(Claims::Answered(answers)))
                if answers.iter().any(|answer| matches!(answer, Claimed::Won(_))) =>
            {
                self.keep(store, claim.member.incarnation, claim.ttl);
                for answer in answers {
                    if let Claimed::Won(term) = answer {
                        let number = term.number;
                        let term = TermRef { election: term.election.clone(), number };
                        self.taken_on(claim.member.incarnation, term);
                    }
                }
            }
            (Request::Bind(bind), Reply::Bind(bindings)) => {
                if let Some(member) = bind.member.as_ref().filter(|m| binds(bindings, m)) {
                    self.keep(store, member.incarnation, bind.ttl);
                }
            }
            _ => {}
        }
    }

    fn taken_on(&mut self, life: Incarnation, term: TermRef) {
        self.handed.remove(&(life, term.clone()));
        self.confirmed.insert((life, term));
    }

    /// Until when what a process leads stands, if it was handed over and not confirmed.
    fn unconfirmed(&self, who: Who) -> Option<Nanos> {
        let led = self.lives.get(&who).copied().zip(self.leads.get(&who).cloned());
        self.handed.get(&led?).copied()
    }

    /// An heir that leads what it was handed, and has not taken it on, trusts no
    /// longer than that stands.
    fn told_handed(&self, who: Who, true_until: Option<Nanos>) -> Result<(), String> {
        match (true_until, self.unconfirmed(who)) {
            (Some(until), Some(stands)) if until > stands => {
                let longer = until - stands;
                Err(format!("{who} trusts {longer} ns longer than what it was handed stands"))
            }
            _ => Ok(()),
        }
    }

    fn told(&self, who: Who, until: Mono, true_until: Option<Nanos>) -> Result<(), String> {
        let Some(granted) = self.granted.get(&who) else {
            return Err(format!("{who} trusts without any answer"));
        };
        let most = *granted + self.trust[who.process];
        // A nanosecond for the rounding of the drift's part.
        if until > most + std::time::Duration::from_nanos(1) {
            return Err(format!("{who} trusts until {until}; its newest grant reaches to {most}"));
        }
        let life = self.lives.get(&who);
        let kept = life.and_then(|life| self.kept.get(life));
        // A copy may have forgotten a win and its short ttl, and keep the one of the join.
        let by_look = self.promoted && self.unconfirmed(who).is_some();
        let joined = life.and_then(|life| self.joined.get(life)).filter(|_| by_look);
        match (true_until, kept.map(|kept| kept.max(joined.unwrap_or(kept)))) {
            (Some(until), Some(kept)) if until > *kept => {
                Err(format!("{who} trusts {} ns longer than the store keeps it", until - kept))
            }
            _ => Ok(()),
        }
    }
}

fn good(reply: &Reply) -> bool {
    match reply {
        Reply::Heartbeat(Beat::Alive { .. }) => true,
        Reply::Claim(Claims::Answered(answers)) => {
            answers.iter().any(|answer| matches!(answer, Claimed::Won(_)))
        }
        Reply::Bind(Bindings::Answered(answers)) => {
            answers.iter().any(|answer| matches!(answer, BindAnswer::Bound(_)))
        }
        Reply::Read(seen) => {
            seen.elections.iter().any(|v| v.holder.as_ref().is_some_and(|h| h.unconfirmed))
        }
        _ => false,
    }
}

impl Invariant for TrustWithinGrant {
    fn name(&self) -> &'static str {
        "trust stays within the grant"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Sent { who, local, id, request } => {
                let asks = |r: &Request| {
                    matches!(
                        r,
                        Request::Heartbeat(_)
                            | Request::Claim(_)
                            | Request::Bind(_)
                            | Request::Read(_)
                    )
                };
                if asks(request) {
                    self.sent.insert((*who, *id), *local);
                }
            }
            Fact::Fed { who, input: Input::Reply { id, result }, .. } => {
                if let (Ok(reply), Some(sent)) = (&**result, self.sent.remove(&(*who, id.get())))
                    && good(reply)
                {
                    let granted = self.granted.entry(*who).or_default();
                    *granted = sent.max(*granted);
                }
            }
            Fact::Applied { store, request, reply: Ok(reply), .. } => {
                self.applied(*store, request, reply);
            }
            Fact::Told { who, event: Event::Joined { member }, .. } => {
                self.lives.insert(*who, member.incarnation);
                self.granted.remove(who);
            }
            Fact::Promoted { .. } => self.promoted = true,
            Fact::Told { who, event: Event::Lost { election, .. }, .. }
                if self.leads.get(who).is_some_and(|led| led.election == *election) =>
            {
                self.leads.remove(who);
            }
            Fact::Told {
                who,
                event: Event::Elected { term, trusted_until },
                until: true_until,
                ..
            } => {
                let led = TermRef { election: term.election.clone(), number: term.number };
                if self.handed.contains_key(&(term.member.incarnation, led.clone())) {
                    self.leads.insert(*who, led);
                }
                self.told_handed(*who, *true_until)?;
                return self.told(*who, *trusted_until, *true_until);
            }
            Fact::Told {
                who,
                event:
                    Event::NameAnswered {
                        answer: NameAnswer::Bound { trusted_until: until, .. }, ..
                    },
                until: true_until @ Some(_),
                ..
            }
            | Fact::Told { who, event: Event::Trusted { until, .. }, until: true_until, .. } => {
                self.told_handed(*who, *true_until)?;
                return self.told(*who, *until, *true_until);
            }
            _ => {}
        }
        Ok(())
    }
}
