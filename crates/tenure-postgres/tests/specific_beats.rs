//! Heartbeats of many members on one connection.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::words::*;
use common::{Place, admin, until, waits_for_a_lock};
use tenure_core::{Beat, MemberRef, Namespace};
use tenure_postgres::PostgresStore;
use tenure_store::Store;
use tenure_testkit::within;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Transaction};

type Beating = JoinHandle<tenure_store::Result<Beat>>;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// How many connections the stores of a place have.
async fn connections(place: &Place) -> i64 {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
    admin().await.query_one(count, &[&place.schema]).await.unwrap().get(0)
}

/// The sessions of a place whose heartbeat, sent as the verb, waits for a lock.
const BY_VERB: &str = "FROM pg_stat_activity WHERE application_name = $1 \
                       AND query LIKE '%heartbeat(%' AND wait_event_type = 'Lock'";

async fn sent_by_verb(place: &Place) -> i64 {
    let count = format!("SELECT count(*) {BY_VERB}");
    admin().await.query_one(&count, &[&place.schema]).await.unwrap().get(0)
}

fn is_alive(answer: &Beat) -> bool {
    matches!(answer, Beat::Alive { .. })
}

/// Locks the rows of some members, until what it answers with is committed.
async fn locked<'a>(place: &Place, other: &'a mut Client, ids: &str) -> Transaction<'a> {
    let locking = other.transaction().await.unwrap();
    let lock = format!("SELECT 1 FROM {}.members WHERE id IN ({ids}) FOR UPDATE", place.schema);
    locking.batch_execute(&lock).await.unwrap();
    locking
}

/// Sends the heartbeat of a member of [`ns`] whose row is locked, and sees it wait.
async fn waiting(place: &Place, store: &PostgresStore, who: &MemberRef) -> Beating {
    let store = store.clone();
    let who = who.clone();
    let waiting = tokio::spawn(async move { store.heartbeat(&ns(), &beat(&who)).await });
    waits_for_a_lock(&admin().await, &format!("{}\".members", place.schema)).await;
    waiting
}

/// A member's row is locked, so that its heartbeat waits. Those of another namespace on
/// the same connection do not, and the connections stay bounded.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_that_waits_makes_no_other_namespace_late() {
    let place = Place::new();
    let store = place.open_with(place.options().request_timeout(LONG)).await;
    let one = ns();
    let two = Namespace::new("two").unwrap();
    let a = joined(&store, "a", 1).await;
    let b = member("b", 2);
    let c = member("c", 3);
    for other in [&b, &c] {
        store.join(&two, &join(other)).await.unwrap();
    }
    // From the second on it is the bare statement.
    assert!(is_alive(&store.heartbeat(&one, &beat(&a)).await.unwrap()));
    for other in [&b, &c] {
        assert!(is_alive(&store.heartbeat(&two, &beat(other)).await.unwrap()));
    }
    assert_eq!(connections(&place).await, 2);
    let mut other = admin().await;
    let locking = locked(&place, &mut other, "'a'").await;
    let waiting = waiting(&place, &store, &a).await;
    let of_b = beat(&b);
    let of_c = beat(&c);
    let both = async { tokio::join!(store.heartbeat(&two, &of_b), store.heartbeat(&two, &of_c)) };
    let (first, second) = within(both).await;
    assert!(is_alive(&first.unwrap()) && is_alive(&second.unwrap()));
    assert!(!waiting.is_finished(), "they waited for the one in front");
    assert!(connections(&place).await <= 3);
    locking.commit().await.unwrap();
    assert!(is_alive(&waiting.await.unwrap().unwrap()));
    until("the third connection is closed", || async { connections(&place).await == 2 }).await;
    assert!(is_alive(&store.heartbeat(&two, &beat(&b)).await.unwrap()));
}

/// The server is at work on a heartbeat that its caller gave up, so those behind it go
/// another way all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_that_was_given_up_makes_no_other_late() {
    let place = Place::new();
    let store = place.open_with(place.options().request_timeout(LONG)).await;
    let a = joined(&store, "a", 1).await;
    let b = joined(&store, "b", 2).await;
    for member in [&a, &b] {
        assert!(is_alive(&store.heartbeat(&ns(), &beat(member)).await.unwrap()));
    }
    let mut other = admin().await;
    let locking = locked(&place, &mut other, "'a'").await;
    let given_up = waiting(&place, &store, &a).await;
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    let of_b = beat(&b);
    let half = LONG / 2;
    let answer = tokio::time::timeout(half, store.heartbeat(&ns(), &of_b)).await;
    assert!(is_alive(&answer.expect("it does not wait for the lock").unwrap()));
    locking.commit().await.unwrap();
}

/// The row that a heartbeat on the third connection wants is locked as well. Callers that
/// give up and try again do not make a connection each time.
#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_that_are_given_up_make_no_fourth_connection() {
    let place = Place::new();
    let store = place.open_with(place.options().request_timeout(LONG)).await;
    let a = joined(&store, "a", 1).await;
    let b = joined(&store, "b", 2).await;
    for member in [&a, &b] {
        assert!(is_alive(&store.heartbeat(&ns(), &beat(member)).await.unwrap()));
    }
    let mut other = admin().await;
    let locking = locked(&place, &mut other, "'a', 'b'").await;
    let first = waiting(&place, &store, &a).await;
    for _ in 0..2 {
        let of_b = beat(&b);
        let space = ns();
        // Longer than the usual connection is given.
        let given_up = tokio::time::timeout(LONG / 5, store.heartbeat(&space, &of_b));
        assert!(given_up.await.is_err(), "its row is locked");
        assert_eq!(sent_by_verb(&place).await, 1);
        assert_eq!(connections(&place).await, 3);
    }
    locking.commit().await.unwrap();
    assert!(is_alive(&first.await.unwrap().unwrap()));
    until("the third connection is closed", || async { connections(&place).await == 2 }).await;
}

/// The third connection breaks while a heartbeat waits on it: the answer is that of the
/// usual one, when it comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_third_connection_that_breaks_leaves_the_answer_to_the_usual_one() {
    let place = Place::new();
    let store = place.open_with(place.options().request_timeout(LONG)).await;
    let a = joined(&store, "a", 1).await;
    let b = joined(&store, "b", 2).await;
    for member in [&a, &b] {
        assert!(is_alive(&store.heartbeat(&ns(), &beat(member)).await.unwrap()));
    }
    let mut other = admin().await;
    let locking = locked(&place, &mut other, "'a', 'b'").await;
    let first = waiting(&place, &store, &a).await;
    let second = {
        let store = store.clone();
        let b = b.clone();
        tokio::spawn(async move { store.heartbeat(&ns(), &beat(&b)).await })
    };
    until("it is sent on the third", || async { sent_by_verb(&place).await == 1 }).await;
    let kill = format!("SELECT pg_terminate_backend(pid) {BY_VERB}");
    assert_eq!(admin().await.execute(&kill, &[&place.schema]).await.unwrap(), 1);
    until("the third connection is gone", || async { connections(&place).await == 2 }).await;
    locking.commit().await.unwrap();
    assert!(is_alive(&first.await.unwrap().unwrap()));
    assert!(is_alive(&within(second).await.unwrap().unwrap()));
}
