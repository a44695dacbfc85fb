//! The file against the memory store, by random histories.
//!
//! Both go by the same rules, over rows of their own. Here they are asked the same, step by
//! step and on one clock, in two namespaces whose members, lives and elections have the same
//! names: each answer, and all that can be read after it, has to be the same. What a
//! statement takes from another namespace, another member or another election shows.
//!
//! A history that fails is printed with its seed; `TENURE_HISTORY=<seed>` runs it alone.

#![allow(clippy::unwrap_used)]

mod common;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use common::{Place, election, member};
use tenure_core::{
    Amend, Bid, Claim, ElectionName, Heartbeat, Join, MemberId, MemberRef, Namespace, Nonce, Note,
    Priority, Profile, Query, Release, ReleaseCause, ReleaseItem, TermNumber, TermRef, Which,
};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{ManualClock, MemoryStore, Store};

/// How many histories there are, and how many steps each has.
const HISTORIES: u64 = 40;
const STEPS: usize = 60;
const UNIT: Duration = Duration::from_secs(10);
const MEMBERS: usize = 4;
const ELECTIONS: usize = 4;

/// Numbers that are a function of the seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// So many units of time.
    fn span(&mut self, from: usize, upto: usize) -> Duration {
        UNIT * u32::try_from(from + self.below(upto - from + 1)).unwrap()
    }

    fn election(&mut self) -> ElectionName {
        election(&format!("e{}", self.below(ELECTIONS)))
    }

    fn note(&mut self) -> Note {
        Note::new(format!("n{}", self.below(3)))
    }
}

/// One history under way.
struct World {
    clock: Arc<ManualClock>,
    file: SqliteStore,
    memory: MemoryStore,
    seed: u64,
    spaces: [Namespace; 2],
    dice: Dice,
    /// The newest life of each id, by namespace: the two count alike, so that a life of one
    /// often has its twin in the other.
    lives: [[u128; MEMBERS]; 2],
    nonce: u64,
}

/// Asks both stores the same, and compares what they say.
macro_rules! both {
    ($world:ident . $verb:ident ( $space:expr, $asked:expr )) => {{
        let ns = &$world.spaces[$space];
        let here = $world.file.$verb(ns, $asked).await.unwrap();
        let there = $world.memory.$verb(ns, $asked).await.unwrap();
        same($world.seed, $asked, &here, &there);
        here
    }};
}

fn same<T: Debug + PartialEq>(seed: u64, asked: &impl Debug, file: &T, memory: &T) {
    let differs = || format!("TENURE_HISTORY={seed}, after {asked:?}");
    assert_eq!(file, memory, "{}: the file, and the memory store", differs());
}

impl World {
    /// A life of this number; now and then the one before the newest.
    fn life(&mut self, space: usize, id: usize) -> MemberRef {
        let newest = self.lives[space][id];
        let number = if self.dice.one_in(12) { newest.saturating_sub(1) } else { newest };
        // The same in both namespaces of one history, and in no other history.
        let life = (u128::from(self.seed) << 64) + ((id as u128) << 32) + number;
        member(&format!("m{id}"), life)
    }

    fn id(&mut self) -> usize {
        self.dice.below(MEMBERS)
    }

    async fn step(&mut self) {
        // What comes later has waited for less.
        self.clock.advance(Duration::from_millis(1));
        let space = usize::from(self.dice.one_in(3));
        let id = self.id();
        match self.dice.below(100) {
            0..=17 => self.join(space, id).await,
            18..=29 => self.beat(space, id).await,
            30..=33 => {
                let life = self.life(space, id);
                both!(self.leave(space, &life));
            }
            34..=61 => self.claim(space, id).await,
            62..=79 => self.release(space, id).await,
            80..=89 => self.amend(space).await,
            _ => self.clock.advance(self.dice.span(1, 2)),
        }
        for space in 0..self.spaces.len() {
            self.look(space).await;
        }
    }

    async fn join(&mut self, space: usize, id: usize) {
        if !self.dice.one_in(3) {
            self.lives[space][id] += 1;
        }
        let note = self.dice.below(3);
        let profile =
            Profile::new([format!("http://{note}")], vec![u8::try_from(note).unwrap()]).unwrap();
        let join = Join::new(self.life(space, id), self.dice.span(1, 4))
            .with_profile(profile)
            .with_supersede(!self.dice.one_in(4))
            .with_inherits(self.dice.one_in(2));
        both!(self.join(space, &join));
    }

