//! Work holds its term: whatever runs under a leadership keeps the term from being
//! released until it has ended or the drain is over.

#![allow(clippy::unwrap_used)]

mod common;

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use common::{leader, secs, within};
use tenure::journal::ReleaseCause;
use tenure::testing::{Stage, StoreVerb};
use tenure::{LeadError, Left, LostReason, Stopping, Tenure};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Holds the election and does nothing, as a process does whose jobs are elsewhere:
/// it lets go as soon as it is asked to.
fn holder(tenure: &Tenure) -> JoinHandle<()> {
    let election = tenure.election("e");
    tokio::spawn(async move {
        let held = election.lead(|leadership| async move {
            leadership.stopping().await;
            Ok::<_, Infallible>(())
        });
        let _ = held.await;
    })
}

/// Lets a campaign begin and win, while its caller does not look: the
/// store is too slow to answer the first look.
async fn won_unheard(stage: &Stage, campaign: std::pin::Pin<&mut impl Future>) {
    stage.slow(secs(1) / 10);
    assert!(campaign.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    stage.advance(secs(1)).await;
    stage.slow(std::time::Duration::ZERO);
    within(stage.until_led("e")).await.unwrap();
}

/// How often the store was asked to take a term back.
fn releases(stage: &Stage) -> u64 {
    stage.faults().counts().calls(StoreVerb::Release)
}

/// L2: a job of `run_if_leader` is told to stop and waited for, although the caller that
/// campaigned has let go long before.
#[tokio::test]
async fn a_job_keeps_the_term_until_it_has_drained() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let held = holder(&a);
    within(stage.until_led("e")).await.unwrap();
    let next = common::stands(&stage, &b, 100).await;
    let (stopping, stops) = oneshot::channel();
    let (drained, drains) = oneshot::channel::<()>();
    let election = a.election("e");
    let job = tokio::spawn(async move {
        election
            .run_if_leader(|leadership| async move {
                stopping.send(leadership.stopping().await).unwrap();
                drains.await.unwrap();
                leadership.is_current()
            })
            .await
    });
    tokio::task::yield_now().await;
    stage.ask_to_step_down("e", "deploying").await.unwrap();
    let why = within(stops).await.unwrap();
    assert!(matches!(why, Stopping::Asked { .. }), "{why:?}");
    stage.advance(secs(8)).await;
    assert!(!next.is_finished(), "the job has not ended");
    assert_eq!(b.election("e").leader().await.unwrap().unwrap().member.id, *a.id());

    drained.send(()).unwrap();
    assert_eq!(within(job).await.unwrap(), Some(true), "it led to its end");
    assert_eq!(within(next).await.unwrap().token(), 2);
    within(held).await.unwrap();
    let past = a.election("e").history(2).await.unwrap();
    assert_eq!(past[0].ended.unwrap().1, ReleaseCause::SteppedDown);
}

/// L2: a job that never ends is told *lost* when the drain is over, and cancelled; the
/// term is free after the margin.
#[tokio::test]
async fn a_job_that_never_ends_is_bounded_by_the_drain() {
    let stage = Stage::new();
    let a = stage.connect_with(|m| m.id("a").drain(secs(4))).await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let _held = holder(&a);
    within(stage.until_led("e")).await.unwrap();
    let next = common::stands(&stage, &b, 100).await;
    // One that the scope can cancel, and one that nothing can.
    let election = a.election("e");
    let job =
        tokio::spawn(async move { election.run_if_leader(|_| std::future::pending::<()>()).await });
    let mut leaderships = a.election("e").subscribe_holding().unwrap();
    let kept = within(leaderships.next()).await.unwrap();
    stage.ask_to_step_down("e", "").await.unwrap();
    stage.advance(secs(3)).await;
    assert!(!job.is_finished() && !next.is_finished());
    stage.advance(secs(1)).await;
    assert_eq!(within(job).await.unwrap(), None);
    assert_eq!(within(kept.lost()).await, LostReason::DrainTimeout);
    assert_eq!(releases(&stage), 0, "it has the margin to stop in");
    stage.advance(secs(1)).await;
    assert_eq!(within(next).await.unwrap().token(), 2);
    drop(kept);
}

