//! A leadership knows its store: no fence in another store takes it (L1).

#![cfg(all(feature = "postgres", feature = "sqlite"))]
#![allow(clippy::unwrap_used)]

mod common;

use common::{secs, within};
use tenure::{FenceError, Leadership, Tenure};
use tokio_postgres::{Client, NoTls};

fn url() -> String {
    std::env::var("TENURE_TEST_POSTGRES_URL")
        .expect("run the tests by `cargo xtask test`, or start a server by `cargo xtask serve`")
}

/// A name that no other test uses, for a namespace or a schema.
fn fresh(test: &str) -> String {
    // Process ids come again on a server that outlives a run.
    static STARTED: std::sync::LazyLock<u64> =
        std::sync::LazyLock::new(|| tenure_store::BootClock::read().as_nanos());
    format!("{test}_{}_{:x}", std::process::id(), *STARTED)
}

async fn member(url: &str, ns: &str, id: &str) -> Tenure {
    Tenure::builder(url).namespace(ns).id(id).ttl(secs(10)).connect().await.unwrap()
}

async fn database() -> Client {
    let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

async fn drop_schema(schema: &str) {
    database().await.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}

/// Fences in a transaction of its own.
async fn fenced(leadership: &Leadership) -> Result<(), FenceError> {
    let mut db = database().await;
    let mut tx = db.transaction().await.unwrap();
    leadership.fence(&mut tx).await
}

/// L1: elections in a schema of another name beside one called `tenure`, with the
/// same namespace, election and term number in both. The leader of each is judged by
/// its own schema: the live one passes, the deposed one is refused, although the
/// other schema has just that term.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_is_fenced_by_the_schema_it_was_elected_in() {
    let ns = fresh("beside");
    let schema = fresh("elections");
    let own = format!("{}?schema={schema}", url());
    let default = member(&url(), &ns, "d").await;
    let a = member(&own, &ns, "a").await;
    let b = member(&own, &ns, "b").await;

    let beside = within(default.election("e").campaign()).await.unwrap();
    let first = within(a.election("e").campaign()).await.unwrap();
    assert_eq!(first.token(), beside.token(), "the numbers tell them not apart");
    fenced(&beside).await.expect("a live leader in the schema tenure");
    fenced(&first).await.expect("a live leader under ?schema=");

    let deposed = first.clone();
    first.resign().await.unwrap();
    let second = within(b.election("e").campaign()).await.unwrap();
    let refused = fenced(&deposed).await;
    let Err(FenceError::Superseded { newest, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(newest.get(), second.token());
    fenced(&second).await.expect("the successor");
    for member in [default, a, b] {
        member.shutdown().await.unwrap();
    }
    drop_schema(&schema).await;
}

/// L1: a leadership of a store in memory passes no fence of PostgreSQL's, although
/// a term of the same number stands there.
#[tokio::test(flavor = "multi_thread")]
async fn a_leadership_of_another_kind_of_store_is_refused() {
    let ns = fresh("kinds");
    let here = member(&url(), &ns, "a").await;
    let led = within(here.election("e").campaign()).await.unwrap();
    let elsewhere = member("memory:", &ns, "a").await;
    let stranger = within(elsewhere.election("e").campaign()).await.unwrap();
    assert_eq!(stranger.token(), led.token());
    let refused = fenced(&stranger).await.unwrap_err();
    assert!(refused.to_string().contains("memory"), "{refused}");
}

/// A file with a table of the application's own beside the elections.
fn file() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.db").to_str().unwrap().to_owned();
    (dir, path)
}

/// L1: a leadership of one SQLite file passes no fence in another.
#[tokio::test(flavor = "multi_thread")]
async fn a_leadership_of_another_file_is_refused() {
    let files = [file(), file()];
    let paths = files.each_ref().map(|(_, path)| path.clone());
    let mut led = Vec::new();
    for path in &paths {
        let member = member(&format!("sqlite:{path}"), "default", "a").await;
        let leadership = within(member.election("e").campaign()).await.unwrap();
        led.push((member, leadership));
    }
    let mut db = rusqlite::Connection::open(&paths[0]).unwrap();
    let tx = db.transaction().unwrap();
    led[0].1.fence_blocking(&tx).unwrap();
    let refused = led[1].1.fence_blocking(&tx).unwrap_err();
    assert!(matches!(refused, FenceError::Stranger { .. }), "{refused}");
    for path in &paths {
        assert!(refused.to_string().contains(path), "{path}: {refused}");
    }
}

/// L4: on SQLite a task that moves between threads fences by blocking, with nothing but
/// the driver besides `tenure`, or on the connection, which may be kept while it waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_spawned_task_can_fence_in_sqlite() {
    let (_dir, path) = file();
    let member = member(&format!("sqlite:{path}"), "default", "a").await;
    let leadership = within(member.election("e").campaign()).await.unwrap();
    let task = tokio::spawn(async move {
        let mut db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0)")
            .unwrap();
        {
            let immediate = rusqlite::TransactionBehavior::Immediate;
            let tx = db.transaction_with_behavior(immediate).unwrap();
            leadership.fence_blocking(&tx).unwrap();
            tx.execute("UPDATE counter SET n = n + 1", []).unwrap();
            tx.commit().unwrap();
        }
        tokio::task::yield_now().await;
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        leadership.fence(&mut db).await.unwrap();
        tokio::task::yield_now().await;
        db.execute("UPDATE counter SET n = n + 1", []).unwrap();
        db.execute_batch("COMMIT").unwrap();
        let loose = leadership.fence(&mut db).await.unwrap_err();
        assert!(loose.to_string().contains("open transaction"), "{loose}");
        db.query_row("SELECT n FROM counter", [], |row| row.get::<_, i64>(0)).unwrap()
    });
    assert_eq!(within(task).await.unwrap(), 2);
}
