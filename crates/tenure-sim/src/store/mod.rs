//! The stores of a world.

mod broken;
mod broken_names;
mod cas;
mod remote;
mod replica;
mod turns;

use tenure_core::{
    Amend, Amended, Binding, ElectionName, Entry, Era, MemberRef, Mono, Query, Reply, Request,
    RequestId, Seq, Snapshot, TermNumber, Timestamp, Which, WhichNames,
};
use tenure_store::MemoryState;

use self::broken::Broken;
use self::cas::CasWorld;
use self::remote::Answered;
pub(crate) use self::remote::{Caller, Fate};
use self::replica::Replica;
pub(crate) use self::turns::Arrived;
pub use self::turns::Step;
use self::turns::TurnWorld;
use crate::config::{Config, Feature, StoreKind};
use crate::fact::Who;
use crate::mutation::{Mutation, StoreRule};

/// The store of one world.
#[derive(Debug)]
pub(crate) struct SimStore {
    state: MemoryState,
    /// Set where the world has a compare-and-swap store instead.
    pub(crate) cas: Option<CasWorld>,
    /// Set where the world has rows that are reached by looks and turns instead.
    pub(crate) turns: Option<TurnWorld>,
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
        let turns = (config.store == StoreKind::Turns).then(|| {
            TurnWorld::new(match mutation {
                Some(Mutation::Turns(rule)) => Some(rule),
                _ => None,
            })
        });
        let replica = config.store.forgets().then(|| Replica::new(config.store));
        let state = match &replica {
            // It is copied with every write.
            Some(_) => MemoryState::keeping(replica::JOURNAL),
            None => MemoryState::new(),
        };
        Self { state, cas, turns, replica, broken, retold: Vec::new() }
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
            Request::Bind(bind) => Reply::Bind(self.state.bind(now, wall, bind)),
            Request::Read(query) => Reply::Read(self.state.read(now, query)),
        }
    }

    pub(crate) fn amend(&mut self, now: Mono, wall: Timestamp, amend: &Amend) -> Option<Amended> {
        if let Some(cas) = &mut self.cas {
            return cas.amend(now, amend);
        }
        if let Some(turns) = &mut self.turns {
            return turns.amend(now, amend);
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
        self.turns.as_ref().map_or_else(|| self.state.seq(), TurnWorld::seq)
    }

    pub(crate) fn after(&self, position: Seq) -> Vec<Entry> {
        if let Some(turns) = &self.turns {
            return turns.entries_after(position);
        }
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
        let seen = self.look(now, &Query::elections([election.clone()]));
        seen.elections.first().map_or(TermNumber::NONE, |view| view.number)
    }

    /// Who holds an election, and under which number.
    pub(crate) fn holder(
        &self,
        now: Mono,
        election: &ElectionName,
    ) -> Option<(MemberRef, TermNumber)> {
        let seen = self.look(now, &Query::elections([election.clone()]));
        let view = seen.elections.into_iter().next()?;
        Some((view.holder?.member, view.number))
    }

    /// What a read answers at once, whatever is on its way.
    fn look(&self, now: Mono, query: &Query) -> Snapshot {
        match (&self.cas, &self.turns) {
            (Some(cas), _) => cas.look(now, query),
            (_, Some(turns)) => turns.look(now, query),
            _ => self.state.read(now, query),
        }
    }

    pub(crate) fn started(&mut self, who: Who) {
        if let Some(cas) = &mut self.cas {
            cas.started(who);
        }
        if let Some(turns) = &mut self.turns {
            turns.started(who);
        }
    }

    pub(crate) fn gone(&mut self, who: Who) {
        if let Some(cas) = &mut self.cas {
            cas.gone(who);
        }
        if let Some(turns) = &mut self.turns {
            turns.gone(who);
        }
    }

    /// Whether a request is worked on by the process that made it, in several steps.
    pub(crate) fn in_steps(&self) -> bool {
        self.cas.is_some() || self.turns.is_some()
    }

    /// Begins a request of a process that works on it itself.
    pub(crate) fn begin(&mut self, who: Who, id: RequestId, deadline: Mono, request: Request) {
        match (&mut self.cas, &mut self.turns) {
            (Some(cas), _) => cas.begin(who, id, deadline, request),
            (_, Some(turns)) => turns.begin(who, id, deadline, request),
            _ => {}
        }
    }

    /// Goes on with every request of a process, or of the operators; gives what is
    /// answered, and the operations that are sent.
    pub(crate) fn poll(&mut self, by: Caller, local: Mono) -> (Answered, Vec<u64>) {
        match (&mut self.cas, &mut self.turns, by) {
            (Some(cas), _, Some(who)) => cas.poll(who, local),
            (_, Some(turns), by) => turns.poll(by, local),
            _ => Default::default(),
        }
    }

    /// An operation has the service's lock at `now`, by its clock, for which it asked at
    /// `asked`.
    pub(crate) fn arrive(
        &mut self,
        call: u64,
        fate: Fate,
        asked: Mono,
        now: Mono,
    ) -> Option<Arrived> {
        match (&mut self.cas, &mut self.turns) {
            (Some(cas), _) => {
                let (by, answer, wrote_names) = cas.arrive(call, fate)?;
                Some(Arrived { by, answer, step: None, wrote_names })
            }
            (_, Some(turns)) => turns.arrive(call, fate, asked, now),
            _ => None,
        }
    }

    /// An answer reaches whom it is for.
    pub(crate) fn answered(&mut self, answer: u64) {
        match (&mut self.cas, &mut self.turns) {
            (Some(cas), _) => cas.answered(answer),
            (_, Some(turns)) => turns.answered(answer),
            _ => {}
        }
    }

    /// The names that a consistent read shows at `now`.
    pub(crate) fn bindings(&self, now: Mono, which: &WhichNames) -> Vec<Binding> {
        match (&self.cas, &self.turns) {
            (Some(cas), _) => cas.bindings(now, which),
            (_, Some(turns)) => turns.bindings(now, which),
            _ => {
                let mut live = self.state.names(now, which).bindings;
                if let Some(broken) = &self.broken {
                    broken.show(&mut live);
                }
                live
            }
        }
    }

    /// What should not be there once all members have left.
    pub(crate) fn leftovers(&self, now: Mono) -> Vec<String> {
        let query = Query { which: Which::All, members: true, ..Query::nothing() };
        let seen = self.look(now, &query);
        let members = seen.members.iter().map(|m| format!("the member {}", m.member));
        let held = seen.elections.iter().filter_map(|view| {
            let holder = view.holder.as_ref()?;
            Some(format!("the term {} of {} held by {}", view.number, view.election, holder.member))
        });
        let names = self.bindings(now, &WhichNames::Prefix(String::new()));
        let names = names.iter().map(|b| format!("the name {} under {}", b.name, b.token));
        members.chain(held).chain(names).collect()
    }
}

/// What was written after a place, also if the journal has jumped since then: a member
/// had seen more than there was.
fn written_after(state: &MemoryState, place: Seq) -> Vec<Entry> {
    let kept = |trimmed| state.entries_after(trimmed).unwrap_or_default();
    state.entries_after(place).unwrap_or_else(kept)
}
