//! A world: processes that run the real machine, a store, a network, and time,
//! stepped by one loop. Nothing here waits, and nothing asks the real world.
//!
//! [`World`] owns all of it and has the loop. What happens in it is told by views that
//! borrow it for a call, one for each file: applications ([`app`]) and their names
//! ([`naming`]), messages ([`network`]), [`trouble`] and [`healing`]. A view reaches
//! another one through the world alone.

mod app;
mod clients;
mod healing;
mod naming;
mod network;
mod process;
mod queue;
mod trouble;

use tenure_core::{
    ElectionName, Event, Hint, Input, Machine, MemberId, Mono, Name, NameAnswer, Output, Priority,
    Profile, StoreTraits,
};

use self::clients::ClientMap;
use self::process::{App, Process};
use self::queue::{Act, Happens, Queue};
use crate::clock::{Clock, Nanos};
use crate::config::{Config, Feature, StoreKind, nanos};
use crate::coverage::Coverage;
use crate::fact::{Fact, Who};
use crate::invariants::{Checks, Violation};
use crate::mutation::{Mutation, SessionRule};
use crate::rng::{Rng, TraceHash};
use crate::store::SimStore;
use crate::trace::Trace;

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    /// What did not hold, if anything.
    pub violation: Option<Violation>,
    /// What the run left behind.
    pub hash: TraceHash,
    /// How much time passed in the world.
    pub simulated: Nanos,
    /// How much happened in it.
    pub steps: u64,
    /// Which situations were reached.
    pub coverage: Coverage,
    /// What happened, line by line, if that was asked for.
    pub trace: Option<Trace>,
}

/// How a store is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    Silent,
    Refusing,
}

/// More than this in one run means that something spins.
const MOST_STEPS: u64 = 3_000_000;

/// The wall clock of a store when the world begins: 2027-01-01.
const START_MS: u64 = 1_798_761_600_000;

#[derive(Debug)]
pub(crate) struct World {
    config: Config,
    mutation: Option<Mutation>,
    now: Nanos,
    queue: Queue,
    processes: Vec<Process>,
    elections: Vec<ElectionName>,
    names: Vec<Name>,
    store: SimStore,
    store_clock: Clock,
    /// What the wall clock of the present copy showed when the world began.
    copy_wall_ms: u64,
    /// Whether the store serves no request, and if so whether it refuses at once or
    /// is silent.
    outage: Option<Outage>,
    /// Whether the time of faults is over.
    healed: bool,
    /// Whether an owner of names was taken away on purpose.
    orphaned: bool,
    /// Whether all are to leave.
    closing: bool,
    net: Rng,
    apps: Rng,
    troubles: Rng,
    starts: Rng,
    naming: Rng,
    serving: Rng,
    clients: ClientMap,
    /// How many sessions were begun.
    sessions: u64,
    checks: Checks,
    coverage: Coverage,
    trace: Option<Trace>,
    hash: TraceHash,
    steps: u64,
    done: bool,
}

/// Runs one world from its beginning to its end, or to the first violation.
#[must_use]
pub fn run(config: &Config, mutation: Option<Mutation>, traced: bool) -> Ran {
    let mut world = World::new(config.clone(), mutation, traced);
    world.begin();
    while !world.done && world.checks.violation().is_none() {
        let Some((at, what)) = world.queue.pop() else { break };
        world.now = world.now.max(at);
        world.steps += 1;
        world.happen(what);
        if world.steps > MOST_STEPS {
            world.checks.report("the world comes to an end", world.now, "it spins".to_owned());
        }
    }
    world.finish()
}