    async fn beat(&mut self, space: usize, id: usize) {
        let life = self.life(space, id);
        let mut held = Vec::new();
        if self.dice.one_in(2) {
            let name = self.dice.election();
            held.push(TermRef::new(name.clone(), self.number(space, &name).await));
        }
        let beat = Heartbeat::new(life, self.dice.span(1, 4)).with_held(held);
        both!(self.heartbeat(space, &beat));
    }

    async fn claim(&mut self, space: usize, id: usize) {
        let count = if self.dice.one_in(5) { ELECTIONS } else { 1 };
        let first = self.dice.below(ELECTIONS);
        self.nonce += u64::from(!self.dice.one_in(6));
        let bids = (0..count).map(|n| election(&format!("e{}", (first + n) % ELECTIONS)));
        let bids: Vec<_> = bids
            .map(|name| {
                let priority = Priority::new([0, 1, 100, 200][self.dice.below(4)]);
                Bid::new(name, Nonce::new(self.nonce)).with_priority(priority)
            })
            .collect();
        let claim = Claim::new(self.life(space, id), self.dice.span(1, 4), bids)
            .with_heir_grace(self.dice.span(0, 2));
        both!(self.claim(space, &claim));
    }

    async fn release(&mut self, space: usize, id: usize) {
        let name = self.dice.election();
        let number = self.number(space, &name).await;
        let successor = self.id();
        let item = ReleaseItem {
            election: name,
            number: (!self.dice.one_in(4)).then_some(number),
            cause: ReleaseCause::Resigned,
            successor: self.dice.one_in(3).then(|| (named(successor), UNIT)),
        };
        let release = Release::new(self.life(space, id), [item])
            .with_heir_grace(self.dice.span(0, 2))
            .with_confirm_within(self.dice.span(0, 2));
        both!(self.release(space, &release));
    }

    async fn amend(&mut self, space: usize) {
        let by = self.dice.note();
        let election = self.dice.election();
        let id = named(self.id());
        let amend = match self.dice.below(6) {
            0 => Amend::pause(election, self.dice.note(), by),
            1 | 2 => Amend::resume(election, by),
            3 => Amend::Evict { member: id, now: self.dice.one_in(2), by },
            _ => Amend::StepDown {
                election,
                number: None,
                to: self.dice.one_in(2).then_some(id),
                reason: self.dice.note(),
                by,
            },
        };
        both!(self.amend(space, &amend));
    }

    /// The newest number of an election, or nearly.
    async fn number(&mut self, space: usize, name: &ElectionName) -> TermNumber {
        let query = Query::elections([name.clone()]);
        let seen = both!(self.read(space, &query));
        let number = seen.elections[0].number.get();
        TermNumber::new(if self.dice.one_in(8) { number.saturating_sub(1) } else { number })
    }

    /// All that can be read, and what is read of one election.
    async fn look(&mut self, space: usize) {
        let everything = Query { history: 8, ..Query::everything() };
        both!(self.read(space, &everything));
        let asker = self.id();
        let which = Which::Named(vec![self.dice.election()]);
        let asker = Some(self.life(space, asker));
        let one = Query { which, asker, history: 5, members: false, ..Query::everything() };
        both!(self.read(space, &one));
    }
}

fn named(id: usize) -> MemberId {
    MemberId::new(format!("m{id}")).unwrap()
}

/// T3: what a namespace holds is its own, to the last row.
#[tokio::test]
async fn random_histories_leave_the_same_in_a_file_and_in_memory() {
    let alone = std::env::var("TENURE_HISTORY").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds = alone.map_or(1..HISTORIES + 1, |seed| seed..seed + 1);
    let clock = Arc::new(ManualClock::new());
    let place = Place::new();
    let file = place.open_with(SqliteOptions::new().clock(clock.clone())).await;
    let memory = MemoryStore::with_clock(clock.clone());
    for seed in seeds {
        let space = |letter| Namespace::new(format!("h{seed}-{letter}")).unwrap();
        let mut world = World {
            clock: Arc::clone(&clock),
            file: file.clone(),
            memory: memory.clone(),
            seed,
            spaces: [space('a'), space('b')],
            dice: Dice(seed),
            lives: [[1; MEMBERS]; 2],
            nonce: 0,
        };
        for _ in 0..STEPS {
            world.step().await;
        }
    }
}
