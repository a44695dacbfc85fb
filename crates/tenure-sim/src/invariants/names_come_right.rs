//! U8, and that nothing is owed for ever: once faults are over, every name that a member wants
//! is owned, by the one that the store says; the name of an owner that crashed is another's
//! within its ttl and a little; and every operation is answered.

use std::collections::BTreeMap;

use tenure_core::{Event, Input, Name};

use super::{Invariant, Setup, settling_time};
use crate::clock::Nanos;
use crate::config::nanos;
use crate::fact::{Fact, SurveyedName, Who};

#[derive(Debug)]
pub(super) struct NamesComeRight {
    /// How long an operation may be open once faults are over.
    patience: Nanos,
    /// Operations that are not answered, and since when.
    open: BTreeMap<(Who, u64), (Name, Nanos)>,
}

impl NamesComeRight {
    pub(super) fn new(setup: &Setup) -> Self {
        let longest = setup.settings.iter().map(|s| nanos(s.ttl())).max().unwrap_or_default();
        Self { patience: settling_time(longest) / 2, open: BTreeMap::new() }
    }

    fn survey(&self, now: Nanos, names: &[SurveyedName]) -> Result<(), String> {
        for ((who, ticket), (name, since)) in &self.open {
            if now - since > self.patience {
                return Err(format!("{who} was never answered ticket {ticket}, about {name}"));
            }
        }
        for SurveyedName { name, bound, owned, wanted } in names {
            let trusted = match owned.as_slice() {
                [] => None,
                [(_, life, token)] => Some((*life, *token)),
                _ => return Err(format!("{name} is owned by all of {owned:?}")),
            };
            if *bound != trusted {
                return Err(format!("{name} is bound as {bound:?}, and owned by {owned:?}"));
            }
            if *wanted && bound.is_none() {
                return Err(format!("{name} is wanted, and has no owner"));
            }
        }
        Ok(())
    }
}

impl Invariant for NamesComeRight {
    fn name(&self) -> &'static str {
        "names come right"
    }

    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Fed { who, input: Input::Bind { ops }, .. } => {
                for op in ops {
                    self.open.insert((*who, op.ticket), (op.name.clone(), now));
                }
            }
            Fact::Fed { who, input: Input::WithdrawName { ticket, .. }, .. } => {
                self.open.remove(&(*who, *ticket));
            }
            Fact::Told { who, event: Event::NameAnswered { ticket, .. }, .. } => {
                self.open.remove(&(*who, *ticket));
            }
            Fact::Told { who, event: Event::Left { .. }, .. } | Fact::Crashed { who } => {
                self.open.retain(|(of, _), _| of != who);
            }
            Fact::NamesSurveyed { names } => return self.survey(now, names),
            _ => {}
        }
        Ok(())
    }
}
