//! Real processes: sixteen of them, killed with -9 in a loop, and a counter that
//! must lose nothing when it is fenced; and one that is stopped at the worst
//! moment, beside a counter that is not.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Stdio;
use std::time::Duration;

use common::words::*;
use common::{Place, admin, connect, until};
use tenure_core::{Beat, Claimed, Claims, Heartbeat, Incarnation, Join, MemberId, MemberRef};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::Store;
use tenure_testkit::process::Signal;
use tenure_testkit::{Process, let_pass};

const PLACE: &str = "TENURE_TEST_PLACE";
const FENCED: &str = "a_fenced_counter_loses_nothing_while_leaders_are_killed";
const STOPPED: &str = "a_stopped_leader_loses_an_unfenced_step_and_no_fenced_one";
const PROCESSES: usize = 16;
const KILLS: usize = 40;
const LIFE: Duration = Duration::from_millis(500);
const PACE: Duration = Duration::from_millis(20);

/// A candidate: stands, and while it leads counts up in fenced transactions that
/// read first and write later, so that an unfenced second leader would lose one.
async fn stand_and_count(schema: &str) {
    let options = PostgresOptions::from_url(&common::url()).unwrap().schema(schema);
    let store = PostgresStore::open(options).await.unwrap();
    let mut db = connect(&common::url()).await;
    let id = format!("p{}", std::process::id());
    for life in 1.. {
        let bits = (u128::from(std::process::id()) << 64) | life;
        let me = MemberRef::new(MemberId::new(&id).unwrap(), Incarnation::from_u128(bits));
        store.join(&ns(), &Join { ttl: LIFE, ..join(&me) }).await.unwrap();
        let mut nonce = 0;
        loop {
            nonce += 1;
            let mut bid = claim(&me, "e", nonce);
            bid.ttl = LIFE;
            match store.claim(&ns(), &bid).await.unwrap() {
                Claims::Ended { .. } => break,
                Claims::Answered(answers) => {
                    if let Claimed::Won(term) = &answers[0] {
                        while count(&store, &mut db, schema, term).await {
                            let beat = store
                                .heartbeat(&ns(), &Heartbeat { ttl: LIFE, ..beat(&me) })
                                .await
                                .unwrap();
                            if matches!(beat, Beat::Ended { .. }) {
                                break;
                            }
                        }
                    }
                }
            }
            let_pass(PACE, "the pace of bids").await;
        }
    }
}

/// One fenced step; false if the fence refused it.
async fn count(
    store: &PostgresStore,
    db: &mut tokio_postgres::Client,
    schema: &str,
    term: &tenure_core::Term,
) -> bool {
    let mut tx = db.transaction().await.unwrap();
    if fence_in(store, &mut tx, term).await.is_err() {
        tx.rollback().await.unwrap();
        return false;
    }
    let read = format!("SELECT value FROM {schema}.counter");
    let value: i64 = tx.query_one(&read, &[]).await.unwrap().get(0);
    let_pass(Duration::from_millis(1), "time for another to come in between").await;
    let number = i64::try_from(term.number.get()).unwrap();
    // Written from what was read, with a line for each step beside it.
    let step = format!(
        "UPDATE {schema}.counter SET value = {next}; \
         INSERT INTO {schema}.steps (value, term) VALUES ({next}, {number})",
        next = value + 1
    );
    tx.batch_execute(&step).await.unwrap();
    // A lost answer to the commit is a step that may or may not have been made.
    tx.commit().await.is_ok()
}

/// A counter, and a line for each of its steps.
const COUNTER: &str = "CREATE TABLE {s}.counter (value bigint NOT NULL); \
    INSERT INTO {s}.counter VALUES (0); \
    CREATE TABLE {s}.steps (at bigserial, value bigint NOT NULL, term bigint NOT NULL)";

/// A process that plays its part in a test.
fn start(test: &str, schema: &str) -> Process {
    Process::start(Process::again(test).env(PLACE, schema).stderr(Stdio::null()))
}

