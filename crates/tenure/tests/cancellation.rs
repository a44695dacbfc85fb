//! What work under a term hands on to be cancelled by.

#![allow(clippy::unwrap_used)]

mod common;

use common::{leader, secs, within};

/// L23: asked to stop, the work is told; what may drain is told when the term is lost.
#[tokio::test]
async fn a_cancellation_fires_when_the_work_should_stop_or_when_the_term_is_lost() {
    let (stage, tenure, leadership) = leader().await;
    let stop = leadership.cancellation();
    let loss = leadership.cancellation_on_loss();
    let waits = {
        let stop = stop.clone();
        tokio::spawn(async move { stop.cancelled().await })
    };
    assert!(!stop.is_cancelled() && !loss.is_cancelled());
    stage.ask_to_step_down("e", "deploying").await.unwrap();
    within(waits).await.unwrap();
    assert!(stop.is_cancelled() && !loss.is_cancelled());
    assert!(leadership.is_current(), "it drains");
    within(leadership.resign()).await.unwrap();
    within(loss.cancelled()).await;

    stage.advance(secs(60)).await;
    let _again = within(tenure.election("e").campaign()).await.unwrap();
    assert!(stop.is_cancelled() && loss.is_cancelled(), "another term revives nothing");
}

/// T3, T4: the end of trust cancels, without the store and whatever the driver does.
#[tokio::test]
async fn the_end_of_trust_cancels() {
    let (stage, _tenure, leadership) = leader().await;
    let loss = leadership.cancellation_on_loss();
    stage.outage(true);
    stage.advance(secs(20)).await;
    assert!(loss.is_cancelled());
    within(loss.cancelled()).await;
}

/// A child is cancelled alone or with its parent, and wakes those who wait; no cancellation
/// keeps the term.
#[tokio::test]
async fn a_child_is_cancelled_alone_and_with_its_parent() {
    let (_stage, tenure, leadership) = leader().await;
    let parent = leadership.cancellation();
    let child = parent.child();
    let grandchild = child.child();
    let sibling = parent.child();
    let waits = {
        let grandchild = grandchild.clone();
        tokio::spawn(async move { grandchild.cancelled().await })
    };
    tokio::task::yield_now().await;
    child.cancel();
    within(waits).await.unwrap();
    assert!(child.is_cancelled() && grandchild.is_cancelled());
    assert!(!parent.is_cancelled() && !sibling.is_cancelled() && leadership.is_current());
    drop(leadership);
    within(sibling.cancelled()).await;
    assert!(!tenure.election("e").is_led_here(), "it keeps no term");
}
