//! A store that judges and whose rows lie elsewhere: the real `TurnStore`, one for each
//! process and one for operators, over the rows of a service that is reached by messages.
//!
//! Between a look and its turn anything may happen: a process is stopped, a message is
//! late, lost or doubled, another turn or a heartbeat comes first, and the turn may wait for
//! the service's lock. The guards must make all of it harmless.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use tenure_core::{
    Amend, Amended, Beat, Binding, Entry, Heartbeat, Mono, Namespace, Query, Request, RequestId,
    Rev, Seq, Snapshot, WhichNames,
};
use tenure_rules::{Looked, MemberRow, Turn, Want};
use tenure_store::{
    Capabilities, Error, MemoryRows, NameTraits, Page, Result, Rows, Store, TurnStore, Turned,
};

use super::remote::{Answered, Caller, Client, Fate, SetClock, Wire, odd, ready};
use crate::fact::Who;
use crate::mutation::TurnRule;

/// An operation of the service, on its way.
#[derive(Clone, Debug)]
enum Op {
    Look(BTreeSet<Want>),
    Turn(Box<Turn>, BTreeSet<Want>),
    Beat(Heartbeat),
    Entries(Seq, usize),
}

/// What it answered.
#[derive(Debug)]
enum Answer {
    Look(Result<Looked>),
    Turn(Result<Turned>),
    Beat(Result<Beat>),
    Entries(Result<Page>),
}

impl Op {
    /// The answer to this operation when the service fails.
    fn failed(&self, error: Error) -> Answer {
        match self {
            Op::Look(_) => Answer::Look(Err(error)),
            Op::Turn(..) => Answer::Turn(Err(error)),
            Op::Beat(_) => Answer::Beat(Err(error)),
            Op::Entries(..) => Answer::Entries(Err(error)),
        }
    }
}

/// The service as one client reaches it.
#[derive(Clone, Debug)]
struct Remote {
    by: Caller,
    wire: Wire<Op, Answer>,
}

#[async_trait::async_trait]
impl Rows for Remote {
    async fn look(&self, _: &Namespace, wants: &BTreeSet<Want>) -> Result<Looked> {
        match self.wire.call(self.by, Op::Look(wants.clone())).await {
            Answer::Look(looked) => looked,
            _ => odd(),
        }
    }

    async fn turn(&self, _: &Namespace, turn: &Turn, wants: &BTreeSet<Want>) -> Result<Turned> {
        let turn = Op::Turn(Box::new(turn.clone()), wants.clone());
        match self.wire.call(self.by, turn).await {
            Answer::Turn(turned) => turned,
            _ => odd(),
        }
    }

    async fn beat(&self, _: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        match self.wire.call(self.by, Op::Beat(beat.clone())).await {
            Answer::Beat(beat) => beat,
            _ => odd(),
        }
    }

    async fn entries(&self, _: &Namespace, after: Seq, most: usize) -> Result<Page> {
        match self.wire.call(self.by, Op::Entries(after, most)).await {
            Answer::Entries(page) => page,
            _ => odd(),
        }
    }

    async fn wait(&self, _: &Namespace, _: Seq, _: Rev) -> Result<()> {
        // No member follows here: the world sends the hints.
        std::future::pending().await
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::judging("turns");
        capabilities.elects_heirs = true;
        capabilities.names = Some(NameTraits::ALL);
        capabilities
    }
}

/// What an operation changed in the service's rows.
#[derive(Debug)]
pub struct Step {
    /// The members before it.
    pub before: Vec<MemberRow>,
    /// The members after it.
    pub after: Vec<MemberRow>,
    /// What it wrote into the journal.
    pub entries: Vec<Entry>,
    /// Whether it was a turn of which a guard did not hold.
    pub conflict: bool,
}

impl Step {
    /// Whether nothing came of it.
    pub(crate) fn is_idle(&self) -> bool {
        self.before == self.after && self.entries.is_empty() && !self.conflict
    }
}

/// An operation that has reached the service.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// Whose it is.
    pub(crate) by: Caller,
    /// The number of its answer.
    pub(crate) answer: u64,
    /// What it did, if it was carried out in rows.
    pub(crate) step: Option<Step>,
    /// Whether it may have written a name.
    pub(crate) wrote_names: bool,
}

/// The service, and the stores of all processes.
pub(crate) struct TurnWorld {
    rows: Arc<MemoryRows>,
    clock: SetClock,
    wire: Wire<Op, Answer>,
    clients: BTreeMap<Who, Client>,
    /// The operators' store.
    operator: Client,
    /// One that reaches the rows at once, for fences and surveys.
    eye: TurnStore,
    broken: Option<TurnRule>,
}

impl fmt::Debug for TurnWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnWorld").field("rows", &self.members()).finish_non_exhaustive()
    }
}

fn client(by: Caller, wire: &Wire<Op, Answer>) -> Client {
    let remote = Remote { by, wire: wire.clone() };
    Client::new(TurnStore::new(Arc::new(remote)).shared(), SetClock::default())
}

impl TurnWorld {
    pub(super) fn new(broken: Option<TurnRule>) -> Self {
        let clock = SetClock::default();
        let rows = Arc::new(MemoryRows::new(Arc::new(clock.clone()), 1_000));
        let wire = Wire::default();
        Self {
            eye: TurnStore::new(Arc::<MemoryRows>::clone(&rows)),
            operator: client(None, &wire),
            clients: BTreeMap::new(),
            rows,
            clock,
            wire,
            broken,
        }
    }

