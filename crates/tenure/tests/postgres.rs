//! Elections on PostgreSQL, as applications have them.

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{let_pass, secs, until, within};
use tenure::store::{FencedTerm, Watch};
use tenure::views::HeldUp;
use tenure::{FenceError, Tenure};
use tokio_postgres::{Client, NoTls};

fn url() -> String {
    std::env::var("TENURE_TEST_POSTGRES_URL")
        .expect("run the tests by `cargo xtask test`, or start a server by `cargo xtask serve`")
}

/// A namespace that no other test uses.
fn namespace(test: &str) -> String {
    // Process ids come again on a server that outlives a run.
    static STARTED: std::sync::LazyLock<u64> =
        std::sync::LazyLock::new(|| tenure_store::BootClock::read().as_nanos());
    format!("{test}-{}-{:x}", std::process::id(), *STARTED)
}

async fn connect(test: &str, id: &str) -> Tenure {
    let url = format!("{}?application_name={}", url(), namespace(test));
    let member = Tenure::builder(url).namespace(namespace(test)).id(id).ttl(secs(5));
    member.connect().await.unwrap()
}

async fn database() -> Client {
    let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// A resignation hands over at once, and the fence tells the two apart inside
/// the application's own transactions.
#[tokio::test(flavor = "multi_thread")]
async fn a_resignation_hands_over_and_the_fence_tells_them_apart() {
    let test = "hand-over";
    let a = connect(test, "a").await;
    let b = connect(test, "b").await;
    assert_eq!(a.capabilities().watch, Watch::Native);
    let first = within(a.election("e").campaign()).await.unwrap();
    let stale = first.term().clone();
    let mut db = database().await;
    let mut tx = db.transaction().await.unwrap();
    first.fence(&mut tx).await.unwrap();
    tx.commit().await.unwrap();

    let standing = b.election("e");
    let second = tokio::spawn(async move { standing.campaign().await.unwrap() });
    first.resign().await.unwrap();
    let second = within(second).await.unwrap();
    assert!(second.token() > stale.number.get());
    // A transaction that is fenced can be moved to another task.
    let fenced = tokio::spawn(async move {
        let mut tx = db.transaction().await.unwrap();
        second.fence(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.transaction().await.unwrap();
        let store = &a.capabilities().identity;
        let stale = FencedTerm { store, ns: a.namespace(), term: &stale };
        let refused = tenure::store::FenceIn::fence_in(&mut tx, stale.into()).await;
        assert!(matches!(refused, Err(FenceError::Superseded { .. })), "{refused:?}");
        second
    });
    assert!(within(fenced).await.unwrap().is_current());
}

/// H15, H20, B13: every session is ended under a leader and a candidate: the
/// leader keeps its term, the candidate stands, and the hand-over works after.
#[tokio::test(flavor = "multi_thread")]
async fn terminated_sessions_cost_neither_the_term_nor_the_campaign() {
    let test = "terminated";
    let a = connect(test, "a").await;
    let b = connect(test, "b").await;
    let leadership = within(a.election("e").campaign()).await.unwrap();
    let standing = b.election("e");
    let campaign = tokio::spawn(async move { standing.campaign().await.unwrap() });
    let db = database().await;
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    for _ in 0..3 {
        db.execute(kill, &[&namespace(test)]).await.unwrap();
        let_pass(secs(1), "time for the connections to be made again").await;
    }
    assert!(leadership.is_current(), "its term outlived its connections");
    let token = leadership.token();
    leadership.resign().await.unwrap();
    assert_eq!(within(campaign).await.unwrap().token(), token + 1);
}

/// P14: a candidate that waits for an open transaction knows it, and says so when it gives
/// up; with the transaction, the cause is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_knows_the_open_fence_that_it_waits_for() {
    let test = "held-up";
    let a = connect(test, "a").await;
    let b = connect(test, "b").await;
    let first = within(a.election("e").campaign()).await.unwrap();
    let mut db = database().await;
    let process: i32 = db.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let mut stuck = db.transaction().await.unwrap();
    first.fence(&mut stuck).await.unwrap();
    first.resign().await.unwrap();
    let gave_up = b.election("e").campaign_timeout(secs(4)).await.unwrap_err().to_string();
    let why = format!("process {process} has fenced the last term");
    assert!(gave_up.contains(&why), "{gave_up}");

    let standing = b.election("e");
    let campaign = tokio::spawn(async move { standing.campaign().await.unwrap() });
    until("the campaign to be held up", || async { !b.status().held_up.is_empty() }).await;
    let (election, cause) = b.status().held_up.remove(0);
    assert_eq!(election.as_str(), "e");
    assert_eq!(cause, HeldUp::Transaction { process: Some(process.cast_unsigned()) });
    stuck.rollback().await.unwrap();
    assert!(within(campaign).await.unwrap().is_current());
    assert!(b.status().held_up.is_empty(), "{:?}", b.status());
}

/// L18: members of three namespaces have the two sessions of one.
#[tokio::test(flavor = "multi_thread")]
async fn three_namespaces_share_two_sessions() {
    let test = "namespaces";
    let first = connect(test, "a").await;
    let mut held = vec![within(first.election("e").campaign()).await.unwrap()];
    let mut others = Vec::new();
    for n in 1..3 {
        let namespace = format!("{}-{n}", namespace(test));
        let other = first.member_in(namespace).ttl(secs(5)).connect().await.unwrap();
        held.push(within(other.election("e").campaign()).await.unwrap());
        others.push(other);
    }
    let db = database().await;
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
    let sessions: i64 = db.query_one(count, &[&namespace(test)]).await.unwrap().get(0);
    assert_eq!(sessions, 2);
    assert!(held.iter().all(tenure::Leadership::is_current));
}
