//! The fence, in transactions of the caller's own.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::words::*;
use common::{Place, admin, waits_for_a_lock};
use tenure_core::{Amend, Beat, HeldUp, Namespace, Query, Term};
use tenure_postgres::{Postgres, PostgresStore};
use tenure_store::{BootClock, Clock, ErrorKind, FenceError, FenceIn, FencedTerm, Store};
use tokio_postgres::{Client, IsolationLevel};

const LEVELS: [IsolationLevel; 3] =
    [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable];

async fn place() -> (Place, PostgresStore, Client) {
    let place = Place::new();
    let store = place.open().await;
    (place, store, admin().await)
}

async fn fence(
    tx: &mut tokio_postgres::Transaction<'_>,
    of: &PostgresStore,
    term: &Term,
) -> Fenced {
    match fence_in(of, tx, term).await {
        Ok(()) => Fenced::Holds,
        Err(FenceError::Superseded { newest, .. }) => Fenced::Over(newest.get()),
        Err(FenceError::Store(error)) if error.kind() == ErrorKind::Busy => Fenced::Again,
        Err(other) => panic!("{other}"),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Fenced {
    Holds,
    Over(u64),
    Again,
}

/// C40: the present term passes, a deposed one does not, at every isolation
/// level; nor does one that was given back.
#[tokio::test]
async fn the_newest_term_passes_and_an_older_one_does_not() {
    let (_place, store, mut client) = place().await;
    let older = leader(&store, "a", 1, "e").await;
    for level in LEVELS {
        let mut tx = client.build_transaction().isolation_level(level).start().await.unwrap();
        assert_eq!(fence(&mut tx, &store, &older).await, Fenced::Holds, "{level:?}");
        tx.commit().await.unwrap();
    }
    store.release(&ns(), &release(&older)).await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    assert_eq!(fence(&mut tx, &store, &older).await, Fenced::Over(older.number.get()));
    tx.rollback().await.unwrap();
    let newer = leader(&store, "b", 2, "e").await;
    for level in LEVELS {
        let mut tx = client.build_transaction().isolation_level(level).start().await.unwrap();
        let fenced = fence(&mut tx, &store, &older).await;
        assert_eq!(fenced, Fenced::Over(newer.number.get()), "{level:?}");
        tx.rollback().await.unwrap();
    }
}

/// C40: a snapshot from before the newer term does not help: the stricter levels
/// say so by a serialization failure, READ COMMITTED looks at the present.
#[tokio::test]
async fn an_old_snapshot_does_not_get_past_the_fence() {
    for level in LEVELS {
        let (_place, store, mut client) = place().await;
        let older = leader(&store, "a", 1, "e").await;
        let mut tx = client.build_transaction().isolation_level(level).start().await.unwrap();
        tx.batch_execute("SELECT 1 FROM pg_class LIMIT 1").await.unwrap();
        store.release(&ns(), &release(&older)).await.unwrap();
        leader(&store, "b", 2, "e").await;
        let fenced = fence(&mut tx, &store, &older).await;
        match level {
            IsolationLevel::ReadCommitted => assert_eq!(fenced, Fenced::Over(2)),
            _ => assert_eq!(fenced, Fenced::Again, "{level:?}"),
        }
        tx.rollback().await.unwrap();
    }
}

/// C40: a win that is about to be committed is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_fence_waits_for_a_win_in_progress_and_then_fails() {
    let (place, store, mut client) = place().await;
    let older = leader(&store, "a", 1, "e").await;
    store.release(&ns(), &release(&older)).await.unwrap();
    joined(&store, "b", 2).await;
    place
        .sql("UPDATE {s}.elections SET holder = 'a', life = won_by") // as if not given back
        .await;
    let mut other = admin().await;
    let winning = other.transaction().await.unwrap();
    let win = "UPDATE {s}.elections SET number = number + 1".replace("{s}", &place.schema);
    winning.batch_execute(&win).await.unwrap();
    let checking = tokio::spawn(async move {
        let mut tx = client.transaction().await.unwrap();
        fence(&mut tx, &store, &older).await
    });
    waits_for_a_lock(&admin().await, "fence").await;
    winning.commit().await.unwrap();
    assert_eq!(checking.await.unwrap(), Fenced::Over(2));
}

/// C42: a leader stuck in a fenced transaction delays its successor, for a
/// bounded time at each bid, and no other member or request.
#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_fenced_transaction_delays_the_successor_alone() {
    let place = Place::new();
    let wait = Duration::from_millis(100);
    let store = place.open_with(place.options().fence_wait(wait)).await;
    let a = joined_for(&store, "a", 1, TTL).await;
    let term = won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    let mut client = admin().await;
    let mut stuck = client.transaction().await.unwrap();
    assert_eq!(fence(&mut stuck, &store, &term).await, Fenced::Holds);

    // Everything else goes on: heartbeats, other elections, requests, the end.
    let b = joined(&store, "b", 2).await;
    let alive = store.heartbeat(&ns(), &beat(&a)).await.unwrap();
    assert!(matches!(alive, Beat::Alive { .. }), "{alive:?}");
    won(store.claim(&ns(), &claim(&b, "other", 1)).await.unwrap());
    let ask = Amend::StepDown {
        election: election("e"),
        number: None,
        to: None,
        reason: Default::default(),
        by: Default::default(),
    };
    let asked = store.amend(&ns(), &ask).await.unwrap();
    assert!(matches!(asked, tenure_core::Amended::Done { .. }), "{asked:?}");
    store.release(&ns(), &release(&term)).await.unwrap();

    let from = BootClock.now();
    let view = held(store.claim(&ns(), &claim(&b, "e", 2)).await.unwrap());
    assert!(view.holder.is_none() && view.number == term.number, "{view:?}");
    let took = BootClock.now().since(from);
    assert!(took >= wait && took < Duration::from_secs(2), "bounded: {took:?}");
    // Nothing new is fenced under the term that is over.
    let mut second = admin().await;
    let mut late = second.transaction().await.unwrap();
    assert_eq!(fence(&mut late, &store, &term).await, Fenced::Over(1));

    stuck.commit().await.unwrap();
    let next = won(store.claim(&ns(), &claim(&b, "e", 3)).await.unwrap());
    assert!(next.number > term.number);
}

