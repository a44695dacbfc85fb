//! B8, B18: a member that is shown a term of its own it does not know of asks
//! about it or gives it back; it does not look on.
//!
//! Such terms come from bids that were withdrawn, or that arrived again long
//! after. Their holder beats on, so that no other member could ever win them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{ElectionName, Event, Input, Mono, Reply, Request, TermNumber, Which};

use super::{Invariant, Setup};
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

/// How often it may be shown such a term before it does something about it. One
/// look is enough, unless a bid or a release is under way or waits to be tried
/// again.
const LOOKS: u32 = 4;

#[derive(Debug)]
pub(super) struct Strays {
    /// Looks closer than this, by process, count as one: hints come in storms.
    apart: Vec<Duration>,
    /// Looks at all that the store has under a process's name.
    looks: BTreeSet<(Who, u64)>,
    /// What each process was ever told that it leads.
    known: BTreeSet<(Who, ElectionName, TermNumber)>,
    /// How often each was shown a term that it was not told of.
    shown: BTreeMap<(Who, ElectionName), Shown>,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    number: TermNumber,
    count: u32,
    last: Mono,
}

impl Strays {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            apart: setup.settings.iter().map(|s| s.ttl() / 8).collect(),
            looks: BTreeSet::new(),
            known: BTreeSet::new(),
            shown: BTreeMap::new(),
        }
    }

    fn show(
        &mut self,
        who: Who,
        local: Mono,
        election: &ElectionName,
        number: TermNumber,
    ) -> Result<(), String> {
        if self.known.contains(&(who, election.clone(), number)) {
            return Ok(());
        }
        let first = Shown { number, count: 1, last: local };
        let shown = self.shown.entry((who, election.clone())).or_insert(first);
        if shown.number != number {
            *shown = first;
        } else if local.since(shown.last) >= self.apart[who.process] {
            *shown = Shown { number, count: shown.count + 1, last: local };
        }
        let count = shown.count;
        if count > LOOKS {
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
            Fact::Fed { who, local, input: Input::Reply { id, result } } => {
                let own = self.looks.remove(&(*who, id.get()));
                let Ok(Reply::Read(snapshot)) = &**result else { return Ok(()) };
                for view in snapshot.elections.iter().filter(|_| own) {
                    self.show(*who, *local, &view.election, view.number)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