/// L2: a term that is handed over goes to the one named also when other work under it does
/// not end within the drain, and is not before the margin after it.
#[tokio::test]
async fn a_hand_over_goes_to_the_one_named_also_beyond_the_drain() {
    let stage = Stage::new();
    let a = stage.connect_with(|m| m.id("a").drain(secs(4))).await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let c = stage.connect("c").await.unwrap();
    let leadership = within(a.election("e").campaign()).await.unwrap();
    let preferred = common::stands(&stage, &b, 900).await;
    let named = common::stands(&stage, &c, 1).await;
    let mut leaderships = a.election("e").subscribe_holding().unwrap();
    let kept = within(leaderships.next()).await.unwrap();
    let to = c.id().clone();
    let handing = tokio::spawn(async move { leadership.hand_over(&to).await });
    within(kept.stopping()).await;
    stage.advance(secs(4)).await;
    assert_eq!(within(kept.lost()).await, LostReason::DrainTimeout);
    assert_eq!(releases(&stage), 0, "the work has the margin to stop in");
    assert!(!named.is_finished() && !preferred.is_finished());
    stage.advance(secs(1)).await;
    let leads = within(named).await.unwrap();
    assert_eq!((leads.token(), &leads.term().member.id), (2, c.id()));
    assert!(!preferred.is_finished());
    within(handing).await.unwrap().unwrap();
    drop(kept);
}

/// L2: once the leader is asked to stop, no new job begins: one after the other, they
/// would keep the term until the drain is over.
#[tokio::test]
async fn no_job_begins_once_the_leader_is_asked_to_stop() {
    let (stage, a, leadership) = leader().await;
    let mut leaderships = a.election("e").subscribe_holding().unwrap();
    stage.ask_to_step_down("e", "").await.unwrap();
    assert!(leadership.is_current() && leadership.is_stopping());
    assert_eq!(a.election("e").run_if_leader(|_| async {}).await, None);
    let mut next = pin!(leaderships.next());
    let mut context = Context::from_waker(Waker::noop());
    assert!(next.as_mut().poll(&mut context).is_pending());
    // What runs already may still divide its work.
    let part = leadership.hold().unwrap();
    drop(leadership);
    stage.settle().await;
    assert_eq!(releases(&stage), 0);
    assert!(part.hold().is_none(), "it is given up");
    drop(part);
    stage.settle().await;
    assert_eq!(releases(&stage), 1);
}

/// L2: a resignation tells other work to stop and returns after it has.
#[tokio::test]
async fn a_resignation_waits_for_other_work_under_the_term() {
    let (stage, a, leadership) = leader().await;
    let part = leadership.hold().unwrap();
    let resigned = tokio::spawn(leadership.resign());
    let why = within(part.stopping()).await;
    assert!(matches!(why, Stopping::Asked { .. }), "{why:?}");
    stage.advance(secs(5)).await;
    assert!(part.is_current() && !resigned.is_finished());
    assert_eq!(releases(&stage), 0);
    drop(part);
    within(resigned).await.unwrap().unwrap();
    assert!(a.election("e").leader().await.unwrap().is_none());
}

/// L2: nor does it wait for ever.
#[tokio::test]
async fn a_resignation_comes_back_although_other_work_does_not_end() {
    let (stage, a, leadership) = leader().await;
    let part = leadership.hold().unwrap();
    let resigned = tokio::spawn(leadership.resign());
    within(part.stopping()).await;
    stage.advance(secs(12)).await;
    within(resigned).await.unwrap().unwrap();
    assert_eq!(within(part.lost()).await, LostReason::DrainTimeout);
    assert!(a.election("e").leader().await.unwrap().is_none());
    // A late word of a term that is gone: at once, and without harm.
    within(part.resign()).await.unwrap();
}

/// L2: work may resign the leadership that another part of the process campaigned
/// for; that part is told to stop.
#[tokio::test]
async fn a_job_may_resign_for_the_whole_process() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let held = holder(&a);
    within(stage.until_led("e")).await.unwrap();
    let election = a.election("e");
    let resigned = election.run_if_leader(|leadership| leadership.resign());
    within(resigned).await.map_or(Ok(()), |told| told).unwrap();
    within(held).await.unwrap();
    assert!(a.election("e").leader().await.unwrap().is_none());
}

/// L2: what a `lead` scope spawned keeps the term as long as it has the leadership.
#[tokio::test]
async fn what_a_scope_spawned_keeps_the_term() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let (spawned, takes) = oneshot::channel();
    let election = a.election("e");
    let scope = tokio::spawn(async move {
        let work = election.lead(|leadership| async move {
            spawned.send(leadership).unwrap();
            Ok::<_, Infallible>(())
        });
        work.await
    });
    let leadership = within(takes).await.unwrap();
    within(leadership.stopping()).await;
    stage.settle().await;
    assert!(!scope.is_finished() && leadership.is_current());
    assert_eq!(releases(&stage), 0);
    drop(leadership);
    within(scope).await.unwrap().unwrap();
    assert_eq!(releases(&stage), 1);
}

