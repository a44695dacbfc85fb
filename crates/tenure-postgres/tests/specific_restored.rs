//! Real restores of a real server: what it forgot is not given out again (P1, rule M6).

#![allow(clippy::unwrap_used)]

mod common;

use common::server::Server;
use common::words::*;
use common::{connect, until};
use tenure_core::{Amend, Amended, Era, Note, Seq, TermNumber, Told};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::Store;

async fn open(url: &str) -> PostgresStore {
    let options = PostgresOptions::from_url(url).unwrap();
    let opened = tokio::sync::Mutex::new(None);
    until("the server takes connections", || async {
        let tried = PostgresStore::open(options.clone()).await.ok();
        let done = tried.is_some();
        *opened.lock().await = tried;
        done
    })
    .await;
    opened.into_inner().unwrap()
}

/// Wins one term after the other as a new member, and says the number of the last.
/// No member that has seen anything before takes part.
async fn terms(url: &str, life: u128, count: u64) -> (TermNumber, TermNumber) {
    let store = open(url).await;
    let first = leader(&store, &format!("m{life}"), life, "e").await;
    let mut last = first.clone();
    for nonce in 2..=count {
        last = won(store.claim(&ns(), &claim(&first.member, "e", nonce)).await.unwrap());
    }
    store.leave(&ns(), &first.member).await.unwrap();
    (first.number, last.number)
}

/// What a server's own test does while others' run beside it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// P1: `cp -a` of the data folder, put back while the server is down, twice. It has the
/// same cluster and the same timeline, and no live member knows better.
#[tokio::test(flavor = "multi_thread")]
async fn files_put_back_give_out_no_number_twice() {
    let mut server = blocking(Server::start).await;
    let url = server.url();
    let before = terms(&url, 1, 3).await;
    assert_eq!(before, (TermNumber::new(1), TermNumber::new(3)), "numbers begin with 1");
    let mut server = blocking(move || {
        server.stop();
        server.back_up();
        server.up();
        server
    })
    .await;
    let mut highest = terms(&url, 2, 3).await.1;
    for round in 3..5 {
        server = blocking(move || {
            server.kill();
            server.put_back();
            server.up();
            server
        })
        .await;
        let (first, last) = terms(&url, round, 3).await;
        assert!(first > highest, "{first} after {highest} was given out");
        assert_eq!(last.get(), first.get() + 2, "it jumps once");
        highest = last;
    }
}

/// P1: the same copy put back again and again, each time under members that have seen
/// more than it has. Each of them raises the era, and era and numbers go back with the
/// files the next time.
#[tokio::test(flavor = "multi_thread")]
async fn files_put_back_under_live_members_give_out_no_number_twice() {
    let mut server = blocking(Server::start).await;
    let url = server.url();
    terms(&url, 1, 3).await;
    // The copy knows of a raised era already.
    let store = open(&url).await;
    store.amend(&ns(), &Amend::Restored { by: Note::new("ops") }).await.unwrap();
    drop(store);
    let mut highest = terms(&url, 2, 3).await.1;
    server = blocking(move || {
        server.stop();
        server.back_up();
        server.up();
        server
    })
    .await;
    for round in 3..7_u128 {
        server = blocking(move || {
            server.kill();
            server.put_back();
            server.up();
            server
        })
        .await;
        let store = open(&url).await;
        let first = leader(&store, "a", round, "e").await;
        assert!(first.number > highest, "round {round}: {first:?} after {highest}");
        highest = first.number;
        for seen in 1..=3_u64 {
            let bid = claim(&first.member, "e", seen + 1).with_seen(Seq::new(1_000 * seen));
            let term = won(store.claim(&ns(), &bid).await.unwrap());
            assert!(term.number.get() > highest.get() + Era::JUMP, "{term:?} after {highest}");
            highest = term.number;
        }
        let clock = connect(&url).await.query_one("SELECT tenure._clock()", &[]).await.unwrap();
        assert!(clock.get::<_, i64>(0) >= i64::try_from(highest.get()).unwrap(), "{highest}");
    }
}

/// P1: a dump of the schema, restored into the same database, twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_dump_gives_out_no_number_twice() {
    let server = blocking(Server::start).await;
    let url = server.url();
    terms(&url, 1, 3).await;
    let mut server = blocking(move || {
        server.client("pg_dump", &["-n", "tenure", "-Fc", "-f", "dump", "postgres"]);
        server
    })
    .await;
    let mut highest = terms(&url, 2, 3).await.1;
    for round in 3..5 {
        let session = connect(&url).await;
        session.batch_execute("DROP SCHEMA tenure CASCADE").await.unwrap();
        server = blocking(move || {
            server.client("pg_restore", &["-d", "postgres", "dump"]);
            server
        })
        .await;
        let (first, last) = terms(&url, round, 3).await;
        assert!(first > highest, "{first} after {highest} was given out");
        assert_eq!(last.get(), first.get() + 2, "it jumps once");
        highest = last;
    }
}

