//! Promise 3: a write checked against the token is never accepted from a
//! deposed leader, whatever clocks, pauses and networks do. Never off.
//!
//! A copy that takes over has forgotten the newest terms together with the
//! newest data: what was written under them is not there either, and tokens are
//! compared from what the copy remembers on. That a token belongs to one life
//! alone is never forgotten here.

use std::collections::BTreeMap;

use tenure_core::{ElectionName, Event, Happening, Incarnation, Term, TermNumber};

use super::{Invariant, entries};
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug, Default)]
pub(super) struct Fence {
    given: BTreeMap<(ElectionName, TermNumber), Incarnation>,
    newest: BTreeMap<ElectionName, TermNumber>,
    accepted: BTreeMap<ElectionName, TermNumber>,
}

impl Fence {
    fn give(&mut self, term: &Term) {
        let key = (term.election.clone(), term.number);
        self.given.insert(key, term.member.incarnation);
        let newest = self.newest.entry(term.election.clone()).or_default();
        *newest = term.number.max(*newest);
    }
}

impl Invariant for Fence {
    fn name(&self) -> &'static str {
        "a deposed leader's write is refused"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        if let Fact::Promoted { .. } = fact {
            self.newest.clear();
            self.accepted.clear();
        }
        for entry in entries(fact) {
            if let Happening::Elected { term, .. } = &entry.what {
                self.give(term);
            }
        }
        if let Fact::Told { event: Event::Elected { term, .. }, .. } = fact {
            // One that is in the journal already may have been forgotten by a copy
            // that was promoted while the answer was on its way.
            if !self.given.contains_key(&(term.election.clone(), term.number)) {
                self.give(term);
            }
        }
        let Fact::Wrote { who, incarnation, election, token, accepted: true } = fact else {
            return Ok(());
        };
        let newest = self.newest.get(*election).copied().unwrap_or_default();
        if *token < newest {
            return Err(format!(
                "{who} wrote to {election} with {token}, though {newest} was given"
            ));
        }
        let last = self.accepted.insert((*election).clone(), *token).unwrap_or_default();
        if *token < last {
            return Err(format!("{who} wrote to {election} with {token} after {last}"));
        }
        let holder = self.given.get(&((*election).clone(), *token));
        if holder != Some(incarnation) {
            return Err(format!("{who} wrote to {election} with the token {token} of another"));
        }
        Ok(())
    }
}
