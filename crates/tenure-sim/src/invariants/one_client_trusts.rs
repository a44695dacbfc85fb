//! W1 to W5: at any moment at most one client of all servers trusts that it leads an election.
//!
//! What a client trusts begins and is extended only when it hears something, so it is enough to
//! look then. The crash of a server ends no trust of its clients.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{ElectionName, Incarnation, TermNumber};

use super::{Invariant, Setup, evicted};
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug)]
pub(super) struct OneClientTrusts {
    /// Off while a clock may be beyond the bound.
    judged: bool,
    trusting: BTreeMap<ElectionName, BTreeMap<usize, Trust>>,
    /// Lives evicted at once, whose clients may believe for the rest of their ttl.
    excused: BTreeSet<Incarnation>,
}

#[derive(Clone, Copy, Debug)]
struct Trust {
    number: TermNumber,
    life: Incarnation,
    until: Nanos,
}

impl OneClientTrusts {
    pub(super) fn new(setup: &Setup) -> Self {
        let judged = setup.config.clocks_keep_the_bound();
        Self { judged, trusting: BTreeMap::new(), excused: BTreeSet::new() }
    }
}

impl Invariant for OneClientTrusts {
    fn name(&self) -> &'static str {
        "one client trusts"
    }

    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        self.excused.extend(evicted(fact));
        match fact {
            Fact::ClientTrusts { client, election, number, life, until } => {
                let trusting = self.trusting.entry((*election).clone()).or_default();
                let trust = Trust { number: *number, life: *life, until: *until };
                trusting.insert(*client, trust);
                let counts = |t: &&Trust| t.until > now && !self.excused.contains(&t.life);
                let who = trusting.iter().filter(|(_, trust)| counts(trust));
                let who: Vec<_> = who.map(|(c, t)| format!("c{c} (#{})", t.number)).collect();
                if who.len() > 1 && self.judged {
                    return Err(format!(
                        "{election} is trusted to be led by {}",
                        who.join(" and ")
                    ));
                }
            }
            Fact::ClientLost { client, election } => {
                self.trusting.entry((*election).clone()).or_default().remove(client);
            }
            _ => {}
        }
        Ok(())
    }
}
