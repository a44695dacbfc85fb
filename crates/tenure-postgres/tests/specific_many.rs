//! Many elections at once: what the server has to read for them.

#![allow(clippy::unwrap_used)]

mod common;

use common::words::*;
use common::{Place, admin, connect, until, url};
use tenure_core::{
    Bid, Claimed, Claims, Joined, MemberRef, Nonce, Priority, Query, Release, ReleaseItem, Term,
};
use tenure_postgres::PostgresStore;
use tenure_store::{MemoryStore, Store};

const BATCH: usize = 1_000;

async fn win(store: &PostgresStore, member: &MemberRef, prefix: &str, nonce: u64) -> Vec<Term> {
    let mut all = claim(member, prefix, nonce);
    let bid = |n| Bid::new(election(&format!("{prefix}-{n}")), Nonce::new(nonce));
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
    let a = joined(&store, "a", 1).await;
    let b = joined(&store, "b", 2).await;
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
    let made = i64::try_from(4 * BATCH).unwrap();
    until("the server has counted", || async { counted().await.1 >= made }).await;
    let (fetched, _) = counted().await;
    assert!(fetched < made * 20, "{fetched} rows were read for {made} that were made");
}

/// Who stands for an election, and how much it wants it.
async fn candidates(store: &dyn Store, name: &str) -> Vec<(String, u16)> {
    let query = Query { candidates: true, ..Query::elections([election(name)]) };
    let snapshot = store.read(&ns(), &query).await.unwrap();
    let listed = snapshot.elections[0].candidates.iter();
    listed.map(|c| (c.member.id.to_string(), c.priority.get())).collect()
}

/// What happens to the candidacy of a member that won before it stood, step by step.
async fn a_founders_candidacy(store: &dyn Store) -> Vec<Vec<(String, u16)>> {
    let a = joined(store, "a", 1).await;
    let b = joined(store, "b", 2).await;
    let mut seen = Vec::new();
    let bid = async |member: &MemberRef, priority: u16, nonce: u64| {
        let mut one = claim(member, "e", nonce);
        one.bids[0].priority = Priority::new(priority);
        only(store.claim(&ns(), &one).await.unwrap())
    };
    let withdraw = async |member: &MemberRef| {
        let item = ReleaseItem::candidacy(election("e"));
        let all = Release::new(member.clone(), vec![item]);
        store.release(&ns(), &all).await.unwrap();
    };
    assert!(matches!(bid(&a, 7, 1).await, Claimed::Won(_)));
    seen.push(candidates(store, "e").await);
    // Another stands; the same bid again; one with another priority.
    assert!(matches!(bid(&b, 9, 1).await, Claimed::Held(_)));
    assert!(matches!(bid(&a, 7, 1).await, Claimed::Won(_)));
    seen.push(candidates(store, "e").await);
    assert!(matches!(bid(&a, 11, 2).await, Claimed::Won(_)));
    seen.push(candidates(store, "e").await);
    // It no longer stands, and leads; stands again, without a chance.
    withdraw(&a).await;
    seen.push(candidates(store, "e").await);
    let Claimed::Won(term) = bid(&a, 5, 3).await else { panic!() };
    seen.push(candidates(store, "e").await);
    store.release(&ns(), &release(&term)).await.unwrap();
    seen.push(candidates(store, "e").await);
    seen
}

/// A member that wins before it ever stood is a candidate like any other.
#[tokio::test]
async fn a_founder_stands_like_any_other_candidate() {
    let place = Place::new();
    let expected = a_founders_candidacy(&MemoryStore::new()).await;
    assert_eq!(expected[0], [("a".to_owned(), 7)]);
    assert_eq!(a_founders_candidacy(&place.open().await).await, expected);
}

/// M1: a life that left does not come back by a copy of its request, while its
/// successor may, and so may another member.
#[tokio::test]
async fn a_life_that_left_does_not_come_back() {
    async fn story(store: &dyn Store) -> Vec<Joined> {
        let a = joined(store, "a", 1).await;
        store.leave(&ns(), &a).await.unwrap();
        let mut told = Vec::new();
        for again in [&a, &member("b", 1), &member("a", 2)] {
            told.push(store.join(&ns(), &join(again)).await.unwrap());
        }
        told
    }
    let place = Place::new();
    let expected = story(&MemoryStore::new()).await;
    assert!(matches!(expected[0], Joined::Taken { .. }), "{expected:?}");
    assert_eq!(story(&place.open().await).await, expected);
}

/// What is told at once is kept or trimmed entry by entry.
#[tokio::test]
async fn a_journal_is_cut_in_the_middle_of_what_was_told_at_once() {
    let place = Place::new();
    let store = place.open().await;
    place.sql("UPDATE {s}.settings SET journal_keep = 100").await;
    let a = joined(&store, "a", 1).await;
    win(&store, &a, "batch", 1).await;
    let client = admin().await;
    let page = async |after: i64, limit: i64| {
        let sql = format!(
            "SELECT (j->>'seq')::bigint, (j->>'trimmed')::bigint, \
             coalesce((SELECT array_agg((e->>'seq')::bigint) \
                       FROM jsonb_array_elements(j->'entries') e), '{{}}') \
             FROM {}.journal('default', $1, $2) j",
            place.schema
        );
        let row = client.query_one(&sql, &[&after, &limit]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, Vec<i64>>(2))
    };
    let (seq, trimmed, kept) = page(0, 10_000).await;
    assert_eq!(seq, 1 + 2 * i64::try_from(BATCH).unwrap());
    assert_eq!(trimmed, seq - 100);
    assert_eq!(kept, (trimmed + 1..=seq).collect::<Vec<_>>());
    assert_eq!(page(seq - 7, 3).await.2, [seq - 6, seq - 5, seq - 4]);
    assert_eq!(page(seq - 2, 3).await.2, [seq - 1, seq]);
    assert!(page(seq, 3).await.2.is_empty() && page(i64::MAX, i64::MAX).await.2.is_empty());
}

