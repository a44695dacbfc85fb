//! Real faults: sessions and servers that end, locks, a server that turns
//! read-only, and a heartbeat that races with its end.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::server::Server;
use common::words::*;
use common::{Place, admin, connect, until, waits_for_a_lock};
use tenure_core::{Beat, Claimed, Claims, Era, Hint, Priority, Query};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{ErrorKind, Followed, Store};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(PostgresOptions::from_url(url).unwrap()).await.unwrap()
}

/// M2: a heartbeat that holds the row when its member is to be ended comes
/// first, and the member lives.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_in_flight_is_waited_for_and_saves_its_member() {
    let place = Place::new();
    let patient = place.options().request_timeout(LONG).fence_wait(LONG / 2);
    let store = place.open_with(patient).await;
    let short = Duration::from_millis(300);
    let a = joined_for(&store, "a", 1, short).await;
    let mut bid = claim(&a, "e", 1);
    bid.ttl = short;
    let term = won(store.claim(&ns(), &bid).await.unwrap());
    let b = joined(&store, "b", 2).await;
    // In time, but not committed yet when the ttl has run out for all others.
    let mut slow = admin().await;
    let beating = slow.transaction().await.unwrap();
    let life = format!("{:032x}", 1);
    let call = format!(
        "SELECT outcome FROM {}.heartbeat('default', 'a', '{life}', 60000000)",
        place.schema
    );
    let row = beating.query_one(&call, &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "alive");
    until("the others see it expired", || async { view(&store, "e").await.holder.is_none() }).await;
    let claiming = {
        let store = store.clone();
        let b = b.clone();
        tokio::spawn(async move { store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap() })
    };
    // It has tried, and tries again for as long as the row is another's.
    let query = Query { candidates: true, ..Query::elections([election("e")]) };
    until("the claim was made", || async {
        let seen = store.read(&ns(), &query).await.unwrap();
        seen.elections[0].candidates.iter().any(|c| c.member == b)
    })
    .await;
    beating.commit().await.unwrap();
    let view = held(claiming.await.unwrap());
    assert_eq!(view.holder.map(|h| h.member), Some(a));
    assert_eq!(view.number, term.number);
}

/// M1, M2: a heartbeat that comes second finds its member ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_that_waits_for_its_members_end_is_answered_ended() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    // From the second on it is the bare statement.
    store.heartbeat(&ns(), &beat(&a)).await.unwrap();
    let mut other = admin().await;
    let ending = other.transaction().await.unwrap();
    let evict = format!("SELECT {}.evict('default', 'a', true)", place.schema);
    ending.batch_execute(&evict).await.unwrap();
    let beating = {
        let store = store.clone();
        let a = a.clone();
        tokio::spawn(async move { store.heartbeat(&ns(), &beat(&a)).await.unwrap() })
    };
    waits_for_a_lock(&admin().await, "UPDATE").await;
    ending.commit().await.unwrap();
    assert_eq!(beating.await.unwrap(), Beat::Ended { superseded: false });
}

/// E2, H21: the session is ended in the middle of a claim. The error says that
/// it may have been applied, and the retry gets one term, not two.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_backend_is_terminated_is_in_doubt_and_repeated() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let mut blocker = admin().await;
    let blocking = blocker.transaction().await.unwrap();
    let ask = format!("SELECT {}.ask_step_down('default', 'e')", place.schema);
    blocking.batch_execute(&ask).await.unwrap();
    let claiming = {
        let store = store.clone();
        let a = a.clone();
        tokio::spawn(async move { store.claim(&ns(), &claim(&a, "e", 1)).await })
    };
    let killer = admin().await;
    waits_for_a_lock(&killer, &format!("{}\".claim", place.schema)).await;
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'";
    killer.execute(kill, &[&format!("{}\".claim", place.schema)]).await.unwrap();
    let error = claiming.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.may_have_applied(), "{error}");
    blocking.commit().await.unwrap();
    let term = won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    assert_eq!(term.number.get(), 1);
    assert_eq!(won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap()), term);
}

/// B11, C42: a client that holds the namespace too long makes the others' requests
/// fail in time and in words; and heartbeats do not wait for it (B10).
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_held_fails_in_time_and_delays_no_heartbeat() {
    let place = Place::new();
    let store = place.open_with(place.options().request_timeout(Duration::from_secs(4))).await;
    let a = joined(&store, "a", 1).await;
    let mut blocker = admin().await;
    let blocking = blocker.transaction().await.unwrap();
    let ask = format!("SELECT {}.ask_step_down('default', 'e')", place.schema);
    blocking.batch_execute(&ask).await.unwrap();
    let claiming = {
        let store = store.clone();
        let a = a.clone();
        tokio::spawn(async move { store.claim(&ns(), &claim(&a, "e", 1)).await })
    };
    waits_for_a_lock(&admin().await, &format!("{}\".claim", place.schema)).await;
    let alive = store.heartbeat(&ns(), &beat(&a)).await.unwrap();
    assert!(matches!(alive, Beat::Alive { .. }), "{alive:?}");
    assert!(!claiming.is_finished(), "the heartbeat overtook the claim");
    let error = claiming.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(!error.may_have_applied(), "{error}");
    assert!(error.to_string().contains("idle in transaction"), "{error}");
}

