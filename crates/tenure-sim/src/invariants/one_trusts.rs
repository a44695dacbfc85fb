//! Promise 2: at any moment at most one member trusts that it leads an election.
//!
//! Trust is what `is_current()` answers: told that it leads, not told that it
//! is lost, and its own clock before the end of trust. It begins only when
//! something is told, so it is enough to look then.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{ElectionName, Event, Incarnation, TermNumber};

use super::{Invariant, Setup, evicted};
use crate::clock::Nanos;
use crate::config::nanos;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct OneTrusts {
    /// Off while a clock may be beyond the bound.
    judged: bool,
    /// How long after a promotion two may trust, where that is excused.
    excuse: Option<Nanos>,
    /// Until when they may.
    excused_until: Nanos,
    trusting: BTreeMap<ElectionName, BTreeMap<Who, Trust>>,
    /// Lives evicted at once, which may believe for the rest of their ttl.
    excused: BTreeSet<Incarnation>,
}

#[derive(Clone, Copy, Debug)]
struct Trust {
    number: TermNumber,
    life: Incarnation,
    until: Nanos,
}

impl OneTrusts {
    pub(super) fn new(setup: &Setup) -> Self {
        let judged = setup.config.clocks_keep_the_bound();
        Self {
            judged,
            excuse: None,
            excused_until: 0,
            trusting: BTreeMap::new(),
            excused: BTreeSet::new(),
        }
    }

    /// What is left of it where a copy that forgot may take over: a leader from
    /// before may trust beside the one that the copy elects, until its look at its
    /// own terms gets through. That takes milliseconds, or the rest of its trust
    /// where it reaches no store; where looks are lost while heartbeats and wins
    /// in other elections get through, longer. Never three ttls.
    pub(super) fn again(setup: &Setup) -> Self {
        let longest = setup.settings.iter().map(|s| nanos(s.ttl())).max().unwrap_or_default();
        Self { excuse: Some(longest * 3), ..Self::new(setup) }
    }

    fn look(&self, now: Nanos) -> Result<(), String> {
        if now < self.excused_until {
            return Ok(());
        }
        for (election, trusting) in &self.trusting {
            let counts = |t: &&Trust| t.until > now && !self.excused.contains(&t.life);
            let who = trusting.iter().filter(|(_, t)| counts(t));
            let who: Vec<_> = who.map(|(who, t)| format!("{who} (#{})", t.number)).collect();
            if who.len() > 1 {
                return Err(format!("{election} is trusted to be led by {}", who.join(" and ")));
            }
        }
        Ok(())
    }
}

impl Invariant for OneTrusts {
    fn name(&self) -> &'static str {
        match self.excuse {
            None => "one member trusts",
            Some(_) => "one member trusts again soon after a promotion",
        }
    }

    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        self.excused.extend(evicted(fact));
        match fact {
            Fact::Told { who, event: Event::Elected { term, .. }, until: Some(until), .. } => {
                let number = term.number;
                let life = term.member.incarnation;
                let until = *until;
                let trusting = self.trusting.entry(term.election.clone()).or_default();
                trusting.insert(*who, Trust { number, life, until });
            }
            Fact::Told { who, event: Event::Trusted { .. }, until: Some(until), .. } => {
                for trusting in self.trusting.values_mut() {
                    trusting.entry(*who).and_modify(|trust| trust.until = *until);
                }
            }
            Fact::Promoted { .. } => {
                self.excused_until = self.excuse.map_or(0, |span| now + span);
                return Ok(());
            }
            Fact::Retrusted { who, election, until } => {
                if let Some(trust) =
                    self.trusting.entry((*election).clone()).or_default().get_mut(who)
                {
                    trust.until = *until;
                }
            }
            Fact::Told { who, event: Event::Lost { election, .. }, .. } => {
                self.trusting.entry(election.clone()).or_default().remove(who);
                return Ok(());
            }
            Fact::Crashed { who } => {
                for trusting in self.trusting.values_mut() {
                    trusting.remove(who);
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        if self.judged { self.look(now) } else { Ok(()) }
    }
}
