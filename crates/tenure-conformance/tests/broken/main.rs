//! The suite, tested: stores that are broken on purpose, one defect each. Every
//! defect must be caught, and every case must be seen failing.

mod defect;
mod follow;
mod handover;
mod names;
mod purge;
mod requests;
mod store;

use std::collections::BTreeSet;
use std::sync::Arc;

use defect::Defect;
use store::Broken;
use tenure_conformance::{CASES, ManualHarness};
use tenure_store::{ManualClock, MemoryStore, SharedStore};

const BOUND: usize = 200;

fn harness(defect: Defect) -> ManualHarness {
    let clock = Arc::new(ManualClock::new());
    let store = MemoryStore::keeping(clock.clone(), BOUND);
    let broken = Broken::new(store, defect);
    let open = move || Arc::new(broken.clone()) as SharedStore;
    ManualHarness::new(clock, open).keeping(BOUND)
}

/// The cases that a store with this defect fails.
fn failed(defect: Defect) -> BTreeSet<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let failing = CASES.iter().filter(|case| {
        let harness = harness(defect);
        let run = runtime.block_on(async {
            let patience = std::time::Duration::from_secs(15);
            tokio::time::timeout(patience, case.run(&harness)).await
        });
        !matches!(run, Ok(Ok(())))
    });
    failing.map(tenure_conformance::Case::path).collect()
}

/// Runs every defect, a few at a time.
fn failed_by_each() -> Vec<(Defect, BTreeSet<String>)> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        // Most of the waiting is for stores that say nothing.
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(defect) = Defect::ALL.get(index) else { return };
                    let cases = failed(*defect);
                    found.lock().expect("no panic").push((*defect, cases));
                }
            });
        }
    });
    found.into_inner().expect("no panic")
}

#[test]
fn a_sound_store_passes_every_case() {
    assert_eq!(failed(Defect::None), BTreeSet::new());
}

#[test]
fn every_defect_is_caught_and_every_case_is_seen_failing() {
    let found = failed_by_each();
    let mut unseen: BTreeSet<_> = CASES.iter().map(tenure_conformance::Case::path).collect();
    let mut missed = Vec::new();
    for (defect, cases) in &found {
        let expected = defect.caught_by();
        if !expected.iter().all(|case| cases.contains(*case)) {
            missed.push(format!("{defect:?} must be caught by {expected:?}, was by {cases:?}"));
        }
        unseen.retain(|case| !cases.contains(case));
    }
    assert_eq!(found.len(), Defect::ALL.len());
    assert!(missed.is_empty(), "not caught:\n{}", missed.join("\n"));
    assert!(unseen.is_empty(), "never seen failing:\n{unseen:#?}");
}

#[test]
fn no_two_cases_go_by_one_name() {
    let paths: BTreeSet<_> = CASES.iter().map(tenure_conformance::Case::path).collect();
    assert_eq!(paths.len(), CASES.len());
}

#[test]
#[should_panic(expected = "there is no such case")]
fn a_case_that_does_not_exist_is_not_passed_silently() {
    tenure_conformance::run("claim::typo", async { harness(Defect::None) });
}

#[test]
#[should_panic(expected = "numbers_only_rise: ")]
fn a_failing_case_fails_its_test() {
    tenure_conformance::run("claim::numbers_only_rise", async { harness(Defect::ReusesNumbers) });
}
