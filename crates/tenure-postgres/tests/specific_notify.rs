//! Elections go on without notifications: when the server's queue of them fills, and when
//! they do not arrive; and they come back by themselves.
//!
//! The queue of PostgreSQL 15 has 8 GB, which no test fills: what it says of itself is
//! replaced in the test's own schema, and everything else is the real thing. A queue that
//! is really full has its test in `specific_eighteen.rs`.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::relay::Relay;
use common::words::*;
use common::{Place, admin, until, url};
use tenure_core::{Beat, Hint};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{ErrorKind, Followed, Following, Store, Watch};
use tokio_postgres::{AsyncMessage, NoTls};

const POLL: Duration = Duration::from_millis(100);

/// Lets the queue look as full as a row of the test's own says.
const CLAIM_TO_BE: &str = "
    CREATE TABLE {s}.test_usage (usage double precision NOT NULL);
    INSERT INTO {s}.test_usage VALUES (0);
    CREATE OR REPLACE FUNCTION {s}._queue_usage() RETURNS double precision
    LANGUAGE sql AS 'SELECT usage FROM {s}.test_usage'";

async fn fill(place: &Place, usage: f64) {
    place.sql(&format!("UPDATE {{s}}.test_usage SET usage = {usage}")).await;
}

async fn hint(following: &mut Box<dyn Following>) -> Hint {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), following.next()).await;
        if let Followed::Hint(hint) = next.expect("something is heard").unwrap() {
            return hint;
        }
    }
}

async fn told_of_vacancy(following: &mut Box<dyn Following>) {
    while !matches!(hint(following).await, Hint::Vacant { .. }) {}
}

/// A session of no member that counts what it is notified of.
async fn listener(channel: &str) -> (tokio_postgres::Client, Arc<AtomicUsize>) {
    let (client, mut connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            let own = matches!(&message, AsyncMessage::Notification(note)
                // The stores' own, by which they find out whether they hear.
                if !note.payload().starts_with('\n'));
            counted.fetch_add(usize::from(own), Ordering::AcqRel);
        }
    });
    client.batch_execute(&format!("LISTEN {channel}")).await.unwrap();
    (client, count)
}

/// P3: from when half of the queue is taken no notification is sent, so that no commit can fail
/// for want of room. Joins, claims and releases go on, followers look instead and say why,
/// and when there is room again notifications come back by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn elections_go_on_while_the_queue_of_notifications_fills() {
    let place = Place::new();
    let options = place.options().poll(POLL);
    let store = place.open_with(options.clone()).await;
    place.sql(CLAIM_TO_BE).await;
    let other = place.open_with(options).await;
    assert_eq!(other.capabilities().watch, Watch::Native);
    let term = leader(&store, "a", 1, "e").await;
    let mut hints = other.follow(&ns()).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Anything);
    let (client, told) = listener(&place.schema).await;

    fill(&place, 0.6).await;
    store.release(&ns(), &release(&term)).await.unwrap();
    told_of_vacancy(&mut hints).await;
    until("it says that it looks", || async { other.capabilities().watch == Watch::Polled(POLL) })
        .await;
    let why = other.capabilities().polled_because.unwrap();
    assert!(why.contains("half full") && why.contains("idle in transaction"), "{why}");
    let mut terms = Vec::new();
    for life in 2..6 {
        let term = leader(&store, &format!("m{life}"), life, "e").await;
        store.release(&ns(), &release(&term)).await.unwrap();
        told_of_vacancy(&mut hints).await;
        terms.push(term.number);
    }
    assert!(terms.is_sorted() && terms[0] > term.number, "{terms:?}");
    // What was sent before has arrived once an answer came on the same session.
    client.batch_execute("SELECT 1").await.unwrap();
    assert_eq!(told.load(Ordering::Acquire), 1, "that notifications cease, and no more");

    // A store that begins now says so at once.
    let late = place.open_with(place.options().poll(POLL)).await;
    assert_eq!(late.capabilities().watch, Watch::Polled(POLL));

    fill(&place, 0.1).await;
    until("notifications come back although nothing happens", || async {
        [&other, &late].iter().all(|store| store.capabilities().watch == Watch::Native)
    })
    .await;
    assert_eq!(other.capabilities().polled_because, None);
    let term = leader(&store, "z", 9, "e").await;
    store.release(&ns(), &release(&term)).await.unwrap();
    told_of_vacancy(&mut hints).await;
    until("and all are told", || async { told.load(Ordering::Acquire) > 1 }).await;
}

