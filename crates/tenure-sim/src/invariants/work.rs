//! E4, H1, B7: a term is given back only after its work has stopped, or was told
//! that it is lost and had the margin to stop in.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{ElectionName, Event, Incarnation, LostReason, Mono, Request, TermNumber};

use super::{Invariant, Setup};
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct ReleaseAfterWork {
    margins: Vec<Duration>,
    working: BTreeMap<(Who, ElectionName, TermNumber), Work>,
}

/// Work that has not stopped.
#[derive(Debug)]
struct Work {
    /// The life that won the term.
    life: Incarnation,
    /// When it was told that its term is lost.
    lost: Option<Mono>,
}

impl ReleaseAfterWork {
    pub(super) fn new(setup: &Setup) -> Self {
        let margins = setup.settings.iter().map(|s| s.margin()).collect();
        Self { margins, working: BTreeMap::new() }
    }

    fn gives_back(
        &self,
        who: Who,
        local: Mono,
        which: impl Fn(&ElectionName, TermNumber, Incarnation) -> bool,
    ) -> Result<(), String> {
        for ((worker, election, number), work) in &self.working {
            if *worker != who || !which(election, *number, work.life) {
                continue;
            }
            match &work.lost {
                None => {
                    return Err(format!("{who} gives {election}#{number} back; its work goes on"));
                }
                Some(lost) if local < *lost + self.margins[who.process] => {
                    return Err(format!(
                        "{who} gives {election}#{number} back {:?} after it was lost; its work had \
                         {:?} to stop in",
                        local.since(*lost),
                        self.margins[who.process]
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl Invariant for ReleaseAfterWork {
    fn name(&self) -> &'static str {
        "a term is given back after its work has stopped"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Told { who, event: Event::Elected { term, .. }, .. } => {
                let work = Work { life: term.member.incarnation, lost: None };
                self.working.insert((*who, term.election.clone(), term.number), work);
            }
            Fact::Told { who, local, event: Event::Lost { election, number, reason }, .. } => {
                if *reason == LostReason::Superseded {
                    // The store has taken it already: there is nothing to give back.
                    self.working.remove(&(*who, election.clone(), *number));
                } else if let Some(work) = self.working.get_mut(&(*who, election.clone(), *number))
                {
                    work.lost = Some(*local);
                }
            }
            Fact::WorkStopped { who, election, number } => {
                self.working.remove(&(*who, (*election).clone(), *number));
            }
            Fact::Crashed { who } => self.working.retain(|(worker, _, _), _| worker != who),
            Fact::Sent { who, local, request: Request::Release(release), .. } => {
                return self.gives_back(*who, *local, |election, number, _| {
                    let mut items = release.items.iter();
                    items.any(|i| i.election == *election && i.number == Some(number))
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
