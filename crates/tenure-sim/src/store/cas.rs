//! A compare-and-swap store: the real `CasStore`, one for each process, over a
//! register whose every operation is a message of its own.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use std::fmt;

use tenure_cas::CasRule;
use tenure_cas::{
    CasOptions, CasStore, Expect, Listed, Loaded, MemoryRegister, Register, Removed, Swapped,
    Version,
};
use tenure_core::{
    Amend, Amended, ElectionName, Failed, MemberId, MemberRef, Mono, Namespace, Query, Reply,
    Request, RequestId, TermNumber, Timestamp, Which,
};
use tenure_store::{Clock, Result, Store, perform, to_machine};

use crate::fact::Who;

/// An operation of the register, on its way.
#[derive(Debug)]
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

/// What becomes of an operation at the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is carried out and answered.
    Done,
    /// It is carried out and answered with an error that leaves it open.
    DoneUnsaid,
    /// It is not carried out, and the error says so.
    Refused,
    /// It is not carried out, and the error leaves it open.
    Unclear,
}

/// What a process and the register have between them.
#[derive(Debug, Default)]
struct Wire {
    calls: u64,
    outbox: Vec<u64>,
    ops: BTreeMap<u64, (Who, Op)>,
    answers: BTreeMap<u64, Answer>,
    waiting: BTreeMap<u64, Waker>,
}

/// The register as one process reaches it.
#[derive(Clone, Debug)]
struct Remote {
    who: Who,
    wire: Arc<Mutex<Wire>>,
}

/// One call of a [`Remote`].
struct Call {
    id: u64,
    wire: Arc<Mutex<Wire>>,
}

fn locked(wire: &Mutex<Wire>) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Remote {
    fn call(&self, op: Op) -> Call {
        let mut wire = locked(&self.wire);
        wire.calls += 1;
        let id = wire.calls;
        wire.ops.insert(id, (self.who, op));
        wire.outbox.push(id);
        Call { id, wire: Arc::clone(&self.wire) }
    }
}

impl Future for Call {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let mut wire = locked(&self.wire);
        if let Some(answer) = wire.answers.remove(&self.id) {
            return Poll::Ready(answer);
        }
        wire.waiting.insert(self.id, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut wire = locked(&self.wire);
        wire.waiting.remove(&self.id);
        wire.answers.remove(&self.id);
    }
}

/// An answer of another kind than what was asked cannot be.
fn odd<T>() -> Result<T> {
    let kind = tenure_store::ErrorKind::Internal;
    Err(tenure_store::Error::new(kind, "the register answered something else").maybe_applied())
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
}

/// A clock that shows what the world last set it to.
#[derive(Clone, Debug, Default)]
struct SetClock(Arc<AtomicU64>);

impl Clock for SetClock {
    fn now(&self) -> Mono {
        Mono::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Timestamp {
        Timestamp::default()
    }
}

/// A request that a process works on.
struct Task {
    id: RequestId,
    deadline: Mono,
    future: Pin<Box<dyn Future<Output = Result<Reply>> + Send>>,
}

/// One process's store.
struct Client {
    store: Arc<CasStore>,
    clock: SetClock,
    tasks: Vec<Task>,
}

/// The register, and the stores of all processes.
pub(crate) struct CasWorld {
    register: MemoryRegister,
    wire: Arc<Mutex<Wire>>,
    clients: BTreeMap<Who, Client>,
    drift_ppm: u32,
    /// A rule that every process's store breaks.
    broken: Option<CasRule>,
    /// Where listings of elections lag (C1), what the next one of each prefix shows: the
    /// cells as they were at the one before it.
    stale: Option<BTreeMap<String, Vec<Listed>>>,
    /// One who sees everything at once, for fences, operators and surveys.
    eye: Option<Client>,
}

impl fmt::Debug for CasWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bytes of a record may come in another order in another run.
        let writes = self.register.writes();
        f.debug_struct("CasWorld").field("writes", &writes).finish_non_exhaustive()
    }
}

/// Polls a future that is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

impl CasWorld {
    pub(crate) fn new(drift_ppm: u32, broken: Option<CasRule>, listings_lag: bool) -> Self {
        let register = MemoryRegister::new();
        let mut world = Self {
            register: register.clone(),
            wire: Arc::default(),
            clients: BTreeMap::new(),
            drift_ppm,
            broken,
            stale: listings_lag.then(BTreeMap::new),
            eye: None,
        };
        world.eye = world.client(Arc::new(register));
        world
    }

