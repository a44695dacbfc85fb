//! E5, H22: who stepped down because it was asked to does not bid again within
//! its cooldown.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{ElectionName, Event, LostReason, Mono, Request, StopReason, TermNumber};

use super::{Invariant, Setup};
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct Cooldown {
    spans: Vec<Duration>,
    asked: BTreeSet<(Who, ElectionName, TermNumber)>,
    until: BTreeMap<(Who, ElectionName), Mono>,
}

impl Cooldown {
    pub(super) fn new(setup: &Setup) -> Self {
        let spans = setup.settings.iter().map(|s| s.cooldown()).collect();
        Self { spans, asked: BTreeSet::new(), until: BTreeMap::new() }
    }
}

impl Invariant for Cooldown {
    fn name(&self) -> &'static str {
        "who stepped down waits"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Told { who, event: Event::Stopping { election, number, reason, .. }, .. } => {
                if matches!(reason, StopReason::Asked { .. }) {
                    self.asked.insert((*who, election.clone(), *number));
                }
            }
            Fact::Told { who, local, event: Event::Lost { election, number, reason }, .. } => {
                let asked = self.asked.remove(&(*who, election.clone(), *number));
                if asked && matches!(reason, LostReason::SteppedDown | LostReason::DrainTimeout) {
                    let until = *local + self.spans[who.process];
                    self.until.insert((*who, election.clone()), until);
                }
            }
            Fact::Sent { who, local, request: Request::Claim(claim), .. } => {
                for bid in &claim.bids {
                    let until = self.until.get(&(*who, bid.election.clone()));
                    if until.is_some_and(|until| local < until) {
                        return Err(format!("{who} bids for {} in its cooldown", bid.election));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
