//! N1, H3, M6: no member is told of a rollback where there was none, none loses a term on
//! a hint alone, and none goes on leading once the store has said that its life is over.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    Beat, Bindings, Claims, ElectionName, Event, Happening, Incarnation, Input, LostReason, Mono,
    Query, Reply, Request, Settings, Snapshot, TermNumber, TermOutcome, Which,
};

use super::{Invariant, Setup, entries};
use crate::clock::Nanos;
use crate::config::StoreKind;
use crate::fact::{Fact, Who};

#[derive(Debug)]
pub(super) struct Losses {
    settings: Vec<Settings>,
    journalled: bool,
    /// Whether a copy took over, which may have forgotten something.
    promoted: bool,
    over: BTreeSet<(ElectionName, TermNumber)>,
    /// What each life was elected to.
    held: BTreeMap<Incarnation, Vec<(ElectionName, TermNumber)>>,
    /// Which processes were told that their life is over, since they joined.
    ended: BTreeSet<Who>,
    leads: BTreeMap<Who, BTreeMap<ElectionName, TermNumber>>,
    /// Terms that a look of their leader did not show, or that a heartbeat was not
    /// answered for: also those of a life whose ttl has run out, and those not
    /// taken on in time, though they were not ended yet.
    unshown: BTreeSet<(Who, ElectionName, TermNumber)>,
    /// The newest heartbeat of each process, and until when it is awaited.
    beat: BTreeMap<Who, (u64, Mono)>,
    /// Who must have lost everything once it has handled what it was fed.
    must_lose: Option<Who>,
    /// The looks under way, where no step of the store's is an answer by itself and
    /// answers are known only when they arrive.
    looks: Option<BTreeMap<(Who, u64), Query>>,
}

impl Losses {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            settings: setup.settings.clone(),
            journalled: false,
            promoted: false,
            over: BTreeSet::new(),
            held: BTreeMap::new(),
            ended: BTreeSet::new(),
            leads: BTreeMap::new(),
            unshown: BTreeSet::new(),
            beat: BTreeMap::new(),
            must_lose: None,
            looks: (setup.config.store == StoreKind::Turns).then(BTreeMap::new),
        }
    }

    /// What an answer says of the terms that a member leads.
    fn answered(&mut self, who: Who, query: Option<&Query>, reply: &Reply) {
        match (query, reply) {
            (Some(query), Reply::Read(snapshot)) => self.looked(who, query, snapshot),
            (_, Reply::Heartbeat(Beat::Alive { terms, .. })) => {
                for beat in terms.iter().filter(|beat| beat.outcome == TermOutcome::Lost) {
                    let election = beat.term.election.clone();
                    let number = beat.term.number;
                    self.unshown.insert((who, election, number));
                }
            }
            _ => {}
        }
    }

    fn told(&mut self, who: Who, event: &Event) -> Result<(), String> {
        match event {
            Event::Joined { .. } => {
                self.ended.remove(&who);
                // A heartbeat of an older life says nothing of this one.
                self.beat.remove(&who);
            }
            Event::Elected { term, .. } => {
                self.leads.entry(who).or_default().insert(term.election.clone(), term.number);
            }
            Event::RolledBack { seen, found } if !self.promoted => {
                return Err(format!("{who} saw {seen} and then {found}; nothing was forgotten"));
            }
            Event::Lost { election, number, reason } => {
                self.leads.entry(who).or_default().remove(election);
                let real = self.over.contains(&(election.clone(), *number))
                    || self.unshown.contains(&(who, election.clone(), *number));
                let known = real || self.ended.contains(&who) || !self.journalled;
                if *reason == LostReason::Superseded && !known {
                    return Err(format!("{who} lost {election}#{number}, which it still holds"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn looked(&mut self, who: Who, query: &Query, snapshot: &Snapshot) {
        for (election, number) in self.leads.get(&who).into_iter().flatten() {
            let asked = match &query.which {
                Which::Named(names) => names.contains(election),
                _ => true,
            };
            let shown = snapshot.elections.iter().any(|view| {
                view.election == *election && view.number == *number && view.holder.is_some()
            });
            if asked && !shown {
                self.unshown.insert((who, election.clone(), *number));
            }
        }
    }

    fn fed(&mut self, who: Who, local: Mono, id: u64, reply: &Reply) {
        let beat = matches!(reply, Reply::Heartbeat(Beat::Ended { .. }));
        let bid = matches!(reply, Reply::Claim(Claims::Ended { .. }));
        if beat || bid || matches!(reply, Reply::Bind(Bindings::Ended { .. })) {
            self.ended.insert(who);
        }
        let awaited = self.beat.get(&who).is_some_and(|(newest, by)| *newest == id && local < *by);
        self.must_lose = (beat && awaited).then_some(who);
    }
}

impl Invariant for Losses {
    fn name(&self) -> &'static str {
        "a term is lost when it is over, and not before"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        for entry in entries(fact) {
            self.journalled = true;
            match &entry.what {
                Happening::Elected { term, .. } => {
                    let held = self.held.entry(term.member.incarnation).or_default();
                    held.push((term.election.clone(), term.number));
                }
                Happening::Released { election, number, .. } => {
                    self.over.insert((election.clone(), *number));
                }
                // All its terms are over with it (M5).
                Happening::Left { member, .. } | Happening::Ended { member, .. } => {
                    let held = self.held.remove(&member.incarnation);
                    self.over.extend(held.into_iter().flatten());
                }
                _ => {}
            }
        }
        match fact {
            Fact::Sent { who, local, id, request: Request::Heartbeat(_) } => {
                let by = *local + self.settings[who.process].request_timeout();
                self.beat.insert(*who, (*id, by));
            }
            Fact::Sent { who, id, request: Request::Read(query), .. } => {
                if let Some(looks) = &mut self.looks {
                    looks.insert((*who, *id), query.clone());
                }
            }
            Fact::Applied { who, request, reply: Ok(reply), .. } => {
                let query = match request {
                    Request::Read(query) => Some(query),
                    _ => None,
                };
                self.answered(*who, query, reply);
            }
            Fact::Fed { who, local, input: Input::Reply { id, result } } => {
                self.must_lose = None;
                if let (Some(looks), Ok(reply)) = (&mut self.looks, &**result) {
                    let query = looks.remove(&(*who, id.get()));
                    self.answered(*who, query.as_ref(), reply);
                }
                if let Ok(reply) = &**result {
                    self.fed(*who, *local, id.get(), reply);
                }
                // Only the first answer counts; a copy's comes too late.
                if self.beat.get(who).is_some_and(|(newest, _)| *newest == id.get()) {
                    self.beat.remove(who);
                }
            }
            Fact::Promoted { .. } => self.promoted = true,
            Fact::Told { who, event, .. } => return self.told(*who, event),
            Fact::Crashed { who } => {
                self.leads.remove(who);
            }
            Fact::Settled { who, .. } if self.must_lose == Some(*who) => {
                self.must_lose = None;
                let leads = self.leads.get(who).and_then(|leads| leads.keys().next());
                if let Some(election) = leads {
                    return Err(format!("{who} goes on leading {election}; its life is over"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
