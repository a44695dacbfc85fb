//! Forgetting in SQLite: what is left of many rows.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::time::{Duration, Instant};

use common::*;
use tenure_core::{
    Amend, Amended, Bind, BindAnswer, BindOp, Bindings, Finding, Heartbeat, Name, Namespace, Nonce,
    Purge, Purged, Query, Value,
};
use tenure_sqlite::SqliteStore;
use tenure_store::Store;

/// Every step of a purge at an age of zero, and how long the longest took.
async fn purge(store: &SqliteStore) -> (Purged, Duration) {
    let mut next = Some(Purge::older_than(Duration::ZERO));
    let mut all = Purged::default();
    let mut longest = Duration::ZERO;
    while let Some(step) = next {
        let began = Instant::now();
        let amended = store.amend(&ns(), &Amend::Purge(step.clone())).await.unwrap();
        longest = longest.max(began.elapsed());
        let Amended::Purged(purged) = amended else { panic!("{amended:?}") };
        next = step.following(&purged);
        all = all.and(purged);
    }
    (all, longest)
}

/// M5: names whose owner does not live are counted when the store is examined, in the
/// namespace that is asked about, until joins or a purge have cleared them away.
#[tokio::test]
async fn void_names_are_told_until_they_are_cleared_away() {
    let place = Place::new();
    let (clock, options) = manual();
    let store = place.open_with(options).await;
    let told = async |ns: &Namespace| {
        let examined = store.read(ns, &Query::examination()).await.unwrap().examined.unwrap();
        let mut findings = examined.findings.into_iter();
        findings.find(|finding| finding.code == "void-names").expect("a finding")
    };
    let elsewhere = Namespace::new("elsewhere").unwrap();
    let a = member("a", 1);
    for space in [&ns(), &elsewhere] {
        store.join(space, &join(&a)).await.unwrap();
        let take = |n: u64| {
            let name = Name::new(format!("n/{n}")).unwrap();
            BindOp::take(name, Nonce::new(n + 1), Value::empty())
        };
        store.bind(space, &Bind::new(a.clone(), TTL, (0..300).map(take))).await.unwrap();
    }
    assert_eq!(told(&ns()).await, Finding::void_names(0, 300));
    clock.advance(TTL * 2);
    assert_eq!(told(&ns()).await, Finding::void_names(300, 300), "before the owner is ended");
    let (purged, _) = purge(&store).await;
    assert_eq!(purged.names, 300);
    assert_eq!(told(&ns()).await, Finding::void_names(0, 0));
    assert_eq!(told(&elsewhere).await, Finding::void_names(300, 300));
    store.leave(&elsewhere, &a).await.unwrap();
    for life in 2..12 {
        let newcomer = member(&format!("m{life}"), life);
        store.join(&elsewhere, &join(&newcomer)).await.unwrap();
    }
    assert_eq!(told(&elsewhere).await, Finding::void_names(0, 0), "cleared away by joins");
}

/// The bar: registrations and drops leave empty tables, but for three rows of the namespace:
/// its place in the journal, the revision of its names, and the highest number of its
/// elections. `TENURE_PURGE_NAMES=1000000` is the whole of it.
#[tokio::test]
async fn registrations_and_drops_leave_empty_tables_in_a_file() {
    let names: u64 = std::env::var("TENURE_PURGE_NAMES")
        .map_or(20_000, |text| text.parse().expect("a number of names"));
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    let b = member("b", 2);
    joins(&store, &a).await;
    joins(&store, &b).await;
    won(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    let began = Instant::now();
    for from in (0..names).step_by(1_000) {
        let upto = names.min(from + 1_000);
        let name = |n: u64| Name::new(format!("n/{n}")).unwrap();
        let takes = (from..upto).map(|n| BindOp::take(name(n), Nonce::new(n + 1), Value::empty()));
        let bind = Bind::new(a.clone(), TTL, takes);
        let Bindings::Answered(bound) = store.bind(&ns(), &bind).await.unwrap() else { panic!() };
        // One in ten is left to end with its owner.
        let drops = bound.into_iter().enumerate().filter(|(place, _)| place % 10 != 0);
        let drops = drops.map(|(_, answer)| match answer {
            BindAnswer::Bound(one) => BindOp::drop(one.name, Nonce::new(u64::MAX >> 1), one.token),
            other => panic!("{other:?}"),
        });
        store.bind(&ns(), &Bind::new(a.clone(), TTL, drops)).await.unwrap();
    }
    let took = began.elapsed();
    for life in [a, b] {
        store.heartbeat(&ns(), &Heartbeat::new(life, Duration::from_millis(1))).await.unwrap();
    }
    let_pass(Duration::from_millis(20), "a ttl of a millisecond runs out").await;
    let (purged, longest) = purge(&store).await;
    assert_eq!((purged.members, purged.names), (2, names.div_ceil(10)), "{purged:?}");
    assert!(purged.drops > 0 && purged.elections == 1 && purged.journal, "{purged:?}");
    let file = place.sql();
    let left = |table: &str| -> u32 {
        file.query_row(&format!("SELECT count(*) FROM tenure_{table}"), [], |row| row.get(0))
            .unwrap()
    };
    let empty =
        ["names", "dropped", "members", "remains", "elections", "candidates", "journal", "ended"];
    for table in empty {
        assert_eq!(left(table), 0, "{table}");
    }
    assert_eq!(["namespaces", "revisions", "forgotten"].map(left), [1; 3]);
    println!("{names} names in {took:?}; the longest step of the purge took {longest:?}");
    // The bound is on what a step looks at; a machine that is busy may take longer.
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}
