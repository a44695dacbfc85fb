//! Forgetting in PostgreSQL: what open transactions hold, and what is left of many rows.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::time::{Duration, Instant};

use common::words::*;
use common::{LET_IN, Place, admin, url};
use tenure_core::{
    Amend, Amended, Bind, BindAnswer, BindOp, Bindings, Finding, MemberId, Name, Namespace, Nonce,
    Note, Purge, Purged, Query, Value,
};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::Store;

/// Every step of a purge at an age of zero, and how long the longest took.
async fn purge(store: &PostgresStore) -> (Purged, Duration) {
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

/// C40: a fence in an open transaction keeps its election, although its holder's life is over:
/// without the row a new term would begin beside the transaction.
#[tokio::test]
async fn an_election_that_a_transaction_has_fenced_is_not_purged() {
    let place = Place::new();
    let mut client = admin().await;
    let store = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let tx = client.transaction().await.unwrap();
    let number = i64::try_from(term.number.get()).unwrap();
    let fence = format!("SELECT {}.fence('default', 'e', $1)", place.schema);
    tx.execute(&fence, &[&number]).await.unwrap();
    let evict = Amend::evict_now(MemberId::new("a").unwrap(), Note::default());
    store.amend(&ns(), &evict).await.unwrap();
    assert_eq!(purge(&store).await.0.elections, 0, "its row is held");
    tx.commit().await.unwrap();
    assert_eq!(purge(&store).await.0.elections, 1);
    assert!(leader(&store, "b", 2, "e").await.number > term.number);
}

/// M5: names whose owner does not live are counted when the store is examined, in the namespace
/// that is asked about, until a purge has cleared them away; a role that may not look into the
/// tables is told nothing.
#[tokio::test]
async fn void_names_are_told_to_who_may_look_into_the_tables() {
    let place = Place::new();
    let store = place.open().await;
    let told = async |store: &PostgresStore, ns: &Namespace| {
        let examined = store.read(ns, &Query::examination()).await.unwrap().examined.unwrap();
        examined.findings.into_iter().find(|finding| finding.code == "void-names")
    };
    let elsewhere = Namespace::new("elsewhere").unwrap();
    for space in [&ns(), &elsewhere] {
        let a = member("a", 1);
        store.join(space, &join(&a)).await.unwrap();
        let name = |n: u64| Name::new(format!("n/{n}")).unwrap();
        let takes = (0..300).map(|n| BindOp::take(name(n), Nonce::new(n + 1), Value::empty()));
        let post = BindOp::post(name(300), Nonce::new(301), Value::empty());
        let all = takes.chain([post]);
        store.bind(space, &Bind::new(a, TTL, all)).await.unwrap();
    }
    assert_eq!(told(&store, &ns()).await, Some(Finding::void_names(0, 300)));
    place.sql("UPDATE {s}.members SET expires_at = now() WHERE ns = 'default'").await;
    let void = Some(Finding::void_names(300, 300));
    assert_eq!(told(&store, &ns()).await, void, "before the owner is ended");
    assert_eq!(told(&store, &elsewhere).await, Some(Finding::void_names(0, 300)));
    assert_eq!(purge(&store).await.0.names, 300);
    assert_eq!(told(&store, &ns()).await, Some(Finding::void_names(0, 0)));
    place.sql(LET_IN).await;
    let its_url = url().replace("postgres@", "tenure_guest@");
    let options = PostgresOptions::from_url(&its_url).unwrap().schema(&place.schema);
    let guest = place.open_with(options.migrate(false)).await;
    assert_eq!(told(&guest, &elsewhere).await, None);
}

/// P14: registrations and drops leave empty tables. The bar is a million of them:
/// `TENURE_PURGE_NAMES=1000000`.
#[tokio::test]
async fn registrations_and_drops_leave_empty_tables() {
    let names: u64 = std::env::var("TENURE_PURGE_NAMES")
        .map_or(20_000, |text| text.parse().expect("a number of names"));
    let place = Place::new();
    let client = admin().await;
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    leader(&store, "b", 2, "e").await;
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
    place.sql("UPDATE {s}.members SET expires_at = now()").await;
    let (purged, longest) = purge(&store).await;
    assert_eq!((purged.members, purged.names), (2, names.div_ceil(10)), "{purged:?}");
    assert!(purged.drops > 0 && purged.elections == 1 && purged.journal, "{purged:?}");
    for table in ["names", "names_gone", "members", "profiles", "remains", "elections", "told"] {
        let count = format!("SELECT count(*) FROM {}.{table}", place.schema);
        assert_eq!(client.query_one(&count, &[]).await.unwrap().get::<_, i64>(0), 0, "{table}");
    }
    println!("{names} names; the longest step of the purge took {longest:?}");
    // The bound is on what a step looks at; a machine that is busy may take longer.
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}

/// What could never be right is refused, in words.
#[tokio::test]
async fn a_purge_that_cannot_be_is_refused() {
    let place = Place::new();
    let client = admin().await;
    drop(place.open().await);
    for arguments in ["NULL, 0", "'x', -1", "'x', NULL", "'x', 0, NULL, 0", "'x', 0, NULL, 1, NULL"]
    {
        let call = format!("SELECT {}.purge({arguments})", place.schema);
        let error = client.batch_execute(&call).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some("22023"), "{arguments}: {error}");
    }
}
