//! Reaching a service by messages: each operation is one, and so is its answer. What
//! waits for an answer is a future that the world polls; no runtime is involved.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tenure_core::{Amend, Failed, Mono, Namespace, Reply, Request, RequestId, Timestamp};
use tenure_store::{Clock, Error, ErrorKind, Result, SharedStore, perform, to_machine};

use crate::fact::Who;

/// What becomes of an operation at the service.
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

impl Fate {
    /// Whether it is carried out.
    pub(super) fn acts(self) -> bool {
        matches!(self, Fate::Done | Fate::DoneUnsaid)
    }

    /// The error that is answered instead, if there is one.
    pub(super) fn error(self) -> Option<Error> {
        let error = Error::new(ErrorKind::Unreachable, "it failed");
        match self {
            Fate::Done => None,
            Fate::Refused => Some(error),
            Fate::DoneUnsaid | Fate::Unclear => Some(error.maybe_applied()),
        }
    }
}

/// An operation or an answer that arrived, and whose it is: a process's, or an operator's.
pub(crate) type Caller = Option<Who>;

/// What all clients and the service have between them.
#[derive(Debug)]
struct Letters<O, A> {
    calls: u64,
    outbox: Vec<u64>,
    /// Operations on their way, with how many copies of each there are.
    ops: BTreeMap<u64, (Caller, O, usize)>,
    /// The calls with a task that waits, and what to wake: a store may have many calls
    /// under way at once, and go on with those alone that are answered.
    open: BTreeMap<u64, Waker>,
    /// Answers on their way, by a number of their own: an operation that arrived twice has
    /// two of them.
    underway: BTreeMap<u64, (u64, A)>,
    /// Answers that have arrived, by their call.
    answers: BTreeMap<u64, A>,
}

/// The way between clients and the service.
#[derive(Debug)]
pub(super) struct Wire<O, A>(Arc<Mutex<Letters<O, A>>>);

impl<O, A> Clone for Wire<O, A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O, A> Default for Wire<O, A> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Letters {
            calls: 0,
            outbox: Vec::new(),
            ops: BTreeMap::new(),
            open: BTreeMap::new(),
            underway: BTreeMap::new(),
            answers: BTreeMap::new(),
        })))
    }
}

impl<O: Clone, A> Wire<O, A> {
    fn letters(&self) -> MutexGuard<'_, Letters<O, A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an operation.
    pub(super) fn call(&self, by: Caller, op: O) -> Call<O, A> {
        let mut letters = self.letters();
        letters.calls += 1;
        let id = letters.calls;
        letters.ops.insert(id, (by, op, 1));
        letters.open.insert(id, Waker::noop().clone());
        letters.outbox.push(id);
        Call { id, wire: self.clone() }
    }

    /// The calls that were made since this was last asked.
    pub(super) fn sent(&self) -> Vec<u64> {
        std::mem::take(&mut self.letters().outbox)
    }

    /// An operation is going to arrive twice.
    pub(super) fn double(&self, call: u64) {
        if let Some((_, _, copies)) = self.letters().ops.get_mut(&call) {
            *copies += 1;
        }
    }

    /// All operations of one caller that are on their way are lost.
    pub(super) fn lose(&self, of: Caller) {
        self.letters().ops.retain(|_, (by, _, _)| *by != of);
    }

    /// Takes an operation that has reached the service.
    pub(super) fn take(&self, call: u64) -> Option<(Caller, O)> {
        let mut letters = self.letters();
        let (by, op, copies) = letters.ops.get_mut(&call)?;
        *copies -= 1;
        let found = (*by, op.clone());
        let left = *copies;
        if left == 0 {
            letters.ops.remove(&call);
        }
        Some(found)
    }

    /// The service answers. Gives the number of the answer.
    pub(super) fn answer(&self, call: u64, answer: A) -> u64 {
        let mut letters = self.letters();
        letters.calls += 1;
        let id = letters.calls;
        letters.underway.insert(id, (call, answer));
        id
    }

    /// An answer reaches whom it is for. The first one counts.
    pub(super) fn arrived(&self, answer: u64) {
        let mut letters = self.letters();
        let Some((call, answer)) = letters.underway.remove(&answer) else { return };
        if let Some(waker) = letters.open.get(&call).cloned() {
            letters.answers.entry(call).or_insert(answer);
            drop(letters);
            waker.wake();
        }
    }
}

/// One call, until it is answered.
pub(super) struct Call<O: Clone, A> {
    id: u64,
    wire: Wire<O, A>,
}

impl<O: Clone, A> Drop for Call<O, A> {
    fn drop(&mut self) {
        let mut letters = self.wire.letters();
        letters.open.remove(&self.id);
        letters.answers.remove(&self.id);
    }
}

impl<O: Clone, A> Future for Call<O, A> {
    type Output = A;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A> {
        let mut letters = self.wire.letters();
        if let Some(answer) = letters.answers.remove(&self.id) {
            return Poll::Ready(answer);
        }
        letters.open.insert(self.id, context.waker().clone());
        Poll::Pending
    }
}

/// An answer of another kind than what was asked cannot be.
pub(super) fn odd<T>() -> Result<T> {
    let kind = ErrorKind::Internal;
    Err(Error::new(kind, "the service answered something else").maybe_applied())
}

/// A clock that shows what the world last set it to.
#[derive(Clone, Debug, Default)]
pub(super) struct SetClock(Arc<AtomicU64>);

impl SetClock {
    pub(super) fn set(&self, now: Mono) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Mono {
        Mono::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Timestamp {
        Timestamp::default()
    }
}

/// A request that is worked on. What an operator asks has no number.
struct Task {
    id: Option<RequestId>,
    deadline: Mono,
    future: Pin<Box<dyn Future<Output = Result<Reply>> + Send>>,
}

/// What a client has been answered.
pub(crate) type Answered = Vec<(RequestId, std::result::Result<Reply, Failed>)>;

/// One process's store, or an operator's, and what it is asked.
pub(super) struct Client {
    pub(super) store: SharedStore,
    pub(super) clock: SetClock,
    tasks: Vec<Task>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(store: SharedStore, clock: SetClock) -> Self {
        Self { store, clock, tasks: Vec::new() }
    }

    /// Begins a request.
    pub(super) fn begin(&mut self, id: RequestId, deadline: Mono, request: Request) {
        let store = Arc::clone(&self.store);
        let future =
            Box::pin(async move { perform(store.as_ref(), &Namespace::default(), &request).await });
        self.tasks.push(Task { id: Some(id), deadline, future });
    }

    /// Begins what an operator asks, who does not wait for the answer.
    pub(super) fn amend(&mut self, amend: Amend) {
        let store = Arc::clone(&self.store);
        let future = Box::pin(async move {
            store.amend(&Namespace::default(), &amend).await?;
            Ok(Reply::Release)
        });
        self.tasks.push(Task { id: None, deadline: Mono::MAX, future });
    }

    /// Goes on with every request; gives what is answered.
    pub(super) fn poll(&mut self, local: Mono) -> Answered {
        self.clock.set(local);
        let mut answered = Vec::new();
        self.tasks.retain_mut(|task| {
            if local >= task.deadline {
                return false;
            }
            match task.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => {
                    answered.extend(task.id.map(|id| (id, to_machine(result))));
                    false
                }
                Poll::Pending => true,
            }
        });
        answered
    }
}

/// Polls a future that is ready at once.
pub(super) fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
