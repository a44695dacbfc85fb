//! One convention for all streams: each is a `Stream`, ends when nothing more can come, and
//! stays at its end.
#![allow(clippy::unwrap_used)]

mod common;

use std::future::poll_fn;
use std::pin::Pin;

use common::{leader, within};
use futures_core::Stream;
use tenure::journal::Seq;
use tenure::testing::Stage;
use tenure::{Change, LostReason};

/// What is left of a stream, read as those do who know it as a `Stream` alone.
async fn rest<S: Stream + Unpin + Send + Sync>(mut stream: S) -> Vec<S::Item> {
    let mut told = Vec::new();
    let mut next = async || within(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx))).await;
    while let Some(item) = next().await {
        told.push(item);
    }
    assert!(next().await.is_none(), "it stays at its end");
    told
}

/// L16: a shutdown ends every stream of the member, after what happened before it.
#[tokio::test]
async fn every_stream_of_a_member_ends_with_it() {
    let (_stage, tenure, leadership) = leader().await;
    let election = tenure.election("e");
    let changes = election.subscribe().unwrap();
    let leaderships = election.subscribe_holding().unwrap();
    let observer = election.observe().unwrap();
    let journal = tenure.follow(Some(Seq::START)).unwrap();
    let renewals = leadership.renewed();
    let names = tenure.names().hints().unwrap();
    drop(leadership);
    within(tenure.shutdown()).await.unwrap();

    let changes = rest(changes).await;
    assert!(matches!(changes.first(), Some(Change::Leading(_))), "{changes:?}");
    assert_eq!(changes.last(), Some(&Change::Lost(LostReason::Resigned)));
    assert_eq!(rest(leaderships).await.len(), 0, "the term was over before it was asked for");
    rest(observer).await;
    rest(journal).await;
    rest(renewals).await;
    rest(names).await;
    let late = rest(election.subscribe().unwrap()).await;
    assert_eq!(late, [Change::Following], "one that is made afterwards ends at once");
}

/// A stream that is waited for when the member ends is woken.
#[tokio::test]
async fn a_subscriber_that_waits_is_told_of_the_end() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let mut changes = tenure.election("e").subscribe().unwrap();
    assert_eq!(within(changes.next()).await, Some(Change::Following));
    let mut leaderships = tenure.election("e").subscribe_holding().unwrap();
    let waiting = tokio::spawn(async move {
        assert!(leaderships.next().await.is_none());
        changes.next().await
    });
    within(tenure.shutdown()).await.unwrap();
    assert_eq!(within(waiting).await.unwrap(), None);
}

/// L16: a wait that is given up loses nothing, and does not keep what comes from the next.
#[tokio::test]
async fn a_wait_that_is_dropped_loses_nothing() {
    let (stage, tenure, leadership) = leader().await;
    let mut changes = tenure.election("e").subscribe().unwrap();
    within(changes.next()).await.unwrap();
    tokio::select! {
        biased;
        _ = changes.next() => panic!("nothing has changed"),
        () = std::future::ready(()) => {}
    }
    within(leadership.resign()).await.unwrap();
    stage.settle().await;
    assert_eq!(within(changes.next()).await, Some(Change::Lost(LostReason::Resigned)));
}