/// C42: while another transaction holds the namespace, a bid that could change nothing is
/// answered at once; one that could waits: a new candidacy, another priority,
/// a holder that is dead.
#[tokio::test(flavor = "multi_thread")]
async fn a_bid_that_can_change_nothing_does_not_wait() {
    let place = Place::new();
    let store = place.open().await;
    let short = Duration::from_millis(300);
    let a = joined(&store, "a", 1).await;
    let term = won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    let b = joined(&store, "b", 2).await;
    held(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    let dying = joined_for(&store, "dying", 3, short).await;
    let mut brief = claim(&dying, "left", 1);
    brief.ttl = short;
    won(store.claim(&ns(), &brief).await.unwrap());
    held(store.claim(&ns(), &claim(&b, "left", 1)).await.unwrap());
    until("it is dead", || async { view(&store, "left").await.holder.is_none() }).await;

    let mut blocker = admin().await;
    let mut nonce = 1;
    for (name, priority, waits) in [
        ("e", Priority::default(), false),
        ("new", Priority::default(), true),
        ("e", Priority::new(7), true),
        ("left", Priority::default(), true),
    ] {
        let blocking = blocker.transaction().await.unwrap();
        let ask = format!("SELECT {}.ask_step_down('default', 'nothing')", place.schema);
        blocking.batch_execute(&ask).await.unwrap();
        nonce += 1;
        let mut bid = claim(&b, name, nonce);
        bid.bids[0].priority = priority;
        let claiming = {
            let store = store.clone();
            tokio::spawn(async move { store.claim(&ns(), &bid).await.unwrap() })
        };
        if waits {
            waits_for_a_lock(&admin().await, &format!("{}\".claim", place.schema)).await;
            blocking.commit().await.unwrap();
            claiming.await.unwrap();
        } else {
            let seen = held(claiming.await.unwrap());
            assert_eq!(seen.holder.map(|h| h.member), Some(term.member.clone()));
            blocking.commit().await.unwrap();
        }
    }
    let winners = ["e", "new", "left"].map(|name| view(&store, name));
    for (winner, who) in winners.into_iter().zip([&a, &b, &b]) {
        assert_eq!(winner.await.holder.map(|h| h.member).as_ref(), Some(who));
    }
}

/// C40: a claim in a transaction whose snapshot is older than another's
/// win fails, and elects no member: neither for what was new, nor for what was
/// vacant, nor from a member that has beaten since.
#[tokio::test]
async fn a_claim_under_an_old_snapshot_fails_and_elects_no_member() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let b = joined(&store, "b", 2).await;
    let given = won(store.claim(&ns(), &claim(&a, "vacant", 1)).await.unwrap());
    store.release(&ns(), &release(&given)).await.unwrap();
    let c = joined(&store, "c", 3).await;
    won(store.claim(&ns(), &claim(&c, "expired", 1)).await.unwrap());
    let life = format!("{:032x}", 1);
    let mut client = admin().await;
    for (level, name) in [
        ("REPEATABLE READ", "new"),
        ("SERIALIZABLE", "newer"),
        ("REPEATABLE READ", "vacant"),
        ("REPEATABLE READ", "expired"),
    ] {
        // As if it were late now, and in time once the transaction has begun.
        let expires = async |when: &str| {
            let set = format!("UPDATE {{s}}.members SET expires_at = now() {when} WHERE id = 'c'");
            place.sql(&set).await;
        };
        expires("- interval '1 s'").await;
        let old = client.transaction().await.unwrap();
        old.batch_execute(&format!("SET TRANSACTION ISOLATION LEVEL {level}")).await.unwrap();
        old.query_one(&format!("SELECT {}.version()", place.schema), &[]).await.unwrap();
        expires("+ interval '60 s'").await;
        if name != "expired" {
            won(store.claim(&ns(), &claim(&b, name, 1)).await.unwrap());
        }
        let bid = format!(
            "SELECT outcome FROM {}.claim('default', 'a', '{life}', 60000000, ARRAY['{name}'], \
             ARRAY[100], ARRAY[9])",
            place.schema
        );
        match old.query(&bid, &[]).await {
            Ok(rows) => assert_eq!(rows[0].get::<_, String>(0), "held", "{level}, {name}"),
            Err(error) => {
                let code = error.code().map(|code| code.code().to_owned());
                let codes = ["40001", "23505"];
                assert!(codes.contains(&code.as_deref().unwrap_or("")), "{name}: {error:?}");
            }
        }
        // Deliberately: what it did must not stand even so.
        drop(old.commit().await);
        let holder = if name == "expired" { &c } else { &b };
        let seen = view(&store, name).await;
        assert_eq!(seen.holder.as_ref().map(|h| &h.member), Some(holder), "{level}, {name}");
    }
}

