//! E4: a name is dropped, or its member leaves, only after the work under it has stopped, or
//! was told that it is lost and had the margin to stop in.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{Event, Incarnation, LostReason, Mono, Name, NameAnswer, Request, Token, What};

use super::{Invariant, Setup};
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct DropAfterWork {
    margins: Vec<Duration>,
    working: BTreeMap<(Who, Name, Token), Work>,
}

/// Work that has not stopped.
#[derive(Debug)]
struct Work {
    life: Incarnation,
    /// When it was told that its name is lost.
    lost: Option<Mono>,
}

impl DropAfterWork {
    pub(super) fn new(setup: &Setup) -> Self {
        let margins = setup.settings.iter().map(|s| s.margin()).collect();
        Self { margins, working: BTreeMap::new() }
    }

    fn gives_back(
        &self,
        who: Who,
        local: Mono,
        which: impl Fn(&Name, Token, Incarnation) -> bool,
    ) -> Result<(), String> {
        for ((worker, name, token), work) in &self.working {
            if *worker != who || !which(name, *token, work.life) {
                continue;
            }
            let margin = self.margins[who.process];
            match &work.lost {
                None => return Err(format!("{who} drops {name}#{token}; its work goes on")),
                Some(lost) if local < *lost + margin => {
                    let since = local.since(*lost);
                    return Err(format!(
                        "{who} drops {name}#{token} {since:?} after it was lost; its work had \
                         {margin:?} to stop in"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn lost(&mut self, who: Who, local: Mono, names: &[(Name, Token)], reason: LostReason) {
        for (name, token) in names {
            let key = (who, name.clone(), *token);
            if reason == LostReason::Superseded {
                // The store has taken it already: there is nothing to drop.
                self.working.remove(&key);
            } else if let Some(work) = self.working.get_mut(&key) {
                work.lost = Some(local);
            }
        }
    }
}

impl Invariant for DropAfterWork {
    fn name(&self) -> &'static str {
        "a name is dropped after its work has stopped"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Told {
                who,
                event: Event::NameAnswered { answer: NameAnswer::Bound { binding, .. }, .. },
                until: Some(_),
                ..
            } => {
                let Some(owner) = &binding.owner else { return Ok(()) };
                let life = owner.incarnation;
                let key = (*who, binding.name.clone(), binding.token);
                self.working.insert(key, Work { life, lost: None });
            }
            Fact::Told { who, local, event: Event::NamesLost { names, reason }, .. } => {
                self.lost(*who, *local, names, *reason);
            }
            Fact::NameWorkStopped { who, name, token } => {
                self.working.remove(&(*who, (*name).clone(), *token));
            }
            Fact::Crashed { who } => self.working.retain(|(worker, _, _), _| worker != who),
            Fact::Sent { who, local, request: Request::Bind(bind), .. } => {
                return self.gives_back(*who, *local, |name, token, _| {
                    let drop = What::Drop { token };
                    bind.ops.iter().any(|op| op.name == *name && op.what == drop)
                });
            }
            Fact::Sent { who, local, request: Request::Leave(member), .. } => {
                return self.gives_back(*who, *local, |_, _, life| life == member.incarnation);
            }
            _ => {}
        }
        Ok(())
    }
}
