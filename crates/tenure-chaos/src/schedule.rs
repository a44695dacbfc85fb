//! What will go wrong, and when: a function of the seed.

use std::time::Duration;

use crate::guarded::{Blow, Whom};
use crate::options::{Options, StoreKind};
use crate::rng::Rng;

/// Whom a fault is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The leader at that moment; if there is none, the place that is named.
    Leader(usize),
    /// The worker in this place.
    Slot(usize),
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9`, and a new process in its place a while later.
    Kill {
        /// Whom.
        aim: Aim,
        /// When the place is filled again.
        back_after: Duration,
    },
    /// SIGSTOP, and SIGCONT a while later.
    Stop {
        /// Whom.
        aim: Aim,
        /// For how long.
        lasting: Duration,
    },
    /// All connections to the store are cut.
    Cut {
        /// Whose.
        aim: Aim,
    },
    /// Every chunk of data arrives late, in both directions.
    Delay {
        /// Whose.
        aim: Aim,
        /// How late.
        by: Duration,
        /// For how long.
        lasting: Duration,
    },
    /// Nothing arrives, and nothing says so; what was sent meanwhile arrives
    /// when it is over.
    BlackHole {
        /// Whose.
        aim: Aim,
        /// For how long.
        lasting: Duration,
    },
    /// One direction of every connection is closed, the other stays open.
    HalfClose {
        /// Whose.
        aim: Aim,
        /// Whether the direction to the store is the one that is closed.
        toward_store: bool,
    },
    /// `kill -9` of the store, which is started again a while later.
    StoreKill {
        /// How long it stays away.
        down_for: Duration,
    },
    /// Another process holds the write lock of the file.
    Hog {
        /// For how long.
        lasting: Duration,
    },
    /// The store is stopped, copied, and started again.
    Copy,
    /// The store is stopped, and the copy put in its place.
    PutBack,
    /// A further member that leads very many elections is killed.
    HolderKill,
    /// Something is done to a program that runs a command under guard.
    Guarded {
        /// Whose, counted among those programs.
        aim: Aim,
        /// What.
        blow: Blow,
        /// How long it lasts; after a kill: when the place is filled again, and what the
        /// command left behind is ended.
        lasting: Duration,
    },
    /// The worker's wall clock is set to another time.
    Jump {
        /// Whose: a worker whose wall clock is in our hands.
        slot: usize,
        /// How far from the true time, in seconds.
        to: i64,
    },
}

impl Fault {
    /// How it is called in the report.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Kill { .. } => "kill -9",
            Self::Stop { .. } => "stop",
            Self::Cut { .. } => "cut",
            Self::Delay { .. } => "delay",
            Self::BlackHole { .. } => "black hole",
            Self::HalfClose { .. } => "half close",
            Self::StoreKill { .. } => "store killed",
            Self::Hog { .. } => "lock held",
            Self::Jump { .. } => "clock jump",
            Self::Copy => "copied",
            Self::PutBack => "copy put back",
            Self::HolderKill => "holder killed",
            Self::Guarded { blow, .. } => blow.name(),
        }
    }
}

/// A fault and when it happens, counted from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// When.
    pub at: Duration,
    /// What.
    pub fault: Fault,
}

/// The time between two faults: 0.8 s on average.
const GAP_MS: (u64, u64) = (300, 1_300);
/// The first fault waits until workers have started.
const FIRST: Duration = Duration::from_secs(2);

/// The time between two faults of the guarded programs: 1.9 s on average. After most of
/// them a ttl has to run out.
const GUARDED_GAP_MS: (u64, u64) = (800, 3_000);
/// They need a moment longer until one of them leads.
const GUARDED_FIRST: Duration = Duration::from_secs(3);

/// What is too much work for dice comes by the clock, again and again.
const ROUND: Duration = Duration::from_secs(50);
const COPY: Duration = Duration::from_secs(5);
const PUT_BACK: Duration = Duration::from_secs(13);
const HOLDER: Duration = Duration::from_secs(17);
/// A holder needs some time to win so many elections.
const CLAIMING: Duration = Duration::from_secs(10);

/// The faults that come by the clock. A copy is made in every second round, so that
/// each is put back twice.
fn by_the_clock(options: &Options) -> Vec<Planned> {
    let mut planned = Vec::new();
    let mut round = Duration::ZERO;
    let mut fresh = true;
    while round < options.lasting {
        if fresh {
            planned.push(Planned { at: round + COPY, fault: Fault::Copy });
        }
        planned.push(Planned { at: round + PUT_BACK, fault: Fault::PutBack });
        if options.held > 0 && round + HOLDER + CLAIMING < options.lasting {
            planned.push(Planned { at: round + HOLDER, fault: Fault::HolderKill });
        }
        round += ROUND;
        fresh = !fresh;
    }
    planned.retain(|p| p.at < options.lasting);
    planned
}

/// How many of the faults that come by the clock are of a kind.
pub(crate) fn count(options: &Options, kind: impl Fn(&Fault) -> bool) -> usize {
    by_the_clock(options).iter().filter(|planned| kind(&planned.fault)).count()
}

/// The whole schedule of a run. `jumps` says how many of the first places have a
/// wall clock that can be jumped.
pub(crate) fn plan(options: &Options, jumps: usize) -> Vec<Planned> {
    let mut dice = Dice { rng: Rng::new(options.seed), options, jumps };
    let mut planned = Vec::new();
    let mut at = FIRST;
    while at < options.lasting {
        // The first is the one that the unfenced counter cannot survive.
        let fault = if planned.is_empty() { dice.long_stop() } else { dice.fault() };
        planned.push(Planned { at, fault });
        at += dice.millis(GAP_MS.0, GAP_MS.1);
    }
    planned.extend(by_the_clock(options));
    planned.extend(guarded(options));
    planned.sort_by_key(|p| p.at);
    planned
}

/// The faults of the guarded programs. They have dice of their own, so that the others
/// stay what they are without them. The first three are those that findings were about.
fn guarded(options: &Options) -> Vec<Planned> {
    let mut planned = Vec::new();
    if options.programs == 0 {
        return planned;
    }
    let mut dice = Dice { rng: Rng::new(!options.seed), options, jumps: 0 };
    let mut at = GUARDED_FIRST;
    while at < options.lasting {
        let first = [Blow::Kill(Whom::All), Blow::Kill(Whom::Both), Blow::Stop(Whom::Both)];
        let fault = dice.guarded(first.get(planned.len()).copied());
        planned.push(Planned { at, fault });
        at += dice.millis(GUARDED_GAP_MS.0, GUARDED_GAP_MS.1);
    }
    planned
}

/// How many times a program is to be killed with its guardian.
pub(crate) fn both_killed(options: &Options) -> usize {
    let both = Blow::Kill(Whom::Both);
    let is_both = |fault: &Fault| matches!(fault, Fault::Guarded { blow, .. } if *blow == both);
    guarded(options).iter().filter(|planned| is_both(&planned.fault)).count()
}

/// One more stop of a leader, now, and long enough for others to lead meanwhile.
pub(crate) fn lesson(ttl: Duration) -> Planned {
    let fault = Fault::Stop { aim: Aim::Leader(0), lasting: ttl * 5 / 2 };
    Planned { at: Duration::ZERO, fault }
}

struct Dice<'o> {
    rng: Rng,
    options: &'o Options,
    jumps: usize,
}

impl Dice<'_> {
    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.rng.between(least, most))
    }

    /// So many hundredths of the ttl.
    fn ttls(&mut self, least: u64, most: u64) -> Duration {
        let hundredths = u32::try_from(self.rng.between(least, most)).unwrap_or(100);
        self.options.ttl * hundredths / 100
    }

    /// The leader is the one worth hitting.
    fn aim(&mut self) -> Aim {
        self.aim_at(self.options.workers)
    }

    fn aim_at(&mut self, places: usize) -> Aim {
        let slot = self.rng.index(places);
        if self.rng.between(1, 10) <= 7 { Aim::Leader(slot) } else { Aim::Slot(slot) }
    }

    fn long_stop(&mut self) -> Fault {
        let slot = self.rng.index(self.options.workers);
        Fault::Stop { aim: Aim::Leader(slot), lasting: self.ttls(180, 300) }
    }

    fn fault(&mut self) -> Fault {
        let roll = self.rng.between(0, 99);
        match (self.options.store, roll) {
            (_, 90..) if self.jumps > 0 => self.jump(),
            (StoreKind::Sqlite, 0..35) | (StoreKind::Postgres, 0..20) => {
                Fault::Kill { aim: self.aim(), back_after: self.millis(50, 1_500) }
            }
            (StoreKind::Sqlite, 35..75) | (StoreKind::Postgres, 20..45) => self.stop(),
            (StoreKind::Sqlite, _) => Fault::Hog { lasting: self.ttls(10, 180) },
            (StoreKind::Postgres, 45..55) => Fault::Cut { aim: self.aim() },
            (StoreKind::Postgres, 55..65) => {
                Fault::Delay { aim: self.aim(), by: self.ttls(5, 60), lasting: self.ttls(100, 300) }
            }
            (StoreKind::Postgres, 65..77) => {
                Fault::BlackHole { aim: self.aim(), lasting: self.ttls(30, 300) }
            }
            (StoreKind::Postgres, 77..85) => {
                let toward_store = self.rng.between(0, 1) == 1;
                Fault::HalfClose { aim: self.aim(), toward_store }
            }
            (StoreKind::Postgres, _) => Fault::StoreKill { down_for: self.millis(0, 1_500) },
        }
    }

    /// Mostly beyond the ttl, sometimes within it.
    fn stop(&mut self) -> Fault {
        if self.rng.between(1, 4) == 1 {
            Fault::Stop { aim: self.aim(), lasting: self.ttls(20, 110) }
        } else {
            Fault::Stop { aim: self.aim(), lasting: self.ttls(110, 300) }
        }
    }

    /// What is done to a program, or `first` of its leader.
    fn guarded(&mut self, first: Option<Blow>) -> Fault {
        let aim = self.aim_at(self.options.programs);
        let roll = self.rng.between(0, 99);
        let blow = Blow::of(roll, self.options.store == StoreKind::Postgres);
        let (Aim::Leader(place) | Aim::Slot(place)) = aim;
        let blow = first.unwrap_or(blow);
        // A program that waits has no guardian to be hit.
        let aim = if blow.needs_a_guardian() { Aim::Leader(place) } else { aim };
        let lasting = match blow {
            Blow::Kill(Whom::Program | Whom::Guardian) => self.millis(50, 1_500),
            // Long enough for another to lead, where nothing keeps it from that.
            Blow::Kill(Whom::Both | Whom::All) => self.ttls(130, 250),
            Blow::Stop(_) | Blow::Silence => self.ttls(20, 300),
        };
        Fault::Guarded { aim, blow, lasting }
    }

    fn jump(&mut self) -> Fault {
        let slot = self.rng.index(self.jumps);
        // From seconds to a month, both ways, and back to the truth.
        let by = [2, 60, 3_600, 86_400, 2_592_000][self.rng.index(5)];
        let to = [by, -by, 0][self.rng.index(3)];
        Fault::Jump { slot, to }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ten_minutes(store: StoreKind, seed: u64) -> Vec<Planned> {
        let lasting = Duration::from_secs(600);
        plan(&Options { store, seed, lasting, programs: 0, ..Options::default() }, 2)
    }

    /// A run can be had again.
    #[test]
    fn a_schedule_follows_from_its_seed() {
        for store in [StoreKind::Sqlite, StoreKind::Postgres] {
            assert_eq!(ten_minutes(store, 7), ten_minutes(store, 7));
            assert_ne!(ten_minutes(store, 7), ten_minutes(store, 8));
        }
    }

    /// Six minutes are enough for 500, and each of the programs' kinds is among them.
    #[test]
    fn six_minutes_bring_enough_faults() {
        for (seed, store) in
            (0..50).flat_map(|n| [(n, StoreKind::Sqlite), (n, StoreKind::Postgres)])
        {
            let lasting = Duration::from_secs(360);
            let options = Options { store, seed, lasting, ..Options::default() };
            let planned = plan(&options, 2);
            assert!((560..740).contains(&planned.len()), "{}", planned.len());
            let without = plan(&Options { programs: 0, ..options.clone() }, 2);
            let others = planned.iter().filter(|p| !matches!(p.fault, Fault::Guarded { .. }));
            assert!(others.eq(&without), "the others are what they are without them");
            assert!(both_killed(&options) > 10);
        }
    }

    /// The bar: at least 500 faults in ten minutes; and not without end.
    #[test]
    fn ten_minutes_bring_enough_faults_and_no_flood() {
        for seed in 0..50 {
            for store in [StoreKind::Sqlite, StoreKind::Postgres] {
                let planned = ten_minutes(store, seed);
                assert!((600..1_000).contains(&planned.len()), "{}", planned.len());
                assert!(planned.iter().all(|p| p.at < Duration::from_secs(600)));
                assert!(planned.is_sorted_by_key(|p| p.at));
            }
        }
    }

    /// Every kind that fits the store takes part, and none that does not.
    #[test]
    fn every_kind_of_fault_takes_part() {
        let kinds = |store| {
            let names = ten_minutes(store, 3).into_iter().map(|p| p.fault.name());
            names.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        };
        let sqlite = [
            "clock jump",
            "copied",
            "copy put back",
            "holder killed",
            "kill -9",
            "lock held",
            "stop",
        ];
        assert_eq!(kinds(StoreKind::Sqlite), sqlite);
        let postgres = [
            "black hole",
            "clock jump",
            "copied",
            "copy put back",
            "cut",
            "delay",
            "half close",
            "holder killed",
            "kill -9",
            "stop",
            "store killed",
        ];
        assert_eq!(kinds(StoreKind::Postgres), postgres);
    }

    /// Whatever can be done to a program is done, on each store.
    #[test]
    fn every_kind_of_blow_takes_part() {
        for (store, count) in [(StoreKind::Sqlite, 7), (StoreKind::Postgres, 8)] {
            let lasting = Duration::from_secs(600);
            let planned = guarded(&Options { store, lasting, ..Options::default() });
            let names = planned.iter().map(|p| p.fault.name());
            assert_eq!(names.collect::<std::collections::BTreeSet<_>>().len(), count);
        }
    }

    /// A copy is put back only after it was made, and each is put back twice.
    #[test]
    fn a_copy_is_made_before_it_is_put_back() {
        let planned = by_the_clock(&Options::default());
        let names: Vec<_> = planned.iter().take(5).map(|p| p.fault.name()).collect();
        assert_eq!(
            names,
            ["copied", "copy put back", "holder killed", "copy put back", "holder killed"]
        );
        let short = Options { lasting: Duration::from_secs(20), ..Options::default() };
        assert_eq!((short.least_rollbacks(), short.least_deaths()), (1, 0));
        let none = Options { held: 0, ..Options::default() };
        assert_eq!((none.least_rollbacks(), none.least_deaths()), (1, 0));
    }

    /// Where no wall clock is in our hands, none is jumped.
    #[test]
    fn without_clocks_to_jump_there_are_no_jumps() {
        let options = Options { lasting: Duration::from_secs(600), ..Options::default() };
        assert!(!plan(&options, 0).iter().any(|p| matches!(p.fault, Fault::Jump { .. })));
    }
}
