//! The small worlds of every test run, and rules broken on purpose.

use tenure_core::Mutation;
use tenure_model::{Budget, Config, StoreRule, check, first_violation, full, short};

/// Rules 1 and 2 of the promise, T1, M2, E1, E2, E4, in every order of events
/// of the short worlds; and the worlds are not idle.
#[test]
fn every_short_world_holds_to_its_end() {
    for world in short() {
        let name = world.name;
        let verdict = check(world, 2);
        assert!(verdict.violations.is_empty(), "{name}: {:#?}", verdict.violations);
        assert!(verdict.missed.is_empty(), "{name} never met {:?}", verdict.missed);
        assert!(verdict.states > 100, "{name} has only {} states", verdict.states);
    }
}

/// The figures of a search must be those of the next one.
#[test]
fn a_search_finds_the_same_states_again() {
    let calm = || short().into_iter().find(|world| world.name == "calm").unwrap();
    assert_eq!(check(calm(), 1).states, check(calm(), 2).states);
}

/// A world that cannot reach what it is there for is told apart from a good one.
#[test]
fn a_situation_that_is_never_met_is_reported() {
    let calm = short().into_iter().find(|world| world.name == "calm").unwrap();
    let verdict = check(Config { must: &[tenure_model::Mark::TakenOver], ..calm }, 2);
    assert_eq!(verdict.missed, ["taken over"]);
    assert!(!verdict.is_good());
}

/// A paused election that had no leader before stays vacant: the demand is real.
#[test]
fn an_election_without_a_leader_at_the_end_is_reported() {
    let paused = Budget { pauses: 1, ..Budget::default() };
    let calm = short().into_iter().find(|world| world.name == "calm").unwrap();
    let verdict = check(Config { heals_at: Some(1), budget: paused, ..calm }, 2);
    assert!(
        verdict.violations.iter().any(|v| v.starts_with("a member leads at the end")),
        "{:?}",
        verdict.violations
    );
}

fn world(horizon: u8, budget: Budget) -> Config {
    let calm = full().into_iter().find(|world| world.name == "calm").expect("it is one of them");
    Config { horizon, heals_at: None, budget, must: &[], ..calm }
}

/// Searches for the breakage with the rule whole, then broken.
fn caught(mutation: Mutation, by: &str, world: &Config) {
    let verdict = first_violation(world.clone().broken(mutation), 2);
    let found = verdict.violations.iter().any(|v| v.starts_with(by));
    assert!(found, "{mutation:?} was not caught in {} states: {verdict:?}", verdict.states);
}

const CUT: Budget = Budget {
    late: 0,
    cuts: 1,
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
};

/// T1: the drift belongs to the other clock.
#[test]
fn trust_that_ignores_drift_is_caught() {
    let world = world(9, Budget { slips: 1, ..CUT });
    caught(Mutation::TrustIgnoresDrift, "trust within the grant", &world);
}

/// T1, C7: a slow success must not stretch trust.
#[test]
fn trust_counted_from_the_reply_is_caught() {
    let world = world(8, Budget { slips: 1, late: 1, ..CUT });
    caught(Mutation::TrustFromReply, "trust within the grant", &world);
}

/// An old reply counts for nothing.
#[test]
fn a_stale_reply_that_counts_is_caught() {
    let world = world(8, Budget { late: 1, ..CUT });
    caught(Mutation::StaleReplies, "trust within the grant", &world);
}

/// E4, H1: stop, drain, release, in that order.
#[test]
fn a_release_before_the_drain_is_caught() {
    let world = world(6, Budget { cuts: 0, step_downs: 1, ..CUT });
    caught(Mutation::ReleaseFirst, "released after the work", &world);
}

/// E4: lost work has the margin to stop in.
#[test]
fn a_release_without_the_margin_is_caught() {
    caught(Mutation::NoMargin, "released after the work", &world(8, CUT));
}

/// M5: a term ends with its life: with that of a process that was started again under its id,
/// or that has left.
#[test]
fn a_term_that_outlives_its_life_is_caught() {
    let none = Budget { cuts: 0, ..CUT };
    let crash = world(7, Budget { crashes: 1, ..none });
    let leave = world(6, Budget { shutdowns: 1, ..none });
    for world in [crash, leave] {
        let verdict = first_violation(world.with_store(StoreRule::TermOutlivesLife), 2);
        let by = "a term ends with its life";
        let found = verdict.violations.iter().any(|violation| violation.starts_with(by));
        assert!(found, "not caught in {} states: {verdict:?}", verdict.states);
    }
}

fn name(horizon: u8, budget: Budget) -> Config {
    Config { elections: 0, names: 1, ..world(horizon, budget) }
}

/// U1, U6: a name is trusted for no longer than the store keeps it for its owner, also while
/// the owner is stopped and its machine is told nothing.
#[test]
fn a_name_that_is_trusted_beyond_its_grant_is_caught() {
    let stopped = Budget { starved: 5, ..Budget::default() };
    caught(Mutation::NamePastGrant, "owned within the grant", &name(7, stopped));
}

/// E4: the work under a name that was lost has the margin to stop in.
#[test]
fn a_name_that_is_dropped_without_the_margin_is_caught() {
    caught(Mutation::NameDroppedEarly, "released after the work", &name(8, CUT));
}

/// E4, B7: who leaves gives everything back, so it waits for the work too.
#[test]
fn leaving_while_work_runs_is_caught() {
    let world = world(8, Budget { shutdowns: 1, ..CUT });
    caught(Mutation::LeaveEarly, "released after the work", &world);
}
