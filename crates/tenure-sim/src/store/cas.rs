//! A compare-and-swap store: the real `CasStore`, one for each process, over a
//! register whose every operation is a message of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tenure_cas::{
    Batches, CasOptions, CasRule, CasStore, Expect, Listed, Loaded, MemoryRegister, Register,
    Removed, Swapped, Version, Watching,
};
use tenure_core::{
    Amend, Amended, Binding, MemberId, Mono, Namespace, Query, Request, RequestId, WhichNames,
};
use tenure_store::Result;

use super::remote::{Answered, Call, Caller, Client, Fate, SetClock, Wire, odd, ready};
use crate::fact::Who;

/// An operation of the register, on its way.
#[derive(Clone, Debug)]
enum Op {
    Load(String, Option<Version>),
    Swap(String, Expect, Vec<u8>),
    Remove(String, Version),
    List(String),
}

/// What it answered.
#[derive(Debug)]
enum Answer {
    Load(Result<Loaded>),
    Swap(Result<Swapped>),
    Remove(Result<Removed>),
    List(Result<Vec<Listed>>),
}

impl Op {
    /// The answer to this operation when the register fails.
    fn failed(&self, error: tenure_store::Error) -> Answer {
        match self {
            Op::Load(..) => Answer::Load(Err(error)),
            Op::Swap(..) => Answer::Swap(Err(error)),
            Op::Remove(..) => Answer::Remove(Err(error)),
            Op::List(..) => Answer::List(Err(error)),
        }
    }
}

impl Op {
    fn writes_a_name(&self) -> bool {
        match self {
            Op::Swap(key, ..) | Op::Remove(key, _) => key.contains("/names/"),
            Op::Load(..) | Op::List(_) => false,
        }
    }
}

/// The register as one process reaches it.
#[derive(Clone, Debug)]
struct Remote {
    who: Who,
    wire: Wire<Op, Answer>,
}

impl Remote {
    fn call(&self, op: Op) -> Call<Op, Answer> {
        self.wire.call(Some(self.who), op)
    }
}

#[async_trait::async_trait]
impl Register for Remote {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        match self.call(Op::Load(key.to_owned(), known.cloned())).await {
            Answer::Load(loaded) => loaded,
            _ => odd(),
        }
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        match self.call(Op::Swap(key.to_owned(), expect, bytes)).await {
            Answer::Swap(swapped) => swapped,
            _ => odd(),
        }
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        match self.call(Op::Remove(key.to_owned(), expect.clone())).await {
            Answer::Remove(removed) => removed,
            _ => odd(),
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        match self.call(Op::List(prefix.to_owned())).await {
            Answer::List(keys) => keys,
            _ => odd(),
        }
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

/// The register, and the stores of all processes.
pub(crate) struct CasWorld {
    register: MemoryRegister,
    wire: Wire<Op, Answer>,
    clients: BTreeMap<Who, Client>,
    drift_ppm: u32,
    /// A rule that every process's store breaks.
    broken: Option<CasRule>,
    /// Where listings of elections lag (C1), what the next one of each prefix shows: the
    /// cells as they were at the one before it.
    stale: Option<BTreeMap<String, Vec<Listed>>>,
    /// An observer that sees everything at once, for fences, operators and surveys.
    eye: Option<Client>,
}

impl fmt::Debug for CasWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bytes of a record may come in another order in another run.
        let writes = self.register.writes();
        f.debug_struct("CasWorld").field("writes", &writes).finish_non_exhaustive()
    }
}

impl CasWorld {
    pub(super) fn new(drift_ppm: u32, broken: Option<CasRule>, listings_lag: bool) -> Self {
        let register = MemoryRegister::new();
        let mut world = Self {
            register: register.clone(),
            wire: Wire::default(),
            clients: BTreeMap::new(),
            drift_ppm,
            broken,
            stale: listings_lag.then(BTreeMap::new),
            eye: None,
        };
        world.eye = world.client(Arc::new(register), None);
        world
    }

