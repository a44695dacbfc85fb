//! Stores that hang, runtimes that are blocked, clocks that jump.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{leader, let_pass_blocking, secs, within};
use tenure::testing::{Fault, Stage, StoreVerb};
use tenure::{LostReason, Tenure};

/// H2, T3: the store takes requests and never answers; lost fires at the end of
/// trust all the same.
#[tokio::test]
async fn lost_fires_at_the_end_of_trust_while_the_store_hangs() {
    let (stage, tenure, leadership) = leader().await;
    stage.settle().await;
    for verb in [StoreVerb::Heartbeat, StoreVerb::Read, StoreVerb::Claim, StoreVerb::Release] {
        stage.faults().script(verb, [Fault::Hang; 1000]);
    }
    let until = leadership.trusted_until();
    let left = leadership.remaining();
    assert_eq!(left, tenure.settings().trust(), "counted from before the request (T1)");
    stage.advance(left - Duration::from_millis(1)).await;
    assert!(leadership.is_current());
    assert_eq!(leadership.trusted_until(), until, "nothing extended it");
    let lost = leadership.lost();
    tokio::pin!(lost);
    assert!(tokio::time::timeout(Duration::from_millis(1), lost.as_mut()).await.is_err());
    stage.advance(Duration::from_millis(1)).await;
    assert!(!leadership.is_current());
    assert_eq!(within(lost).await, LostReason::TrustEnded);
    assert_eq!(leadership.remaining(), Duration::ZERO);
}

/// H4, T2: after a jump of the clock the very first question is answered no,
/// before any task had a chance to look.
#[tokio::test]
async fn a_jump_of_the_clock_is_seen_by_the_first_question() {
    let (stage, _tenure, leadership) = leader().await;
    assert!(leadership.is_current());
    stage.jump(secs(60));
    assert!(!leadership.is_current());
    assert_eq!(within(leadership.lost()).await, LostReason::TrustEnded);
}

/// C7, T1: a slow success does not stretch trust.
#[tokio::test]
async fn a_slow_heartbeat_does_not_stretch_trust() {
    let (stage, tenure, leadership) = leader().await;
    let settings = tenure.settings().clone();
    stage.slow(secs(1));
    stage.advance(secs(60)).await;
    assert!(leadership.is_current(), "slow, but within its time");
    // A second of each grant is gone when it arrives.
    let most = settings.trust().as_millis() as u64;
    let mut seen = Vec::new();
    for _ in 0..20 {
        stage.advance(Duration::from_millis(500)).await;
        seen.push(leadership.remaining().as_millis() as u64);
    }
    assert!(seen.iter().all(|left| *left <= most - 1000), "{seen:?} of {most}");
}

/// F1: failures that leave time for another try cost nothing.
#[tokio::test]
async fn a_short_outage_costs_nothing() {
    let (stage, tenure, leadership) = leader().await;
    for _ in 0..5 {
        stage.outage(true);
        stage.advance(secs(5)).await;
        stage.outage(false);
        stage.advance(secs(5)).await;
    }
    assert!(leadership.is_current());
    assert_eq!(leadership.token(), 1);
    assert!(tenure.status().last_error.is_some());
    assert_eq!(tenure.status().failures, 0);
}

/// H14, F2: the application blocks its only thread for longer than the ttl; the
/// heartbeat has a thread of its own, and nothing is lost.
#[test]
fn a_blocked_application_does_not_delay_renewals() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ttl = secs(2);
        let tenure = Tenure::builder("memory:").ttl(ttl).connect().await.unwrap();
        let leadership = within(tenure.election("e").campaign()).await.unwrap();
        let_pass_blocking(ttl * 2, "the application blocks its thread");
        assert!(leadership.is_current(), "renewed while the application slept");
        assert_eq!(leadership.token(), 1);
    });
}

/// A hook of the application's that panics costs no leadership.
#[tokio::test]
async fn a_panicking_metrics_hook_costs_nothing() {
    #[derive(Debug)]
    struct Panics;
    impl tenure::measures::Metrics for Panics {
        fn record(&self, _: &tenure::Namespace, metric: &tenure::measures::Metric) {
            panic!("the hook fails at {metric:?}");
        }
    }
    let stage = Stage::new();
    let hook = std::sync::Arc::new(Panics);
    let tenure = stage.connect_with(|m| m.id("a").metrics(hook)).await.unwrap();
    let leadership = within(tenure.election("e").campaign()).await.unwrap();
    stage.advance(secs(30)).await;
    assert!(leadership.is_current());
    within(leadership.resign()).await.unwrap();
}

/// A read that is not answered in time says what to do, and does not claim to
/// have written anything.
#[tokio::test]
async fn a_read_without_an_answer_says_so() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    stage.faults().script(StoreVerb::Read, [Fault::Hang]);
    stage.faults().script(StoreVerb::Amend, [Fault::Hang]);
    let election = tenure.election("e");
    let read = tokio::spawn({
        let election = election.clone();
        async move { election.leader().await.unwrap_err().to_string() }
    });
    let write = tokio::spawn(async move { election.pause("").await.unwrap_err().to_string() });
    within(stage.faults().called(StoreVerb::Read, 1)).await;
    within(stage.faults().called(StoreVerb::Amend, 1)).await;
    stage.settle().await;
    stage.advance(secs(3)).await;
    let read = within(read).await.unwrap();
    let write = within(write).await.unwrap();
    assert!(read.contains("did not answer within 2.5s; check that it runs"), "{read}");
    assert!(!read.contains("may have been applied"), "{read}");
    assert!(write.contains("may have been applied"), "{write}");
}
