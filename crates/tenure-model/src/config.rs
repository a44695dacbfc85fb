//! The worlds that are searched: how many of what, and which faults how often.

use std::time::Duration;

use tenure_core::{Mutation, Settings, SettingsBuilder};

use crate::Mark;

/// One step of time. Everything the machine waits for is a few of these, or
/// less than one and then happens at the next.
pub(crate) const STEP: Duration = Duration::from_secs(1);

/// How often each kind of trouble may happen in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Letters that take as long as they like. All others take no time: a
    /// request arrives in the step it was written in, and its reply at once.
    pub late: u8,
    /// Steps of time that pass although a process is due to run: it is stopped
    /// or starved.
    pub starved: u8,
    /// Times that a process is cut off from the store for a while.
    pub cuts: u8,
    /// Letters lost.
    pub lost: u8,
    /// Requests doubled.
    pub doubled: u8,
    /// Crashes.
    pub crashes: u8,
    /// Steps missed by slow clocks. One is what the drift bound allows.
    pub slips: u8,
    /// Step-downs asked.
    pub step_downs: u8,
    /// Members evicted.
    pub evictions: u8,
    /// Pauses.
    pub pauses: u8,
    /// Leaders that resign by themselves.
    pub resigns: u8,
    /// Processes asked to shut down.
    pub shutdowns: u8,
}

/// One small world.
#[derive(Clone, Debug)]
pub struct Config {
    /// What it is called in reports.
    pub name: &'static str,
    /// What it is meant to show.
    pub about: &'static str,
    /// How many processes; each stands for every election.
    pub members: usize,
    /// How many elections.
    pub elections: usize,
    /// How many names; each process wants all of them.
    pub names: usize,
    /// How many steps of time are looked at.
    pub horizon: u8,
    /// Trouble happens only before this step; the horizon must find a leader.
    /// `None`: trouble at any time, and no demand.
    pub heals_at: Option<u8>,
    /// Whether the store sends hints, which may arrive in any order or not at
    /// all.
    pub hints: bool,
    /// Whether a release elects the heir in the same step.
    pub elects_heirs: bool,
    /// The trouble.
    pub budget: Budget,
    /// Situations that must have been met.
    pub must: &'static [Mark],
    /// A rule of the machine broken on purpose.
    pub mutation: Option<Mutation>,
    /// A rule of the store broken on purpose.
    pub store: Option<StoreRule>,
}

/// A rule of the store, broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreRule {
    /// M5: a life is ended, one of its terms is not.
    TermOutlivesLife,
}

impl Config {
    const fn of(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            members: 2,
            elections: 1,
            names: 0,
            horizon: 9,
            heals_at: None,
            hints: false,
            elects_heirs: false,
            budget: Budget {
                late: 0,
                cuts: 0,
                starved: 0,
                lost: 0,
                doubled: 0,
                crashes: 0,
                slips: 0,
                step_downs: 0,
                evictions: 0,
                pauses: 0,
                resigns: 0,
                shutdowns: 0,
            },
            must: &[Mark::Elected],
            mutation: None,
            store: None,
        }
    }

    /// The same world with a rule of the machine broken.
    #[must_use]
    pub fn broken(mut self, mutation: Mutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    /// The same world with a rule of the store broken.
    #[must_use]
    pub fn with_store(mut self, broken: StoreRule) -> Self {
        self.store = Some(broken);
        self
    }

    /// A ttl of five steps, of which four are trusted: one step is lost to the
    /// drift of two clocks.
    pub(crate) fn settings() -> Option<Settings> {
        SettingsBuilder::ttl(STEP * 5)
            .heartbeat(STEP)
            .request_timeout(STEP)
            .drift_ppm(100_000)
            .margin(STEP / 2)
            .drain(STEP)
            .cooldown(STEP * 2)
            .build()
            .ok()
    }
}

/// Worlds small enough for every test run.
#[must_use]
pub fn short() -> Vec<Config> {
    use Mark::{
        Adopted, BeatenDead, DrainTimeout, Elected, HandedOver, LateRelease, LateWin, NameAdopted,
        NameLost, NameMoved, NameOwned, NameRefused, SteppedDown, TakenOver, TrustEnded,
    };
    vec![
        Config {
            horizon: 6,
            heals_at: Some(0),
            must: &[Elected],
            ..Config::of("calm", "nothing goes wrong: a member leads, in every order of events")
        },
        Config {
            horizon: 7,
            budget: Budget { late: 1, ..Budget::default() },
            must: &[Elected, Adopted, LateWin],
            ..Config::of("late", "a letter as late as it likes")
        },
        Config {
            horizon: 8,
            budget: Budget { cuts: 1, ..Budget::default() },
            must: &[Elected, TakenOver, TrustEnded, BeatenDead, LateRelease],
            ..Config::of("cut", "a process is cut off for a while")
        },
        Config {
            horizon: 6,
            budget: Budget { step_downs: 1, ..Budget::default() },
            must: &[Elected, TakenOver, SteppedDown, DrainTimeout, HandedOver],
            ..Config::of("step-down", "a step-down or a hand-over is asked")
        },
        Config {
            elections: 0,
            names: 1,
            horizon: 8,
            budget: Budget { lost: 1, cuts: 1, ..Budget::default() },
            must: &[NameOwned, NameMoved, NameLost, NameRefused, NameAdopted, BeatenDead],
            ..Config::of("a name", "a lost answer, and an owner who is cut off")
        },
    ]
}