    fn client(&self, register: Arc<dyn Register>, broken: Option<CasRule>) -> Option<Client> {
        let clock = SetClock::default();
        let options = CasOptions { drift_ppm: self.drift_ppm, seed: 1, ..CasOptions::default() };
        let store = CasStore::new(register, Arc::new(clock.clone()), options).ok()?;
        if let Some(rule) = broken {
            store.mutate(rule);
        }
        Some(Client::new(Arc::new(store), clock))
    }

    pub(super) fn started(&mut self, who: Who) {
        let remote = Remote { who, wire: self.wire.clone() };
        if let Some(client) = self.client(Arc::new(remote), self.broken) {
            self.clients.insert(who, client);
        }
    }

    pub(super) fn gone(&mut self, who: Who) {
        self.clients.remove(&who);
    }

    pub(super) fn begin(&mut self, who: Who, id: RequestId, deadline: Mono, request: Request) {
        if let Some(client) = self.clients.get_mut(&who) {
            client.begin(id, deadline, request);
        }
    }

    pub(super) fn poll(&mut self, who: Who, local: Mono) -> (Answered, Vec<u64>) {
        let Some(client) = self.clients.get_mut(&who) else { return Default::default() };
        (client.poll(local), self.wire.sent())
    }

    /// An operation reaches the register. Gives whom to answer, the answer's number, and
    /// whether a name's record was written.
    pub(super) fn arrive(&mut self, call: u64, fate: Fate) -> Option<(Caller, u64, bool)> {
        let (who, op) = self.wire.take(call)?;
        let done = if fate.acts() { Some(self.carry_out(&op)?) } else { None };
        let failed = fate.error().map(|error| op.failed(error));
        let wrote_names = fate.acts() && op.writes_a_name();
        Some((who, self.wire.answer(call, failed.or(done)?), wrote_names))
    }

    pub(super) fn answered(&mut self, answer: u64) {
        self.wire.arrived(answer);
    }

    /// What a listing shows that was made now.
    fn list(&mut self, prefix: &str) -> Option<Answer> {
        let now = ready(self.register.list(prefix))?;
        let (Some(stale), Ok(listed)) = (&mut self.stale, &now) else {
            return Some(Answer::List(now));
        };
        if !prefix.contains("/elections/") {
            return Some(Answer::List(now));
        }
        let before = stale.insert(prefix.to_owned(), listed.clone());
        Some(Answer::List(Ok(before.unwrap_or_default())))
    }

    fn carry_out(&mut self, op: &Op) -> Option<Answer> {
        let register = &self.register;
        match op {
            Op::Load(key, known) => ready(register.load(key, known.as_ref())).map(Answer::Load),
            Op::Swap(key, expect, bytes) => {
                ready(register.swap(key, expect.clone(), bytes.clone())).map(Answer::Swap)
            }
            Op::Remove(key, version) => ready(register.remove(key, version)).map(Answer::Remove),
            Op::List(prefix) => self.list(prefix),
        }
    }

    /// Removes a member's record, as an operator with the service's own tools does.
    pub(crate) fn remove_member(&mut self, id: &MemberId) {
        let key = format!("tenure/default/members/{id}");
        if let Some(Ok(Loaded::Found { version, .. })) = ready(self.register.load(&key, None)) {
            let _ = ready(self.register.remove(&key, &version));
        }
    }

    /// What a read answers at once.
    pub(super) fn look(&self, now: Mono, query: &Query) -> tenure_core::Snapshot {
        let Some(eye) = &self.eye else { return tenure_core::Snapshot::default() };
        eye.clock.set(now);
        let seen = ready(eye.store.read(&Namespace::default(), query));
        seen.and_then(Result::ok).unwrap_or_default()
    }

    pub(super) fn bindings(&self, now: Mono, which: &WhichNames) -> Vec<Binding> {
        let Some(eye) = &self.eye else { return Vec::new() };
        eye.clock.set(now);
        let seen = ready(eye.store.names(&Namespace::default(), which));
        seen.and_then(Result::ok).unwrap_or_default().bindings
    }

    pub(super) fn amend(&mut self, now: Mono, amend: &Amend) -> Option<Amended> {
        let eye = self.eye.as_ref()?;
        eye.clock.set(now);
        ready(eye.store.amend(&Namespace::default(), amend))?.ok()
    }
}
