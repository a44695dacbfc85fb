//! The fence, in the application's own transactions (C40 to C42).

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::*;
use rusqlite::{Connection, TransactionBehavior};
use tenure_core::{
    Beat, Bind, BindOp, MemberRef, Name, Namespace, Nonce, Term, TermNumber, Token, Value,
    WhichNames,
};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{ErrorKind, FenceError, FenceIn, FencedName, FencedTerm, Store};

/// Fences a term that this store gave out.
fn fence(db: &Connection, store: &SqliteStore, term: &Term) -> Result<(), FenceError> {
    let identity = store.capabilities().identity;
    tenure_sqlite::fence(db, FencedTerm { store: &identity, ns: &ns(), term }.into())
}

/// A store, its first leader, and a table of the application's own.
async fn led(place: &Place) -> (SqliteStore, Term) {
    let options = SqliteOptions::new().busy_timeout(Duration::from_millis(100));
    let store = place.open_with(options).await;
    let a = member("a", 1);
    joins(&store, &a).await;
    let term = won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    let table = "CREATE TABLE counter (n INTEGER NOT NULL); INSERT INTO counter VALUES (0);";
    place.sql().execute_batch(table).unwrap();
    (store, term)
}

fn counter(db: &Connection) -> i64 {
    db.query_row("SELECT n FROM counter", [], |row| row.get(0)).unwrap()
}

const INCREMENT: &str = "UPDATE counter SET n = n + 1";

/// C40.
#[tokio::test]
async fn a_fenced_write_commits_while_its_term_is_the_newest() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let mut db = place.sql();
    for _ in 0..3 {
        let tx = db.transaction().unwrap();
        fence(&tx, &store, &term).unwrap();
        tx.execute(INCREMENT, []).unwrap();
        tx.commit().unwrap();
    }
    assert_eq!(counter(&db), 3);
}

/// C40, B15: whatever the deposed leader believes, and shown beside what
/// happens without the fence.
#[tokio::test]
async fn a_fenced_write_of_a_deposed_leader_is_refused_with_the_newer_term() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let a = member("a", 1);
    let b = member("b", 2);
    joins(&store, &b).await;
    store.release(&ns(), &give_back(&a, "e", term.number)).await.unwrap();
    let newer = won(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());

    let mut db = place.sql();
    let tx = db.transaction().unwrap();
    let error = fence(&tx, &store, &term).unwrap_err();
    let FenceError::Superseded { number, newest, .. } = &error else { panic!("{error}") };
    assert_eq!((*number, *newest), (term.number, newer.number));
    assert!(error.to_string().contains("the newest is 2"), "{error}");
    drop(tx);
    assert_eq!(counter(&db), 0);

    db.execute(INCREMENT, []).unwrap();
    assert_eq!(counter(&db), 1, "an unfenced write goes through: that is what the fence is for");
}

/// C40: from the fence to the commit no newer term can come to be, also when
/// the transaction began by only reading. C42: a member that has to wait for it waits
/// for a bounded time and is told why.
#[tokio::test]
async fn the_term_stands_still_until_the_fenced_transaction_ends() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let a = member("a", 1);
    let mut db = place.sql();
    let tx = db.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    assert_eq!(counter(&tx), 0);
    fence(&tx, &store, &term).unwrap();

    let error = store.claim(&ns(), &claim(&a, "e", 2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(!error.may_have_applied());
    assert!(error.to_string().contains("this very process holds the write lock"), "{error}");
    assert_eq!(view(&store, "e").await.number, term.number, "reading goes on");

    tx.execute(INCREMENT, []).unwrap();
    tx.commit().unwrap();
    let next = won(store.claim(&ns(), &claim(&a, "e", 2)).await.unwrap());
    assert_eq!(next.number, TermNumber::new(2));
}

/// A transaction that has read an older state cannot be fenced: nothing is
/// proven about the present.
#[tokio::test]
async fn a_transaction_that_looks_at_the_past_is_not_let_through() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let mut db = place.sql();
    let tx = db.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    assert_eq!(counter(&tx), 0);
    won(store.claim(&ns(), &claim(&member("a", 1), "e", 2)).await.unwrap());
    let error = fence(&tx, &store, &term).unwrap_err();
    assert!(matches!(error, FenceError::Store(_)), "{error}");
    assert!(error.to_string().contains("BEGIN IMMEDIATE"), "{error}");
}

#[tokio::test]
async fn a_term_that_the_file_does_not_know_is_refused() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let mut db = place.sql();
    let tx = db.transaction().unwrap();
    let other = Namespace::new("other").unwrap();
    let identity = store.capabilities().identity;
    let wrong = [
        (ns(), Term { number: TermNumber::new(9), ..term.clone() }),
        (ns(), Term { election: election("other"), ..term.clone() }),
        (ns(), Term { election: election("other"), number: TermNumber::NONE, ..term.clone() }),
        (other, term.clone()),
    ];
    for (ns, wrong) in wrong {
        let asked = FencedTerm { store: &identity, ns: &ns, term: &wrong };
        let error = tenure_sqlite::fence(&tx, asked.into()).unwrap_err();
        let FenceError::Store(error) = error else { panic!("{error}") };
        assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
    }
}

