//! The fence of a name, in transactions of the caller's own.

#![allow(clippy::unwrap_used)]

mod common;

use common::words::*;
use common::{Place, admin, url, waits_for_a_lock};
use tenure_core::{
    Bind, BindAnswer, BindOp, Binding, Bindings, MemberRef, Name, Nonce, Token, Value,
};
use tenure_postgres::{Postgres, PostgresStore};
use tenure_store::{ErrorKind, FenceError, FenceIn, FencedName, Store};
use tokio_postgres::IsolationLevel;

const LEVELS: [IsolationLevel; 3] =
    [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable];

async fn bind(store: &PostgresStore, member: &MemberRef, op: BindOp) -> BindAnswer {
    match store.bind(&ns(), &Bind::new(member.clone(), TTL, [op])).await.unwrap() {
        Bindings::Answered(mut answers) => answers.remove(0),
        other => panic!("{other:?}"),
    }
}

async fn take(store: &PostgresStore, member: &MemberRef, nonce: u64) -> Binding {
    let op = BindOp::take(Name::new("n").unwrap(), Nonce::new(nonce), Value::empty());
    match bind(store, member, op).await {
        BindAnswer::Bound(binding) => binding,
        other => panic!("{other:?}"),
    }
}

async fn give_back(store: &PostgresStore, member: &MemberRef, binding: &Binding, nonce: u64) {
    let op = BindOp::drop(binding.name.clone(), Nonce::new(nonce), binding.token);
    assert_eq!(bind(store, member, op).await, BindAnswer::Gone(None));
}

/// Fences a binding of this store.
async fn fence<T: FenceIn<Postgres>>(
    tx: &mut T,
    of: &PostgresStore,
    binding: &Binding,
) -> Result<(), FenceError> {
    let store = of.capabilities().identity;
    let ns = ns();
    let Binding { name, token, owner, .. } = binding;
    let owner = owner.as_ref().unwrap();
    tx.fence_in(FencedName { store: &store, ns: &ns, name, token: *token, owner }.into()).await
}

fn newest(fenced: Result<(), FenceError>) -> Option<Token> {
    match fenced {
        Err(FenceError::NameOver { newest, .. }) => newest,
        other => panic!("{other:?}"),
    }
}

/// C40: at every isolation level; a snapshot from before the newer binding does not help: the
/// stricter levels say so by a serialization failure, READ COMMITTED looks at the present. A
/// token that was given out twice, by a store that forgot, passes only for its own life.
#[tokio::test]
async fn an_old_snapshot_does_not_get_past_the_fence_of_a_name() {
    for level in LEVELS {
        let place = Place::new();
        let mut client = admin().await;
        let store = place.open().await;
        let a = joined(&store, "a", 1).await;
        let b = joined(&store, "b", 2).await;
        let mine = take(&store, &a, 1).await;
        let mut tx = client.build_transaction().isolation_level(level).start().await.unwrap();
        fence(&mut tx, &store, &mine).await.unwrap();
        let others = Binding { owner: Some(b.clone()), ..mine.clone() };
        assert_eq!(newest(fence(&mut tx, &store, &others).await), Some(mine.token));
        tx.rollback().await.unwrap();
        let mut tx = client.build_transaction().isolation_level(level).start().await.unwrap();
        tx.batch_execute("SELECT 1 FROM pg_class LIMIT 1").await.unwrap();
        give_back(&store, &a, &mine, 2).await;
        let theirs = take(&store, &b, 1).await;
        let fenced = fence(&mut tx, &store, &mine).await;
        match (level, fenced) {
            (IsolationLevel::ReadCommitted, fenced) => {
                assert_eq!(newest(fenced), Some(theirs.token));
            }
            (_, Err(FenceError::Store(error))) => assert_eq!(error.kind(), ErrorKind::Busy),
            (_, other) => panic!("{level:?}: {other:?}"),
        }
        tx.rollback().await.unwrap();
        let mut tx = client.build_transaction().isolation_level(level).start().await.unwrap();
        fence(&mut tx, &store, &theirs).await.unwrap();
    }
}

/// C40: a take that is about to be committed is waited for, also one that changes no column of
/// the key, as every take does.
#[tokio::test(flavor = "multi_thread")]
async fn the_fence_of_a_name_waits_for_a_take_in_progress_and_then_fails() {
    let place = Place::new();
    let mut client = admin().await;
    let mut other = admin().await;
    let store = place.open().await;
    let mine = take(&store, &joined(&store, "a", 1).await, 1).await;
    let taking = other.transaction().await.unwrap();
    let take = "UPDATE {s}.names SET token = token + 7".replace("{s}", &place.schema);
    taking.batch_execute(&take).await.unwrap();
    let token = mine.token;
    let checking = tokio::spawn(async move {
        let mut tx = client.transaction().await.unwrap();
        fence(&mut tx, &store, &mine).await
    });
    waits_for_a_lock(&admin().await, "fence_name").await;
    taking.commit().await.unwrap();
    assert_eq!(newest(checking.await.unwrap()), Some(Token::new(token.get() + 7)));
}

/// L1: the number of the store tells apart two of the same name, with the same binding in both.
#[tokio::test]
async fn a_name_of_another_store_is_a_stranger() {
    let place = Place::new();
    let beside = Place::new();
    let mut client = admin().await;
    let store = place.open().await;
    let other = beside.open().await;
    let mine = take(&store, &joined(&store, "a", 1).await, 1).await;
    let twin = take(&other, &joined(&other, "a", 1).await, 1).await;
    assert_eq!((mine.token, &mine.owner), (twin.token, &twin.owner));
    let mut from = store.capabilities().identity;
    from.schema = Some(beside.schema.clone());
    let asked = FencedName {
        store: &from,
        ns: &ns(),
        name: &mine.name,
        token: mine.token,
        owner: mine.owner.as_ref().unwrap(),
    };
    let mut tx = client.transaction().await.unwrap();
    let refused = tx.fence_in(asked.into()).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stranger { .. }), "{refused}");
    assert!(refused.to_string().contains(&from.id.unwrap().to_string()), "{refused}");
    tx.rollback().await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    fence(&mut tx, &other, &twin).await.unwrap();
}

/// The same fence in transactions of sqlx, and as other languages call it.
#[cfg(feature = "sqlx")]
#[tokio::test]
async fn names_are_fenced_in_transactions_of_sqlx_and_by_sql() {
    use sqlx::{Connection, PgConnection};
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let mine = take(&store, &a, 1).await;
    let mut connection = PgConnection::connect(&url()).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    fence(&mut tx, &store, &mine).await.unwrap();
    tx.commit().await.unwrap();
    let loose = fence(&mut connection, &store, &mine).await;
    let Err(FenceError::Store(error)) = loose else { panic!("{loose:?}") };
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let call = format!("SELECT {}.fence_name('default', 'n', {})", place.schema, mine.token);
    sqlx::query(&call).execute(&mut connection).await.unwrap();
    give_back(&store, &a, &mine, 2).await;
    let mut tx = connection.begin().await.unwrap();
    assert_eq!(newest(fence(&mut tx, &store, &mine).await), None);
    tx.rollback().await.unwrap();
    let over = sqlx::query(&call).execute(&mut connection).await.unwrap_err();
    let code = over.as_database_error().and_then(|e| e.code().map(|code| code.to_string()));
    assert_eq!(code.as_deref(), Some("TN001"));
}