impl World {
    fn new(config: Config, mutation: Option<Mutation>, traced: bool) -> Self {
        let mut clocks = Rng::stream(config.seed, 2);
        let elections: Vec<_> =
            (0..config.elections).filter_map(|e| ElectionName::new(format!("e{e}")).ok()).collect();
        let store_clock = new_clock(&config, &mut clocks);
        let elsewhere = mutation != Some(Mutation::Session(SessionRule::MarginOnly));
        let mut processes = Vec::new();
        for index in 0..config.members {
            let named =
                if index == 1 && config.features.has(Feature::Namesakes) { 0 } else { index };
            let Ok(id) = MemberId::new(format!("m{named}")) else { continue };
            processes.push(Process {
                who: Who { process: index, start: 0 },
                id,
                settings: config.settings_of(index, elsewhere),
                clock: new_clock(&config, &mut clocks),
                machine: None,
                frozen: None,
                cut: false,
                wish: 0,
                leaving: false,
                app: App::default(),
            });
        }
        let settings = processes.iter().map(|p| p.settings.clone()).collect();
        Self {
            mutation,
            now: 0,
            queue: Queue::default(),
            processes,
            elections,
            names: (0..config.names).filter_map(|n| Name::new(format!("n{n}")).ok()).collect(),
            store: SimStore::new(&config, mutation),
            store_clock,
            copy_wall_ms: START_MS,
            outage: None,
            healed: false,
            orphaned: false,
            closing: false,
            net: Rng::stream(config.seed, 3),
            apps: Rng::stream(config.seed, 4),
            troubles: Rng::stream(config.seed, 5),
            starts: Rng::stream(config.seed, 6),
            naming: Rng::stream(config.seed, 8),
            serving: Rng::stream(config.seed, 9),
            clients: ClientMap::new(),
            sessions: 0,
            checks: Checks::new(&config, settings, store_clock),
            coverage: Coverage::default(),
            trace: traced.then(Trace::default),
            hash: TraceHash::default(),
            steps: 0,
            done: false,
            config,
        }
    }

    fn begin(&mut self) {
        for process in 0..self.processes.len() {
            let at = self.starts.below(nanos(self.config.ttl) * 2);
            self.queue.push(at, Happens::Start { process });
        }
        self.troubles().schedule_troubles();
        self.queue.push(self.config.chaos, Happens::Heal(0));
    }

    /// Whether trouble of this kind is made now.
    fn on(&self, feature: Feature) -> bool {
        !self.healed && self.config.features.has(feature)
    }

    fn happen(&mut self, what: Happens) {
        match what {
            Happens::Wake { who, wish } => {
                if self.processes[who.process].wish == wish {
                    self.reach(who, Happens::Wake { who, wish });
                }
            }
            Happens::Reply { who, .. }
            | Happens::Hint { who, .. }
            | Happens::App { who, .. }
            | Happens::Poll { who, .. }
            | Happens::CompareNames { who }
            | Happens::Answer { by: Some(who), .. } => {
                self.reach(who, what);
            }
            Happens::Request { who, id, request } => self.network().arrive(who, id, &request),
            Happens::Operator(amend) => {
                if !self.healed {
                    self.network().amend(&amend);
                }
            }
            Happens::Write { who, incarnation, election, token } => {
                let store = self.store_clock.at(self.now);
                let accepted = self.store.newest(store, &election) == token;
                self.see(Fact::Wrote { who, incarnation, election: &election, token, accepted });
            }
            Happens::Client(turn) => self.clients().turn(turn),
            Happens::Trouble(feature) => self.troubles().trouble(feature),
            Happens::Thaw { who } => self.troubles().thaw(who),
            Happens::Reconnect { process } => self.network().reconnect(process),
            // A process that was to start when all are to leave stays away.
            Happens::Start { process } if !self.closing => self.start(process),
            Happens::Start { .. } => {}
            Happens::Heal(part) => self.healing().heal(part),
            Happens::Call { call, asked } => self.network().serve(call, asked),
            Happens::Answer { by: None, answer } => self.network().serve_answers(None, answer),
        }
    }

