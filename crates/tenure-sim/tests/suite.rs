//! A thousand worlds: nothing fails, everything is reached, every broken rule is
//! caught. Each test uses one core, so that they share the cores there are.

use std::ops::Range;

use tenure_sim::{Config, Mutation, Report, Scenario, Suite, run_twice};

/// As many as CI has time for; `cargo xtask sim --seeds 10000` runs more.
const SEEDS: u64 = 1_000;

fn one_core(seeds: Range<u64>) -> Suite {
    Suite { seeds, threads: 1, ..Suite::of(0) }
}

/// Runs it, and shows what failed with the command that runs it again.
fn keeps_every_promise(suite: &Suite) -> Report {
    let report = suite.run();
    let failures = report.failures.iter();
    let failures = failures.map(|f| format!("{}\n  replay: {}", f.violation, f.replay()));
    let failures: Vec<_> = failures.collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(report.seeds, suite.seeds.end - suite.seeds.start);
    report
}

fn keep_every_promise_and_reach_everything(seeds: Range<u64>) {
    let report = keeps_every_promise(&one_core(seeds.clone()));
    // What a promoted copy does wrong is rare among all worlds, since members notice what
    // it has forgotten (M6): the worlds of that kind have tests of their own.
    let unreached = report.coverage.unreached().into_iter();
    let unreached: Vec<_> = unreached.filter(|s| !s.starts_with("a promoted copy")).collect();
    assert_eq!(unreached, [""; 0], "never reached in the seeds {seeds:?}");
}

/// C2, C3, H1 to H23, promises 1 to 4: see the invariants.
#[test]
fn the_first_half_of_a_thousand_worlds_keeps_every_promise() {
    keep_every_promise_and_reach_everything(0..SEEDS / 2);
}

/// The same: other worlds.
#[test]
fn the_second_half_of_a_thousand_worlds_keeps_every_promise() {
    keep_every_promise_and_reach_everything(SEEDS / 2..SEEDS);
}

/// How often one kind of world reached a situation.
fn reached(report: &Report, situation: &str) -> u64 {
    report.coverage.iter().find(|(name, _)| *name == situation).map_or(0, |(_, count)| count)
}

/// B27: an asynchronously replicated store is weaker, and in the way that is
/// documented: a plain copy breaks promises 1, 2 and 3.
#[test]
fn a_copy_that_forgot_breaks_what_is_said_and_nothing_else() {
    let plain = Suite { scenario: Some(Scenario::Replica), ..one_core(0..150) };
    let report = keeps_every_promise(&plain);
    for broken in [
        "a promoted copy gave a number twice",
        "a promoted copy went back in its numbers",
        "a promoted copy took a deposed leader's write",
        "two trusted after a copy was promoted",
    ] {
        assert!(reached(&report, broken) > 0, "not shown: {broken}");
    }
}

/// B27, H5: if its numbers jump, promises 1 and 3 hold, and promise 2 alone is
/// weaker.
#[test]
fn a_copy_whose_numbers_jump_breaks_the_second_promise_alone() {
    let jumping = Suite { scenario: Some(Scenario::Jump), ..one_core(0..150) };
    let report = keeps_every_promise(&jumping);
    assert!(reached(&report, "a copy was promoted without the last writes") > 0);
    assert!(reached(&report, "two trusted after a copy was promoted") > 0);
    assert_eq!(reached(&report, "a promoted copy gave a number twice"), 0);
    assert_eq!(reached(&report, "a promoted copy went back in its numbers"), 0);
    assert_eq!(reached(&report, "a promoted copy took a deposed leader's write"), 0);
}

/// Each rule broken on purpose is caught within as many seeds as the suite runs.
fn every_breakage_is_caught(of: fn(&Mutation) -> bool) {
    let broken = Mutation::ALL.iter().filter(|mutation| of(mutation));
    let missed = broken.filter(|mutation| {
        let suite = Suite { mutation: Some(**mutation), patience: 1, ..one_core(0..SEEDS) };
        suite.run().failures.is_empty()
    });
    let missed: Vec<_> = missed.map(|mutation| mutation.name()).collect();
    assert_eq!(missed, [""; 0], "not caught in {SEEDS} seeds");
}

/// T1 to F4: the member's side.
#[test]
fn every_broken_rule_of_the_machine_is_caught() {
    every_breakage_is_caught(|mutation| matches!(mutation, Mutation::Machine(_)));
}

/// T2, M1 to E6: clocks and the store's side.
#[test]
fn every_broken_rule_of_clocks_and_stores_is_caught() {
    every_breakage_is_caught(|mutation| !matches!(mutation, Mutation::Machine(_)));
    assert!(Mutation::ALL.len() >= 15);
}

/// Promises 2 and 3 on a compare-and-swap store, with clocks as far off as they
/// may be and days apart, records removed by hand, and take-overs of two swaps.
#[test]
fn worlds_on_a_compare_and_swap_store_keep_every_promise() {
    keeps_every_promise(&Suite { scenario: Some(Scenario::Cas), ..one_core(0..200) });
}

/// M1, M2, promises 1 to 4 where the rules run on a copy of the rows: pauses, lost, late and
/// doubled messages, other turns and heartbeats between a look and its turn, and a turn that
/// waits for the service's lock.
#[test]
fn worlds_on_rows_that_lie_elsewhere_keep_every_promise() {
    keeps_every_promise(&Suite { scenario: Some(Scenario::Turns), ..one_core(0..200) });
}

/// W1 to W5: processes that lead for clients of theirs, with slow answers, dead servers, paused
/// clients, drains that end before what was granted does, on each kind of store that does not
/// forget.
#[test]
fn worlds_of_clients_behind_servers_keep_every_promise() {
    let clients = Suite { scenario: Some(Scenario::Clients), ..one_core(0..300) };
    let report = keeps_every_promise(&clients);
    assert!(reached(&report, "a client of a server led") > 300);
}

/// A run is a function of its seed, and different seeds give different runs.
#[test]
fn a_rerun_leaves_the_same_and_another_seed_does_not() {
    let of = |seed| run_twice(&Config::of(seed, Scenario::Swarm), None);
    let one = of(1);
    let two = of(2);
    assert!(one.violation.is_none() && two.violation.is_none());
    assert_ne!(one.hash, two.hash);
    assert_eq!(one.hash, of(1).hash);
}
