//! A thousand worlds: nothing fails, everything is reached, every broken rule is
//! caught.

use tenure_sim::{Config, Mutation, Scenario, Suite, run_twice};

/// As many as CI has time for; `cargo xtask sim --seeds 10000` runs more.
const SEEDS: u64 = 1_000;

/// C2, C3, H1 to H23, promises 1 to 4: see the invariants.
#[test]
fn a_thousand_worlds_keep_every_promise_and_reach_every_situation() {
    let report = Suite::of(SEEDS).run();
    let failures: Vec<_> = report
        .failures
        .iter()
        .map(|failure| format!("{}\n  replay: {}", failure.violation, failure.replay()))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(report.seeds, SEEDS);
    assert_eq!(report.coverage.unreached(), [""; 0], "never reached in {SEEDS} seeds");
}

/// Each rule broken on purpose is caught within as many seeds as the suite runs.
#[test]
fn every_broken_rule_is_caught() {
    let mut missed = Vec::new();
    for mutation in Mutation::ALL {
        let broken = Suite { mutation: Some(*mutation), patience: 1, ..Suite::of(SEEDS) };
        if broken.run().failures.is_empty() {
            missed.push(mutation.name());
        }
    }
    assert_eq!(missed, [""; 0], "not caught in {SEEDS} seeds");
}

/// A run is a function of its seed, and different seeds give different runs.
#[test]
fn a_rerun_leaves_the_same_and_another_seed_does_not() {
    let of = |seed| run_twice(&Config::of(seed, Scenario::Swarm), None);
    let (one, two) = (of(1), of(2));
    assert!(one.violation.is_none() && two.violation.is_none());
    assert_ne!(one.hash, two.hash);
    assert_eq!(one.hash, of(1).hash);
}
