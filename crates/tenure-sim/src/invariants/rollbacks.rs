//! M6: a member to which the store shows that it was rolled back gives up what it
//! leads.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Beat, Claims, ElectionName, Event, Input, Mono, Reply, Request, Seq, Settings};

use super::{Invariant, Setup};
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct Rollbacks {
    settings: Vec<Settings>,
    leads: BTreeMap<Who, BTreeSet<ElectionName>>,
    /// The newest look (`false`) and heartbeat of each process, until when it is
    /// awaited, and the place in the journal that was known when it was sent.
    asked: BTreeMap<(Who, bool), (u64, Mono, Seq)>,
    /// The newest place that such an answer told each process.
    places: BTreeMap<Who, Seq>,
    /// Who must have lost everything once it has handled what it was fed.
    must_lose: Option<Who>,
}

impl Rollbacks {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            settings: setup.settings.clone(),
            leads: BTreeMap::new(),
            asked: BTreeMap::new(),
            places: BTreeMap::new(),
            must_lose: None,
        }
    }

    fn told(&mut self, who: Who, event: &Event) {
        let leads = self.leads.entry(who).or_default();
        match event {
            Event::Elected { term, .. } => drop(leads.insert(term.election.clone())),
            Event::Lost { election, .. } | Event::Withdrawn { election } => {
                leads.remove(election);
            }
            _ => {}
        }
    }

    /// What a life asked is not awaited once that life is over.
    fn forget(&mut self, who: Who) {
        self.asked.retain(|(asker, _), _| *asker != who);
    }

    /// Whether an answer that was awaited tells a lower place than was known when it
    /// was asked for.
    fn went_back(&mut self, who: Who, local: Mono, id: u64, reply: &Reply) -> bool {
        let (beat, seq) = match reply {
            Reply::Heartbeat(Beat::Alive { seq, .. }) => (true, *seq),
            Reply::Read(snapshot) => (false, snapshot.seq),
            _ => return false,
        };
        let Some((newest, by, known)) = self.asked.remove(&(who, beat)) else { return false };
        if newest != id || local >= by || seq == Seq::START {
            return false;
        }
        let place = self.places.entry(who).or_default();
        *place = (*place).max(seq);
        seq < known
    }
}

impl Invariant for Rollbacks {
    fn name(&self) -> &'static str {
        "no member goes on leading on a store that went back"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Sent { who, request: Request::Join(_) | Request::Leave(_), .. } => {
                self.forget(*who);
            }
            Fact::Sent { who, local, id, request } => {
                let beat = matches!(request, Request::Heartbeat(_));
                if beat || matches!(request, Request::Read(_)) {
                    let by = *local + self.settings[who.process].request_timeout();
                    let known = self.places.get(who).copied().unwrap_or_default();
                    self.asked.insert((*who, beat), (*id, by, known));
                }
            }
            Fact::Fed { who, local, input: Input::Reply { id, result } } => {
                let back = match &**result {
                    Ok(reply) => self.went_back(*who, *local, id.get(), reply),
                    Err(_) => false,
                };
                self.must_lose = back.then_some(*who);
                let ended = matches!(
                    &**result,
                    Ok(Reply::Heartbeat(Beat::Ended { .. }) | Reply::Claim(Claims::Ended { .. }))
                );
                if ended {
                    self.forget(*who);
                }
                // Only the first answer counts, whatever it is.
                self.asked.retain(|(asker, _), (asked, ..)| asker != who || *asked != id.get());
            }
            Fact::Told { who, event, .. } => self.told(*who, event),
            Fact::Crashed { who } => {
                self.leads.remove(who);
                self.places.remove(who);
            }
            Fact::Settled { who, .. } if self.must_lose == Some(*who) => {
                self.must_lose = None;
                if let Some(election) = self.leads.get(who).and_then(BTreeSet::first) {
                    return Err(format!("{who} goes on leading {election}; the store went back"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