/// L2: after a loss the store is asked to end the term when the last work has stopped, not
/// when the first has.
#[tokio::test]
async fn a_lost_term_is_given_back_when_the_last_work_has_stopped() {
    let (stage, _a, leadership) = leader().await;
    let part = leadership.hold().unwrap();
    stage.faults().script(StoreVerb::Heartbeat, [tenure::testing::Fault::FailBefore; 200]);
    stage.advance(secs(9)).await;
    assert_eq!(within(part.lost()).await, LostReason::TrustEnded);
    drop(leadership);
    stage.settle().await;
    assert_eq!(releases(&stage), 0, "part of it may still be working");
    drop(part);
    stage.settle().await;
    assert_eq!(releases(&stage), 1);
}

/// L2: a campaign that is dropped just as it is won is given back; a job that saw the
/// leadership in between is told to stop, and waited for.
#[tokio::test]
async fn a_job_under_a_campaign_that_was_dropped_is_waited_for() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let election = a.election("e");
    let mut campaign = Box::pin(election.campaign());
    won_unheard(&stage, campaign.as_mut()).await;
    let mut leaderships = election.subscribe_holding().unwrap();
    let held = within(leaderships.next()).await.unwrap();
    drop(campaign);
    within(held.stopping()).await;
    stage.settle().await;
    assert!(held.is_current());
    assert_eq!(releases(&stage), 0);
    drop(held);
    stage.settle().await;
    assert_eq!(releases(&stage), 1);
    assert!(election.leader().await.unwrap().is_none());
}

/// L2: a shutdown waits for every part of the work; a handle that is dropped on another
/// thread after that does no harm.
#[tokio::test]
async fn a_shutdown_waits_for_all_work_and_bears_late_handles() {
    let (stage, a, leadership) = leader().await;
    let part = leadership.hold().unwrap();
    let late = leadership.hold().unwrap();
    drop(leadership);
    let closing = a.clone();
    let shutdown = tokio::spawn(async move { closing.shutdown().await });
    within(part.stopping()).await;
    drop(part);
    stage.settle().await;
    assert!(!shutdown.is_finished());
    stage.advance(secs(12)).await;
    assert_eq!(within(shutdown).await.unwrap().unwrap(), Left::Confirmed);
    assert!(!late.is_current());
    assert!(late.hold().is_none());
    std::thread::spawn(move || drop(late)).join().unwrap();
    assert_eq!(a.election("e").run_if_leader(|_| async {}).await, None);
}

/// L2: each leadership of the member is given out once, and none that is over.
#[tokio::test]
async fn a_holding_subscription_gives_each_leadership_once() {
    let (stage, a, leadership) = leader().await;
    let mut leaderships = a.election("e").subscribe_holding().unwrap();
    let first = within(leaderships.next()).await.unwrap();
    assert_eq!(first.token(), 1);
    {
        let mut again = pin!(leaderships.next());
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(again.as_mut().poll(&mut context), Poll::Pending));
    }
    drop(first);
    leadership.resign().await.unwrap();
    within(a.election("e").campaign()).await.unwrap().resign().await.unwrap();
    let third = within(a.election("e").campaign()).await.unwrap();
    assert_eq!(within(leaderships.next()).await.unwrap().token(), 3, "the second is over");
    stage.lose("e").await.unwrap();
    assert_eq!(within(third.lost()).await, LostReason::Superseded);
}

/// L2: a scope whose term another part of the process gave up does not begin its work.
#[tokio::test]
async fn a_scope_does_not_begin_under_a_term_that_was_given_up() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let election = a.election("e");
    let mut leaderships = election.subscribe_holding().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut begun = false;
    let outcome = {
        let mut scope = Box::pin(election.lead(|_| {
            begun = true;
            async { Ok::<_, Infallible>(()) }
        }));
        won_unheard(&stage, scope.as_mut()).await;
        let held = within(leaderships.next()).await.unwrap();
        let mut resigned = Box::pin(held.resign());
        assert!(resigned.as_mut().poll(&mut context).is_pending());
        let outcome = within(scope).await;
        within(resigned).await.unwrap();
        outcome
    };
    assert!(matches!(outcome, Err(LeadError::Lost(LostReason::Resigned))), "{outcome:?}");
    assert!(!begun);
}
