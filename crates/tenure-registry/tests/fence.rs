//! The fence of a name, in transactions of the application's own.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{fresh_name, open, postgres_url, session, within};
use rusqlite::{Connection, TransactionBehavior};
use tenure::FenceError;
use tenure::naming::Value;
use tenure_registry::{Registered, Registry};

const TTL: Duration = Duration::from_secs(10);

async fn two(url: &str, ns: &str) -> (Registry, Registry) {
    (open(url, ns, "a", TTL).await, open(url, ns, "b", TTL).await)
}

/// Fences in a transaction of its own.
async fn fenced(mine: &Registered) -> Result<(), FenceError> {
    let mut session = session().await;
    let mut tx = session.transaction().await.unwrap();
    mine.fence(&mut tx).await
}

/// Ends a life behind its back.
async fn end(url: &str, ns: &str, id: &str) {
    let operator = tenure::Tenure::builder(url).namespace(ns).operate().await.unwrap();
    operator.evict_now(&tenure::MemberId::new(id).unwrap()).await.unwrap();
}

/// C40: the token of the present binding passes, and that of one that is over does not,
/// whatever its owner believes: it was ended, and another has the name, or it is free.
#[tokio::test(flavor = "multi_thread")]
async fn in_postgres_only_the_newest_token_of_a_name_passes() {
    let url = postgres_url();
    let ns = fresh_name("fence");
    let (a, b) = two(&url, &ns).await;
    let mine = within(a.register("n", Value::empty())).await.unwrap();
    let other = within(a.register("m", Value::empty())).await.unwrap();
    fenced(&mine).await.unwrap();
    end(&url, &ns, "a").await;
    let refused = fenced(&mine).await.unwrap_err();
    assert!(matches!(refused, FenceError::NameOver { newest: None, .. }), "{refused}");
    let theirs = within(b.register("n", Value::empty())).await.unwrap();
    let refused = fenced(&mine).await.unwrap_err();
    let FenceError::NameOver { newest: Some(newest), .. } = refused else { panic!("{refused}") };
    assert_eq!(newest, theirs.token());
    assert!(refused.to_string().contains("roll back"), "{refused}");
    fenced(&theirs).await.unwrap();
    let void = fenced(&other).await.unwrap_err();
    assert!(matches!(void, FenceError::NameOver { newest: None, .. }), "{void}");
}

/// C42, Q10: while the transaction is open no process takes the name, although its owner's life is
/// over, and a process that wants another name does not wait.
#[tokio::test(flavor = "multi_thread")]
async fn in_postgres_an_open_transaction_holds_its_name_and_no_other() {
    let url = postgres_url();
    let ns = fresh_name("fence");
    let (a, b) = two(&url, &ns).await;
    let mine = within(a.register("n", Value::empty())).await.unwrap();
    let mut session = session().await;
    let mut tx = session.transaction().await.unwrap();
    mine.fence(&mut tx).await.unwrap();
    end(&url, &ns, "a").await;
    let takes = tokio::spawn({
        let b = b.clone();
        async move { b.register("n", Value::empty()).await }
    });
    // It was asked for before this one, and this one is answered.
    for n in 0..20 {
        within(b.register(&format!("m{n}"), Value::empty()))
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
    assert!(!takes.is_finished());
    tx.commit().await.unwrap();
    let theirs = within(takes).await.unwrap().unwrap();
    assert!(theirs.token() > mine.token());
}

/// L1: a binding that another store gave out is refused, with both stores named.
#[tokio::test(flavor = "multi_thread")]
async fn a_binding_of_another_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let files = ["one.db", "two.db"].map(|name| dir.path().join(name));
    let [one, two] = files.each_ref().map(|file| format!("sqlite:{}", file.display()));
    let one = open(&one, "ns", "a", TTL).await;
    let two = open(&two, "ns", "a", TTL).await;
    let in_one = within(one.register("n", Value::empty())).await.unwrap();
    let in_two = within(two.register("n", Value::empty())).await.unwrap();
    assert_eq!(in_one.token(), in_two.token(), "the number does not tell them apart");
    let mut db = Connection::open(&files[0]).unwrap();
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    in_one.fence_blocking(&tx).unwrap();
    let refused = in_two.fence_blocking(&tx).unwrap_err();
    assert!(matches!(refused, FenceError::Stranger { .. }), "{refused}");
    assert!(refused.to_string().contains("the name s:n under token"), "{refused}");
    drop(tx);
    let refused = fenced(&in_one).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stranger { .. }), "{refused}");
}

/// C40 in SQLite: the same, by the blocking call and by the other.
#[tokio::test(flavor = "multi_thread")]
async fn in_sqlite_only_the_newest_token_of_a_name_passes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("names.db");
    let url = format!("sqlite:{}", file.display());
    let (a, b) = two(&url, "ns").await;
    let mine = within(a.register("n", Value::empty())).await.unwrap();
    let mut db = Connection::open(&file).unwrap();
    let refused = mine.fence_blocking(&db).unwrap_err();
    assert!(refused.to_string().contains("needs an open transaction"), "{refused}");
    {
        let tx = db.transaction().unwrap();
        mine.fence_blocking(&tx).unwrap();
        // The write lock is held: no other process changes anything until the end.
        let other = Connection::open(&file).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        assert!(other.execute_batch("BEGIN IMMEDIATE").is_err());
        tx.commit().unwrap();
    }
    end(&url, "ns", "a").await;
    let theirs = within(b.register("n", Value::empty())).await.unwrap();
    let tx = db.transaction().unwrap();
    let refused = mine.fence_blocking(&tx).unwrap_err();
    let FenceError::NameOver { newest: Some(newest), .. } = refused else { panic!("{refused}") };
    assert_eq!(newest, theirs.token());
    theirs.fence_blocking(&tx).unwrap();
    drop(tx);
    within(theirs.release()).await.unwrap();
    let tx = db.transaction().unwrap();
    let refused = mine.fence_blocking(&tx).unwrap_err();
    assert!(matches!(refused, FenceError::NameOver { newest: None, .. }), "{refused}");
}
