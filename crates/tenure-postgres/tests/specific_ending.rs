//! Endings and crowds: what one step costs when a member held very much, when many
//! stand, and when another transaction stays open.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::words::*;
use common::{Place, admin, until};
use tenure_core::{
    Amend, Bid, Claimed, Claims, Happening, Heartbeat, MemberRef, Nonce, Note, Query, Seq,
};
use tenure_postgres::PostgresStore;
use tenure_store::{Page, Store};

const BATCH: usize = 1_000;
const SHORT: Duration = Duration::from_millis(300);

/// A thousand elections in one claim.
async fn bid_for_many(
    store: &PostgresStore,
    member: &MemberRef,
    batch: usize,
    nonce: u64,
) -> usize {
    let mut all = claim(member, "x", nonce);
    let bid = |n| Bid::new(election(&format!("e-{batch}-{n}")), Nonce::new(nonce));
    all.bids = (0..BATCH).map(bid).collect();
    let Claims::Answered(answers) = store.claim(&ns(), &all).await.unwrap() else { panic!() };
    answers.iter().filter(|answer| matches!(answer, Claimed::Won(_))).count()
}

async fn seq(store: &PostgresStore) -> u64 {
    store.read(&ns(), &Query::nothing()).await.unwrap().seq.get()
}

async fn told_after(store: &PostgresStore, seq: u64) -> Vec<Happening> {
    match store.journal(&ns(), Seq::new(seq)).await.unwrap() {
        Page::Entries(entries) => entries.into_iter().map(|entry| entry.what).collect(),
        other => panic!("{other:?}"),
    }
}

/// P2, M5: a dead member of twenty thousand terms is ended by one row of the journal,
/// and what is taken from it costs three; the rest is vacant at once and free when it
/// is asked for, a thousand at a time.
#[tokio::test]
async fn a_dead_member_of_many_terms_is_ended_in_one_step() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    for batch in 0..20 {
        assert_eq!(bid_for_many(&store, &a, batch, 1).await, BATCH);
    }
    let b = joined(&store, "b", 2).await;
    store.heartbeat(&ns(), &Heartbeat::new(a.clone(), SHORT)).await.unwrap();
    until("the ttl has run out", || async {
        let seen = store.read(&ns(), &Query::members()).await.unwrap();
        seen.members.iter().all(|m| m.member != a)
    })
    .await;

    let before = seq(&store).await;
    won(store.claim(&ns(), &claim(&b, "e-7-7", 2)).await.unwrap());
    let told = told_after(&store, before).await;
    assert_eq!(told.len(), 4, "stood, ended, released, elected: {told:?}");
    assert!(matches!(&told[1], Happening::Ended { member, .. } if *member == a), "{told:?}");
    assert!(view(&store, "e-19-999").await.holder.is_none(), "vacant before any bid");
    assert_eq!(bid_for_many(&store, &b, 3, 3).await, BATCH);
}

/// M5: a bid for a term of a life that is over ends no member: not even a newer life of
/// the same id whose ttl has run out, which is ended by those who want what it has.
#[tokio::test]
async fn a_void_term_is_written_off_without_ending_a_newer_life() {
    let place = Place::new();
    let store = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let b = joined(&store, "b", 2).await;
    let by = Note::new("test");
    let evict = Amend::Evict { member: term.member.id.clone(), now: true, by };
    store.amend(&ns(), &evict).await.unwrap();
    joined(&store, "a", 3).await;
    place.sql("UPDATE {s}.members SET expires_at = clock_timestamp() WHERE id = 'a'").await;

    let before = seq(&store).await;
    won(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    let told = told_after(&store, before).await;
    assert_eq!(told.len(), 3, "stood, released, elected: {told:?}");
}

/// M5, H27, P2: what a dead member leaves behind is cleared away by those who come later,
/// a bounded part of it at a time.
#[tokio::test]
async fn candidacies_of_the_dead_are_cleared_away_in_parts() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let b = joined(&store, "b", 2).await;
    assert_eq!(bid_for_many(&store, &a, 0, 1).await, BATCH);
    // Stands for all of them, and dies.
    assert_eq!(bid_for_many(&store, &b, 0, 1).await, 0);
    store.leave(&ns(), &b).await.unwrap();
    let client = admin().await;
    let count = format!("SELECT count(*) FROM {}.candidates", place.schema);
    let left = async || client.query_one(&count, &[]).await.unwrap().get::<_, i64>(0);
    let after_end = left().await;
    assert!((900..1_000).contains(&after_end), "{after_end} are left by the end itself");
    let seen = store.read(&ns(), &Query { candidates: true, ..Query::everything() }).await.unwrap();
    assert!(seen.elections.iter().all(|e| e.candidates.len() == 1), "no answer shows them");
    for life in 3..9 {
        joined(&store, &format!("j{life}"), life).await;
    }
    assert_eq!(left().await, 0);
    let remains = format!("SELECT count(*) FROM {}.remains", place.schema);
    assert_eq!(client.query_one(&remains, &[]).await.unwrap().get::<_, i64>(0), 0);
}