/// What is told of many alike is written once, and read entry by entry by a role that
/// may read the journal and nothing else.
#[tokio::test]
async fn what_is_told_of_many_alike_is_read_one_by_one() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    win(&store, &a, "batch", 1).await;
    let role = format!("r_{}", place.schema);
    place
        .sql(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {{s}} TO {role}; \
             GRANT SELECT ON {{s}}.journal TO {role}"
        ))
        .await;
    let own = connect(&url().replace("postgres@", &format!("{role}@"))).await;
    let sql = format!(
        "SELECT min(seq), max(seq), count(DISTINCT seq), count(DISTINCT election), \
                count(DISTINCT member), count(priority), count(number) \
         FROM {}.journal WHERE election LIKE 'batch-%' GROUP BY kind ORDER BY 1",
        place.schema
    );
    let rows = own.query(&sql, &[]).await.unwrap();
    let rows: Vec<[i64; 7]> = rows.iter().map(|r| std::array::from_fn(|n| r.get(n))).collect();
    let many = i64::try_from(BATCH).unwrap();
    // After the entry that tells of the member.
    let stood = [2, 1 + many, many, many, 1, many, 0];
    let elected = [2 + many, 1 + 2 * many, many, many, 1, 0, many];
    assert_eq!(rows, [stood, elected]);
    place.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

/// Among many that are new, one that is held or named twice is answered by itself.
#[tokio::test]
async fn one_of_many_that_is_not_new_holds_up_no_other() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let b = joined(&store, "b", 2).await;
    won(store.claim(&ns(), &claim(&a, "e-7", 1)).await.unwrap());
    let numbers = async |prefix: &str, last: u64| -> Vec<Option<u64>> {
        let mut all = claim(&b, prefix, 1);
        let bid =
            |(nonce, place)| Bid::new(election(&format!("{prefix}-{place}")), Nonce::new(nonce));
        all.bids = (1..).zip((0..19).chain([last])).map(bid).collect();
        let Claims::Answered(answers) = store.claim(&ns(), &all).await.unwrap() else { panic!() };
        let number = |answer| match answer {
            Claimed::Won(term) => Some(term.number.get()),
            _ => None,
        };
        answers.into_iter().map(number).collect()
    };
    let mut expected = vec![Some(1); 20];
    expected[7] = None;
    assert_eq!(numbers("e", 19).await, expected);
    // The last bid is for the first election once more, and gives up what that won.
    let mut expected = vec![Some(1); 20];
    (expected[0], expected[19]) = (None, Some(2));
    assert_eq!(numbers("f", 0).await, expected);
}

/// What never had a candidate is told at once if it is more than hints are given for,
/// whatever else there is; and a bid for what is there is not.
#[tokio::test]
async fn many_new_elections_are_told_at_once() {
    let place = Place::new();
    let client = admin().await;
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    won(store.claim(&ns(), &claim(&a, "first", 1)).await.unwrap());
    let other = tenure_core::Namespace::new("other").unwrap();
    let b = member("b", 2);
    store.join(&other, &join(&b)).await.unwrap();
    let bids = |who: &MemberRef, prefix: &str, count: usize, nonce: u64| {
        let mut all = claim(who, prefix, nonce);
        let bid = |n| Bid::new(election(&format!("{prefix}-{n}")), Nonce::new(nonce));
        all.bids = (0..count).map(bid).collect();
        all
    };
    let at_once = async || -> i64 {
        let told = "SELECT count(*) FROM {s}.told WHERE elections IS NOT NULL";
        client.query_one(&told.replace("{s}", &place.schema), &[]).await.unwrap().get(0)
    };
    // The first of the names is there, but in another namespace.
    store.claim(&other, &bids(&b, "many", 3, 1)).await.unwrap();
    assert_eq!(at_once().await, 0);
    store.claim(&ns(), &bids(&a, "few", 8, 1)).await.unwrap();
    assert_eq!(at_once().await, 0, "each of eight is hinted at");
    store.claim(&ns(), &bids(&a, "many", 9, 1)).await.unwrap();
    assert_eq!(at_once().await, 1);
    store.claim(&ns(), &bids(&a, "many", 9, 2)).await.unwrap();
    assert_eq!(at_once().await, 1, "they are there");
    let mut unlike = bids(&a, "unlike", 9, 1);
    unlike.bids[4].priority = Priority::new(7);
    store.claim(&ns(), &unlike).await.unwrap();
    assert_eq!(at_once().await, 1, "they do not stand alike");
}
