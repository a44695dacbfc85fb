//! U6: at any moment at most one process trusts that it owns a name.
//!
//! As for terms, trust begins only when something is told, so it is enough to look then.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Event, Incarnation, Name};

use super::names_read::{Owned, follow};
use super::{Invariant, Setup, evicted};
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct OneOwnerTrusts {
    /// Off while a clock may be beyond the bound.
    judged: bool,
    owned: BTreeMap<(Who, Name), Owned>,
    /// Lives evicted at once, which may believe for the rest of their ttl.
    excused: BTreeSet<Incarnation>,
}

impl OneOwnerTrusts {
    pub(super) fn new(setup: &Setup) -> Self {
        let judged = setup.config.clocks_keep_the_bound();
        Self { judged, owned: BTreeMap::new(), excused: BTreeSet::new() }
    }

    fn look(&self, now: Nanos) -> Result<(), String> {
        let mut trusting: BTreeMap<&Name, (Who, &Owned)> = BTreeMap::new();
        for ((who, name), owned) in &self.owned {
            if now >= owned.until || self.excused.contains(&owned.life) {
                continue;
            }
            if let Some((other, theirs)) = trusting.insert(name, (*who, owned)) {
                return Err(format!(
                    "{name} is trusted to be owned by {other} (#{}) and {who} (#{})",
                    theirs.token, owned.token
                ));
            }
        }
        Ok(())
    }
}

impl Invariant for OneOwnerTrusts {
    fn name(&self) -> &'static str {
        "one process trusts in a name"
    }

    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        self.excused.extend(evicted(fact));
        follow(&mut self.owned, fact);
        let begins = matches!(
            fact,
            Fact::Told { event: Event::NameAnswered { .. } | Event::Trusted { .. }, .. }
                | Fact::NameRetrusted { .. }
        );
        if begins && self.judged { self.look(now) } else { Ok(()) }
    }
}
