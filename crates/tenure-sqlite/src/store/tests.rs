//! What only the inside can see: which commits are synced, and that a defect
//! in one request does not silence the rest.

use std::time::Duration;

use tenure_core::{
    Amend, Bid, Claim, Claimed, Claims, ElectionName, Heartbeat, Incarnation, Join, MemberId,
    MemberRef, Namespace, Nonce, Note, Query, Release, ReleaseItem, TermNumber, TermRef,
};
use tenure_store::{ErrorKind, Store};

use super::*;

const TTL: Duration = Duration::from_secs(10);

fn a() -> MemberRef {
    MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(1))
}

fn e() -> ElectionName {
    ElectionName::new("e").unwrap()
}

fn join() -> Join {
    Join::new(a(), TTL)
}

fn claim() -> Claim {
    Claim::new(a(), TTL, [Bid::new(e(), Nonce::new(1))])
}

/// The pragma in force at the writer since its last transaction: 2 syncs the
/// log at every commit, 1 only at checkpoints.
async fn synchronous(store: &SqliteStore) -> i64 {
    let pragma = |worker: &mut Worker| {
        Ok(worker.db().pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap())
    };
    store.inner.writer.ask(pragma).await.unwrap()
}

/// H18: term numbers survive a power cut; what is about a living process need
/// not, and must not cost a sync each.
#[tokio::test]
async fn all_but_signs_of_life_are_committed_with_a_full_sync() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("t.db"), SqliteOptions::new()).await.unwrap();
    let ns = Namespace::default();
    let beat = Heartbeat::new(a(), TTL);
    let item = ReleaseItem::term(TermRef::new(e(), TermNumber::new(1)));
    let release = Release::new(a(), vec![item]);
    let pause = Amend::Pause { election: e(), reason: Note::default(), by: Note::default() };

    store.join(&ns, &join()).await.unwrap();
    assert_eq!(synchronous(&store).await, 1, "join");
    store.heartbeat(&ns, &beat).await.unwrap();
    assert_eq!(synchronous(&store).await, 1, "heartbeat");
    store.claim(&ns, &claim()).await.unwrap();
    assert_eq!(synchronous(&store).await, 2, "claim");
    store.heartbeat(&ns, &beat).await.unwrap();
    store.release(&ns, &release).await.unwrap();
    assert_eq!(synchronous(&store).await, 2, "release");
    store.heartbeat(&ns, &beat).await.unwrap();
    store.amend(&ns, &pause).await.unwrap();
    assert_eq!(synchronous(&store).await, 2, "amend");
    store.leave(&ns, &a()).await.unwrap();
    assert_eq!(synchronous(&store).await, 1, "leave");
}

/// A panic in one request is that request's error. What it had begun is rolled
/// back, and the next one is served.
#[tokio::test]
async fn a_panic_in_one_request_is_an_error_and_leaves_the_store_working() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("t.db"), SqliteOptions::new()).await.unwrap();
    let ns = Namespace::default();
    store.join(&ns, &join()).await.unwrap();
    let bad = |txn: &mut Txn<'_>| -> Outcome<()> {
        txn.leave(&a())?;
        panic!("on purpose");
    };
    let error = store.write("panicking", &ns, Durability::Crash, bad).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.may_have_applied(), "the outcome is unknown");
    let Claims::Answered(answers) = store.claim(&ns, &claim()).await.unwrap() else {
        panic!("the leave was not rolled back")
    };
    assert!(matches!(&answers[..], [Claimed::Won(_)]), "{answers:?}");
}

/// C12: the heartbeat of a member that holds ten thousand elections touches the
/// rows that the heartbeat of an idle one does.
#[tokio::test]
async fn a_heartbeat_costs_the_same_whatever_is_held() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("t.db"), SqliteOptions::new()).await.unwrap();
    let ns = Namespace::default();
    store.join(&ns, &join()).await.unwrap();
    let beat = Heartbeat::new(a(), TTL);
    let changes = |worker: &mut Worker| -> Result<u64> { Ok(worker.db().total_changes()) };
    let mut cost = Vec::new();
    for batch in 0..=10 {
        let before = store.inner.writer.ask(changes).await.unwrap();
        store.heartbeat(&ns, &beat).await.unwrap();
        cost.push(store.inner.writer.ask(changes).await.unwrap() - before);
        let bids = (0..1_000)
            .map(|n| Bid::new(ElectionName::new(format!("e-{batch}-{n}")).unwrap(), Nonce::new(1)));
        let claim = Claim { bids: bids.collect(), ..claim() };
        let Claims::Answered(answers) = store.claim(&ns, &claim).await.unwrap() else { panic!() };
        assert!(answers.iter().all(|answer| matches!(answer, Claimed::Won(_))));
    }
    assert_eq!(cost, [1; 11], "one row each");
    let seen = store.read(&ns, &Query::members()).await.unwrap();
    assert_eq!(seen.members[0].holds, 11_000);
}

/// A disk that is full: an error that says so and that nothing was written, and
/// a store that goes on as soon as there is space.
#[tokio::test]
async fn a_file_that_cannot_grow_is_an_error_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("t.db"), SqliteOptions::new()).await.unwrap();
    let ns = Namespace::default();
    store.join(&ns, &join()).await.unwrap();
    let limit = |pages: i64| {
        move |worker: &mut Worker| {
            // It answers with the limit in force: never below the present size.
            worker.db().pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
            Ok(())
        }
    };
    store.inner.writer.ask(limit(1)).await.unwrap();
    let big = |n: u64| {
        let bids = (0..1_000)
            .map(|i| Bid::new(ElectionName::new(format!("e-{i}")).unwrap(), Nonce::new(n)));
        Claim { bids: bids.collect(), ..claim() }
    };
    let error = store.claim(&ns, &big(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unwritable);
    assert!(!error.may_have_applied(), "{error}");
    assert!(error.to_string().contains("free some space"), "{error}");
    let seen = store.read(&ns, &Query::everything()).await.unwrap();
    assert!(seen.elections.is_empty(), "nothing was written");
    store.inner.writer.ask(limit(1_000_000)).await.unwrap();
    let Claims::Answered(answers) = store.claim(&ns, &big(2)).await.unwrap() else { panic!() };
    assert!(answers.iter().all(|answer| matches!(answer, Claimed::Won(_))));
}
