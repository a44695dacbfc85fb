//! One state of a small world: what every process, the store and the network
//! hold at one moment.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tenure_core::{
    ElectionName, Hint, Incarnation, Input, Machine, MemberId, Mono, Name, Priority, Profile,
    Reply, Request, RequestId, StoreTraits, TermNumber, Timestamp, Token,
};
use tenure_store::MemoryState;

use crate::config::{Budget, Config, STEP};
use crate::marks::Marks;
use crate::naming::Owned;

/// How much of the journal the store keeps: enough to know the lives that
/// ended, which is all that the protocol needs of it.
pub(crate) const JOURNAL: usize = 12;

/// A rule that was seen broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// Two lives were elected to one term.
    TwoHolders,
    /// A number came back.
    NumberWentBack,
    /// A term was given back while its work may still have run.
    ReleasedEarly,
    /// A member trusted a term that the store does not have under its name.
    TrustBeyondGrant,
    /// The store showed a term of a life that is no member any more.
    OutlivedByTerm,
    /// A token of a name came back.
    TokenWentBack,
    /// A member trusted a name that the store does not have under its life and token.
    OwnedBeyondGrant,
}

/// A request on its way to the store, or a reply on its way back.
#[derive(Clone, Debug, Hash)]
pub struct Letter {
    /// Whose.
    pub process: usize,
    /// Which life of that process: a reply finds only its own.
    pub life: u8,
    /// The number of the request.
    pub id: RequestId,
    /// What is in it.
    pub body: Body,
    /// It was not delivered in the step it was written in, and may now take as
    /// long as it likes.
    pub late: bool,
}

/// The two kinds of letter.
#[derive(Clone, Debug, Hash)]
pub enum Body {
    /// To the store.
    Request(Request),
    /// From it.
    Reply(Reply),
}

impl Letter {
    /// Letters are kept in this order, so that the order in which they were
    /// written makes no difference between states.
    fn key(&self) -> (usize, u8, RequestId, bool, bool) {
        let reply = matches!(self.body, Body::Reply(_));
        (self.process, self.life, self.id, reply, self.late)
    }
}

/// A term that a process works under.
#[derive(Clone, Debug, Hash)]
pub struct Leadership {
    /// Of which election.
    pub election: ElectionName,
    /// The term.
    pub number: TermNumber,
    /// Until when `is_current()` says yes, on the process's own clock.
    pub trusted_until: Mono,
    /// The work was told to stop, and drains.
    pub stopping: bool,
    /// The work was told that the term is lost, and has the margin to stop in.
    pub lost: bool,
}

/// One process: the machine, and the application's side of it.
#[derive(Clone, Debug, Hash)]
pub struct Process {
    /// `None` while the process is dead.
    pub machine: Option<Arc<Machine>>,
    /// How often it has been restarted.
    pub life: u8,
    /// How many steps its clock is behind.
    pub slow: u8,
    /// Cut off from the store: nothing it writes arrives, nor anything for it.
    pub cut: bool,
    /// Whether it stands again after a loss: not once it shuts down.
    pub stands: bool,
    /// The terms it works under.
    pub leaderships: Vec<Leadership>,
    /// The names it works under.
    pub owned: Vec<Owned>,
    /// The names it waits for, by ticket.
    pub asks: BTreeMap<u64, Name>,
    /// How many tickets it has used.
    pub tickets: u64,
    /// Hints on their way to it.
    pub hints: Vec<Hint>,
}

/// Everything.
#[derive(Clone, Debug)]
pub struct World {
    /// Steps of time that have passed on the store's clock.
    pub now: u8,
    /// The processes.
    pub processes: Vec<Process>,
    /// The store.
    pub store: Arc<MemoryState>,
    /// What is on its way.
    pub letters: Vec<Letter>,
    /// The trouble that may still come.
    pub left: Budget,
    /// Who was told that it had won which term.
    pub heard: BTreeMap<(ElectionName, TermNumber), Incarnation>,
    /// Who was told last that it owns which name, and under which token.
    pub owners: BTreeMap<Name, (Token, usize)>,
    /// The newest token of each name in the store.
    pub tokens: BTreeMap<Name, Token>,
    /// The first rule that was seen broken.
    pub broken: Option<Broken>,
    /// What the last step brought about. No part of the state.
    pub(crate) seen: Marks,
}

