//! Many elections at once: what the server has to read for them.

#![allow(clippy::unwrap_used)]

mod common;

use common::words::*;
use common::{Place, admin, until};
use tenure_core::{Bid, Claimed, Claims, MemberRef, Nonce, Priority, Term};
use tenure_postgres::PostgresStore;
use tenure_store::Store;

const BATCH: usize = 1_000;

async fn win(store: &PostgresStore, member: &MemberRef, prefix: &str, nonce: u64) -> Vec<Term> {
    let mut all = claim(member, prefix, nonce);
    let bid = |n| Bid {
        election: election(&format!("{prefix}-{n}")),
        priority: Priority::default(),
        nonce: Nonce::new(nonce),
    };
    all.bids = (0..BATCH).map(bid).collect();
    let Claims::Answered(answers) = store.claim(&ns(), &all).await.unwrap() else { panic!() };
    let won = |answer| match answer {
        Claimed::Won(term) => term,
        held => panic!("{held:?}"),
    };
    answers.into_iter().map(won).collect()
}

/// C12: a session that began with an empty schema keeps the plans it made then.
/// It still finds each election by its key, so that a thousand more cost the same
/// however many there are: claiming, giving back, and claiming what is vacant.
#[tokio::test]
async fn a_session_that_began_with_nothing_finds_each_election_by_its_key() {
    let place = Place::new();
    let store = place.open().await;
    let (a, b) = (joined(&store, "a", 1).await, joined(&store, "b", 2).await);
    // Every verb is planned while there is next to nothing.
    let first = won(store.claim(&ns(), &claim(&a, "first", 1)).await.unwrap());
    store.release(&ns(), &release(&first)).await.unwrap();
    won(store.claim(&ns(), &claim(&b, "first", 1)).await.unwrap());
    let mut terms = Vec::new();
    for batch in 0..3 {
        terms.extend(win(&store, &a, &format!("batch-{batch}"), 2).await);
    }
    let mut given = release(&terms[0]);
    given.items = terms[..BATCH].iter().map(|term| release(term).items.remove(0)).collect();
    store.release(&ns(), &given).await.unwrap();
    win(&store, &b, "batch-0", 3).await;

    let client = admin().await;
    let read = format!(
        "SELECT sum(idx_tup_fetch)::bigint, sum(n_tup_ins)::bigint FROM pg_stat_user_tables \
         WHERE schemaname = '{}' AND relname IN ('elections', 'candidates')",
        place.schema
    );
    let counted = async || {
        let row = client.query_one(&read, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    // The server's own counting lags behind by up to a second.
    let made = i64::try_from(7 * BATCH).unwrap();
    until("the server has counted", || async { counted().await.1 >= made }).await;
    let (fetched, _) = counted().await;
    assert!(fetched < made * 20, "{fetched} rows were read for {made} that were made");
}
