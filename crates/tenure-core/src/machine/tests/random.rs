//! Thousands of random lives: whatever is fed in whatever order, the machine
//! neither panics nor spins, tells a story that holds together, and once the
//! world is well again no candidate is forgotten (B25) and nothing is left behind (B18).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::script::*;
use super::world::World;
use crate::entropy::Entropy;
use crate::*;

/// The machine's own generator: a seed replays a run.
pub(super) struct Dice(Entropy);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Entropy::new(seed.into()))
    }

    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0.next() % sides
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let sides = u64::try_from(from.len()).unwrap();
        from[usize::try_from(self.roll(sides)).unwrap()].clone()
    }
}

const ELECTIONS: [&str; 3] = ["a", "b", "c"];

/// One run: a machine, a world, and what the application was told.
struct Run {
    seed: u64,
    dice: Dice,
    machine: Machine,
    now: Mono,
    world: World,
    /// On their way to the store.
    requests: Vec<Outgoing>,
    /// On their way back, some of them twice.
    replies: Vec<(RequestId, Result<Reply, Failed>)>,
    /// What the application believes to lead.
    leads: BTreeMap<ElectionName, TermNumber>,
    newest: BTreeMap<ElectionName, TermNumber>,
    /// What it wants to lead.
    wants: BTreeMap<ElectionName, Priority>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let traits = dice.pick(&[WATCHED, POLLED]);
        let settings = SettingsBuilder::ttl(Duration::from_secs(10)).build().unwrap();
        let id = MemberId::new("me").unwrap();
        let machine = Machine::new(id, Profile::default(), settings, traits, seed.into());
        let world = World::new(traits.native_watch);
        let now = Mono::from_millis(1_000);
        let requests = Vec::new();
        let replies = Vec::new();
        let leads = BTreeMap::new();
        let newest = BTreeMap::new();
        let wants = BTreeMap::new();
        Self { seed, dice, machine, now, world, requests, replies, leads, newest, wants }
    }

    fn feed(&mut self, input: Input) -> usize {
        self.machine.handle(self.now, input);
        let outputs: Vec<_> = core::iter::from_fn(|| self.machine.poll()).collect();
        assert!(outputs.len() <= 24, "seed {}: {outputs:?}", self.seed);
        let said = outputs.len();
        for output in outputs {
            match output {
                Output::Send(out) => self.send(out),
                Output::Event(event) => self.hear(&event),
            }
        }
        let held = self.machine.terms.standings.held();
        assert_eq!(held, self.leads.len(), "seed {}: {:?}", self.seed, self.leads);
        said
    }

    /// At most one request of a kind is waited for at a time.
    fn send(&mut self, out: Outgoing) {
        let kind = core::mem::discriminant(&out.request);
        assert!(out.deadline > self.now, "seed {}", self.seed);
        let same = self
            .requests
            .iter()
            .filter(|r| core::mem::discriminant(&r.request) == kind && r.deadline > self.now);
        // Those of an older life may still be on their way.
        assert!(same.count() <= 3, "seed {}", self.seed);
        self.requests.push(out);
    }

    fn hear(&mut self, event: &Event) {
        let seed = self.seed;
        match event {
            Event::Elected { term, trusted_until } => {
                assert!(*trusted_until > self.now, "seed {seed}: elected, but not any more");
                let before = self.newest.insert(term.election.clone(), term.number);
                assert!(before < Some(term.number), "seed {seed}: {before:?}, then {term:?}");
                let led = self.leads.insert(term.election.clone(), term.number);
                assert_eq!(led, None, "seed {seed}: elected twice");
                self.wants.remove(&term.election);
            }
            Event::Lost { election, number, .. } => {
                assert_eq!(self.leads.remove(election), Some(*number), "seed {seed}");
            }
            Event::Stopping { election, number, drain_until, .. } => {
                assert_eq!(self.leads.get(election), Some(number), "seed {seed}");
                assert!(*drain_until > self.now, "seed {seed}");
            }
            Event::Trusted { until, .. } => {
                assert!(!self.leads.is_empty(), "seed {seed}: trust in nothing");
                assert!(*until > self.now, "seed {seed}: trust in the past");
            }
            Event::Withdrawn { election } => {
                self.wants.remove(election);
            }
            _ => {}
        }
    }

    /// Feeds the wakes that are due: each must come to something.
    fn wake(&mut self) {
        let mut for_nothing = 0;
        while self.machine.next_wake().is_some_and(|wake| wake <= self.now) {
            for_nothing = if self.feed(Input::Wake) > 0 { 0 } else { for_nothing + 1 };
            assert!(for_nothing < 3, "seed {}: woken for nothing, for ever", self.seed);
        }
    }

    fn step(&mut self) {
        match self.dice.roll(28) {
            0..=3 => self.pass_time(),
            4..=13 => self.arrive(),
            14..=23 => self.deliver(),
            24 => self.garble(),
            25 => self.hint(),
            26 => self.world.shake(&mut self.dice),
            _ => self.ask(),
        }
    }

    fn pass_time(&mut self) {
        let wake = self.machine.next_wake().unwrap_or(self.now);
        self.now = match self.dice.roll(20) {
            0 => self.now + Duration::from_secs(self.dice.roll(100)),
            1..=6 => self.now + Duration::from_millis(self.dice.roll(3_000)),
            7..=9 => self.now + Duration::from_nanos(self.dice.roll(2)),
            _ => self.now.max(wake),
        };
        self.wake();
    }

    /// A request reaches the store, in any order, or is lost on its way.
    fn arrive(&mut self) {
        if self.requests.is_empty() {
            return;
        }
        let at = self.dice.roll(self.requests.len() as u64) as usize;
        let out = self.requests.swap_remove(at);
        match self.dice.roll(8) {
            0 => {}
            1 => self.replies.push((out.id, Err(REFUSED))),
            2 => {
                self.world.perform(&out.request);
                self.replies.push((out.id, Err(UNKNOWN)));
            }
            _ => {
                let reply = self.world.perform(&out.request);
                self.replies.push((out.id, Ok(reply)));
            }
        }
    }

    /// A reply comes back, in any order; sometimes it will come again.
    fn deliver(&mut self) {
        if self.replies.is_empty() {
            return;
        }
        let at = self.dice.roll(self.replies.len() as u64) as usize;
        let (id, result) = self.replies.swap_remove(at);
        if self.dice.roll(5) == 0 && self.replies.len() < 20 {
            self.replies.push((id, result.clone()));
        }
        self.feed(Input::Reply { id, result: Box::new(result) });
    }

    /// An answer of the wrong kind, or to a request that never was.
    fn garble(&mut self) {
        let wrong = [joined(), alive(2), Reply::Leave, Reply::Release];
        let wrong = self.dice.pick(&wrong);
        let last = self.requests.last().filter(|out| !fits(&out.request, &wrong));
        let id = last.map_or(request_id(u64::MAX), |out| out.id);
        self.feed(Input::Reply { id, result: Box::new(Ok(wrong)) });
    }

    fn hint(&mut self) {
        let election = name(self.dice.pick(&ELECTIONS));
        let id = self.dice.pick(&["me", "other"]);
        let heir = Some(MemberId::new(id).unwrap()).filter(|_| self.dice.roll(2) == 0);
        let life = self.world.some_life(&mut self.dice);
        let hint = match self.dice.roll(4) {
            0 => Hint::Anything,
            1 => Hint::Election(election),
            2 => Hint::Gone(life),
            _ => Hint::Vacant { election, heir },
        };
        self.feed(Input::Hint(hint));
    }

    /// The application asks for something, sensible or not.
    fn ask(&mut self) {
        let election = name(self.dice.pick(&ELECTIONS));
        let led = self.leads.get(&election).copied();
        let number = led.unwrap_or(TermNumber::new(self.dice.roll(9)));
        let to = Some(MemberId::new("other").unwrap()).filter(|_| self.dice.roll(3) == 0);
        let input = match self.dice.roll(8) {
            0..=3 => {
                let priority = Priority::new(u16::from(self.dice.roll(8) > 0) * 100);
                if led.is_none() {
                    self.wants.insert(election.clone(), priority);
                }
                Input::Stand { election, priority }
            }
            4 => Input::Withdraw { election },
            5 => Input::Resign { election, number, to },
            6 => Input::StopLeading { election, number, to },
            _ => Input::Join,
        };
        self.feed(input);
    }

    /// The world is well again: every request arrives and is answered at once.
    fn heal(&mut self) {
        self.world.make_way();
        let end = self.now + Duration::from_secs(120);
        let mut asked = 0u32;
        loop {
            self.wake();
            while !self.requests.is_empty() {
                let out = self.requests.remove(0);
                let reply = self.world.perform(&out.request);
                self.feed(Input::Reply { id: out.id, result: Box::new(Ok(reply)) });
                asked += 1;
            }
            match self.machine.next_wake().filter(|wake| *wake <= end) {
                Some(wake) => self.now = self.now.max(wake),
                None => break,
            }
        }
        assert!(asked < 400, "seed {}: {asked} requests in two quiet minutes", self.seed);
    }

    /// A machine that wants to lead leads, and the store has nothing else of it.
    fn check_health(&self) {
        let still: Vec<_> = self.wants.iter().filter(|(_, p)| p.may_lead()).collect();
        assert!(still.is_empty(), "seed {}: {still:?} never led again", self.seed);
        let ours = self.world.ours();
        assert_eq!(ours, self.leads, "seed {}: the store and the machine disagree", self.seed);
    }
}