impl World {
    /// The beginning: every process has just started and stands everywhere.
    pub(crate) fn begin(config: &Config) -> Option<Self> {
        let process = Process {
            machine: None,
            life: 0,
            slow: 0,
            cut: false,
            stands: true,
            leaderships: Vec::new(),
            owned: Vec::new(),
            asks: BTreeMap::new(),
            tickets: 0,
            hints: Vec::new(),
        };
        let mut world = Self {
            now: 0,
            processes: vec![process; config.members],
            store: Arc::new(MemoryState::keeping(JOURNAL)),
            letters: Vec::new(),
            left: config.budget,
            heard: BTreeMap::new(),
            owners: BTreeMap::new(),
            tokens: BTreeMap::new(),
            broken: None,
            seen: Marks::default(),
        };
        for process in 0..config.members {
            world.start(config, process)?;
        }
        Some(world)
    }

    /// Starts a process: a new machine, under the same id, that stands for
    /// every election.
    pub(crate) fn start(&mut self, config: &Config, process: usize) -> Option<()> {
        let id = member_id(process)?;
        let seed = (process as u128 + 1) * 1_000 + u128::from(self.processes[process].life);
        let traits = StoreTraits {
            native_watch: config.hints,
            batch: 10,
            in_steps: false,
            elects_heirs: config.elects_heirs,
        };
        let mut machine = Machine::new(id, Profile::default(), Config::settings()?, traits, seed);
        machine.steady();
        if let Some(mutation) = config.mutation {
            machine.mutate(mutation);
        }
        self.processes[process].machine = Some(Arc::new(machine));
        for election in elections(config) {
            self.feed(process, Input::Stand { election, priority: Priority::default() });
        }
        self.ask_for_names(config, process);
        Some(())
    }

    /// The store's clock. Its origin is none of the processes'.
    pub(crate) fn store_clock(&self) -> Mono {
        Mono::ZERO + STEP * (500 + u32::from(self.now))
    }

    /// A process's own clock.
    pub(crate) fn clock(&self, process: usize) -> Mono {
        let origin = 1_000 * (u32::try_from(process).unwrap_or(0) + 1);
        let passed = u32::from(self.now) - u32::from(self.processes[process].slow);
        Mono::ZERO + STEP * (origin + passed)
    }

    /// The store's wall clock, which nothing depends on.
    pub(crate) fn wall() -> Timestamp {
        Timestamp::default()
    }

    /// Whether a process has asked to be run by now.
    pub(crate) fn is_due(&self, process: usize) -> bool {
        let wake = self.processes[process].machine.as_ref().and_then(|m| m.next_wake());
        wake.is_some_and(|at| at <= self.clock(process))
    }

    /// The processes that trust, by their own clocks, that they lead this
    /// election. It is asked as an application asks: a deadline and a clock.
    pub fn trusting<'w>(
        &'w self,
        election: &'w ElectionName,
    ) -> impl Iterator<Item = (usize, &'w Leadership)> {
        self.processes.iter().enumerate().flat_map(move |(process, p)| {
            let now = self.clock(process);
            let trusted = p
                .leaderships
                .iter()
                .filter(move |r| r.election == *election && !r.lost && now < r.trusted_until);
            trusted.map(move |leadership| (process, leadership))
        })
    }

    pub(crate) fn post(&mut self, letter: Letter) {
        let place = self.letters.partition_point(|l| l.key() <= letter.key());
        self.letters.insert(place, letter);
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.now.hash(state);
        self.processes.hash(state);
        self.store.hash(state);
        self.letters.hash(state);
        self.left.hash(state);
        self.heard.hash(state);
        self.owners.hash(state);
        self.tokens.hash(state);
        self.broken.hash(state);
    }
}

// A machine cannot be compared, only digested.
impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

/// The id of a process. It is the same in every life.
pub(crate) fn member_id(process: usize) -> Option<MemberId> {
    MemberId::new(format!("m{process}")).ok()
}

/// The elections of a world.
pub(crate) fn elections(config: &Config) -> impl Iterator<Item = ElectionName> + use<> {
    (0..config.elections).filter_map(|n| ElectionName::new(format!("e{n}")).ok())
}
