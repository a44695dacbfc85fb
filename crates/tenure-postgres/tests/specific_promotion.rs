//! A real copy of a real server, promoted without the last of what was written.

#![allow(clippy::unwrap_used)]

mod common;

use common::server::Server;
use common::words::*;
use common::{connect, until};
use std::time::Duration;

use tenure_core::{
    Beat, Bind, BindAnswer, BindOp, Binding, Bindings, Era, Heartbeat, Join, MemberRef, Name,
    Nonce, Query, Release, Value,
};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::Store;
use tokio_postgres::Client;

/// A server and its copy, and a session on each.
struct Pair {
    first: Server,
    second: Server,
    old: Client,
    new: Client,
}

impl Pair {
    async fn start() -> Self {
        let servers = || {
            let first = Server::start();
            let second = first.standby();
            (first, second)
        };
        let (first, second) = tokio::task::spawn_blocking(servers).await.unwrap();
        let old = connect(&first.url()).await;
        let new = connect(&second.url()).await;
        Self { first, second, old, new }
    }

    /// Both, the copy first: it is passed over for as long as it takes no writes.
    async fn open(&self) -> PostgresStore {
        let copy = self.second.port;
        let other = self.first.port;
        let url = format!("postgres://postgres@127.0.0.1:{copy},127.0.0.1:{other}/postgres");
        PostgresStore::open(PostgresOptions::from_url(&url).unwrap()).await.unwrap()
    }

    /// The copy has all that was written, and receives nothing more.
    async fn part(&self) {
        let written = "SELECT pg_current_wal_lsn()::text";
        let written: String = self.old.query_one(written, &[]).await.unwrap().get(0);
        let there = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn");
        until("the copy has it all", || async {
            self.new.query_one(&there, &[]).await.unwrap().get(0)
        })
        .await;
        self.new.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").await.unwrap();
        self.new.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        let followed = "SELECT count(*) = 0 FROM pg_stat_replication";
        until("no copy follows", || async {
            self.old.query_one(followed, &[]).await.unwrap().get(0)
        })
        .await;
    }

    /// The server is gone, and the copy takes its place.
    async fn promote(&mut self) {
        self.first.kill();
        let promoted = self.new.query_one("SELECT pg_promote()", &[]).await.unwrap();
        assert!(promoted.get::<_, bool>(0), "it is promoted");
    }
}

/// Waits until the store has found the server that takes writes now.
async fn found(store: &PostgresStore) {
    until("the store has found the copy", || async {
        store.read(&ns(), &Query::elections([election("e")])).await.is_ok()
    })
    .await;
}

/// B27: the copy has forgotten two terms. The next leader that it elects has a number
/// above theirs, and a store that knows both servers finds the one that takes writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_copy_gives_out_no_number_twice() {
    let mut pair = Pair::start().await;
    let store = pair.open().await;
    let first = leader(&store, "a", 1, "e").await;
    pair.part().await;
    for nonce in [2, 3] {
        won(store.claim(&ns(), &claim(&first.member, "e", nonce)).await.unwrap());
    }
    assert_eq!(view(&store, "e").await.number.get(), 3);

    pair.promote().await;
    found(&store).await;
    assert_eq!(view(&store, "e").await.number, first.number, "it has forgotten them");
    let next = won(store.claim(&ns(), &claim(&first.member, "e", 4)).await.unwrap());
    assert!(next.number.get() > first.number.get() + Era::JUMP, "{next:?}");
    let after = won(store.claim(&ns(), &claim(&first.member, "e", 5)).await.unwrap());
    assert_eq!(after.number, next.number.next(), "it jumps once");
}

/// B27: so has an heir that is handed a term there.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_copy_hands_over_above_what_it_forgot() {
    let mut pair = Pair::start().await;
    let store = pair.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let heir = member("b", 2);
    let taking = Join { inherits: true, ..join(&heir) };
    store.join(&ns(), &taking).await.unwrap();
    held(store.claim(&ns(), &claim(&heir, "e", 1)).await.unwrap());
    pair.part().await;
    let given = Release { confirm_within: TTL, ..release(&term) };
    store.release(&ns(), &given).await.unwrap();
    assert_eq!(view(&store, "e").await.number, term.number.next());

    pair.promote().await;
    found(&store).await;
    store.release(&ns(), &given).await.unwrap();
    let seen = view(&store, "e").await;
    assert!(seen.number.get() > term.number.get() + Era::JUMP, "{seen:?}");
    assert_eq!(seen.holder.unwrap().member, heir);
}

/// Longer than it takes to promote a copy.
const LONG: Duration = Duration::from_secs(120);

/// Takes the name "n", by the member's first attempt.
async fn take(store: &dyn Store, member: &MemberRef) -> Binding {
    let op = BindOp::take(Name::new("n").unwrap(), Nonce::new(1), Value::empty());
    let bound = store.bind(&ns(), &Bind::new(member.clone(), LONG, [op])).await.unwrap();
    match bound {
        Bindings::Answered(mut answers) => match answers.remove(0) {
            BindAnswer::Bound(binding) => binding,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

async fn attention(store: &dyn Store, member: &MemberRef) -> u64 {
    match store.heartbeat(&ns(), &Heartbeat::new(member.clone(), LONG)).await.unwrap() {
        Beat::Alive { attention, .. } => attention,
        ended => panic!("{ended:?}"),
    }
}

/// U6: the copy has forgotten whose a name was, and binds it to another. The owner before lives
/// on; its next heartbeat tells it of the era, also where that is the shortest statement.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_copy_tells_the_owner_of_a_name_that_it_forgot() {
    let mut pair = Pair::start().await;
    let store = pair.open().await;
    let a = joined_for(&store, "a", 1, LONG).await;
    let b = joined_for(&store, "b", 2, LONG).await;
    let before = attention(&store, &a).await;
    pair.part().await;
    let first = take(&store, &a).await;

    pair.promote().await;
    found(&store).await;
    for _ in 0..3 {
        attention(&store, &a).await;
    }
    let second = take(&store, &b).await;
    assert!(second.token.get() > first.token.get() + Era::JUMP, "{first:?}, {second:?}");
    let after = attention(&store, &a).await;
    assert!(Era::has_begun(before, after), "{before}, {after}");
    assert_eq!(attention(&store, &a).await, after, "it is told once");
}