/// M5: a term that ended with its holder's life does not pass the fence, also before
/// it was written off.
#[tokio::test]
async fn a_term_of_an_ended_life_does_not_pass_the_fence() {
    let place = Place::new();
    let store = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let mut client = admin().await;
    let fence = format!("SELECT {}.fence($1, $2, $3)", place.schema);
    let number = i64::try_from(term.number.get()).unwrap();
    let tx = client.transaction().await.unwrap();
    tx.execute(&fence, &[&"default", &"e", &number]).await.unwrap();
    tx.rollback().await.unwrap();
    store.leave(&ns(), &term.member).await.unwrap();
    let tx = client.transaction().await.unwrap();
    let refused = tx.execute(&fence, &[&"default", &"e", &number]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "TN001");
}

/// P6: a client that is idle in a transaction after a heartbeat delays nothing but what
/// its own member holds.
#[tokio::test]
async fn an_open_transaction_after_a_heartbeat_delays_only_its_own_member() {
    let place = Place::new();
    let store = place.open_with(place.options().fence_wait(Duration::from_millis(50))).await;
    let slow = joined(&store, "slow", 1).await;
    won(store.claim(&ns(), &claim(&slow, "held", 1)).await.unwrap());
    let idle = joined(&store, "idle", 2).await;
    for member in [&slow, &idle] {
        store.heartbeat(&ns(), &Heartbeat::new(member.clone(), SHORT)).await.unwrap();
    }
    let mut client = admin().await;
    let tx = client.transaction().await.unwrap();
    let lives = format!(
        "SELECT (SELECT outcome FROM {0}.heartbeat('default', $1, $2::text::uuid, 300000))",
        place.schema
    );
    for member in [&slow, &idle] {
        let life = member.incarnation.to_string();
        let row = tx.query_one(&lives, &[&member.id.as_str(), &life]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "alive");
    }
    until("the ttl has run out", || async {
        let seen = store.read(&ns(), &Query::members()).await.unwrap();
        seen.members.is_empty()
    })
    .await;

    // A join sweeps the dead away, and leaves those alone whose rows are held.
    let b = joined(&store, "b", 3).await;
    won(store.claim(&ns(), &claim(&b, "other", 1)).await.unwrap());
    let waits = held(store.claim(&ns(), &claim(&b, "held", 2)).await.unwrap());
    assert!(waits.holder.is_none(), "no live member holds it: {waits:?}");
    tx.rollback().await.unwrap();
    won(store.claim(&ns(), &claim(&b, "held", 3)).await.unwrap());
}

/// P6: a client that claims and leaves the transaction open keeps the namespace for a few
/// seconds, and is then ended by the server.
#[tokio::test]
async fn a_claim_in_a_transaction_that_stays_open_holds_the_namespace_for_a_bounded_time() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let client = admin().await;
    let claimed = format!(
        "BEGIN; SELECT * FROM {}.claim('default', 'a', '{}'::text::uuid, 60000000, '{{e}}', \
         '{{100}}', '{{1}}')",
        place.schema, a.incarnation
    );
    client.batch_execute(&claimed).await.unwrap();
    until("the namespace is free again", || async {
        let again = joined_by_now(&store).await;
        if again {
            assert!(client.is_closed(), "the server ended the session that held it");
        }
        again
    })
    .await;
    assert_eq!(view(&store, "e").await.number.get(), 0, "and nothing of it is left");
}

async fn joined_by_now(store: &PostgresStore) -> bool {
    store.join(&ns(), &join(&member("b", 2))).await.is_ok()
}

/// P13: what a bid that loses reads does not grow with the number of those who stand.
#[tokio::test]
async fn losing_reads_no_more_in_a_crowd() {
    let place = Place::new();
    let store = place.open().await;
    leader(&store, "leader", 1, "few").await;
    leader(&store, "leader-of-many", 2, "many").await;
    for n in 0..200 {
        let member = joined(&store, &format!("m{n:03}"), 10 + n).await;
        held(store.claim(&ns(), &claim(&member, "many", 1)).await.unwrap());
        if n == 199 {
            held(store.claim(&ns(), &claim(&member, "few", 2)).await.unwrap());
        }
    }
    let client = admin().await;
    client
        .batch_execute(&format!("ANALYZE {0}.candidates, {0}.members", place.schema))
        .await
        .unwrap();
    let mut read = Vec::new();
    for name in ["few", "many"] {
        let losing = format!(
            "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT TEXT) SELECT * FROM {}.claims('default', \
             'm199', '{}'::text::uuid, 60000000, '{{{name}}}', '{{100}}', '{{9}}')",
            place.schema,
            member("m199", 209).incarnation
        );
        // The first in a session reads the catalogue as well.
        client.query(&losing, &[]).await.unwrap();
        let plan = client.query(&losing, &[]).await.unwrap();
        let lines: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let hit = lines.iter().find_map(|line| line.trim().strip_prefix("Buffers: shared hit="));
        let hit =
            hit.and_then(|rest| rest.split(' ').next()).unwrap_or_else(|| panic!("{lines:?}"));
        read.push(hit.parse::<u32>().unwrap());
    }
    assert!(read[1] <= read[0] * 2, "{} buffers in a crowd, {} among few", read[1], read[0]);
}
