//! Swarm configuration: each seed is a world of its own kind.
//!
//! A world with every fault at once is always in the same state: broken. So
//! each seed turns about half of the features on, and sizes and timings vary.

use std::fmt;
use std::time::Duration;

use tenure_core::{MIN_TTL, Settings, SettingsBuilder};

use crate::clock::Nanos;
use crate::rng::Rng;
use crate::scenario::Scenario;

/// Something a world may do to its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Requests and replies are lost.
    Drops,
    /// Requests arrive twice.
    Doubles,
    /// Some messages take very long, and so overtake each other.
    Stragglers,
    /// Requests fail with an error, applied or not.
    Errors,
    /// Hints are lost, late and doubled.
    BadHints,
    /// Forged hints arrive, in storms.
    ForgedHints,
    /// A process is cut off from the store for a while.
    Partitions,
    /// The store answers no request for a while.
    Outages,
    /// Processes are stopped and continued.
    Stops,
    /// Hosts are suspended: what was sent to them meanwhile is lost.
    Suspends,
    /// Processes crash, and start again under the same id.
    Crashes,
    /// Processes shut down in order, and start again.
    Shutdowns,
    /// Two processes go by one id.
    Namesakes,
    /// Clocks run fast and slow, up to the drift bound.
    Drift,
    /// Clocks run faster or slower than the drift bound: promise 2 is off.
    DriftBeyond,
    /// Operators ask leaders to step down.
    StepDowns,
    /// Operators name a successor.
    HandOvers,
    /// Operators pause and resume elections.
    Pauses,
    /// Operators evict members, who are waited out.
    Evictions,
    /// Operators evict members at once: promise 2 is off for what these held.
    ForcedEvictions,
    /// Leaders resign.
    Resignations,
    /// Candidates withdraw.
    Withdrawals,
    /// Work drains slowly.
    SlowDrains,
    /// Work does not drain before it is told that the term is lost.
    StuckDrains,
    /// Candidates have different priorities, some never lead.
    Priorities,
    /// Members have different timings.
    MixedTimings,
    /// The store gives no hints.
    NoWatch,
    /// One request carries few elections.
    SmallBatches,
    /// The store's copy takes over, without the last writes. Only where the
    /// store has a copy.
    Failovers,
    /// An operator removes the record of a member by hand. Only on a
    /// compare-and-swap store.
    Removals,
}

impl Feature {
    /// All of them.
    pub const ALL: [Feature; 30] = [
        Feature::Drops,
        Feature::Doubles,
        Feature::Stragglers,
        Feature::Errors,
        Feature::BadHints,
        Feature::ForgedHints,
        Feature::Partitions,
        Feature::Outages,
        Feature::Stops,
        Feature::Suspends,
        Feature::Crashes,
        Feature::Shutdowns,
        Feature::Namesakes,
        Feature::Drift,
        Feature::DriftBeyond,
        Feature::StepDowns,
        Feature::HandOvers,
        Feature::Pauses,
        Feature::Evictions,
        Feature::ForcedEvictions,
        Feature::Resignations,
        Feature::Withdrawals,
        Feature::SlowDrains,
        Feature::StuckDrains,
        Feature::Priorities,
        Feature::MixedTimings,
        Feature::NoWatch,
        Feature::SmallBatches,
        Feature::Failovers,
        Feature::Removals,
    ];

    /// How often of a thousand seeds it is on. What weakens the promises is
    /// rare, so that most seeds judge them in full.
    fn odds(self) -> u64 {
        match self {
            Feature::DriftBeyond | Feature::ForcedEvictions => 100,
            Feature::Namesakes | Feature::NoWatch => 200,
            // What a store is, not what happens to it: scenarios turn it on.
            Feature::Failovers | Feature::Removals => 0,
            _ => 500,
        }
    }
}

/// The features of one world.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u32);

impl Features {
    /// Whether `feature` is on.
    #[must_use]
    pub fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u32) != 0
    }

    /// The same with `feature` on or off.
    #[must_use]
    pub fn with(self, feature: Feature, on: bool) -> Self {
        let bit = 1 << feature as u32;
        Self(if on { self.0 | bit } else { self.0 & !bit })
    }

    /// Those that are on.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |feature| self.has(*feature))
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Which store a world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// One that judges expiry by its own clock.
    Judging,
    /// The real `CasStore` over a register that is reached by messages.
    Cas,
    /// The real `TurnStore`, over rows that judge and are reached by messages.
    Turns,
    /// One that judges, with a copy that lags behind and may be promoted: what
    /// was acknowledged last is then forgotten.
    Replicated,
    /// The same, and a copy that is promoted jumps over the numbers that may
    /// have been given out.
    Jumping,
}

