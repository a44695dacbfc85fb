//! The stores of a world.

mod broken;
mod cas;
mod replica;

use tenure_core::{
    Amend, Amended, ElectionName, Entry, Era, MemberRef, Mono, Query, Reply, Request, Seq,
    TermNumber, Timestamp, Which,
};
use tenure_store::MemoryState;

use self::broken::Broken;
use self::cas::CasWorld;
pub(crate) use self::cas::Fate;
use self::replica::Replica;
use crate::config::{Config, Feature, StoreKind};
use crate::fact::Who;
use crate::mutation::{Mutation, StoreRule};

/// The store of one world.
#[derive(Debug)]
pub(crate) struct SimStore {
    state: MemoryState,
    /// Set where the world has a compare-and-swap store instead.
    pub(crate) cas: Option<CasWorld>,
    /// Set where the world has a copy that lags behind.
    replica: Option<Replica>,
    broken: Option<Broken>,
    /// The newest journal entries that a broken store tells differently.
    retold: Vec<Entry>,
}

impl SimStore {
    pub(crate) fn new(config: &Config, mutation: Option<Mutation>) -> Self {
        let broken = match mutation {
            Some(Mutation::Store(rule)) => Some(Broken::new(rule)),
            _ => None,
        };
        let rule = match mutation {
            Some(Mutation::Cas(rule)) => Some(rule),
            _ => None,
        };
        let cas = (config.store == StoreKind::Cas).then(|| {
            let lags = config.features.has(Feature::Namesakes);
            CasWorld::new(config.drift_ppm, rule, lags)
        });
        let replica = config.store.forgets().then(|| Replica::new(config.store));
        let state = match &replica {
            // It is copied with every write.
            Some(_) => MemoryState::keeping(replica::JOURNAL),
            None => MemoryState::new(),
        };
        Self { state, cas, replica, broken, retold: Vec::new() }
    }

    pub(crate) fn perform(&mut self, now: Mono, wall: Timestamp, request: &Request) -> Reply {
        let wall = self.number_clock(wall);
        let reply = match self.broken.take() {
            Some(broken) => self.brokenly(broken, now, wall, request),
            None => self.properly(now, wall, request),
        };
        self.copy();
        reply
    }

    fn brokenly(
        &mut self,
        mut broken: Broken,
        now: Mono,
        wall: Timestamp,
        request: &Request,
    ) -> Reply {
        let before = self.state.seq();
        let reply = broken.perform(self, now, wall, request);
        self.retold = written_after(&self.state, before);
        broken.retell(request, &mut self.retold);
        self.broken = Some(broken);
        reply
    }

    /// Carries a request out as the contract says.
    fn properly(&mut self, now: Mono, wall: Timestamp, request: &Request) -> Reply {
        match request {
            Request::Join(join) => Reply::Join(self.state.join(now, wall, join)),
            Request::Heartbeat(beat) => Reply::Heartbeat(self.state.heartbeat(now, beat)),
            Request::Leave(member) => {
                self.state.leave(wall, member);
                Reply::Leave
            }
            Request::Claim(claim) => Reply::Claim(self.state.claim(now, wall, claim)),
            Request::Release(release) => {
                self.state.release(now, wall, release);
                Reply::Release
            }
            Request::Read(query) => Reply::Read(self.state.read(now, query)),
        }
    }

    pub(crate) fn amend(&mut self, now: Mono, wall: Timestamp, amend: &Amend) -> Option<Amended> {
        if let Some(cas) = &mut self.cas {
            return cas.amend(now, amend);
        }
        let wall = self.number_clock(wall);
        let before = self.state.seq();
        let amended = match &mut self.broken {
            Some(broken) => {
                let amended = broken.amend(&mut self.state, now, wall, amend);
                self.retold = written_after(&self.state, before);
                broken.retell_amend(amend, &mut self.retold);
                amended
            }
            None => self.state.amend(now, wall, amend),
        };
        self.copy();
        Some(amended)
    }

    /// Sends what was written on to the copy.
    fn copy(&mut self) {
        if let Some(replica) = &mut self.replica {
            replica.receive(&self.state);
        }
    }

    /// The copy takes over, without up to `lag` of the last writes. Gives how
    /// many it lacks.
    pub(crate) fn fail_over(&mut self, wall: Timestamp, lag: usize) -> Option<usize> {
        let wall = self.number_clock(wall);
        let (state, lost) = self.replica.as_mut()?.promote(wall, lag)?;
        self.state = state;
        self.retold.clear();
        Some(lost)
    }

    /// Whether the clock has reached every number that was given out. A store that
    /// raises its era waits for that; here the next promotion waits instead.
    pub(crate) fn is_behind_the_clock(&self, wall: Timestamp) -> bool {
        let clock = Era::START.raised(wall).floor();
        let query = Query { which: Which::All, ..Query::nothing() };
        self.state.read(Mono::ZERO, &query).elections.iter().all(|e| e.number.get() <= clock)
    }

    /// The clock that a new era goes by.
    fn number_clock(&self, wall: Timestamp) -> Timestamp {
        match &self.broken {
            Some(broken) if broken.rule == StoreRule::EraWithoutClock => Timestamp::default(),
            _ => wall,
        }
    }

    pub(crate) fn seq(&self) -> Seq {
        self.state.seq()
    }

    pub(crate) fn after(&self, position: Seq) -> Vec<Entry> {
        let mut entries = written_after(&self.state, position);
        for entry in &mut entries {
            if let Some(retold) = self.retold.iter().find(|retold| retold.seq == entry.seq) {
                entry.clone_from(retold);
            }
        }
        entries
    }

    /// The newest number given out: what a fence compares with.
    pub(crate) fn newest(&self, now: Mono, election: &ElectionName) -> TermNumber {
        if let Some(cas) = &self.cas {
            return cas.newest(now, election);
        }
        let seen = self.state.read(Mono::ZERO, &Query::elections([election.clone()]));
        seen.elections.first().map_or(TermNumber::NONE, |view| view.number)
    }

    /// Who holds an election, and under which number.
    pub(crate) fn holder(
        &self,
        now: Mono,
        election: &ElectionName,
    ) -> Option<(MemberRef, TermNumber)> {
        if let Some(cas) = &self.cas {
            return cas.holder(now, election);
        }
        let seen = self.state.read(now, &Query::elections([election.clone()]));
        let view = seen.elections.into_iter().next()?;
        Some((view.holder?.member, view.number))
    }

    pub(crate) fn started(&mut self, who: Who) {
        if let Some(cas) = &mut self.cas {
            cas.started(who);
        }
    }

    pub(crate) fn gone(&mut self, who: Who) {
        if let Some(cas) = &mut self.cas {
            cas.gone(who);
        }
    }

    /// What should not be there once everybody has left.
    pub(crate) fn leftovers(&self, now: Mono) -> Vec<String> {
        let query = Query { which: Which::All, members: true, ..Query::nothing() };
        let seen = match &self.cas {
            Some(cas) => cas.everything(now),
            None => self.state.read(now, &query),
        };
        let members = seen.members.iter().map(|m| format!("the member {}", m.member));
        let held = seen.elections.iter().filter_map(|view| {
            let holder = view.holder.as_ref()?;
            Some(format!("the term {} of {} held by {}", view.number, view.election, holder.member))
        });
        members.chain(held).collect()
    }
}

/// What was written after a place, also if the journal has jumped since then: a member
/// had seen more than there was.
fn written_after(state: &MemoryState, place: Seq) -> Vec<Entry> {
    let kept = |trimmed| state.entries_after(trimmed).unwrap_or_default();
    state.entries_after(place).unwrap_or_else(kept)
}
