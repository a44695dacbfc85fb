//! E6: while an election is paused no member is newly elected.

use std::collections::BTreeSet;

use tenure_core::{ElectionName, Happening};

use super::{Invariant, entries};
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug, Default)]
pub(super) struct Pauses {
    paused: BTreeSet<ElectionName>,
}

impl Invariant for Pauses {
    fn name(&self) -> &'static str {
        "no member is elected in a pause"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        for entry in entries(fact) {
            match &entry.what {
                Happening::Paused { election, .. } => {
                    self.paused.insert(election.clone());
                }
                Happening::Resumed { election, .. } => {
                    self.paused.remove(election);
                }
                Happening::Elected { term, .. } if self.paused.contains(&term.election) => {
                    return Err(format!("{} was elected to {}", term.member, term.election));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