/// The database was promoted or restored: numbers jump, once, and the present
/// holder keeps its term.
#[tokio::test]
async fn a_changed_timeline_makes_the_numbers_jump() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let first = won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    let kept = won(store.claim(&ns(), &claim(&a, "kept", 1)).await.unwrap());
    assert_eq!(first.number.get(), 1);
    place.sql(PROMOTED).await;
    let jumped = won(store.claim(&ns(), &claim(&a, "e", 2)).await.unwrap());
    assert!(jumped.number.get() >= 2 + Era::JUMP, "{jumped:?}");
    assert_eq!(view(&store, "kept").await.number, kept.number);
    let next = won(store.claim(&ns(), &claim(&a, "e", 3)).await.unwrap());
    assert_eq!(next.number, jumped.number.next());
    // An election that was forgotten altogether begins above what it was.
    let new = won(store.claim(&ns(), &claim(&a, "new", 1)).await.unwrap());
    assert!(new.number.get() > Era::JUMP, "{new:?}");
    // A copy that missed two promotions jumps past both; another cluster, another
    // database and another table are restored copies. The jump needs no clock.
    let mut last = next;
    for (nonce, jump, found) in [
        (4, 2, "first_timeline = first_timeline - 3, timeline = timeline - 3"),
        (5, 1, "cluster = 'elsewhere'"),
        (6, 1, "database = 1"),
        (7, 1, "relation = 1"),
    ] {
        place.sql("UPDATE {s}.settings SET floor = 0").await;
        place.sql(&format!("UPDATE {{s}}.settings SET {found}, file = ''")).await;
        place.sql("UPDATE {s}.elections SET number = 5000000000000000 WHERE name = 'e'").await;
        last = won(store.claim(&ns(), &claim(&a, "e", nonce)).await.unwrap());
        assert_eq!(last.number.get(), 5_000_000_000_000_001 + jump * Era::JUMP, "{found}");
    }
    // A table that was rewritten is the same.
    place.sql("VACUUM FULL {s}.settings").await;
    let same = won(store.claim(&ns(), &claim(&a, "e", 8)).await.unwrap());
    assert_eq!(same.number, last.number.next());
}

/// H18, H13, H15, C23: the server is killed with -9 and started again: terms
/// survive, requests fail meanwhile and work afterwards, and who follows hears
/// that there was a gap.
#[tokio::test(flavor = "multi_thread")]
async fn terms_survive_a_killed_server_and_sessions_are_made_again() {
    let mut server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let store = open(&server.url()).await;
    let term = leader(&store, "a", 1, "e").await;
    let mut hints = store.follow(&ns()).await.unwrap();
    assert_eq!(hints.next().await.unwrap(), Followed::Hint(Hint::Anything));
    server.kill();
    let error = store.heartbeat(&ns(), &beat(&term.member)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    let server = tokio::task::spawn_blocking(move || {
        server.up();
        server
    });
    let server = server.await.unwrap();
    until("heartbeats work again", || async {
        store.heartbeat(&ns(), &beat(&term.member)).await.is_ok()
    })
    .await;
    let seen = view(&store, "e").await;
    assert_eq!(seen.number, term.number);
    assert_eq!(seen.holder.map(|h| h.member), Some(term.member.clone()));
    let heard = tokio::time::timeout(Duration::from_secs(10), hints.next()).await;
    assert_eq!(heard.expect("a hint").unwrap(), Followed::Hint(Hint::Anything));
    store.release(&ns(), &release(&term)).await.unwrap();
    let next = won(store.claim(&ns(), &claim(&term.member, "e", 2)).await.unwrap());
    assert!(next.number > term.number, "numbers never go back");
    drop(server);
}

/// H19: a server that turns read-only is recognised and left, and found again
/// when it takes writes, without a restart of the program. Likewise when all
/// its connection slots are taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_or_crowded_server_is_ridden_out() {
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let store = open(&server.url()).await;
    let a = joined(&store, "a", 1).await;
    let root = connect(&server.url()).await;
    let switch = async |on: &str| {
        let alter = format!("ALTER SYSTEM SET default_transaction_read_only = {on}");
        root.batch_execute("SET default_transaction_read_only = off").await.unwrap();
        root.batch_execute(&alter).await.unwrap();
        root.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    };
    switch("on").await;
    until("writes are refused as such", || async {
        let refused = store.claim(&ns(), &claim(&a, "e", 1)).await;
        refused.is_err_and(|e| e.kind() == ErrorKind::Unwritable && !e.may_have_applied())
    })
    .await;
    switch("off").await;
    until("writes work again", || async { store.claim(&ns(), &claim(&a, "e", 1)).await.is_ok() })
        .await;

    // As a role without the superuser's reserve.
    root.batch_execute("CREATE ROLE app LOGIN; SELECT tenure.grant_to('app')").await.unwrap();
    let its_url = server.url().replace("postgres@", "app@");
    let store = open(&its_url).await;
    let mut crowd = Vec::new();
    while let Ok((client, connection)) =
        tokio_postgres::connect(&its_url, tokio_postgres::NoTls).await
    {
        tokio::spawn(async move { drop(connection.await) });
        crowd.push(client);
    }
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE application_name = 'tenure' AND usename = 'app'";
    // Its slots are taken by the crowd before it comes back.
    root.batch_execute(kill).await.unwrap();
    while let Ok((client, connection)) =
        tokio_postgres::connect(&its_url, tokio_postgres::NoTls).await
    {
        tokio::spawn(async move { drop(connection.await) });
        crowd.push(client);
    }
    drop(crowd);
    until("it is back", || async { store.heartbeat(&ns(), &beat(&a)).await.is_ok() }).await;
}

