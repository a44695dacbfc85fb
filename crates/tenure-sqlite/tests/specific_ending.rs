//! What one step costs when a member held very much.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::*;
use tenure_core::{Claims, Heartbeat, Query};
use tenure_store::Store;

/// P2, M5: a dead member of twenty thousand terms is ended by one entry of the
/// journal, and what is taken from it costs three more; the rest is vacant at once.
#[tokio::test]
async fn a_dead_member_of_many_terms_costs_its_successor_four_entries() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    let b = member("b", 2);
    joined(&store, &a).await;
    for batch in 0..20 {
        let names = (0..1_000).map(|n| format!("e-{batch}-{n}"));
        let claims = store.claim(&ns(), &claim_all(&a, names, 1)).await.unwrap();
        assert!(matches!(claims, Claims::Answered(_)));
    }
    joined(&store, &b).await;
    let ttl = Duration::from_millis(1);
    store.heartbeat(&ns(), &Heartbeat { member: a, ttl, held: vec![] }).await.unwrap();
    let seq = async || store.read(&ns(), &Query::nothing()).await.unwrap().seq.get();
    while view(&store, "e-0-0").await.holder.is_some() {
        tokio::task::yield_now().await;
    }
    let before = seq().await;
    won(store.claim(&ns(), &claim(&b, "e-7-7", 1)).await.unwrap());
    assert_eq!(seq().await - before, 4, "stood, ended, released, elected");
    assert!(view(&store, "e-19-999").await.holder.is_none(), "vacant before anybody asks");
    won(store.claim(&ns(), &claim(&b, "e-19-999", 2)).await.unwrap());
}

/// M5, H27: what a dead member leaves behind is cleared away by later claims and
/// joins, and nobody sees it meanwhile.
#[tokio::test]
async fn candidacies_of_the_dead_go_a_few_at_a_time() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    let b = member("b", 2);
    joined(&store, &a).await;
    joined(&store, &b).await;
    let names = || (0..300).map(|n| format!("e-{n}"));
    store.claim(&ns(), &claim_all(&a, names(), 1)).await.unwrap();
    store.claim(&ns(), &claim_all(&b, names(), 1)).await.unwrap();
    store.leave(&ns(), &b).await.unwrap();
    let file = rusqlite::Connection::open(place.path()).unwrap();
    let left = || -> u32 {
        let count = "SELECT count(*) FROM tenure_candidates WHERE id = 'b'";
        file.query_row(count, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(left(), 236, "the end itself clears a bounded part away");
    let seen = store.read(&ns(), &Query { candidates: true, ..Query::everything() }).await.unwrap();
    assert!(seen.elections.iter().all(|e| e.candidates.len() == 1), "nobody sees the rest");
    for life in 3..8 {
        joined(&store, &member(&format!("j{life}"), life)).await;
    }
    assert_eq!(left(), 0);
    let remains: u32 =
        file.query_row("SELECT count(*) FROM tenure_remains", [], |row| row.get(0)).unwrap();
    assert_eq!(remains, 0);
}
