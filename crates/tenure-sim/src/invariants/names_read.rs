//! U5: a name that its owner trusts in is in every consistent read, as its own, on every store.
//!
//! Trust ends before the owner's life can be over, so that this is stronger than that an
//! acknowledged binding of a live life is read.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Binding, Event, Incarnation, Name, NameAnswer, Token};

use super::{Invariant, Setup, evicted};
use crate::clock::Nanos;
use crate::config::Feature;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct NamesRead {
    /// Off where a clock may be beyond the bound, or records are removed by hand.
    judged: bool,
    owned: BTreeMap<(Who, Name), Owned>,
    /// Lives evicted at once, which may believe for the rest of their ttl.
    excused: BTreeSet<Incarnation>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Owned {
    pub(super) token: Token,
    pub(super) life: Incarnation,
    pub(super) until: Nanos,
}

impl NamesRead {
    pub(super) fn new(setup: &Setup) -> Self {
        let by_hand = setup.config.features.has(Feature::Removals);
        let judged = setup.config.clocks_keep_the_bound() && !by_hand;
        Self { judged, owned: BTreeMap::new(), excused: BTreeSet::new() }
    }

    fn read(&self, now: Nanos, live: &[Binding]) -> Result<(), String> {
        for ((who, name), owned) in &self.owned {
            if now >= owned.until || self.excused.contains(&owned.life) {
                continue;
            }
            let shown = live.iter().find(|binding| binding.name == *name);
            let life = shown.and_then(|b| b.owner.as_ref()).map(|owner| owner.incarnation);
            let token = shown.map(|binding| binding.token);
            if (life, token) != (Some(owned.life), Some(owned.token)) {
                let token = owned.token;
                return Err(format!("{who} trusts in {name}#{token}; a read shows {shown:?}"));
            }
        }
        Ok(())
    }
}

/// Follows what each process trusts in.
pub(super) fn follow(owned: &mut BTreeMap<(Who, Name), Owned>, fact: &Fact<'_>) {
    match fact {
        Fact::Told {
            who,
            event: Event::NameAnswered { answer: NameAnswer::Bound { binding, .. }, .. },
            until: Some(until),
            ..
        } => {
            if let Some(owner) = &binding.owner {
                let token = binding.token;
                let life = owner.incarnation;
                let until = *until;
                owned.insert((*who, binding.name.clone()), Owned { token, life, until });
            }
        }
        Fact::Told { who, event: Event::Trusted { .. }, until: Some(until), .. } => {
            for (_, owned) in owned.iter_mut().filter(|((of, _), _)| of == who) {
                owned.until = *until;
            }
        }
        Fact::Told { who, event: Event::NamesLost { names, .. }, .. } => {
            for (name, _) in names {
                owned.remove(&(*who, name.clone()));
            }
        }
        Fact::NameRetrusted { who, name, until } => {
            if let Some(owned) = owned.get_mut(&(*who, (*name).clone())) {
                owned.until = *until;
            }
        }
        Fact::Crashed { who } => owned.retain(|(of, _), _| of != who),
        _ => {}
    }
}

impl Invariant for NamesRead {
    fn name(&self) -> &'static str {
        "a name that is trusted in is read"
    }

    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        self.excused.extend(evicted(fact));
        follow(&mut self.owned, fact);
        match fact {
            Fact::Bindings { live, .. } if self.judged => self.read(now, live),
            _ => Ok(()),
        }
    }
}