/// The worlds whose figures stand in the guarantees.
#[must_use]
pub fn full() -> Vec<Config> {
    let mut worlds = short();
    worlds.extend(bad_networks());
    worlds.extend(more_of_everything());
    worlds
}

fn bad_networks() -> Vec<Config> {
    use Mark::{
        Adopted, BeatenDead, Elected, IdTaken, LateRelease, LateWin, Left, TakenOver, TrustEnded,
    };
    vec![
        Config {
            horizon: 8,
            budget: Budget { late: 2, ..Budget::default() },
            must: &[Elected, TakenOver, TrustEnded, Adopted, BeatenDead, LateWin, LateRelease],
            ..Config::of("two late", "two letters as late as they like")
        },
        Config {
            horizon: 7,
            budget: Budget { lost: 1, doubled: 1, ..Budget::default() },
            must: &[Elected, Adopted],
            ..Config::of("lost and doubled", "a letter is lost, and a late copy of one arrives")
        },
        Config {
            horizon: 9,
            budget: Budget { cuts: 1, slips: 1, ..Budget::default() },
            must: &[Elected, TakenOver, TrustEnded, BeatenDead, LateRelease],
            ..Config::of("slow clock", "a process is cut off, and a clock runs slow")
        },
        Config {
            horizon: 8,
            budget: Budget { crashes: 1, slips: 1, starved: 1, ..Budget::default() },
            must: &[Elected, TakenOver, IdTaken],
            ..Config::of("crash", "crash and restart under the same id, a starved process")
        },
        Config {
            horizon: 8,
            budget: Budget { starved: 4, ..Budget::default() },
            must: &[Elected, TakenOver, TrustEnded],
            ..Config::of("stopped", "a process is stopped for most of a ttl, and continued")
        },
        Config {
            horizon: 8,
            budget: Budget { shutdowns: 1, cuts: 1, ..Budget::default() },
            must: &[Elected, Left, TakenOver],
            ..Config::of("leaving", "an orderly shutdown while a process is cut off")
        },
        Config {
            horizon: 15,
            heals_at: Some(6),
            budget: Budget { crashes: 1, lost: 1, ..Budget::default() },
            must: &[Elected, TakenOver],
            ..Config::of("healing", "trouble ends, and then a member leads on every path")
        },
    ]
}

fn more_of_everything() -> Vec<Config> {
    use Mark::{
        DrainTimeout, Elected, HandedOver, IdTaken, Paused, SteppedDown, Superseded, TakenOver,
        TrustEnded,
    };
    vec![
        Config {
            horizon: 7,
            budget: Budget { step_downs: 1, cuts: 1, ..Budget::default() },
            must: &[Elected, SteppedDown, DrainTimeout, HandedOver],
            ..Config::of("asked while cut off", "a step-down while a process is cut off")
        },
        Config {
            horizon: 4,
            budget: Budget { evictions: 1, pauses: 1, resigns: 1, ..Budget::default() },
            must: &[Elected, Superseded, Paused],
            ..Config::of("orders", "eviction, pause, resumption and resignation")
        },
        Config {
            members: 3,
            horizon: 8,
            budget: Budget { crashes: 1, ..Budget::default() },
            must: &[Elected, TakenOver, IdTaken],
            ..Config::of("three", "three members, one of them crashes")
        },
        Config {
            elections: 2,
            horizon: 7,
            budget: Budget { cuts: 1, resigns: 1, ..Budget::default() },
            must: &[Elected, TakenOver, TrustEnded],
            ..Config::of("two elections", "two elections on one heartbeat, one is resigned")
        },
        Config {
            hints: true,
            horizon: 5,
            budget: Budget { resigns: 1, ..Budget::default() },
            must: &[Elected, TakenOver, HandedOver],
            ..Config::of("hints", "hints arrive late, or not at all")
        },
        Config {
            hints: true,
            elects_heirs: true,
            horizon: 2,
            budget: Budget { resigns: 1, ..Budget::default() },
            must: &[Elected, HandedOver],
            ..Config::of("handing over", "a release elects the heir, which may not be told")
        },
    ]
}
