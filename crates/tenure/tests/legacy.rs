//! What a leader leaves to its successor, and to no term after that.

#![allow(clippy::unwrap_used)]

use tenure::naming::NameError;
use tenure::testing::{Fault, Stage, StoreVerb};
use tenure_testkit::within;

/// The next leader has it, whichever process that is; the one after it does not.
#[tokio::test]
async fn what_is_left_goes_to_the_next_term_alone() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let first = a.election("e").campaign().await.unwrap();
    assert_eq!(first.inherited().await.unwrap(), None);
    within(first.leave_behind(b"17")).await.unwrap();
    let second = within(b.election("e").campaign()).await.unwrap();
    assert_eq!(second.inherited().await.unwrap().as_deref(), Some(&b"17"[..]));
    // It leaves nothing, and so the third must not believe what the first left.
    second.resign().await.unwrap();
    let third = within(a.election("e").campaign()).await.unwrap();
    assert_eq!(third.inherited().await.unwrap(), None);
    // It writes over what the first had left.
    within(third.leave_behind(b"18")).await.unwrap();
    let fourth = within(b.election("e").campaign()).await.unwrap();
    assert_eq!(fourth.inherited().await.unwrap().as_deref(), Some(&b"18"[..]));
    assert_eq!(b.election("other").campaign().await.unwrap().inherited().await.unwrap(), None);
}

/// A leader whose term is over writes nothing, whatever it believes: the store compares.
#[tokio::test]
async fn a_deposed_leader_leaves_nothing() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let old = a.election("e").campaign().await.unwrap();
    let standing = tokio::spawn(async move { b.election("e").campaign().await.unwrap() });
    stage.settle().await;
    // The write of the old one is on its way when its term is taken from it.
    stage.faults().script(StoreVerb::Bind, [Fault::Hold]);
    let late = tokio::spawn(old.leave_behind(b"late"));
    stage.settle().await;
    let operator = stage.connect("operator").await.unwrap();
    operator.evict_now(a.id()).await.unwrap();
    stage.settle().await;
    stage.advance(std::time::Duration::from_secs(1)).await;
    let new = within(standing).await.unwrap();
    stage.faults().let_go();
    let over = async {
        while !late.is_finished() {
            stage.advance(std::time::Duration::from_secs(1)).await;
        }
        late.await.unwrap()
    };
    let refused = within(over).await.unwrap_err();
    assert!(!matches!(refused, NameError::Taken(_)), "{refused}");
    assert_eq!(new.inherited().await.unwrap(), None);
}

/// The answer to the write is lost: it is repeated, and the next leader has it once.
#[tokio::test]
async fn a_lost_answer_costs_nothing() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let first = a.election("e").campaign().await.unwrap();
    stage.faults().script(StoreVerb::Bind, [Fault::FailAfter]);
    let left = tokio::spawn(first.leave_behind(b"17"));
    let done = async {
        while !left.is_finished() {
            stage.advance(std::time::Duration::from_millis(200)).await;
        }
        left.await.unwrap()
    };
    within(done).await.unwrap();
    let second = within(a.election("e").campaign()).await.unwrap();
    assert_eq!(second.inherited().await.unwrap().as_deref(), Some(&b"17"[..]));
}