    fn client(&self, register: Arc<dyn Register>) -> Option<Client> {
        let clock = SetClock::default();
        let options = CasOptions { drift_ppm: self.drift_ppm, seed: 1, ..CasOptions::default() };
        let store = CasStore::new(register, Arc::new(clock.clone()), options).ok()?;
        Some(Client { store: Arc::new(store), clock, tasks: Vec::new() })
    }

    pub(crate) fn started(&mut self, who: Who) {
        let remote = Remote { who, wire: Arc::clone(&self.wire) };
        if let Some(client) = self.client(Arc::new(remote)) {
            if let Some(rule) = self.broken {
                client.store.mutate(rule);
            }
            self.clients.insert(who, client);
        }
    }

    pub(crate) fn gone(&mut self, who: Who) {
        self.clients.remove(&who);
    }

    /// Begins a request.
    pub(crate) fn begin(&mut self, who: Who, id: RequestId, deadline: Mono, request: Request) {
        let Some(client) = self.clients.get_mut(&who) else { return };
        let store = Arc::clone(&client.store);
        let future =
            Box::pin(async move { perform(store.as_ref(), &Namespace::default(), &request).await });
        client.tasks.push(Task { id, deadline, future });
    }

    /// Goes on with every request of a process; gives what is answered.
    pub(crate) fn poll(
        &mut self,
        who: Who,
        local: Mono,
    ) -> Vec<(RequestId, std::result::Result<Reply, Failed>)> {
        let Some(client) = self.clients.get_mut(&who) else { return Vec::new() };
        client.clock.0.store(local.as_nanos(), Ordering::Relaxed);
        let mut answered = Vec::new();
        client.tasks.retain_mut(|task| {
            if local >= task.deadline {
                return false;
            }
            match task.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => {
                    answered.push((task.id, to_machine(result)));
                    false
                }
                Poll::Pending => true,
            }
        });
        answered
    }

    /// The calls that were made since this was last asked.
    pub(crate) fn calls(&mut self) -> Vec<u64> {
        std::mem::take(&mut locked(&self.wire).outbox)
    }

    /// An operation reaches the register. Gives whom to answer.
    pub(crate) fn arrive(&mut self, call: u64, fate: Fate) -> Option<Who> {
        let (who, op) = locked(&self.wire).ops.remove(&call)?;
        let error = tenure_store::Error::new(tenure_store::ErrorKind::Unreachable, "it failed");
        let answer = match fate {
            Fate::Done => self.carry_out(&op)?,
            Fate::DoneUnsaid => {
                self.carry_out(&op)?;
                op.failed(error.maybe_applied())
            }
            Fate::Refused => op.failed(error),
            Fate::Unclear => op.failed(error.maybe_applied()),
        };
        locked(&self.wire).answers.insert(call, answer);
        Some(who)
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

    /// An answer reaches its process.
    pub(crate) fn answered(&mut self, call: u64) {
        let waker = locked(&self.wire).waiting.remove(&call);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Removes a member's record, as somebody with the service's own tools does.
    pub(crate) fn remove_member(&mut self, id: &MemberId) {
        let key = format!("tenure/default/members/{id}");
        if let Some(Ok(Loaded::Found { version, .. })) = ready(self.register.load(&key, None)) {
            let _ = ready(self.register.remove(&key, &version));
        }
    }

    fn look(&self, now: Mono, query: &Query) -> tenure_core::Snapshot {
        let Some(eye) = &self.eye else { return tenure_core::Snapshot::default() };
        eye.clock.0.store(now.as_nanos(), Ordering::Relaxed);
        let seen = ready(eye.store.read(&Namespace::default(), query));
        seen.and_then(Result::ok).unwrap_or_default()
    }

    pub(crate) fn amend(&mut self, now: Mono, amend: &Amend) -> Option<Amended> {
        let eye = self.eye.as_ref()?;
        eye.clock.0.store(now.as_nanos(), Ordering::Relaxed);
        ready(eye.store.amend(&Namespace::default(), amend))?.ok()
    }

    pub(crate) fn newest(&self, now: Mono, election: &ElectionName) -> TermNumber {
        let seen = self.look(now, &Query::elections([election.clone()]));
        seen.elections.first().map_or(TermNumber::NONE, |view| view.number)
    }

    pub(crate) fn holder(
        &self,
        now: Mono,
        election: &ElectionName,
    ) -> Option<(MemberRef, TermNumber)> {
        let seen = self.look(now, &Query::elections([election.clone()]));
        let view = seen.elections.into_iter().next()?;
        Some((view.holder?.member, view.number))
    }

    pub(crate) fn everything(&self, now: Mono) -> tenure_core::Snapshot {
        self.look(now, &Query { which: Which::All, members: true, ..Query::nothing() })
    }
}
