//! PostgreSQL 18 beside the system's: a second version, and one whose queue of notifications
//! can be made so small that a test fills it (P3).

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::words::*;
use common::{Place, connect, until};
use tenure_conformance::CASES;
use tenure_core::Hint;
use tenure_store::{FenceError, Followed, Following, Store, Watch};
use tokio_postgres::Client;

/// Where that server is.
fn url() -> String {
    std::env::var("TENURE_TEST_POSTGRES_18_URL").expect(
        "run the tests by `cargo xtask test`, or start a server by `cargo xtask serve postgres-18`",
    )
}

/// A session that listens and is idle in a transaction: nothing that was sent since may be
/// forgotten by the server.
async fn foreign_listener() -> Client {
    let client = connect(&url()).await;
    client.batch_execute("LISTEN foreign_channel").await.unwrap();
    client.batch_execute("BEGIN; SELECT 1").await.unwrap();
    client
}

/// Sends what no session takes until the server has no room for more.
async fn fill(client: &Client) {
    let send = "SELECT pg_notify('foreign_channel', repeat(md5(random()::text), 240))";
    loop {
        if let Err(error) = client.batch_execute(send).await {
            let full = error.code().unwrap();
            assert_eq!(full.code(), "54000", "{error:?}");
            return;
        }
    }
}

async fn told_of_vacancy(following: &mut Box<dyn Following>) {
    let hear = async {
        while !matches!(following.next().await, Ok(Followed::Hint(Hint::Vacant { .. }))) {}
    };
    tokio::time::timeout(Duration::from_secs(30), hear).await.expect("a notification of a vacancy");
}

/// P3: the queue is full, for real. Joins, claims and releases go on, followers look instead
/// and say why, and notifications come back by themselves when the foreign session is gone.
#[tokio::test(flavor = "multi_thread")]
async fn elections_go_on_with_a_queue_of_notifications_that_is_full() {
    let poll = Duration::from_millis(100);
    let place = Place::on(url());
    let store = place.open_with(place.options().poll(poll)).await;
    let other = place.open_with(place.options().poll(poll)).await;
    let mut hints = other.follow(&ns()).await.unwrap();
    let before = leader(&store, "a", 1, "e").await;
    let foreign = foreign_listener().await;
    let client = connect(&url()).await;
    fill(&client).await;

    store.release(&ns(), &release(&before)).await.unwrap();
    told_of_vacancy(&mut hints).await;
    for life in 2..6 {
        let term = leader(&store, &format!("m{life}"), life, "e").await;
        store.release(&ns(), &release(&term)).await.unwrap();
        told_of_vacancy(&mut hints).await;
    }
    until("it says that it looks", || async { other.capabilities().watch == Watch::Polled(poll) })
        .await;
    let why = other.capabilities().polled_because.unwrap();
    assert!(why.contains("half full") && why.contains("idle in transaction"), "{why}");
    let full = client.query_one("SELECT pg_notification_queue_usage()", &[]).await.unwrap();
    assert!(full.get::<_, f64>(0) > 0.9, "nothing has made room meanwhile");

    drop(foreign);
    until("notifications come back although nothing happens", || async {
        [&store, &other].iter().all(|store| store.capabilities().watch == Watch::Native)
    })
    .await;
    let term = leader(&store, "z", 9, "e").await;
    store.release(&ns(), &release(&term)).await.unwrap();
    told_of_vacancy(&mut hints).await;
}

/// What concerns who leads holds on this version too: heartbeats and claims.
#[test]
fn heartbeats_and_claims_hold_on_the_second_version() {
    let concerned = |topic: &str| matches!(topic, "heartbeat" | "claim");
    let cases: Vec<_> = CASES.iter().filter(|case| concerned(case.topic)).collect();
    assert!(cases.len() > 15, "{cases:?}");
    // Most of a case is waiting.
    for some in cases.chunks(8) {
        std::thread::scope(|scope| {
            for case in some {
                scope.spawn(|| tenure_conformance::run(&case.path(), async { Place::on(url()) }));
            }
        });
    }
}

/// C40, C42: a fence, and what it holds up.
#[tokio::test(flavor = "multi_thread")]
async fn a_fence_holds_on_the_second_version() {
    let place = Place::on(url());
    let store = place.open_with(place.options().fence_wait(Duration::ZERO)).await;
    let older = leader(&store, "a", 1, "e").await;
    let b = joined(&store, "b", 2).await;
    let mut client = connect(&url()).await;
    let mut tx = client.transaction().await.unwrap();
    fence_in(&store, &mut tx, &older).await.unwrap();
    store.release(&ns(), &release(&older)).await.unwrap();
    let view = held(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    assert!(view.held_up.is_some(), "{view:?}");
    tx.commit().await.unwrap();
    let newer = won(store.claim(&ns(), &claim(&b, "e", 2)).await.unwrap());
    let mut tx = client.transaction().await.unwrap();
    let over = fence_in(&store, &mut tx, &older).await.unwrap_err();
    let FenceError::Superseded { newest, .. } = over else { panic!("{over}") };
    assert_eq!(newest, newer.number);
}
