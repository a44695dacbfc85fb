//! What one step costs when a member held very much.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::*;
use tenure_core::{Claims, Heartbeat, Joined, Namespace, Query};
use tenure_sqlite::SqliteOptions;
use tenure_store::Store;

/// P2, M5: a dead member of twenty thousand terms is ended by one entry of the
/// journal, and what is taken from it costs three more; the rest is vacant at once.
#[tokio::test]
async fn a_dead_member_of_many_terms_costs_its_successor_four_entries() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    let b = member("b", 2);
    joins(&store, &a).await;
    for batch in 0..20 {
        let names = (0..1_000).map(|n| format!("e-{batch}-{n}"));
        let claims = store.claim(&ns(), &claim_all(&a, names, 1)).await.unwrap();
        assert!(matches!(claims, Claims::Answered(_)));
    }
    joins(&store, &b).await;
    let ttl = Duration::from_millis(1);
    store.heartbeat(&ns(), &Heartbeat::new(a, ttl)).await.unwrap();
    let seq = async || store.read(&ns(), &Query::nothing()).await.unwrap().seq.get();
    while view(&store, "e-0-0").await.holder.is_some() {
        tokio::task::yield_now().await;
    }
    let before = seq().await;
    won(store.claim(&ns(), &claim(&b, "e-7-7", 1)).await.unwrap());
    assert_eq!(seq().await - before, 4, "stood, ended, released, elected");
    assert!(view(&store, "e-19-999").await.holder.is_none(), "vacant before any bid");
    won(store.claim(&ns(), &claim(&b, "e-19-999", 2)).await.unwrap());
}

/// M5, H27, P2: what a dead member leaves behind is cleared away by later claims and
/// joins, and no answer shows it meanwhile.
#[tokio::test]
async fn candidacies_of_the_dead_go_a_few_at_a_time() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    let b = member("b", 2);
    joins(&store, &a).await;
    joins(&store, &b).await;
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
    assert!(seen.elections.iter().all(|e| e.candidates.len() == 1), "no answer shows the rest");
    for life in 3..8 {
        joined(&store, &format!("j{life}"), life).await;
    }
    assert_eq!(left(), 0);
    let remains: u32 =
        file.query_row("SELECT count(*) FROM tenure_remains", [], |row| row.get(0)).unwrap();
    assert_eq!(remains, 0);
}

/// M5: what a life left behind is neither its next life's nor its twin's in another
/// namespace, and clearing it away comes to an end beside both.
#[tokio::test]
async fn what_a_life_left_is_told_from_its_next_life_and_from_its_twin() {
    let place = Place::new();
    let store = place.open().await;
    let elsewhere = Namespace::new("elsewhere").unwrap();
    let leader = member("a", 1);
    let twin = member("b", 2);
    let next = member("b", 3);
    let names = || (0..300).map(|n| format!("e-{n}"));
    for space in [&ns(), &elsewhere] {
        for member in [&leader, &twin] {
            store.join(space, &join(member)).await.unwrap();
            store.claim(space, &claim_all(member, names(), 1)).await.unwrap();
        }
    }
    let file = place.sql();
    let count = |sql: &str| -> u32 { file.query_row(sql, [], |row| row.get(0)).unwrap() };
    let seen = async |space: &Namespace| {
        let query = Query { candidates: true, ..Query::everything() };
        let elections = store.read(space, &query).await.unwrap().elections;
        elections.iter().map(|e| e.candidates.len()).collect::<Vec<_>>()
    };

    // Superseded: the new life stands for nothing yet, and its twin for all as before.
    joins(&store, &next).await;
    assert_eq!(seen(&ns()).await, [1; 300], "no life stands by what another left");
    assert_eq!(seen(&elsewhere).await, [2; 300]);
    store.claim(&ns(), &claim_all(&next, names(), 1)).await.unwrap();
    for life in 10..15 {
        joins(&store, &member(&format!("j{life}"), life)).await;
    }
    assert_eq!(count("SELECT count(*) FROM tenure_remains"), 0, "nothing is left to clear away");
    assert_eq!(seen(&ns()).await, [2; 300]);
    assert_eq!(seen(&elsewhere).await, [2; 300]);
}

/// M5: of a life that ended in two namespaces each clears away its own.
#[tokio::test]
async fn what_a_life_left_in_two_namespaces_goes_from_both() {
    let place = Place::new();
    let store = place.open().await;
    let elsewhere = Namespace::new("elsewhere").unwrap();
    let names = || (0..300).map(|n| format!("e-{n}"));
    for space in [&ns(), &elsewhere] {
        for member in [&member("a", 1), &member("b", 2)] {
            store.join(space, &join(member)).await.unwrap();
            store.claim(space, &claim_all(member, names(), 1)).await.unwrap();
        }
    }
    let file = place.sql();
    let left = |space: &Namespace| -> (u32, u32) {
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table} WHERE ns = ?1 AND id = 'b'");
            file.query_row(&sql, [space.as_str()], |row| row.get(0)).unwrap()
        };
        (count("tenure_candidates"), count("tenure_remains"))
    };
    for space in [&ns(), &elsewhere] {
        store.leave(space, &member("b", 2)).await.unwrap();
        assert_eq!(left(space), (236, 1));
    }
    let here = ns();
    for (space, other, left_there) in [(&here, &elsewhere, (236, 1)), (&elsewhere, &here, (0, 0))] {
        for life in 10..15 {
            store.join(space, &join(&member(&format!("j{life}"), life))).await.unwrap();
        }
        assert_eq!(left(space), (0, 0));
        assert_eq!(left(other), left_there);
    }
}

/// Trimming a journal leaves the journal of another namespace alone, and what it still
/// knows of lives that ended.
#[tokio::test]
async fn a_journal_is_trimmed_by_itself() {
    let place = Place::new();
    let store = place.open_with(SqliteOptions::new().journal_keep(16)).await;
    let elsewhere = Namespace::new("elsewhere").unwrap();
    let ended = member("a", 1);
    store.join(&elsewhere, &join(&ended)).await.unwrap();
    store.leave(&elsewhere, &ended).await.unwrap();
    // Until entries were trimmed, and a life ended that the journal still knows.
    let mut life = 10;
    let mut newest = member("b", life);
    let kept = "SELECT trimmed FROM tenure_namespaces WHERE ns <> 'elsewhere'";
    loop {
        joins(&store, &newest).await;
        store.leave(&ns(), &newest).await.unwrap();
        let trimmed: u32 = place.sql().query_row(kept, [], |row| row.get(0)).unwrap();
        if trimmed > 0 {
            break;
        }
        life += 1;
        newest = member("b", life);
    }
    let before = member("b", life - 1);
    for (space, member) in [(&ns(), &newest), (&ns(), &before), (&elsewhere, &ended)] {
        let answer = store.join(space, &join(member)).await.unwrap();
        assert!(matches!(answer, Joined::Taken { .. }), "{answer:?}: it is known to be over");
    }
    let query = Query { history: 10, ..Query::everything() };
    let history = store.read(&elsewhere, &query).await.unwrap().history;
    assert_eq!(history.len(), 2, "joined, left");
}
