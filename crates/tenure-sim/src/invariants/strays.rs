//! B8, B18: a member that is shown a term of its own it does not know of asks
//! about it or gives it back; it does not look on.
//!
//! Such terms come from bids that were withdrawn, or that arrived again long
//! after. Their holder beats on, so nobody else could ever have them.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{ElectionName, Event, Input, Reply, Request, TermNumber, Which};

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

/// How often it may be shown such a term before it does something about it. One
/// look is enough, unless it was overtaken by a bid or a release.
const LOOKS: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Strays {
    /// Looks at all that the store has under a process's name.
    looks: BTreeSet<(Who, u64)>,
    /// What each process was ever told that it leads.
    known: BTreeSet<(Who, ElectionName, TermNumber)>,
    /// How often each was shown a term that it was not told of.
    shown: BTreeMap<(Who, ElectionName), (TermNumber, u32)>,
}

impl Strays {
    fn show(
        &mut self,
        who: Who,
        election: &ElectionName,
        number: TermNumber,
    ) -> Result<(), String> {
        if self.known.contains(&(who, election.clone(), number)) {
            return Ok(());
        }
        let (last, count) = self.shown.entry((who, election.clone())).or_default();
        if *last != number {
            (*last, *count) = (number, 0);
        }
        *count += 1;
        if *count > LOOKS {
            return Err(format!(
                "{who} was shown {election}#{number} {count} times, which it holds and does not \
                 know of"
            ));
        }
        Ok(())
    }

    fn sent(&mut self, who: Who, id: u64, request: &Request) {
        match request {
            Request::Read(query) if matches!(query.which, Which::HeldBy(_)) => {
                self.looks.insert((who, id));
            }
            Request::Release(release) => {
                for item in release.items.iter().filter(|item| item.number.is_some()) {
                    self.shown.remove(&(who, item.election.clone()));
                }
            }
            Request::Claim(claim) => {
                for bid in &claim.bids {
                    self.shown.remove(&(who, bid.election.clone()));
                }
            }
            _ => {}
        }
    }
}

impl Invariant for Strays {
    fn name(&self) -> &'static str {
        "a term that its holder does not know of is given back"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Sent { who, id, request, .. } => self.sent(*who, *id, request),
            Fact::Told { who, event: Event::Elected { term, .. }, .. } => {
                self.known.insert((*who, term.election.clone(), term.number));
            }
            Fact::Told { who, event: Event::MemberEnded { .. }, .. } => {
                self.shown.retain(|(of, _), _| of != who);
            }
            Fact::Fed { who, input: Input::Reply { id, result }, .. } => {
                let own = self.looks.remove(&(*who, id.get()));
                let Ok(Reply::Read(snapshot)) = &**result else { return Ok(()) };
                for view in snapshot.elections.iter().filter(|_| own) {
                    self.show(*who, &view.election, view.number)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