/// P14: a vacancy that is held up by a fence says so, and by which process: in the answer
/// to the bid it holds up, and after a second to all that read.
#[tokio::test(flavor = "multi_thread")]
async fn a_vacancy_that_a_fence_holds_up_says_so() {
    let place = Place::new();
    let store = place.open_with(place.options().fence_wait(Duration::ZERO)).await;
    let term = leader(&store, "a", 1, "e").await;
    let b = joined(&store, "b", 2).await;
    let mut client = admin().await;
    let process: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let mut stuck = client.transaction().await.unwrap();
    assert_eq!(fence(&mut stuck, &store, &term).await, Fenced::Holds);
    let whole_second = async |store: &PostgresStore| {
        common::until("the transaction to be a second old", || async {
            view(store, "e").await.held_up.is_some()
        })
        .await;
    };
    assert_eq!(view(&store, "e").await.held_up, None, "it is led, and no bid waits");

    store.release(&ns(), &release(&term)).await.unwrap();
    let why = |process| Some(HeldUp::Transaction { process });
    whole_second(&store).await;
    let process = Some(process.cast_unsigned());
    assert_eq!(view(&store, "e").await.held_up, why(process));
    let lost = held(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    assert_eq!(lost.held_up, why(process));
    let look = Query { asker: Some(b.clone()), ..Query::elections([election("e")]) };
    let seen = store.read(&ns(), &look).await.unwrap();
    assert_eq!(seen.elections[0].held_up, why(process), "a candidate that looks");

    stuck.rollback().await.unwrap();
    assert_eq!(view(&store, "e").await.held_up, None);
    let term = won(store.claim(&ns(), &claim(&b, "e", 2)).await.unwrap());

    // Two at once cannot be named without a lock; the bid knows that there are some.
    let mut another = admin().await;
    let mut first = client.transaction().await.unwrap();
    let mut second = another.transaction().await.unwrap();
    assert_eq!(fence(&mut first, &store, &term).await, Fenced::Holds);
    assert_eq!(fence(&mut second, &store, &term).await, Fenced::Holds);
    store.release(&ns(), &release(&term)).await.unwrap();
    let lost = held(store.claim(&ns(), &claim(&b, "e", 3)).await.unwrap());
    assert_eq!(lost.held_up, why(None));
}

/// C42: a fence that is let go within the wait costs the successor nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_short_fence_is_waited_out() {
    let place = Place::new();
    let options = place.options().request_timeout(Duration::from_secs(10));
    let store = place.open_with(options.fence_wait(Duration::from_secs(9))).await;
    let term = leader(&store, "a", 1, "e").await;
    let b = joined(&store, "b", 2).await;
    let mut client = admin().await;
    let mut tx = client.transaction().await.unwrap();
    assert_eq!(fence(&mut tx, &store, &term).await, Fenced::Holds);
    store.release(&ns(), &release(&term)).await.unwrap();
    let claiming = {
        let store = store.clone();
        let b = b.clone();
        tokio::spawn(async move { store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap() })
    };
    // It has begun, and stands, but does not lead while the fence holds.
    let candidates = format!("SELECT count(*) FROM {}.candidates", place.schema);
    let looker = admin().await;
    common::until("the other stands", || async {
        looker.query_one(&candidates, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    assert!(view(&store, "e").await.holder.is_none());
    tx.commit().await.unwrap();
    assert_eq!(won(claiming.await.unwrap()).number.get(), term.number.get() + 1);
}

/// C41: a step-down asked inside a transaction is delivered when that commits,
/// and never if it does not.
#[tokio::test]
async fn a_step_down_in_a_transaction_is_delivered_at_commit() {
    let (place, store, mut client) = place().await;
    let term = leader(&store, "a", 1, "e").await;
    let ask =
        "SELECT {s}.ask_step_down('default', 'e', p_by => 'me')".replace("{s}", &place.schema);
    let tx = client.transaction().await.unwrap();
    tx.batch_execute(&ask).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(view(&store, "e").await.step_down, None);
    let tx = client.transaction().await.unwrap();
    tx.batch_execute(&ask).await.unwrap();
    assert_eq!(view(&store, "e").await.step_down, None);
    tx.commit().await.unwrap();
    let asked = view(&store, "e").await.step_down.expect("it was asked");
    assert_eq!((asked.number, asked.by.as_str()), (term.number, "me"));
    let alive = store.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
    assert!(matches!(alive, Beat::Alive { attention: 1, .. }), "{alive:?}");
}

/// The same fence in transactions of sqlx.
#[cfg(feature = "sqlx")]
#[tokio::test]
async fn sqlx_transactions_are_fenced_too() {
    use sqlx::{Connection, PgConnection};
    let (_place, store, _) = place().await;
    let older = leader(&store, "a", 1, "e").await;
    let mut connection = PgConnection::connect(&common::url()).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    fence_in(&store, &mut tx, &older).await.unwrap();
    tx.commit().await.unwrap();
    store.release(&ns(), &release(&older)).await.unwrap();
    let newer = leader(&store, "b", 2, "e").await;
    let mut tx = connection.begin().await.unwrap();
    let over = fence_in(&store, &mut tx, &older).await.unwrap_err();
    let FenceError::Superseded { newest, .. } = over else { panic!("{over}") };
    assert_eq!(newest, newer.number);
    tx.rollback().await.unwrap();
    // Another store, with a term of the same number and life.
    let beside = Place::new();
    let other = beside.open().await;
    let stranger = leader(&other, "b", 2, "e").await;
    let stranger = Term { number: newer.number, ..stranger };
    beside.sql(&format!("UPDATE {{s}}.elections SET number = {}", newer.number)).await;
    let mut tx = connection.begin().await.unwrap();
    fence_in(&other, &mut tx, &stranger).await.expect("its own schema is asked");
    refused_as_a_stranger(&mut tx, &store, &other, &beside, &newer).await;
    tx.rollback().await.unwrap();
    // A fence without a transaction would hold nothing.
    let loose = fence_in(&store, &mut connection, &newer).await;
    let Err(FenceError::Store(error)) = loose else { panic!("{loose:?}") };
    assert_eq!(error.kind(), ErrorKind::Invalid);
    sqlx::query("BEGIN").execute(&mut connection).await.unwrap();
    fence_in(&store, &mut connection, &newer).await.unwrap();
}

/// Fences a term of `store` under the identity of the schema beside it.
async fn refused_as_a_stranger<T: FenceIn<Postgres>>(
    tx: &mut T,
    store: &PostgresStore,
    beside: &PostgresStore,
    place: &Place,
    term: &Term,
) {
    let here = beside.capabilities().identity;
    let mut from = store.capabilities().identity;
    // The name of the schema is the same, as in another database.
    from.schema = Some(place.schema.clone());
    let asked = FencedTerm { store: &from, ns: &ns(), term };
    let refused = tx.fence_in(asked.into()).await.unwrap_err();
    let FenceError::Stranger { what, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*what, format!("term {} of election {}", term.number, term.election));
    let said = refused.to_string();
    assert!(said.contains(&from.id.unwrap().to_string()), "where it came from: {said}");
    assert!(said.contains(&here.id.unwrap().to_string()), "where this is: {said}");
    assert!(said.contains(&place.schema) && said.contains("roll back"), "{said}");
}

/// L1: a schema of the same name in another database, with a term of the same
/// namespace, election, number and life. The store's own number tells them apart, and
/// the error says both.
#[tokio::test]
async fn a_store_of_the_same_name_is_told_apart_by_its_number() {
    let (_place, store, mut client) = place().await;
    let term = leader(&store, "a", 1, "e").await;
    let beside = Place::new();
    let other = beside.open().await;
    let twin = leader(&other, "a", 1, "e").await;
    assert_eq!((&twin.number, &twin.member), (&term.number, &term.member));
    let mut tx = client.transaction().await.unwrap();
    refused_as_a_stranger(&mut tx, &store, &other, &beside, &term).await;
    tx.rollback().await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    assert_eq!(fence(&mut tx, &other, &twin).await, Fenced::Holds);
}

/// L1: a number that was given out a second time, by a store that forgot the first, is
/// of no use to the first one's holder: the fence compares the life too.
#[tokio::test]
async fn a_number_given_out_again_passes_only_for_its_own_life() {
    let (_place, store, mut client) = place().await;
    let term = leader(&store, "a", 1, "e").await;
    let forgotten = Term { member: member("b", 2), ..term.clone() };
    let mut tx = client.transaction().await.unwrap();
    assert_eq!(fence(&mut tx, &store, &forgotten).await, Fenced::Over(term.number.get()));
    tx.rollback().await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    assert_eq!(fence(&mut tx, &store, &term).await, Fenced::Holds);
}

/// L1: a database in which the schema is not there proves nothing.
#[tokio::test]
async fn a_database_without_the_schema_is_a_stranger() {
    let (_place, store, mut client) = place().await;
    let term = leader(&store, "a", 1, "e").await;
    let mut from = store.capabilities().identity;
    from.schema = Some("no such schema".into());
    let mut tx = client.transaction().await.unwrap();
    let asked = FencedTerm { store: &from, ns: &ns(), term: &term };
    let refused = tx.fence_in(asked.into()).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stranger { .. }), "{refused}");
    assert!(
        refused.to_string().contains("without Tenure's schema \"no such schema\""),
        "{refused}"
    );
}

/// L1: what other languages have of it: the number of the store, which they may pass to
/// the fence, and the fence of three arguments as it was.
#[tokio::test]
async fn sql_can_name_the_store_it_was_elected_in() {
    let (place, store, client) = place().await;
    let term = leader(&store, "a", 1, "e").await;
    let schema = &place.schema;
    let ask = async |arguments: &str| {
        let call = format!("SELECT {schema}.fence('default', 'e', {}{arguments})", term.number);
        client.batch_execute(&call).await.map_err(|error| error.code().unwrap().code().to_owned())
    };
    assert_eq!(ask("").await, Ok(()));
    assert_eq!(ask(&format!(", {schema}.store_id()")).await, Ok(()));
    assert_eq!(ask(", gen_random_uuid()").await, Err("TN002".into()));
    assert_eq!(ask(", p_life => gen_random_uuid()").await, Err("TN001".into()));
}

/// C40: a term is of one namespace, one election and one member. One life may be several
/// members, and what it holds elsewhere under the same number does not pass for it.
#[tokio::test]
async fn a_fence_is_of_one_namespace_one_election_and_one_member() {
    let (place, store, client) = place().await;
    let here = Namespace::new("here").unwrap();
    let there = Namespace::new("there").unwrap();
    let first = member("a", 7);
    let namesake = member("b", 7);
    let lead = async |ns: &Namespace, name: &str, nonce: u64| {
        won(store.claim(ns, &claim(&first, name, nonce)).await.unwrap())
    };
    for (ns, me) in [(&here, &first), (&there, &first), (&here, &namesake)] {
        store.join(ns, &join(me)).await.unwrap();
    }
    // Others of higher numbers, so that the newest of all is not taken for that of one.
    for ns in [&here, &there] {
        let term = lead(ns, "other", 1).await;
        store.release(ns, &release(&term)).await.unwrap();
        lead(ns, "other", 2).await;
    }
    lead(&here, "f", 1).await;
    lead(&there, "e", 1).await;
    let given_back = lead(&here, "e", 1).await;
    let ask = async |ns: &str, name: &str| {
        let call = format!("SELECT {}.fence('{ns}', '{name}', 1)", place.schema);
        let refused = client.batch_execute(&call).await.err()?;
        refused.as_db_error()?.detail().map(str::to_owned)
    };
    for (ns, name) in [("here", "e"), ("here", "f"), ("there", "e")] {
        assert_eq!(ask(ns, name).await, None, "{name} {ns} is held");
    }

    store.release(&here, &release(&given_back)).await.unwrap();
    assert_eq!(ask("here", "e").await, Some("1".into()), "it was given back");
    assert_eq!(ask("here", "f").await, None);
    assert_eq!(ask("there", "e").await, None);

    // The life goes on there, and here as another member: this member is over.
    store.leave(&here, &first).await.unwrap();
    assert_eq!(ask("here", "f").await, Some("1".into()), "its member has left");
    assert_eq!(ask("there", "e").await, None);
    // Nor does a new life of the same id take over what the old one held.
    store.join(&here, &join(&member("a", 8))).await.unwrap();
    assert_eq!(ask("here", "f").await, Some("1".into()), "it was another life's");
}

/// The newest term that a fence tells of is that of its election in its namespace, whatever
/// was given out beside it.
#[tokio::test]
async fn a_fence_tells_the_newest_term_of_its_own_election() {
    let (place, store, client) = place().await;
    let there = Namespace::new("a").unwrap();
    let a = joined(&store, "a", 1).await;
    store.join(&there, &join(&a)).await.unwrap();
    // First in the table and in its indexes, and never written again.
    won(store.claim(&there, &claim(&a, "e", 1)).await.unwrap());
    won(store.claim(&ns(), &claim(&a, "d", 1)).await.unwrap());
    for nonce in 1..=2 {
        let term = won(store.claim(&ns(), &claim(&a, "e", nonce)).await.unwrap());
        store.release(&ns(), &release(&term)).await.unwrap();
    }
    won(store.claim(&ns(), &claim(&a, "e", 3)).await.unwrap());
    won(store.claim(&ns(), &claim(&a, "f", 1)).await.unwrap());
    won(store.claim(&there, &claim(&a, "f", 1)).await.unwrap());
    let call = format!("SELECT {}.fence('{}', 'e', 1)", place.schema, ns());
    let refused = client.batch_execute(&call).await.unwrap_err();
    assert_eq!(refused.as_db_error().unwrap().detail(), Some("3"));
}
