//! Work that runs only while this process leads.

#![allow(clippy::unwrap_used)]

mod common;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{secs, within};
use tenure::journal::ReleaseCause;
use tenure::testing::{Fault, Stage, StoreVerb};
use tenure::{LeadError, Left, LostReason, Stopping};
use tokio::sync::oneshot;

/// Says when it is dropped.
struct Tell(Arc<AtomicBool>);

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// B21: a lost leadership cancels the work, and says why.
#[tokio::test]
async fn work_is_cancelled_when_the_leadership_is_lost() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let dropped = Arc::new(AtomicBool::new(false));
    let tell = Tell(dropped.clone());
    let (begun, begins) = oneshot::channel();
    let election = tenure.election("e");
    let scope = tokio::spawn(async move {
        election
            .lead(|_| async move {
                let _tell = tell;
                begun.send(()).unwrap();
                std::future::pending::<Result<(), Infallible>>().await
            })
            .await
    });
    within(begins).await.unwrap();
    assert!(!dropped.load(Ordering::SeqCst));
    stage.lose("e").await.unwrap();
    let outcome = within(scope).await.unwrap();
    assert!(matches!(outcome, Err(LeadError::Lost(LostReason::Superseded))), "{outcome:?}");
    assert!(dropped.load(Ordering::SeqCst), "the work was cancelled");
}

/// E4, H1, B7: asked to step down, the work drains while the term is renewed;
/// only when it has ended is the term free.
#[tokio::test]
async fn the_term_is_released_after_the_work_has_drained() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let (drained, drains) = oneshot::channel::<()>();
    let (stopping, stops) = oneshot::channel();
    let election = a.election("e");
    let scope = tokio::spawn(async move {
        election
            .lead(|leadership| async move {
                let why = leadership.stopping().await;
                stopping.send((why, leadership)).ok();
                drains.await.ok();
                Ok::<_, Infallible>(())
            })
            .await
    });
    stage.until_led("e").await;
    let next = common::stands(&stage, &b, 100).await;
    stage.ask_to_step_down("e", "deploying").await.unwrap();
    let (why, leadership) = within(stops).await.unwrap();
    let Stopping::Asked { reason, .. } = why else { panic!("asked, not lost: {why:?}") };
    assert!(format!("{reason:?}").contains("deploying"), "{reason:?}");

    // Eight of the ten seconds it may take: renewed all the while.
    stage.advance(secs(8)).await;
    assert!(leadership.is_current());
    assert_eq!(a.election("e").leader().await.unwrap().unwrap().member.id, *a.id());
    assert!(!next.is_finished());

    drop(leadership);
    drained.send(()).unwrap();
    within(scope).await.unwrap().unwrap();
    let next = within(next).await.unwrap();
    assert_eq!(next.token(), 2);
    let past = a.election("e").history(1).await.unwrap();
    assert_eq!(past[0].term.number.get(), 2);
    let past = a.election("e").history(2).await.unwrap();
    assert_eq!(past[0].ended.unwrap().1, ReleaseCause::SteppedDown);
}

/// E4: the patience with work that does not stop is bounded; then it is lost
/// and cancelled.
#[tokio::test]
async fn work_that_does_not_drain_in_time_is_cancelled() {
    let stage = Stage::new();
    let tenure = stage.connect_with(|m| m.id("a").drain(secs(4))).await.unwrap();
    let election = tenure.election("e");
    let scope = tokio::spawn(async move {
        election.lead(|_| std::future::pending::<Result<(), Infallible>>()).await
    });
    stage.until_led("e").await;
    stage.ask_to_step_down("e", "").await.unwrap();
    stage.advance(secs(3)).await;
    assert!(tenure.election("e").is_led_here());
    stage.advance(secs(2)).await;
    let outcome = within(scope).await.unwrap();
    assert!(matches!(outcome, Err(LeadError::Lost(LostReason::DrainTimeout))), "{outcome:?}");
}

/// A panic in the work releases the term at once and is reported.
#[tokio::test]
async fn a_panic_in_the_work_releases_the_term_and_is_reported() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let election = tenure.election("e");
    for early in [true, false] {
        let outcome = within(election.lead(|_| {
            assert!(!early, "before the work began");
            async {
                tokio::task::yield_now().await;
                assert!(early, "in the {}", "middle");
                Ok::<_, Infallible>(())
            }
        }))
        .await;
        let Err(LeadError::Panicked(said)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(said, if early { "before the work began" } else { "in the middle" });
        assert!(election.leader().await.unwrap().is_none(), "released when it is reported");
    }
}

/// An error of the work releases the term at once and is reported.
#[tokio::test]
async fn an_error_of_the_work_releases_the_term_and_is_reported() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let election = tenure.election("e");
    let outcome = within(election.lead(|_| async { Err::<(), _>("disk full") })).await;
    let Err(LeadError::Work(error)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.to_string(), "disk full");
    assert!(election.leader().await.unwrap().is_none());
}

