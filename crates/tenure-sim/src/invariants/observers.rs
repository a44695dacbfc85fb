//! N3: an observer of an election never goes back: not to an older term, nor
//! from a term's end to its middle.
//!
//! Where observers judge, a term's end is an opinion: a heartbeat that was long
//! under way may show that its holder lives. There only the number is held to.

use std::collections::BTreeMap;

use tenure_core::{ElectionName, Event, TermNumber};

use super::{Invariant, Setup};
use crate::clock::Nanos;
use crate::config::StoreKind;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct NeverBack {
    /// Whether expiry is the observers' own opinion.
    opinion: bool,
    /// The newest term seen, and whether its end was.
    seen: BTreeMap<(Who, ElectionName), (TermNumber, bool)>,
}

impl NeverBack {
    pub(super) fn new(setup: &Setup) -> Self {
        Self { opinion: setup.config.store == StoreKind::Cas, seen: BTreeMap::new() }
    }
}

impl Invariant for NeverBack {
    fn name(&self) -> &'static str {
        "an observer never goes back"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Told { who, event, .. } = fact else { return Ok(()) };
        let (election, next) = match event {
            Event::Standby { view } => (&view.election, (view.number, view.holder.is_none())),
            Event::Elected { term, .. } => (&term.election, (term.number, false)),
            _ => return Ok(()),
        };
        let next = (next.0, next.1 && !self.opinion);
        let last = self.seen.insert((*who, election.clone()), next);
        match last {
            Some(last) if next < last => {
                let state = |(n, over): (TermNumber, bool)| {
                    format!("{n}{}", if over { " (over)" } else { "" })
                };
                Err(format!("{who} saw {election} go from {} to {}", state(last), state(next)))
            }
            _ => Ok(()),
        }
    }
}
