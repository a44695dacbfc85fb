//! Named kinds of worlds, to look closer at one kind of trouble.

use std::fmt;
use std::str::FromStr;

use crate::config::{Config, Feature, Features, StoreKind};

/// A kind of world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scenario {
    /// About half of all features, chosen by the seed.
    #[default]
    Swarm,
    /// No faults at all: what must hold on a good day.
    Calm,
    /// Only what clocks and schedulers do.
    Clocks,
    /// Only what networks and stores do.
    Network,
    /// Only what processes and their applications do.
    Processes,
    /// Only what operators do.
    Operators,
    /// Like the swarm, with clocks beyond the drift bound.
    Beyond,
    /// Like the swarm, on a compare-and-swap store.
    Cas,
    /// Like the swarm, on rows that are reached by looks and turns.
    Turns,
    /// Like the swarm, on a store whose copy takes over without the last writes.
    Replica,
    /// The same, with a copy that jumps over the numbers it may have forgotten.
    Jump,
    /// Like the swarm, with names for certain; on each kind of store in turn.
    Names,
    /// Like the swarm, with processes that lead for clients of theirs; on stores that do not
    /// forget, in turn.
    Clients,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 13] = [
        Scenario::Swarm,
        Scenario::Calm,
        Scenario::Clocks,
        Scenario::Network,
        Scenario::Processes,
        Scenario::Operators,
        Scenario::Beyond,
        Scenario::Cas,
        Scenario::Turns,
        Scenario::Replica,
        Scenario::Jump,
        Scenario::Names,
        Scenario::Clients,
    ];

    /// The kind of world that a seed has if none is asked for: mostly the swarm,
    /// now and then one kind of trouble alone.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        match seed % 16 {
            5 => Scenario::Clients,
            6 => Scenario::Turns,
            7 => Scenario::Cas,
            8 => Scenario::Replica,
            15 => Scenario::Jump,
            9 => Scenario::Calm,
            10 => Scenario::Clocks,
            11 => Scenario::Network,
            12 => Scenario::Processes,
            13 => Scenario::Operators,
            14 => Scenario::Beyond,
            _ => Scenario::Swarm,
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Swarm => "swarm",
            Scenario::Calm => "calm",
            Scenario::Clocks => "clocks",
            Scenario::Network => "network",
            Scenario::Processes => "processes",
            Scenario::Operators => "operators",
            Scenario::Beyond => "beyond",
            Scenario::Cas => "cas",
            Scenario::Turns => "turns",
            Scenario::Replica => "replica",
            Scenario::Jump => "jump",
            Scenario::Names => "names",
            Scenario::Clients => "clients",
        }
    }

    /// The features that this kind of world may have; `None` for all.
    fn limits(self) -> Option<&'static [Feature]> {
        use Feature::*;
        match self {
            Scenario::Swarm | Scenario::Beyond | Scenario::Cas => None,
            Scenario::Turns | Scenario::Replica | Scenario::Jump => None,
            Scenario::Names | Scenario::Clients => None,
            Scenario::Calm => Some(&[Priorities, MixedTimings, SmallBatches]),
            Scenario::Clocks => Some(&[Drift, Stops, Suspends, Stragglers, MixedTimings, NoWatch]),
            Scenario::Network => {
                Some(&[Drops, Doubles, Stragglers, Errors, BadHints, Partitions, Outages, NoWatch])
            }
            Scenario::Processes => Some(&[
                Crashes,
                Shutdowns,
                Namesakes,
                Resignations,
                Withdrawals,
                SlowDrains,
                StuckDrains,
                Priorities,
                MixedTimings,
            ]),
            Scenario::Operators => Some(&[
                StepDowns,
                HandOvers,
                Feature::Pauses,
                Evictions,
                SlowDrains,
                StuckDrains,
                Priorities,
                BadHints,
            ]),
        }
    }

    /// Makes a world of the swarm one of this kind.
    pub(crate) fn shape(self, mut config: Config) -> Config {
        if let Some(allowed) = self.limits() {
            let kept = allowed.iter().filter(|feature| config.features.has(**feature));
            config.features = kept.fold(Features::default(), |f, feature| f.with(*feature, true));
        }
        match self {
            Scenario::Beyond => {
                config.features = config.features.with(Feature::DriftBeyond, true);
            }
            Scenario::Cas => {
                config.store = StoreKind::Cas;
                let by_hand = config.seed.is_multiple_of(3);
                config.features = config.features.with(Feature::Removals, by_hand);
            }
            Scenario::Turns => config.store = StoreKind::Turns,
            Scenario::Clients => {
                config.clients = true;
                config.names = 0;
                config.store = match config.seed / 16 % 4 {
                    1 => StoreKind::Cas,
                    2 => StoreKind::Turns,
                    _ => StoreKind::Judging,
                };
            }
            Scenario::Replica => config.store = StoreKind::Replicated,
            Scenario::Jump => config.store = StoreKind::Jumping,
            Scenario::Names => {
                config.names = config.names.max(1);
                config.store = match config.seed % 5 {
                    0 | 1 => StoreKind::Judging,
                    2 => StoreKind::Cas,
                    3 => StoreKind::Turns,
                    _ => StoreKind::Jumping,
                };
            }
            _ => {}
        }
        let forgets = config.store.forgets();
        config.features = config.features.with(Feature::Failovers, forgets);
        config
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|s| s.name()).collect();
            format!("no scenario `{text}`; there are: {}", known.join(", "))
        })
    }
}