/// P3: when there was no room even to say so, those who follow find out by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn followers_find_out_that_no_notifications_are_sent() {
    let place = Place::new();
    let options = place.options().poll(POLL);
    let store = place.open_with(options.clone()).await;
    let other = place.open_with(options).await;
    place.sql(CLAIM_TO_BE).await;
    let term = leader(&store, "a", 1, "e").await;
    let mut hints = other.follow(&ns()).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Anything);
    let (client, told) = listener(&place.schema).await;
    fill(&place, 0.95).await;
    store.release(&ns(), &release(&term)).await.unwrap();
    told_of_vacancy(&mut hints).await;
    client.batch_execute("SELECT 1").await.unwrap();
    assert_eq!(told.load(Ordering::Acquire), 0, "no session was told anything");
    assert_eq!(other.capabilities().watch, Watch::Polled(POLL));
}

/// P3: the queue was filled between the look at it and the commit. The commit fails, so
/// nothing was applied; repeated, it looks again, and does without.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_finds_the_queue_full_is_repeated_without() {
    let place = Place::new();
    let store = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    // As the server does: a commit that would notify fails at its very end. What counts
    // the looks is not rolled back with it.
    place
        .sql(
            "CREATE SEQUENCE {s}.test_looks;
             CREATE OR REPLACE FUNCTION {s}._queue_usage() RETURNS double precision
             LANGUAGE sql AS 'SELECT CASE WHEN nextval(''{s}.test_looks'') > 1 THEN 1.0 ELSE 0.1
                              END::double precision';
             CREATE FUNCTION {s}.test_full() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF (SELECT n.quiet_from FROM {s}.namespaces n WHERE n.ns = NEW.ns) IS NULL THEN
                     RAISE EXCEPTION 'too many notifications in the NOTIFY queue'
                         USING ERRCODE = '54000';
                 END IF;
                 RETURN NULL;
             END $$;
             CREATE CONSTRAINT TRIGGER test_full AFTER INSERT ON {s}.told
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {s}.test_full()",
        )
        .await;
    store.release(&ns(), &release(&term)).await.unwrap();
    let next = won(store.claim(&ns(), &claim(&term.member, "e", 2)).await.unwrap());
    assert_eq!(next.number, term.number.next(), "given up once, and won once");
    let looks = format!("SELECT last_value FROM {}.test_looks", place.schema);
    let looks: i64 = admin().await.query_one(&looks, &[]).await.unwrap().get(0);
    assert!(looks >= 3, "it was looked at {looks} times");

    // Where it stays full, the error says that nothing was applied, and what to do.
    place
        .sql(
            "CREATE OR REPLACE FUNCTION {s}._queue_usage() RETURNS double precision
             LANGUAGE sql AS 'SELECT 0.1::double precision'",
        )
        .await;
    let error = store.release(&ns(), &release(&next)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(!error.may_have_applied(), "{error}");
    let text = error.to_string();
    assert!(text.contains("54000") && text.contains("nothing was applied"), "{text}");
    let alive = store.heartbeat(&ns(), &beat(&next.member)).await.unwrap();
    assert!(matches!(alive, Beat::Alive { holds: Some(1), .. }), "{alive:?}");
}

/// P7: notifications that did not arrive once are tested again, without a reconnect, and
/// come back by themselves; and it is told meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn notifications_that_were_slow_once_come_back_by_themselves() {
    let place = Place::new();
    drop(place.open().await);
    let relay = Relay::start(&url());
    let through = format!(
        "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable&application_name={}",
        relay.proxy.port(),
        place.schema
    );
    let options = PostgresOptions::from_url(&through).unwrap().schema(&place.schema).poll(POLL);
    let store = PostgresStore::open(options).await.unwrap();
    assert_eq!(store.capabilities().watch, Watch::Native);

    relay.lose(true);
    place.terminate().await;
    until("it looks, since nothing is heard", || async {
        store.capabilities().watch == Watch::Polled(POLL)
    })
    .await;
    let why = store.capabilities().polled_because.unwrap();
    assert!(why.contains("do not arrive") && why.contains("tested again"), "{why}");
    let sessions = format!(
        "SELECT string_agg(pid::text, ',' ORDER BY pid) FROM pg_stat_activity \
         WHERE application_name = '{}'",
        place.schema
    );
    let client = admin().await;
    let sessions =
        async || -> Option<String> { client.query_one(&sessions, &[]).await.unwrap().get(0) };
    until("both sessions are there again", || async {
        sessions().await.is_some_and(|pids| pids.contains(','))
    })
    .await;
    let before = sessions().await;

    relay.lose(false);
    until("notifications come back", || async { store.capabilities().watch == Watch::Native })
        .await;
    assert_eq!(sessions().await, before, "on the sessions that were there");
    let mut hints = store.follow(&ns()).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Anything);
    leader(&place.open().await, "a", 1, "e").await;
    assert_eq!(hint(&mut hints).await, Hint::Election(election("e")));
}
