//! A real copy of a real PostgreSQL server, promoted without the last names.

#![allow(clippy::unwrap_used)]

mod common;
#[allow(dead_code, unreachable_pub)]
#[path = "../../tenure-postgres/tests/common/server.rs"]
mod server;

use std::time::Duration;

use common::{open, within};
use server::Server;
use tenure::naming::Value;
use tenure_registry::Change;
use tenure_testkit::until;
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// The copy has all that was written, and receives nothing more.
async fn part(old: &Client, new: &Client) {
    let written: String =
        old.query_one("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap().get(0);
    let there = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn");
    until("the copy has it all", || async { new.query_one(&there, &[]).await.unwrap().get(0) })
        .await;
    new.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").await.unwrap();
    new.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let followed = "SELECT count(*) = 0 FROM pg_stat_replication";
    until("no copy follows", || async { old.query_one(followed, &[]).await.unwrap().get(0) }).await;
}

/// M6, U2, R2: the copy that is promoted has forgotten names. Their owner is told that they are
/// lost, copies are told all names anew, no revision goes back, and the next owner of one of them
/// has a token above the forgotten one.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_do_not_come_back_with_a_promoted_copy() {
    let servers = || {
        let first = Server::start();
        let second = first.standby();
        (first, second)
    };
    let (mut first, second) = tokio::task::spawn_blocking(servers).await.unwrap();
    let old = connect(&first.url()).await;
    let new = connect(&second.url()).await;
    let url =
        format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", second.port, first.port);
    let ttl = Duration::from_secs(30);
    let a = open(&url, "ns", "a", ttl).await;
    let b = open(&url, "ns", "b", ttl).await;
    let kept = within(a.register("kept", Value::empty())).await.unwrap();
    // So that both are members there.
    let _of_b = within(b.register("b", Value::empty())).await.unwrap();
    part(&old, &new).await;
    let forgotten = within(a.register("forgotten", Value::empty())).await.unwrap();
    within(b.reached(forgotten.rev())).await.unwrap();
    let mut watch = b.watch("");
    assert!(matches!(within(watch.next()).await, Some(Change::Resynced { .. })));
    let before = b.rev();
    // One that the copy of its own process may not have read yet.
    let last = within(a.register("last", Value::empty())).await.unwrap();

    first.kill();
    let promoted = new.query_one("SELECT pg_promote()", &[]).await.unwrap();
    assert!(promoted.get::<_, bool>(0), "it is promoted");
    within(forgotten.lost()).await;
    within(last.lost()).await;
    assert!(!forgotten.is_current() && !last.is_current() && kept.is_current());
    until("the copy has dropped it", || async { b.lookup("forgotten").is_none() }).await;
    assert_eq!(b.lookup("kept").unwrap().token(), kept.token());
    assert!(b.rev() >= before, "revisions do not go back");
    let again = within(b.register("forgotten", Value::empty())).await.unwrap();
    assert!(again.token() > forgotten.token(), "{} {}", again.token(), forgotten.token());
    within(a.reached(again.rev())).await.unwrap();
    assert_eq!(a.lookup("forgotten").unwrap().token(), again.token());
}