fn fits(request: &Request, reply: &Reply) -> bool {
    matches!(
        (request, reply),
        (Request::Join(_), Reply::Join(_))
            | (Request::Heartbeat(_), Reply::Heartbeat(_))
            | (Request::Leave(_), Reply::Leave)
            | (Request::Release(_), Reply::Release)
    )
}

/// N1, E2, B8, B18, B25, H11: see the module.
#[test]
fn random_lives_hold_together_and_heal() {
    let mut terms = 0;
    for seed in 0..2_000 {
        let mut run = Run::new(seed);
        for _ in 0..300 {
            run.step();
            run.wake();
        }
        terms += run.newest.values().map(|number| number.get()).sum::<u64>();
        run.heal();
        run.check_health();
    }
    assert!(terms > 4_000, "the runs got nowhere: {terms} terms");
}

/// E4: a random life can be shut down at any point, in bounded time, and leaves
/// nothing behind when the store can be reached.
#[test]
fn random_lives_can_be_shut_down() {
    for seed in 0..1_000 {
        let mut run = Run::new(seed);
        for _ in 0..seed % 200 {
            run.step();
            run.wake();
        }
        let begun = run.now;
        run.feed(Input::Shutdown);
        run.heal();
        assert!(run.machine.is_done(), "seed {seed}");
        assert!(run.now.since(begun) <= Duration::from_millis(18_500), "seed {seed}");
        assert_eq!(run.leads, BTreeMap::new(), "seed {seed}");
        assert_eq!(run.world.ours(), BTreeMap::new(), "seed {seed}");
    }
}
