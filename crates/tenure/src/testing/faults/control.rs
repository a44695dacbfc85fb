//! What the test decides, and what it can count.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{Amend, Bind, Hint, Namespace, Request};
use tokio::sync::Notify;

use tenure_store::{Error, ErrorKind, Result};

/// A verb of the [`Store`](tenure_store::Store) contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreVerb {
    /// [`Store::join`](tenure_store::Store::join).
    Join,
    /// [`Store::heartbeat`](tenure_store::Store::heartbeat).
    Heartbeat,
    /// [`Store::leave`](tenure_store::Store::leave).
    Leave,
    /// [`Store::claim`](tenure_store::Store::claim).
    Claim,
    /// [`Store::release`](tenure_store::Store::release).
    Release,
    /// [`Store::bind`](tenure_store::Store::bind).
    Bind,
    /// [`Store::names`](tenure_store::Store::names).
    Names,
    /// [`Store::amend`](tenure_store::Store::amend).
    Amend,
    /// [`Store::read`](tenure_store::Store::read).
    Read,
    /// [`Store::journal`](tenure_store::Store::journal).
    Journal,
    /// [`Store::follow`](tenure_store::Store::follow).
    Follow,
}

impl StoreVerb {
    /// Whether a call of it can have written anything.
    fn writes(self) -> bool {
        !matches!(self, StoreVerb::Read | StoreVerb::Names | StoreVerb::Journal | StoreVerb::Follow)
    }
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It fails without reaching the store, and the error says so.
    FailBefore,
    /// It is applied, but the answer is lost: the error says that it may have
    /// been (rule E2).
    FailAfter,
    /// It never reaches the store, but the caller cannot know: the error says
    /// that it may have been applied.
    LoseRequest,
    /// The caller is told that it may have been applied; it is, when
    /// [`FaultyStore::deliver_late`](super::FaultyStore::deliver_late) is called.
    Late,
    /// It reaches the store twice; the second answer is given.
    Double,
    /// It reaches the store this much later.
    Delay(Duration),
    /// It is applied at once; the answer comes this much later.
    DelayReply(Duration),
    /// It reaches the store when
    /// [`FaultyStore::let_go`](super::FaultyStore::let_go) is called.
    Hold,
    /// It is applied at once; the answer comes when
    /// [`FaultyStore::let_go`](super::FaultyStore::let_go) is called.
    HoldReply,
    /// It never reaches the store and is never answered.
    Hang,
}

/// What becomes of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HintFault {
    /// They arrive.
    #[default]
    Deliver,
    /// They are lost, except the one that comes first.
    Drop,
    /// Each arrives twice.
    Double,
}

/// What was asked of a store.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    calls: BTreeMap<StoreVerb, u64>,
    /// Bids in all claims.
    pub bids: u64,
    /// Items in all releases.
    pub releases: u64,
    /// Changes of names in all requests.
    pub names: u64,
    /// Terms named in all heartbeats.
    pub terms: u64,
    /// Requests that failed by a fault or an outage.
    pub failures: u64,
}

impl Counts {
    /// How often a verb was called.
    #[must_use]
    pub fn calls(&self, verb: StoreVerb) -> u64 {
        self.calls.get(&verb).copied().unwrap_or(0)
    }

    /// How many requests that may write were made: what a member costs its
    /// store.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.calls.iter().filter(|(verb, _)| verb.writes()).map(|(_, count)| count).sum()
    }
}

/// A request that is kept back.
#[derive(Debug)]
pub(super) enum Late {
    Request(Request),
    Amend(Amend),
    Bind(Bind),
}

#[derive(Debug, Default)]
pub(super) struct State {
    scripts: BTreeMap<StoreVerb, VecDeque<Fault>>,
    pub(super) outage: bool,
    pub(super) delay: Duration,
    pub(super) hints: HintFault,
    pub(super) forged: Vec<Hint>,
    pub(super) late: Vec<(Namespace, Late)>,
    pub(super) counts: Counts,
    /// How often what was held has been let go.
    gate: u64,
}

impl State {
    pub(super) fn script(&mut self, verb: StoreVerb, faults: impl IntoIterator<Item = Fault>) {
        self.scripts.entry(verb).or_default().extend(faults);
    }

    pub(super) fn let_go(&mut self) {
        self.gate += 1;
    }

    fn next(&mut self, verb: StoreVerb) -> Option<Fault> {
        self.scripts.get_mut(&verb).and_then(VecDeque::pop_front)
    }
}

/// The state, and a bell that is rung whenever it changes.
#[derive(Debug, Default)]
pub(super) struct Control {
    state: Mutex<State>,
    changed: Notify,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let answer = change(&mut self.lock());
        self.changed.notify_waiters();
        answer
    }

    /// Returns once the state is as the caller waits for it.
    pub(super) async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listening begins before looking, so that no change falls between.
            changed.as_mut().enable();
            if self.look(&holds) {
                return;
            }
            changed.await;
        }
    }

    /// Returns when what is held now is let go.
    pub(super) async fn held(&self) {
        let gate = self.look(|state| state.gate);
        self.until(|state| state.gate > gate).await;
    }

    /// Counts a request and says what is to happen to it.
    pub(super) fn begin(
        &self,
        verb: StoreVerb,
        count: impl FnOnce(&mut Counts),
    ) -> Result<(Option<Fault>, Duration)> {
        self.change(|state| {
            *state.counts.calls.entry(verb).or_default() += 1;
            count(&mut state.counts);
            let fault = if state.outage { Some(Fault::FailBefore) } else { state.next(verb) };
            let fails = matches!(
                fault,
                Some(Fault::FailBefore | Fault::FailAfter | Fault::LoseRequest | Fault::Late)
            );
            state.counts.failures += u64::from(fails);
            if state.outage { Err(unreachable()) } else { Ok((fault, state.delay)) }
        })
    }
}

pub(super) fn unreachable() -> Error {
    Error::new(ErrorKind::Unreachable, "the store cannot be reached: a test has cut it off")
        .remedy("call outage(false) on the FaultyStore")
}

pub(super) fn failed_before(verb: StoreVerb) -> Error {
    let message = format!("the {verb:?} request did not reach the store: a test lost it");
    Error::new(ErrorKind::Unreachable, message)
}

pub(super) fn answer_lost(verb: StoreVerb) -> Error {
    let message = format!("the answer to the {verb:?} request did not arrive: a test lost it");
    let error = Error::new(ErrorKind::Timeout, message);
    if verb.writes() { error.maybe_applied() } else { error }
}
