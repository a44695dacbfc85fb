//! U6: at any moment at most one process trusts that it owns a name.
//!
//! As for terms, trust begins only when something is told, so it is enough to look then.
//!
//! A copy that was promoted may have forgotten that a name was bound, and bind it to another.
//! Where its numbers jump, the first heartbeat that it answers tells the former owner, so that
//! both may trust for what is left of one trust, and no longer.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Event, Incarnation, Name};

use super::names_read::{Owned, follow};
use super::{Invariant, Setup, evicted};
use crate::clock::Nanos;
use crate::config::nanos;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct OneOwnerTrusts {
    /// Off while a clock may be beyond the bound.
    judged: bool,
    /// How long after a promotion two may trust, where that is excused.
    excuse: Option<Nanos>,
    /// Until when they may.
    excused_until: Nanos,
    owned: BTreeMap<(Who, Name), Owned>,
    /// Lives evicted at once, which may believe for the rest of their ttl.
    excused: BTreeSet<Incarnation>,
}

impl OneOwnerTrusts {
    pub(super) fn new(setup: &Setup) -> Self {
        let judged = setup.config.clocks_keep_the_bound();
        Self {
            judged,
            excuse: None,
            excused_until: 0,
            owned: BTreeMap::new(),
            excused: BTreeSet::new(),
        }
    }

    /// What is left of it where a copy takes over.
    pub(super) fn again(setup: &Setup) -> Self {
        let longest = setup.settings.iter().map(|s| nanos(s.ttl())).max().unwrap_or_default();
        Self { excuse: Some(longest), ..Self::new(setup) }
    }

    fn look(&self, now: Nanos) -> Result<(), String> {
        if now < self.excused_until {
            return Ok(());
        }
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
        match self.excuse {
            None => "one process trusts in a name",
            Some(_) => "one process trusts in a name again a ttl after a promotion",
        }
    }

    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        self.excused.extend(evicted(fact));
        follow(&mut self.owned, fact);
        if let (Fact::Promoted { .. }, Some(span)) = (fact, self.excuse) {
            self.excused_until = now + span;
        }
        let begins = matches!(
            fact,
            Fact::Told { event: Event::NameAnswered { .. } | Event::Trusted { .. }, .. }
                | Fact::NameRetrusted { .. }
        );
        if begins && self.judged { self.look(now) } else { Ok(()) }
    }
}