    /// Brings something to a process: now, when it goes on, or never.
    fn reach(&mut self, who: Who, what: Happens) {
        let process = &mut self.processes[who.process];
        if !process.is(who) {
            return;
        }
        if let Some(frozen) = &mut process.frozen {
            let from_outside = matches!(
                what,
                Happens::Reply { .. }
                    | Happens::Hint { .. }
                    | Happens::Answer { .. }
                    | Happens::CompareNames { .. }
            );
            if !(frozen.suspended && from_outside) {
                frozen.inbox.push(what);
            }
            return;
        }
        match what {
            Happens::Wake { .. } => self.feed(who, Input::Wake),
            Happens::Reply { id, result, .. } => {
                self.feed(who, Input::Reply { id, result: Box::new(result) });
            }
            Happens::Hint { hint, .. } => self.feed(who, Input::Hint(hint)),
            Happens::Answer { answer, .. } => self.network().serve_answers(Some(who), answer),
            Happens::Poll { first, .. } => self.network().poll(who, first),
            Happens::App { act, .. } => self.apps().act(who, act),
            Happens::CompareNames { .. } => self.names().compare_names(who),
            _ => {}
        }
    }

    /// Starts a process in its place, if none runs there.
    fn start(&mut self, index: usize) {
        let traits = self.traits();
        let seed = self.starts.seed();
        let habits = self.apps().habits();
        let priorities: Vec<_> =
            self.elections.clone().into_iter().map(|e| (e, self.priority(index))).collect();
        let process = &mut self.processes[index];
        // Two of one id do not come right by themselves: one of them stays away.
        let namesake = index == 1 && self.config.features.has(Feature::Namesakes);
        if process.machine.is_some() || (self.healed && namesake) {
            return;
        }
        process.who.start += 1;
        let profile = Profile::default();
        let id = process.id.clone();
        let settings = process.settings.clone();
        let mut machine = Machine::new(id, profile, settings, traits, seed);
        if let Some(Mutation::Machine(rule)) = self.mutation {
            machine.mutate(rule);
        }
        process.machine = Some(machine);
        process.frozen = None;
        process.leaving = false;
        process.app = App { habits, priority: priorities.into_iter().collect(), ..App::default() };
        let who = process.who;
        self.store.started(who);
        self.see(Fact::Started { who });
        self.feed(who, Input::Join);
        if traits.native_watch {
            self.queue.push(self.now + 1, Happens::Hint { who, hint: Hint::Anything });
        }
        if self.config.poll().is_some() {
            self.queue.push(self.now + 1, Happens::Poll { who, first: true });
        }
        self.apps().begin_campaigns(who);
        self.names().begin_names(who);
    }

    fn traits(&self) -> StoreTraits {
        StoreTraits {
            native_watch: self.watched(),
            batch: if self.config.features.has(Feature::SmallBatches) { 1 } else { 100 },
            in_steps: self.config.store == StoreKind::Cas,
            elects_heirs: self.config.store != StoreKind::Cas,
        }
    }

    fn watched(&self) -> bool {
        self.config.watched()
    }

    /// One of three priorities; the first process can always lead.
    fn priority(&self, index: usize) -> Priority {
        if !self.config.features.has(Feature::Priorities) {
            return Priority::default();
        }
        let mut rng = Rng::stream(self.config.seed, 2_000 + index as u64);
        let level = *rng.pick(&[0, 50, 100, 200]).unwrap_or(&100);
        Priority::new(if index == 0 { level.max(50) } else { level })
    }

    fn do_in(&mut self, after: Nanos, who: Who, act: Act) {
        self.queue.push(self.now + after, Happens::App { who, act });
    }

    /// When `span` by the process's own clock has passed.
    fn do_after(&mut self, span: std::time::Duration, who: Who, act: Act) {
        let process = &self.processes[who.process];
        let at = process.clock.reaches(process.local(self.now) + span);
        self.queue.push(at.max(self.now), Happens::App { who, act });
    }