#[tokio::test]
async fn a_fence_without_a_transaction_is_refused() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let error = fence(&place.sql(), &store, &term).unwrap_err();
    let FenceError::Store(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

/// The application's database is another file, to which Tenure's is attached.
#[tokio::test]
async fn the_fence_works_from_an_attached_database() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let own = Place::new();
    let mut db = own.sql();
    db.execute_batch("CREATE TABLE mine (n INTEGER)").unwrap();
    let path = place.path();
    db.execute("ATTACH ?1 AS elections", [path.to_str().unwrap()]).unwrap();
    let tx = db.transaction().unwrap();
    fence(&tx, &store, &term).unwrap();
    let error = store.claim(&ns(), &claim(&member("a", 1), "e", 2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "the term stands still");
    tx.execute("INSERT INTO mine VALUES (1)", []).unwrap();
    tx.commit().unwrap();
    won(store.claim(&ns(), &claim(&member("a", 1), "e", 2)).await.unwrap());
    let tx = db.transaction().unwrap();
    fence(&tx, &store, &term).unwrap_err();
}

/// M1, M2: the clock is read after the lock is held. A heartbeat that had to
/// wait for another's transaction past its own ttl does not act on the time at
/// which it was sent.
#[tokio::test]
async fn a_heartbeat_that_waited_past_its_ttl_is_answered_ended() {
    let place = Place::new();
    let (clock, options) = manual();
    let store = place.open_with(options).await;
    let a = member("a", 1);
    joins(&store, &a).await;
    won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());

    let other = place.sql();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let beating = {
        let store = store.clone();
        let beat = beat(&a);
        tokio::spawn(async move { store.heartbeat(&ns(), &beat).await.unwrap() })
    };
    // Long enough for it to be waiting; the answer is the same if it is not.
    let_pass(Duration::from_millis(200), "it begins to wait for the lock").await;
    clock.advance(TTL);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(beating.await.unwrap(), Beat::Ended { superseded: false });
}

/// C40: as `Leadership::fence` calls it.
#[tokio::test]
async fn a_drivers_transaction_can_be_fenced_by_its_term() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let identity = store.capabilities().identity;
    let asked = FencedTerm { store: &identity, ns: &ns(), term: &term };
    let mut db = place.sql();
    let mut tx = db.transaction().unwrap();
    tx.fence_in(asked.into()).await.unwrap();
    tx.execute(INCREMENT, []).unwrap();
    tx.commit().unwrap();

    store.release(&ns(), &give_back(&member("a", 1), "e", term.number)).await.unwrap();
    let b = member("b", 2);
    joins(&store, &b).await;
    won(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    let mut tx = db.transaction().unwrap();
    let error = tx.fence_in(asked.into()).await.unwrap_err();
    assert!(matches!(error, FenceError::Superseded { .. }), "{error}");
}

/// L1: a term of another file is refused, although the number and the life are the
/// same; so is one of a store of another kind. The error says which store the term came
/// from, and which this is.
#[tokio::test]
async fn a_term_of_another_file_is_refused() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let other = Place::new();
    let (beside, twin) = led(&other).await;
    assert_eq!((&twin.number, &twin.member), (&term.number, &term.member));
    let mut db = place.sql();
    let tx = db.transaction().unwrap();
    let refused = fence(&tx, &beside, &twin).unwrap_err();
    assert!(matches!(refused, FenceError::Stranger { .. }), "{refused}");
    let said = refused.to_string();
    for store in [&store, &beside] {
        let identity = store.capabilities().identity;
        assert!(said.contains(&identity.id.unwrap().to_string()), "{said}");
        assert!(said.contains(&identity.place), "{said}");
    }
    let memory = tenure_store::MemoryStore::new().capabilities().identity;
    let asked = FencedTerm { store: &memory, ns: &ns(), term: &term };
    let refused = tenure_sqlite::fence(&tx, asked.into()).unwrap_err();
    assert!(matches!(refused, FenceError::Stranger { .. }), "{refused}");
    fence(&tx, &store, &term).expect("its own");
}