/// C3, H4, H18: sixteen processes, leaders killed with -9 again and again. Every
/// step of the counter is there once, and terms never go back.
#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_counter_loses_nothing_while_leaders_are_killed() {
    if let Ok(schema) = std::env::var(PLACE) {
        return stand_and_count(&schema).await;
    }
    let place = Place::new();
    let store = place.open().await;
    place.sql(COUNTER).await;
    let mut candidates: Vec<_> = (0..PROCESSES).map(|_| start(FENCED, &place.schema)).collect();
    let client = admin().await;
    let steps = format!("SELECT count(*) FROM {}.steps WHERE term > $1", place.schema);
    let mut last = 0_i64;
    for _ in 0..KILLS {
        // A process leads a newer term, and has written under it.
        until("a new leader counts", || async {
            client.query_one(&steps, &[&last]).await.unwrap().get::<_, i64>(0) > 0
        })
        .await;
        let seen = view(&store, "e").await;
        last = i64::try_from(seen.number.get()).unwrap();
        let Some(holder) = seen.holder else { continue };
        let pid: u32 = holder.member.id.as_str()[1..].parse().unwrap();
        if let Some(killed) = candidates.iter_mut().find(|c| c.id() == pid) {
            *killed = start(FENCED, &place.schema);
        }
    }
    drop(candidates);
    let sum = format!(
        "SELECT (SELECT value FROM {s}.counter), count(*), count(DISTINCT value), \
                coalesce(bool_and(ordered), true) \
         FROM (SELECT value, term >= lag(term, 1, 0::bigint) OVER (ORDER BY value) AS ordered \
               FROM {s}.steps) t",
        s = place.schema
    );
    let row = client.query_one(&sum, &[]).await.unwrap();
    let value: i64 = row.get(0);
    let lines: i64 = row.get(1);
    let distinct: i64 = row.get(2);
    assert!(value as usize >= KILLS / 2, "it was put to the test: {value}");
    assert_eq!((value, distinct), (lines, lines), "no step is lost and none is made twice");
    assert!(row.get::<_, bool>(3), "a newer term is never followed by an older one");
}

/// The counter beside it, which nothing guards.
const UNFENCED: &str = "CREATE TABLE {s}.bare (value bigint NOT NULL); \
    INSERT INTO {s}.bare VALUES (0); \
    CREATE TABLE {s}.bare_steps (value bigint NOT NULL); \
    CREATE TABLE {s}.ready (yes boolean)";

async fn read_bare(db: &tokio_postgres::Client, schema: &str) -> i64 {
    db.query_one(&format!("SELECT value FROM {schema}.bare"), &[]).await.unwrap().get(0)
}

async fn write_bare(db: &tokio_postgres::Client, schema: &str, value: i64) {
    let step = format!(
        "UPDATE {schema}.bare SET value = {value}; INSERT INTO {schema}.bare_steps VALUES ({value})"
    );
    db.batch_execute(&step).await.unwrap();
}

/// Wins, and is stopped between what it reads and what it writes.
async fn lead_and_stop(schema: &str) {
    let options = PostgresOptions::from_url(&common::url()).unwrap().schema(schema);
    let store = PostgresStore::open(options).await.unwrap();
    let mut db = connect(&common::url()).await;
    let me = joined_for(&store, "stopped", 1, LIFE).await;
    let mut bid = claim(&me, "e", 1);
    bid.ttl = LIFE;
    let term = won(store.claim(&ns(), &bid).await.unwrap());
    assert!(count(&store, &mut db, schema, &term).await, "it leads");
    let value = read_bare(&db, schema).await;
    db.batch_execute(&format!("INSERT INTO {schema}.ready VALUES (true)")).await.unwrap();
    // Here it is stopped, and cannot know for how long.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    write_bare(&db, schema, value + 1).await;
    assert!(!count(&store, &mut db, schema, &term).await, "the fence knows");
}

/// C3: on purpose, what the fence is for. A leader is stopped after it has read,
/// its successor counts, and it goes on: the unfenced counter loses a step, the
/// fenced one beside it loses none.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_leader_loses_an_unfenced_step_and_no_fenced_one() {
    if let Ok(schema) = std::env::var(PLACE) {
        return lead_and_stop(&schema).await;
    }
    let place = Place::new();
    let store = place.open().await;
    place.sql(COUNTER).await;
    place.sql(UNFENCED).await;
    let leader = start(STOPPED, &place.schema);
    let mut db = admin().await;
    let ready = format!("SELECT count(*) FROM {}.ready", place.schema);
    until("the leader has read", || async {
        db.query_one(&ready, &[]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
    leader.signal(Signal::STOP);
    let next = joined(&store, "next", 2).await;
    let mut nonce = 0;
    let term = loop {
        nonce += 1;
        match only(store.claim(&ns(), &claim(&next, "e", nonce)).await.unwrap()) {
            Claimed::Won(term) => break term,
            _ => let_pass(PACE, "the pace of bids").await,
        }
    };
    assert!(count(&store, &mut db, &place.schema, &term).await);
    let value = read_bare(&db, &place.schema).await;
    write_bare(&db, &place.schema, value + 1).await;
    leader.signal(Signal::CONT);
    let ended = tokio::task::spawn_blocking(move || leader.finish()).await.unwrap();
    assert!(ended.success(), "the stopped leader counted once, and was refused then: {ended}");
    let kept = format!(
        "SELECT (SELECT value FROM {s}.counter), (SELECT count(*) FROM {s}.steps), \
                (SELECT value FROM {s}.bare), (SELECT count(*) FROM {s}.bare_steps)",
        s = place.schema
    );
    let row = db.query_one(&kept, &[]).await.unwrap();
    let kept: [i64; 4] = std::array::from_fn(|at| row.get(at));
    assert_eq!(kept, [2, 2, 1, 2], "fenced value and steps, unfenced value and steps");
}