/// H15: a password that is changed under way is denied in words, repeated,
/// and accepted once it is right; it is never repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_change_is_ridden_out() {
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let root = connect(&server.url()).await;
    drop(open(&server.url()).await);
    server.ask_for_passwords_of("app");
    let role = "CREATE ROLE app LOGIN PASSWORD 'hunter2'; SELECT tenure.grant_to('app'); \
                SELECT pg_reload_conf()";
    root.batch_execute(role).await.unwrap();
    let url = server.url().replace("postgres@", "app:hunter2@");
    let options = PostgresOptions::from_url(&url).unwrap();
    let store = PostgresStore::open(options).await.unwrap();
    let a = joined(&store, "a", 1).await;
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";
    root.batch_execute("ALTER ROLE app PASSWORD 'other'").await.unwrap();
    root.batch_execute(kill).await.unwrap();
    until("it is denied", || async {
        let beaten = store.heartbeat(&ns(), &beat(&a)).await;
        beaten.is_err_and(|e| {
            assert!(!format!("{e} {e:?}").contains("hunter2"), "{e:?}");
            e.kind() == ErrorKind::Denied
        })
    })
    .await;
    root.batch_execute("ALTER ROLE app PASSWORD 'hunter2'").await.unwrap();
    until("it is let in", || async { store.heartbeat(&ns(), &beat(&a)).await.is_ok() }).await;
}

/// Bad input: each error names the thing and the remedy, and no secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_host_or_database_is_told_in_words_without_the_password() {
    for (url, kind) in [
        ("postgres://u:hunter2@127.0.0.1:1/d", ErrorKind::Unreachable),
        ("postgres://u:hunter2@no-such-host.invalid/d", ErrorKind::Unreachable),
    ] {
        let options = PostgresOptions::from_url(url).unwrap();
        let error = PostgresStore::open(options).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        assert!(!error.may_have_applied());
    }
    let url = common::url();
    let url = format!("{}/no_such_database", url.strip_suffix("/postgres").unwrap());
    let error = PostgresStore::open(PostgresOptions::from_url(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("create the database"), "{error}");
}

/// Several hosts: one that is down is passed over.
#[tokio::test]
async fn a_host_that_is_down_is_passed_over() {
    let place = Place::new();
    let live = common::url();
    let at = live.split_once('@').unwrap().1;
    let url = format!("postgres://postgres@127.0.0.1:1,{at}");
    let options = PostgresOptions::from_url(&url).unwrap().schema(&place.schema);
    let store = PostgresStore::open(options).await.unwrap();
    let term = leader(&store, "a", 1, "e").await;
    assert_eq!(term.number.get(), 1);
}

/// A claim that names one election twice bids twice, in order.
#[tokio::test]
async fn an_election_named_twice_is_bid_for_twice() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let mut twice = claim(&a, "e", 1);
    twice.bids.push(claim(&a, "e", 2).bids.remove(0));
    let Claims::Answered(answers) = store.claim(&ns(), &twice).await.unwrap() else { panic!() };
    // The second gave up what the first won: no caller is told of a term that is over.
    let [Claimed::Held(first), Claimed::Won(second)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((first.number.get(), second.number.get()), (2, 2));
    let seen = view(&store, "e").await;
    assert_eq!(seen.number.get(), 2);
    let beat = store.heartbeat(&ns(), &beat(&a)).await.unwrap();
    assert!(matches!(beat, Beat::Alive { holds: Some(1), .. }), "{beat:?}");
}
