//! A suite: many seeds on all cores, each run twice unless a rule is broken.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::clock::Nanos;
use crate::config::Config;
use crate::coverage::Coverage;
use crate::invariants::Violation;
use crate::mutation::Mutation;
use crate::scenario::Scenario;
use crate::world::run;

/// What to run.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Which seeds.
    pub seeds: Range<u64>,
    /// One kind of world; without it, each seed has its own kind.
    pub scenario: Option<Scenario>,
    /// A rule to break.
    pub mutation: Option<Mutation>,
    /// How many threads to use.
    pub threads: usize,
    /// After how many failures to stop.
    pub patience: usize,
}

/// How a suite went.
#[derive(Debug, Default)]
pub struct Report {
    /// How many seeds were run.
    pub seeds: u64,
    /// How much time passed in all their worlds, each counted once.
    pub simulated: Nanos,
    /// How much happened in them.
    pub steps: u64,
    /// Which situations were reached.
    pub coverage: Coverage,
    /// The seeds that failed, lowest first.
    pub failures: Vec<Failure>,
}

/// A seed that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The world.
    pub config: Config,
    /// The rule that was broken in it on purpose.
    pub mutation: Option<Mutation>,
    /// What did not hold.
    pub violation: Violation,
}

impl Failure {
    /// The command that runs this world again.
    #[must_use]
    pub fn replay(&self) -> String {
        let Config { seed, scenario, .. } = &self.config;
        let world = format!("cargo xtask sim --seed {seed} --scenario {scenario}");
        // Without it the world would be whole, and nothing would fail.
        match self.mutation {
            Some(mutation) => format!("{world} --mutation {mutation}"),
            None => world,
        }
    }
}

/// Runs one world twice; the second must leave exactly what the first did.
#[must_use]
pub fn run_twice(config: &Config, mutation: Option<Mutation>) -> crate::Ran {
    let mut first = run(config, mutation, false);
    let second = run(config, mutation, false);
    if first.hash != second.hash {
        let one = first.hash.get();
        let two = second.hash.get();
        first.violation.get_or_insert(Violation {
            invariant: "a run is a function of its seed",
            at: first.simulated.min(second.simulated),
            text: format!("two runs left {one:016x} and {two:016x}"),
        });
    }
    first
}

impl Suite {
    /// The suite of `count` seeds from 0 on, on all cores.
    #[must_use]
    pub fn of(count: u64) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { seeds: 0..count, scenario: None, mutation: None, threads, patience: 5 }
    }

    /// The world of a seed.
    #[must_use]
    pub fn config(&self, seed: u64) -> Config {
        // A rule that only one kind of world has is looked for there.
        let scenario = self.scenario.or_else(|| self.mutation?.scenario());
        Config::of(seed, scenario.unwrap_or_else(|| Scenario::of(seed)))
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self) -> Report {
        let next = AtomicU64::new(self.seeds.start);
        let report = Mutex::new(Report::default());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| self.work(&next, &report));
            }
        });
        let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.failures.sort_by_key(|failure| failure.config.seed);
        report
    }

    fn work(&self, next: &AtomicU64, report: &Mutex<Report>) {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let enough = || {
                let report = report.lock().unwrap_or_else(PoisonError::into_inner);
                report.failures.len() >= self.patience
            };
            if seed >= self.seeds.end || enough() {
                return;
            }
            let config = self.config(seed);
            // A rule that is broken is to be caught, not repeated.
            let outcome = match self.mutation {
                Some(_) => run(&config, self.mutation, false),
                None => run_twice(&config, None),
            };
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.seeds += 1;
            report.simulated += outcome.simulated;
            report.steps += outcome.steps;
            report.coverage.add(&outcome.coverage);
            if let Some(violation) = outcome.violation {
                report.failures.push(Failure { config, mutation: self.mutation, violation });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The printed command finds the failure again: it names the broken rule by
    /// a word that is understood.
    #[test]
    fn a_failure_is_replayed_with_the_rule_that_was_broken() {
        let violation = Violation { invariant: "one", at: 0, text: String::new() };
        let config = Config::of(7, Scenario::of(7));
        let whole = Failure { config, mutation: None, violation };
        assert!(whole.replay().starts_with("cargo xtask sim --seed 7 --scenario "));
        assert!(!whole.replay().contains("--mutation"), "{}", whole.replay());
        for mutation in Mutation::ALL {
            let broken = Failure { mutation: Some(*mutation), ..whole.clone() };
            let replay = broken.replay();
            let named = replay.rsplit_once(" --mutation ").map(|(_, name)| name.parse());
            assert_eq!(named, Some(Ok(*mutation)), "{replay}");
        }
    }
}