/// P1: a database made from another as its template, which then goes by its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_copied_from_a_template_gives_out_no_number_twice() {
    let server = blocking(Server::start).await;
    let admin = connect(&server.url_of("template1")).await;
    admin.batch_execute("CREATE DATABASE live").await.unwrap();
    let url = server.url_of("live");
    terms(&url, 1, 3).await;
    let others = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'live'";
    let alone = || async { admin.query_one(others, &[]).await.unwrap().get(0) };
    until("no session is connected", alone).await;
    admin.batch_execute("CREATE DATABASE copy TEMPLATE live").await.unwrap();
    let (_, highest) = terms(&url, 2, 3).await;
    until("no session is connected", alone).await;
    admin.batch_execute("DROP DATABASE live").await.unwrap();
    admin.batch_execute("ALTER DATABASE copy RENAME TO live").await.unwrap();
    let (first, _) = terms(&url, 3, 1).await;
    assert!(first > highest, "{first} after {highest} was given out");
}

/// M6: a member that has seen more of the journal than there is says so with its bid,
/// and the bid that finds it out is above what was forgotten already. Once only.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_member_has_seen_raises_the_era_before_it_is_elected() {
    let place = common::Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let first = won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    let seen = Seq::new(1_000);
    let knowing = |nonce| claim(&a, "e", nonce).with_seen(seen);
    let next = won(store.claim(&ns(), &knowing(2)).await.unwrap());
    assert!(next.number.get() > first.number.get() + Era::JUMP, "{next:?}");
    let after = won(store.claim(&ns(), &knowing(3)).await.unwrap());
    assert_eq!(after.number, next.number.next(), "it is known now");
    // And with a join, for the next one that is elected; in a namespace there is none of yet.
    let other = tenure_core::Namespace::new("other").unwrap();
    let b = member("b", 2);
    store.join(&other, &join(&b).with_seen(seen)).await.unwrap();
    let third = won(store.claim(&ns(), &knowing(4)).await.unwrap());
    assert!(third.number.get() > after.number.get() + Era::JUMP, "{third:?}");
}

/// M6: numbers go on just above what a member tells, however far the clock is behind, in
/// one step; and what no clock can have reached lifts them by an era and no more, whatever
/// role tells it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_member_tells_lifts_the_numbers_within_a_bound() {
    let place = common::Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let told = Era::HEEDED / 2;
    let knowing = |nonce, place, number| {
        claim(&a, "e", nonce).with_seen(Told::new(Seq::new(place), TermNumber::new(number)))
    };
    let first = won(store.claim(&ns(), &knowing(1, 0, told)).await.unwrap());
    assert_eq!(first.number.get(), 1, "nothing was forgotten");
    let next = won(store.claim(&ns(), &knowing(2, 1_000, told)).await.unwrap());
    assert_eq!(next.number.get(), told + 1);
    let mut last = next.number.get();
    for (turn, absurd) in
        [Era::HEEDED, 1 << 53, i64::MAX.cast_unsigned(), u64::MAX].into_iter().enumerate()
    {
        let turn = u64::try_from(turn).unwrap();
        let bid = knowing(3 + turn, 2_000 * (turn + 1), absurd);
        let term = won(store.claim(&ns(), &bid).await.unwrap());
        assert_eq!(term.number.get(), last + 1 + Era::JUMP, "{absurd} was told");
        last = term.number.get();
    }
}

/// M6: the operator's verb, from Rust and from SQL.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_raises_the_era_after_a_restore() {
    let place = common::Place::new();
    let store = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let restored = Amend::Restored { by: Note::new("ops") };
    let done = store.amend(&ns(), &restored).await.unwrap();
    assert_eq!(done, Amended::Restored { before: 0, after: 1 });
    assert_eq!(view(&store, "e").await.holder.unwrap().member, term.member, "it goes on leading");
    let next = won(store.claim(&ns(), &claim(&term.member, "e", 2)).await.unwrap());
    assert!(next.number.get() > term.number.get() + Era::JUMP, "{next:?}");
    place.sql("SELECT {s}.restored('ops')").await;
    let last = won(store.claim(&ns(), &claim(&term.member, "e", 3)).await.unwrap());
    assert!(last.number.get() > next.number.get() + Era::JUMP, "{last:?}");
    let why = format!("SELECT raised_for FROM {}.settings", place.schema);
    let why: String = common::admin().await.query_one(&why, &[]).await.unwrap().get(0);
    assert!(why.contains("ops"), "{why}");
}