/// L1: where both the application's file and the attached one have elections, the file
/// that gave the term out is asked, and no other. Of two copies of it none is.
#[tokio::test]
async fn of_several_files_the_one_that_gave_the_term_out_is_asked() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let other = Place::new();
    let (beside, twin) = led(&other).await;
    store.release(&ns(), &give_back(&member("a", 1), "e", term.number)).await.unwrap();

    let mut db = place.sql();
    db.execute("ATTACH ?1 AS \"the other\"", [other.path().to_str().unwrap()]).unwrap();
    let tx = db.transaction().unwrap();
    fence(&tx, &beside, &twin).expect("the attached file holds this term");
    let over = fence(&tx, &store, &term).unwrap_err();
    assert!(matches!(over, FenceError::Superseded { .. }), "{over}");
    tx.rollback().unwrap();

    let copy = Place::new();
    db.execute("VACUUM INTO ?1", [copy.path().to_str().unwrap()]).unwrap();
    db.execute("ATTACH ?1 AS copy", [copy.path().to_str().unwrap()]).unwrap();
    let tx = db.transaction().unwrap();
    let error = fence(&tx, &store, &term).unwrap_err();
    let FenceError::Store(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

/// As on PostgreSQL: a term that was given back is over, also while there is no newer one.
#[tokio::test]
async fn a_term_that_was_given_back_is_refused() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    store.release(&ns(), &give_back(&member("a", 1), "e", term.number)).await.unwrap();
    let mut db = place.sql();
    let tx = db.transaction().unwrap();
    let error = fence(&tx, &store, &term).unwrap_err();
    assert!(error.to_string().contains("was given back"), "{error}");
}

/// M5: a term that ended with its holder's life is over, before it was written off.
#[tokio::test]
async fn a_term_of_an_ended_life_is_refused_by_the_fence() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    store.leave(&ns(), &term.member).await.unwrap();
    let mut db = place.sql();
    let tx = db.transaction().unwrap();
    fence(&tx, &store, &term).unwrap_err();
}

/// C40, B15: a term is void with the life it was given to, before it was written
/// off. Neither the next life of the same id nor the same life in another namespace stands
/// in for it.
#[tokio::test]
async fn a_fence_takes_no_other_life_for_the_holder() {
    let place = Place::new();
    let (store, term) = led(&place).await;
    let elsewhere = Namespace::new("elsewhere").unwrap();
    store.join(&elsewhere, &join(&member("a", 1))).await.unwrap();
    let mut db = place.sql();
    let fenced = |db: &mut Connection| {
        let tx = db.transaction().unwrap();
        fence(&tx, &store, &term)
    };
    fenced(&mut db).unwrap();
    store.leave(&ns(), &member("a", 1)).await.unwrap();
    let error = fenced(&mut db).unwrap_err();
    assert!(matches!(error, FenceError::Superseded { .. }), "by its twin: {error}");
    joins(&store, &member("a", 2)).await;
    let error = fenced(&mut db).unwrap_err();
    assert!(matches!(error, FenceError::Superseded { .. }), "by its next life: {error}");
}

/// C40, B15: the fence of a name goes by exactly its row, in its namespace, by the life that it
/// was given to, and by whether that life stands there.
#[tokio::test]
async fn the_fence_of_a_name_takes_no_other_binding_and_no_other_life_for_it() {
    let place = Place::new();
    let store = place.open().await;
    let here = ns();
    let there = Namespace::new("there").unwrap();
    let owner = member("a", 1);
    let mut bound = Vec::new();
    // Tokens are counted in each namespace, and a name has another one in each.
    for (space, names) in [(&here, ["n/1", "n/2"].as_slice()), (&there, &["n/0", "n/1", "n/2"])] {
        store.join(space, &join(&owner)).await.unwrap();
        for (nonce, name) in (1..).zip(names) {
            let name = Name::new(*name).unwrap();
            let take = BindOp::take(name, Nonce::new(nonce), Value::empty());
            store.bind(space, &Bind::new(owner.clone(), TTL, [take])).await.unwrap();
        }
        let all = store.names(space, &WhichNames::Prefix(String::new())).await.unwrap();
        bound.extend(all.bindings.into_iter().map(|b| (space.clone(), b.name, b.token)));
    }
    assert_ne!(bound[0].2, bound[3].2, "{bound:?}");
    let identity = store.capabilities().identity;
    let mut db = place.sql();
    let mut passes = |ns: &Namespace, name: &Name, token: Token, owner: &MemberRef| {
        let tx = db.transaction().unwrap();
        let fenced = FencedName { store: &identity, ns, name, token, owner };
        tenure_sqlite::fence(&tx, fenced.into()).is_ok()
    };
    for (space, name, token) in &bound {
        assert!(passes(space, name, *token, &owner), "{space} {name} {token}");
        assert!(!passes(space, name, *token, &member("a", 2)), "another life");
    }
    let (space, name, token) = bound[0].clone();
    let sql = place.sql();
    let set = |to: &str| sql.execute(to, []).unwrap();
    // Void with its owner's row, whatever stands beside it.
    set("DELETE FROM tenure_members WHERE ns = 'default'");
    assert!(!passes(&space, &name, token, &owner), "by its twin in another namespace");
    store.join(&space, &join(&member("a", 2))).await.unwrap();
    assert!(!passes(&space, &name, token, &owner), "by the next life of its id");
    store.join(&space, &join(&member("b", 1))).await.unwrap();
    assert!(!passes(&space, &name, token, &owner), "by the same life under another id");
}