/// A scope that is dropped half-way releases its term.
#[tokio::test]
async fn a_dropped_scope_releases_the_term() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let election = tenure.election("e");
    let scope = tokio::spawn(async move {
        election.lead(|_| std::future::pending::<Result<(), Infallible>>()).await
    });
    stage.until_led("e").await;
    scope.abort();
    within(scope).await.unwrap_err();
    stage.settle().await;
    assert!(tenure.election("e").leader().await.unwrap().is_none());
}

/// L9: `lead_always` stands again after a loss, under a higher number.
#[tokio::test]
async fn lead_always_leads_again_after_a_loss() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let election = tenure.election("e");
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let scope = tokio::spawn(async move {
        election
            .lead_always(|leadership| {
                tell.send(leadership.token()).unwrap();
                std::future::pending::<Result<std::ops::ControlFlow<()>, Infallible>>()
            })
            .await
    });
    assert_eq!(within(told.recv()).await, Some(1));
    stage.lose("e").await.unwrap();
    assert_eq!(within(told.recv()).await, Some(2));
    // It does not stop by itself: the shutdown waits for its drain time.
    let (shut, ()) =
        within(async { tokio::join!(tenure.shutdown(), stage.advance(secs(12))) }).await;
    assert_eq!(shut.unwrap(), Left::Confirmed);
    let outcome = within(scope).await.unwrap();
    assert!(matches!(outcome, Ok(None)), "an orderly end (L9): {outcome:?}");
}

/// H1: the store is told of a loss only after the work is cancelled, also when
/// trust ends while the store does not answer.
#[tokio::test]
async fn nothing_is_released_while_lost_work_still_runs() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let leadership = within(tenure.election("e").campaign()).await.unwrap();
    stage.faults().script(StoreVerb::Heartbeat, [Fault::FailBefore; 200]);
    stage.advance(secs(10)).await;
    assert!(!leadership.is_current());
    assert_eq!(within(leadership.lost()).await, LostReason::TrustEnded);
    assert_eq!(stage.faults().counts().calls(StoreVerb::Release), 0, "it may still be working");
    drop(leadership);
    stage.settle().await;
    assert_eq!(stage.faults().counts().calls(StoreVerb::Release), 1, "it says it has stopped");
}

/// `run_if_leader` runs under a leadership held elsewhere in the process, and
/// is cancelled with it.
#[tokio::test]
async fn run_if_leader_is_cancelled_with_the_leadership() {
    let (stage, tenure, leadership) = common::leader().await;
    let election = tenure.election("e");
    let runs = election.run_if_leader(|leadership| async move {
        assert_eq!(leadership.token(), 1);
        std::future::pending::<()>().await;
    });
    let (ran, lost) = within(async { tokio::join!(runs, stage.lose("e")) }).await;
    assert_eq!(ran, None);
    assert_eq!(lost.unwrap(), Some(leadership.number()));
    assert_eq!(election.run_if_leader(|_| async {}).await, None);
}

/// L8: a stage works with members of any namespace, and where two have elections of
/// one name it can be told which.
#[tokio::test]
async fn a_stage_works_in_every_namespace() {
    let stage = Stage::new();
    let a = stage.connect_with(|m| m.id("a").namespace("billing")).await.unwrap();
    let election = a.election("e");
    let scope = tokio::spawn(async move {
        let work = election.lead(|leadership| async move {
            leadership.stopping().await;
            Ok::<_, Infallible>(())
        });
        work.await
    });
    assert_eq!(within(stage.until_led("e")).await.unwrap().member.id, *a.id());
    stage.pause("e").await.unwrap();
    stage.ask_to_step_down("e", "deploying").await.unwrap();
    within(scope).await.unwrap().unwrap();
    assert!(a.election("e").view().await.unwrap().paused.is_some());
    stage.resume("e").await.unwrap();
    stage.advance(secs(11)).await;

    let kept = within(a.election("e").campaign()).await.unwrap();
    let b = stage.connect_with(|m| m.id("b").namespace("shipping")).await.unwrap();
    let lost = within(b.election("e").campaign()).await.unwrap();
    let there = stage.in_namespace("shipping").unwrap();
    assert_eq!(within(there.until_led("e")).await.unwrap().member.id, *b.id());
    assert_eq!(there.lose("e").await.unwrap(), Some(lost.number()));
    assert!(kept.is_current() && !lost.is_current());
    assert!(stage.in_namespace("a\u{0}b").is_err());
}

/// L11: the work's own error is the source of the scope's, and keeps its type.
#[tokio::test]
async fn the_error_of_the_work_is_the_source() {
    let (_stage, tenure, leadership) = common::leader().await;
    within(leadership.resign()).await.unwrap();
    let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    let work = |_| async { Err::<(), _>(full()) };
    let failed = within(tenure.election("e").lead(work)).await.unwrap_err();
    assert_eq!(failed.to_string(), format!("the work failed: {}", full()));
    let source = std::error::Error::source(&failed).expect("kept");
    assert!(source.is::<std::io::Error>(), "{source:?}");
}
