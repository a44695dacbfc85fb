//! Promise 1: the numbers of an election's terms only rise (H5, H6).

use std::collections::BTreeMap;

use tenure_core::{ElectionName, Event, Happening, TermNumber};

use super::{Invariant, entries};
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

#[derive(Debug, Default)]
pub(super) struct NumbersRise {
    given: BTreeMap<ElectionName, TermNumber>,
    told: BTreeMap<(Who, ElectionName), TermNumber>,
}

impl Invariant for NumbersRise {
    fn name(&self) -> &'static str {
        "term numbers only rise"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        for entry in entries(fact) {
            if let Happening::Elected { term, .. } = &entry.what {
                let last = self.given.insert(term.election.clone(), term.number);
                rises(&term.election, last, term.number)?;
            }
        }
        if let Fact::Told { who, event: Event::Elected { term, .. }, .. } = fact {
            let last = self.told.insert((*who, term.election.clone()), term.number);
            rises(&term.election, last, term.number)?;
        }
        Ok(())
    }
}

fn rises(of: &ElectionName, last: Option<TermNumber>, next: TermNumber) -> Result<(), String> {
    match last {
        Some(last) if next <= last => Err(format!("{of} went from {last} to {next}")),
        _ => Ok(()),
    }
}
