//! T3, H2, H4: at the end of trust the application is told first that the term
//! is lost, before anything is sent, and trust that is over never comes back.

use std::collections::BTreeMap;

use tenure_core::{ElectionName, Event, Mono};

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

#[derive(Debug, Default)]
pub(super) struct LossInTime {
    trusted: BTreeMap<Who, BTreeMap<ElectionName, Mono>>,
}

impl LossInTime {
    /// An election whose trust was over by `local` without a word to the
    /// application.
    fn overdue(&self, who: Who, local: Mono) -> Result<(), String> {
        let trusted = self.trusted.get(&who).into_iter().flatten();
        match trusted.into_iter().find(|(_, until)| local >= **until) {
            Some((election, until)) => Err(format!(
                "{who} at {local} has not lost {election}, which it trusted until {until}"
            )),
            None => Ok(()),
        }
    }

    fn told(&mut self, who: Who, local: Mono, event: &Event) -> Result<(), String> {
        let trusted = self.trusted.entry(who).or_default();
        match event {
            Event::Elected { term, trusted_until } => {
                trusted.insert(term.election.clone(), *trusted_until);
            }
            Event::Trusted { until, .. } => {
                self.overdue(who, local)?;
                for end in self.trusted.entry(who).or_default().values_mut() {
                    *end = *until;
                }
            }
            Event::Lost { election, number, .. } if trusted.remove(election).is_none() => {
                return Err(format!("{who} lost {election}#{number}, which it did not lead"));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Invariant for LossInTime {
    fn name(&self) -> &'static str {
        "lost is told at the end of trust, and first"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Told { who, local, event, .. } => self.told(*who, *local, event),
            Fact::Sent { who, local, .. } | Fact::Settled { who, local } => {
                self.overdue(*who, *local)
            }
            Fact::Crashed { who } => {
                self.trusted.remove(who);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