    /// Feeds a machine one input and carries out what it says.
    fn feed(&mut self, who: Who, input: Input) {
        let process = &mut self.processes[who.process];
        let local = process.clock.at(self.now);
        self.see(Fact::Fed { who, local, input: &input });
        let process = &mut self.processes[who.process];
        let Some(machine) = &mut process.machine else { return };
        machine.handle(local, input);
        while let Some(output) =
            self.processes[who.process].machine.as_mut().and_then(Machine::poll)
        {
            match output {
                Output::Send(out) => self.network().send(who, local, out),
                Output::Event(event) => self.tell(who, local, event),
            }
        }
        self.see(Fact::Settled { who, local });
        self.make_wish(who);
        self.network().work_on_calls(Some(who));
    }

    /// Schedules the wake that the machine wishes for, sometimes a little late,
    /// as operating systems do.
    fn make_wish(&mut self, who: Who) {
        let late = if self.net.chance(200) { self.net.below(2_000_000) } else { 0 };
        let now = self.now;
        let process = &mut self.processes[who.process];
        process.wish += 1;
        let wish = process.wish;
        let Some(machine) = &process.machine else { return };
        if machine.is_done() {
            return self.apps().left(who);
        }
        if let Some(wake) = machine.next_wake() {
            let at = process.clock.reaches(wake).max(now).saturating_add(late);
            self.queue.push(at, Happens::Wake { who, wish });
        }
    }

    fn tell(&mut self, who: Who, local: Mono, event: Event) {
        let clock = self.processes[who.process].clock;
        let until = match &event {
            Event::Elected { trusted_until: until, .. } | Event::Trusted { until, .. } => {
                Some(clock.reaches(*until))
            }
            Event::NameAnswered {
                answer: NameAnswer::Bound { trusted_until: until, .. }, ..
            } if *until > Mono::ZERO => Some(clock.reaches(*until)),
            _ => None,
        };
        self.see(Fact::Told { who, local, event: &event, until });
        self.apps().react(who, event);
    }

    /// Records a fact: for the invariants, the coverage and the trace.
    fn see(&mut self, fact: Fact<'_>) {
        crate::trace::fold(&mut self.hash, self.now, &fact);
        if let Some(trace) = &mut self.trace {
            trace.write(self.now, &fact);
        }
        self.coverage.see(&fact);
        self.checks.see(self.now, &fact);
        for situation in self.checks.take_broken() {
            self.coverage.mark(situation);
        }
    }

    fn finish(mut self) -> Ran {
        if self.checks.violation().is_none() {
            self.see(Fact::Over);
        }
        for process in &self.processes {
            self.hash.fold_text(&format!("{:?}", process.machine));
        }
        self.hash.fold_text(&format!("{:?}", self.store));
        Ran {
            violation: self.checks.take_violation(),
            hash: self.hash,
            simulated: self.now,
            steps: self.steps,
            coverage: self.coverage,
            trace: self.trace,
        }
    }
}

/// A clock with any offset, at a rate within the bound, at it, or beyond it.
fn new_clock(config: &Config, rng: &mut Rng) -> Clock {
    let offset = rng.between(3_600_000_000_000, 3_600_000_000_000_000);
    Clock::new(offset, rate(config, rng))
}

/// A rate as the features allow.
fn rate(config: &Config, rng: &mut Rng) -> i64 {
    let bound = i64::from(config.drift_ppm);
    let kind = rng.below(4);
    let within = rng.below(2 * u64::from(config.drift_ppm) + 1);
    let fast = rng.chance(500);
    let beyond = i64::try_from(rng.between(1, 400_000)).unwrap_or(0);
    let signed = |ppm: i64| if fast { ppm } else { -ppm };
    if config.features.has(Feature::DriftBeyond) && kind > 1 {
        return signed(bound + beyond);
    }
    if !config.features.has(Feature::Drift) {
        return 0;
    }
    match kind {
        0 | 1 => signed(bound),
        _ => i64::try_from(within).unwrap_or(0) - bound,
    }
}