    pub(super) fn started(&mut self, who: Who) {
        self.clients.insert(who, client(Some(who), &self.wire));
    }

    pub(super) fn gone(&mut self, who: Who) {
        self.clients.remove(&who);
    }

    pub(super) fn begin(&mut self, who: Who, id: RequestId, deadline: Mono, request: Request) {
        if let Some(client) = self.clients.get_mut(&who) {
            client.begin(id, deadline, request);
        }
    }

    /// An operator asks something, in steps as members do.
    pub(crate) fn ask(&mut self, amend: Amend) {
        self.operator.amend(amend);
    }

    /// What operators have under way comes to nothing.
    pub(crate) fn operators_stop(&mut self) {
        self.operator = client(None, &self.wire);
        self.wire.lose(None);
    }

    pub(super) fn poll(&mut self, by: Caller, local: Mono) -> (Answered, Vec<u64>) {
        let client = match by {
            Some(who) => self.clients.get_mut(&who),
            None => Some(&mut self.operator),
        };
        client.map_or_else(Default::default, |client| (client.poll(local), self.wire.sent()))
    }

    pub(crate) fn double(&mut self, call: u64) {
        self.wire.double(call);
    }

    /// An operation has the service's lock, at `now` by its clock. It asked for it at
    /// `asked`.
    pub(crate) fn arrive(
        &mut self,
        call: u64,
        fate: Fate,
        asked: Mono,
        now: Mono,
    ) -> Option<Arrived> {
        let (by, op) = self.wire.take(call)?;
        let failed = fate.error().map(|error| op.failed(error));
        if !fate.acts() {
            let answer = self.wire.answer(call, failed?);
            return Some(Arrived { by, answer, step: None, wrote_names: false });
        }
        let early = self.broken == Some(TurnRule::ClockBeforeLock);
        self.clock.set(if early { asked } else { now });
        let before = self.members();
        let seq = self.seq();
        let done = self.carry_out(&op)?;
        let conflict = matches!(done, Answer::Turn(Ok(Turned::Conflict(_))));
        let step =
            Step { before, after: self.members(), entries: self.entries_after(seq), conflict };
        let answer = self.wire.answer(call, failed.unwrap_or(done));
        let wrote_names = matches!(op, Op::Turn(..)) && !conflict;
        Some(Arrived { by, answer, step: Some(step), wrote_names })
    }

    fn carry_out(&self, op: &Op) -> Option<Answer> {
        let ns = Namespace::default();
        Some(match op {
            Op::Look(wants) => Answer::Look(ready(self.rows.look(&ns, wants))?),
            Op::Turn(turn, wants) => {
                let turn = self.bend(turn);
                Answer::Turn(ready(self.rows.turn(&ns, &turn, wants))?)
            }
            Op::Beat(beat) => Answer::Beat(ready(self.rows.beat(&ns, beat))?),
            Op::Entries(after, most) => {
                Answer::Entries(ready(self.rows.entries(&ns, *after, *most))?)
            }
        })
    }

    /// The turn with one of its guards dropped, if one is.
    fn bend(&self, turn: &Turn) -> Turn {
        let mut turn = turn.clone();
        match self.broken {
            Some(TurnRule::CallerNotChecked) => turn.before = None,
            Some(TurnRule::MemberGuardDropped) => turn.unchanged.clear(),
            Some(TurnRule::ClockBeforeLock) | None => {}
        }
        turn
    }

    pub(super) fn answered(&mut self, answer: u64) {
        self.wire.arrived(answer);
    }

    fn members(&self) -> Vec<MemberRow> {
        let wants = BTreeSet::from([Want::Members]);
        let looked = ready(self.rows.look(&Namespace::default(), &wants));
        looked.and_then(Result::ok).map_or_else(Vec::new, |looked| looked.members)
    }

    pub(super) fn seq(&self) -> Seq {
        let looked = ready(self.rows.look(&Namespace::default(), &BTreeSet::new()));
        looked.and_then(Result::ok).map_or(Seq::default(), |looked| looked.seq)
    }

    pub(super) fn entries_after(&self, place: Seq) -> Vec<Entry> {
        match ready(self.rows.entries(&Namespace::default(), place, usize::MAX)) {
            Some(Ok(Page::Entries(entries))) => entries,
            _ => Vec::new(),
        }
    }

    /// What an operator asks after the healing: at once.
    pub(super) fn amend(&mut self, now: Mono, amend: &Amend) -> Option<Amended> {
        self.clock.set(now);
        ready(self.eye.amend(&Namespace::default(), amend))?.ok()
    }

    /// What a read answers at once.
    pub(super) fn look(&self, now: Mono, query: &Query) -> Snapshot {
        self.clock.set(now);
        let seen = ready(self.eye.read(&Namespace::default(), query));
        seen.and_then(Result::ok).unwrap_or_default()
    }

    pub(super) fn bindings(&self, now: Mono, which: &WhichNames) -> Vec<Binding> {
        self.clock.set(now);
        let seen = ready(self.eye.names(&Namespace::default(), which));
        seen.and_then(Result::ok).unwrap_or_default().bindings
    }
}
