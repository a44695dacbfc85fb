//! Noticing changes across handles, and what does not grow.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::*;
use tenure_core::{Entry, Happening, Hint, Incarnation, Namespace, Seq};
use tenure_sqlite::SqliteOptions;
use tenure_store::{Followed, Following, Page, Store, Watch};
use tokio::time::timeout;

/// So rare that nothing in a test is heard by the slow look.
const NEVER: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_secs(10);

/// Waits until the journal has grown, and gives what it has after a place.
async fn grown(store: &impl Store, following: &mut dyn Following, after: Seq) -> Vec<Entry> {
    let told = async { while !matches!(following.next().await.unwrap(), Followed::Grown(_)) {} };
    timeout(SOON, told).await.expect("in time");
    match store.journal(&ns(), after).await.unwrap() {
        Page::Entries(entries) => entries,
        other => panic!("{other:?}"),
    }
}

/// The bell alone, without the slow look, wakes those who follow in another
/// handle.
#[tokio::test]
async fn a_change_by_another_handle_is_heard_without_polling() {
    let place = Place::new();
    let listener = place.open_with(SqliteOptions::new().poll(NEVER)).await;
    let speaker = place.open().await;
    assert_eq!(listener.capabilities().watch, Watch::Native);
    let mut following = listener.follow(&ns()).await.unwrap();
    for life in 1..=5 {
        let newcomer = member(&format!("m{life}"), life);
        // The listener has looked and waits by the time the other speaks: it
        // hears because it is told, not because it looks. (Were it slower than
        // this, the test would only prove less.)
        let speak = async {
            let_pass(Duration::from_millis(100), "the listener begins to wait").await;
            joins(&speaker, &newcomer).await;
        };
        let told = grown(&listener, &mut *following, Seq::START);
        let (entries, ()) = tokio::join!(told, speak);
        // On a slow machine an earlier one may have expired and been ended.
        let last = entries.last().map(|entry| &entry.what);
        assert!(
            matches!(last, Some(Happening::Joined { member, .. }) if *member == newcomer),
            "{last:?}"
        );
    }
}

/// Where the kernel tells nothing, a look at the stated pace does.
#[tokio::test]
async fn without_notifications_a_change_is_found_by_polling() {
    let place = Place::new();
    let pace = Duration::from_millis(20);
    let listener = place.open_with(SqliteOptions::new().native_watch(false).poll(pace)).await;
    assert_eq!(listener.capabilities().watch, Watch::Polled(pace));
    let speaker = place.open().await;
    let mut following = listener.follow(&ns()).await.unwrap();
    joined(&speaker, "a", 1).await;
    assert_eq!(grown(&listener, &mut *following, Seq::START).await.len(), 1);
}

/// N1: a lost notification costs latency and nothing else. Here all are lost:
/// the directory they come from is gone.
#[tokio::test]
async fn a_listener_whose_notifications_end_goes_on_by_polling() {
    let place = Place::new();
    let listener = place.open_with(SqliteOptions::new().poll(Duration::from_millis(20))).await;
    let speaker = place.open().await;
    std::fs::remove_dir_all(place.dir.path().join("tenure.db-live")).unwrap();
    std::fs::create_dir(place.dir.path().join("tenure.db-live")).unwrap();
    let mut following = listener.follow(&ns()).await.unwrap();
    joined(&speaker, "a", 1).await;
    assert_eq!(grown(&listener, &mut *following, Seq::START).await.len(), 1);
}

/// A death in one namespace is no news in another, and a forged one is none at
/// all.
#[tokio::test]
async fn the_death_of_a_stranger_is_not_hinted() {
    let place = Place::new();
    let store = place.open().await;
    let other = Namespace::new("other").unwrap();
    let mut following = store.follow(&ns()).await.unwrap();
    assert_eq!(following.next().await.unwrap(), Followed::Hint(Hint::Anything));
    let a = member("a", 1);
    store.join(&other, &join(&a)).await.unwrap();
    // The lock of a member of the other namespace, and one without a member, are
    // closed by a process that had them open for writing.
    let live = place.dir.path().join("tenure.db-live");
    std::fs::remove_file(live.join(format!("{}.lock", a.incarnation))).unwrap();
    for life in [a.incarnation, Incarnation::from_u128(77)] {
        std::fs::write(live.join(format!("{life}.lock")), "").unwrap();
    }
    let mut elsewhere = store.follow(&other).await.unwrap();
    assert_eq!(elsewhere.next().await.unwrap(), Followed::Hint(Hint::Anything));
    std::fs::write(live.join(format!("{}.lock", a.incarnation)), "").unwrap();
    let heard = timeout(SOON, elsewhere.next()).await.expect("in time").unwrap();
    assert_eq!(heard, Followed::Hint(Hint::Gone(a.incarnation)));
    // By now the same news has reached the first namespace, and was dropped.
    let b = member("b", 2);
    joins(&store, &b).await;
    won(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    let mut next = async || timeout(SOON, following.next()).await.expect("in time").unwrap();
    let mut heard = next().await;
    while matches!(heard, Followed::Grown(_)) {
        heard = next().await;
    }
    assert_eq!(heard, Followed::Hint(Hint::Election(election("e"))));
}

/// H27: the journal and what it remembers of past lives stay bounded, and who
/// fell behind is told.
#[tokio::test]
async fn the_journal_is_trimmed_and_past_lives_are_forgotten() {
    let place = Place::new();
    let store = place.open_with(SqliteOptions::new().journal_keep(40)).await;
    for life in 1..=200 {
        let brief = member("brief", life);
        joins(&store, &brief).await;
        store.leave(&ns(), &brief).await.unwrap();
    }
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        place.sql().query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    let kept = count("tenure_journal");
    assert!((40..=45).contains(&kept), "{kept}");
    assert!(count("tenure_ended") <= 25);
    assert_eq!(count("tenure_members"), 0);
    assert!(place.lock_files().is_empty());
    let trimmed = Seq::new(400 - u64::try_from(kept).unwrap());
    let page = async |after| store.journal(&ns(), after).await.unwrap();
    assert_eq!(page(Seq::new(1)).await, Page::Trimmed(trimmed));
    let Page::Entries(entries) = page(trimmed).await else { panic!() };
    assert_eq!(entries.len(), usize::try_from(kept).unwrap());
    assert_eq!(entries[0].seq, trimmed.next());
}

/// H27: members that died without a word are collected by the next that joins.
#[tokio::test]
async fn the_dead_who_hold_nothing_are_collected() {
    let place = Place::new();
    let (clock, options) = manual();
    let store = place.open_with(options).await;
    for life in 1..=50 {
        joined(&store, &format!("m{life}"), life).await;
    }
    clock.advance(TTL);
    joined(&store, "last", 99).await;
    let sql = "SELECT count(*) FROM tenure_members";
    let rows: i64 = place.sql().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
    assert_eq!(place.lock_files().len(), 1);
}
