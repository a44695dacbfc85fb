//! Promise 1: at most one member holds a term, and no member is told that it leads
//! with a term it was not given (H23).

use std::collections::BTreeMap;

use tenure_core::{ElectionName, Event, Happening, MemberRef, TermNumber};

use super::{Invariant, entries};
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug, Default)]
pub(super) struct OneHolder {
    holders: BTreeMap<(ElectionName, TermNumber), MemberRef>,
    /// Whether the store tells whom it gives terms to.
    journalled: bool,
}

impl Invariant for OneHolder {
    fn name(&self) -> &'static str {
        "one member holds a term"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        for entry in entries(fact) {
            self.journalled = true;
            if let Happening::Elected { term, .. } = &entry.what {
                let key = (term.election.clone(), term.number);
                if let Some(other) = self.holders.insert(key, term.member.clone()) {
                    let election = &term.election;
                    let number = term.number;
                    return Err(format!(
                        "{election}#{number} was given to {other} and to {}",
                        term.member
                    ));
                }
            }
        }
        let Fact::Told { who, event: Event::Elected { term, .. }, .. } = fact else {
            return Ok(());
        };
        let key = (term.election.clone(), term.number);
        match self.holders.get(&key) {
            Some(holder) if *holder == term.member => Ok(()),
            Some(holder) => Err(format!("{who} leads {}#{} of {holder}", key.0, key.1)),
            None if self.journalled => {
                Err(format!("{who} leads {}#{}, which was given to no member", key.0, key.1))
            }
            None => {
                self.holders.insert(key, term.member.clone());
                Ok(())
            }
        }
    }
}