impl StoreKind {
    /// Whether it may forget what it acknowledged.
    #[must_use]
    pub fn forgets(self) -> bool {
        matches!(self, StoreKind::Replicated | StoreKind::Jumping)
    }
}

/// One world, before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What everything random comes from.
    pub seed: u64,
    /// Which kind of world was asked for.
    pub scenario: Scenario,
    /// What may happen in it.
    pub features: Features,
    /// How many processes there are.
    pub members: usize,
    /// How many elections they stand for.
    pub elections: usize,
    /// How many names they take, change and drop.
    pub names: usize,
    /// How long faults are made.
    pub chaos: Nanos,
    /// The drift bound all members declare.
    pub drift_ppm: u32,
    /// The ttl of members, unless timings are mixed.
    pub ttl: Duration,
    /// The margin in thousandths of the ttl, or the least that drift allows.
    pub margin: u32,
    /// Which store.
    pub store: StoreKind,
    /// Whether processes lead for clients of theirs.
    pub clients: bool,
}

impl Config {
    /// The world of a seed.
    #[must_use]
    pub fn of(seed: u64, scenario: Scenario) -> Self {
        let mut rng = Rng::stream(seed, 1);
        let mut features = Features::default();
        for feature in Feature::ALL {
            features = features.with(feature, rng.chance(feature.odds()));
        }
        let ttl = Duration::from_millis(*rng.pick(&[500, 1_000, 3_000, 10_000]).unwrap_or(&1_000));
        let drift_ppm = *rng.pick(&[0, 100, 1_000, 10_000, 50_000]).unwrap_or(&1_000);
        let ttls = rng.between(15, 60);
        let config = Self {
            seed,
            scenario,
            features,
            members: usize::try_from(rng.between(2, 6)).unwrap_or(2),
            elections: usize::try_from(rng.between(1, 3)).unwrap_or(1),
            // Of a stream of their own: a world without names is what it was before them.
            names: usize::try_from(Rng::stream(seed, 7).below(6)).unwrap_or(0).saturating_sub(2),
            chaos: nanos(ttl) * ttls,
            drift_ppm,
            ttl,
            margin: *rng.pick(&[0, 20, 100]).unwrap_or(&100),
            store: StoreKind::Judging,
            clients: false,
        };
        scenario.shape(config)
    }

    /// Whether promise 2 can be held the world to at all.
    #[must_use]
    pub fn clocks_keep_the_bound(&self) -> bool {
        !self.features.has(Feature::DriftBeyond)
    }

    /// Whether the store tells of what happens.
    pub(crate) fn watched(&self) -> bool {
        self.store != StoreKind::Cas && !self.features.has(Feature::NoWatch)
    }

    /// How often processes look for themselves at what a store does not tell
    /// them. Some worlds have neither: time alone must do there.
    pub(crate) fn poll(&self) -> Option<Duration> {
        (self.seed.is_multiple_of(2) && !self.watched()).then(|| self.ttl / 10)
    }

    /// The timings of the process `index`.
    #[must_use]
    pub fn settings(&self, index: usize) -> Settings {
        self.settings_of(index, true)
    }

    /// The same; `elsewhere` unless what clients trust is to be left out of account.
    pub(crate) fn settings_of(&self, index: usize, elsewhere: bool) -> Settings {
        let mut ttl = self.ttl;
        if self.features.has(Feature::MixedTimings) {
            let mut rng = Rng::stream(self.seed, 1_000 + index as u64);
            let quarters = u32::try_from(rng.between(1, 8)).unwrap_or(4);
            ttl = (ttl * quarters / 4).max(MIN_TTL);
        }
        let builder = SettingsBuilder::ttl(ttl).drift_ppm(self.drift_ppm);
        let builder = match self.clients {
            // Shorter than what was granted before it began, or longer.
            true => {
                let mut rng = Rng::stream(self.seed, 3_000 + index as u64);
                builder.drain(ttl / 10 * *rng.pick(&[1, 3, 10]).unwrap_or(&10))
            }
            false => builder,
        };
        let builder = match self.clients && elsewhere {
            true => builder.trusted_elsewhere(),
            false => builder,
        };
        let built = builder.clone().margin(self.margin_of(ttl)).build();
        // The plain timings always hold: a test builds every preset.
        built.or_else(|_| builder.build()).unwrap_or_default()
    }

    /// Not less than the settings allow: what the store's clock may run fast.
    fn margin_of(&self, ttl: Duration) -> Duration {
        let drift = ttl.as_nanos() * u128::from(self.drift_ppm);
        let drift = Duration::from_nanos(u64::try_from(drift.div_ceil(1_000_000)).unwrap_or(0));
        (ttl * self.margin / 1000).max(drift)
    }
}

/// `duration` in whole nanoseconds.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
