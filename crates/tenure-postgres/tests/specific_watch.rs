//! Learning of changes: notifications, what a heartbeat costs, and a pooler.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::server::{Pooler, Server};
use common::words::*;
use common::{Place, admin, connect, until};
use tenure_core::{Beat, Entry, Happening, Hint, Namespace, Query, Release, Seq};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{Followed, Following, Page, Store, Watch};

async fn hint(following: &mut Box<dyn Following>) -> Hint {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), following.next()).await;
        if let Followed::Hint(hint) = next.expect("something is heard").unwrap() {
            return hint;
        }
    }
}

/// A release says what became vacant, and for whom it is kept, without a look.
#[tokio::test]
async fn a_notification_carries_the_hint() {
    let place = Place::new();
    let store = place.open().await;
    let other = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let mut hints = other.follow(&ns()).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Anything);
    store.release(&ns(), &release(&term)).await.unwrap();
    let vacant = Hint::Vacant { election: election("e"), heir: None };
    assert_eq!(hint(&mut hints).await, vacant);
    store.leave(&ns(), &term.member).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Gone(term.member.incarnation));
}

/// What becomes vacant at once is hinted at one by one, and the heir that it is kept for
/// is told to look for each of them by its heartbeat too.
#[tokio::test]
async fn each_of_several_vacancies_is_hinted_at() {
    let place = Place::new();
    let store = place.open().await;
    let other = place.open().await;
    let a = joined(&store, "a", 1).await;
    let b = joined(&other, "b", 2).await;
    let mut given = None;
    for name in ["e", "f"] {
        let term = won(store.claim(&ns(), &claim(&a, name, 1)).await.unwrap());
        held(other.claim(&ns(), &claim(&b, name, 1)).await.unwrap());
        let given: &mut Release = given.get_or_insert(Release { items: vec![], ..release(&term) });
        given.items.extend(release(&term).items);
        given.heir_grace = Duration::from_secs(20);
    }
    let attention = async || match other.heartbeat(&ns(), &beat(&b)).await.unwrap() {
        Beat::Alive { attention, .. } => attention,
        ended => panic!("{ended:?}"),
    };
    let before = attention().await;
    let mut hints = other.follow(&ns()).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Anything);
    store.release(&ns(), &given.unwrap()).await.unwrap();
    for name in ["e", "f"] {
        let heir = Some(b.id.clone());
        assert_eq!(hint(&mut hints).await, Hint::Vacant { election: election(name), heir });
    }
    assert_eq!(attention().await, before + 2);
}

/// More than a notification may hold is not told one by one.
#[tokio::test]
async fn a_notification_that_would_be_too_long_says_to_look() {
    let place = Place::new();
    let store = place.open().await;
    let other = place.open().await;
    let a = joined(&store, "a", 1).await;
    for (count, told) in [(8, false), (40, true)] {
        let mut all = claim(&a, "x", 1);
        let name = |n| format!("{count}-{n:0>196}");
        all.bids = (0..count).flat_map(|n| claim(&a, &name(n), 1).bids).collect();
        let mut hints = other.follow(&ns()).await.unwrap();
        assert_eq!(hint(&mut hints).await, Hint::Anything);
        store.claim(&ns(), &all).await.unwrap();
        assert_eq!(hint(&mut hints).await == Hint::Anything, told, "{count}");
    }
}

/// H12, H13: a listening session that is ended is made again, and that is a hint.
#[tokio::test]
async fn a_reconnect_is_a_hint_and_nothing_is_missed() {
    let place = Place::new();
    let store = place.open().await;
    let other = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let mut hints = other.follow(&ns()).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Anything);
    place.terminate().await;
    until("it works again", || async { store.release(&ns(), &release(&term)).await.is_ok() }).await;
    assert_eq!(hint(&mut hints).await, Hint::Anything);
    let released = |e: &Entry| matches!(e.what, Happening::Released { .. });
    until("the release is in the journal", || async {
        let page = other.journal(&ns(), Seq::new(3)).await;
        matches!(page, Ok(Page::Entries(told)) if told.iter().any(released))
    })
    .await;
}

/// H13: while notifications cannot arrive, because the session that listens is gone and
/// cannot be made again, heartbeats tell where the journal stands.
#[tokio::test]
async fn without_a_session_that_listens_heartbeats_tell_of_news() {
    let place = Place::new();
    let owner = place.open().await;
    let role = format!("r_{}", place.schema);
    place
        .sql(&format!(
            "CREATE ROLE {role} LOGIN; SELECT {{s}}.grant_to('{role}'); \
             GRANT SELECT, UPDATE ON {{s}}.members TO {role}"
        ))
        .await;
    let url = common::url().replace("postgres@", &format!("{role}@"));
    let options = PostgresOptions::from_url(&url).unwrap().schema(&place.schema);
    let store = PostgresStore::open(options).await.unwrap();
    let a = joined(&store, "a", 1).await;
    let told = async || match store.heartbeat(&ns(), &beat(&a)).await.unwrap() {
        Beat::Alive { seq, .. } => seq,
        ended => panic!("{ended:?}"),
    };
    assert_eq!(told().await, Seq::new(1), "the first asks for everything");
    assert_eq!(told().await, Seq::START, "notifications arrive: nothing to add");
    // The session that beats stays, and there is no room for another.
    place.sql(&format!("ALTER ROLE {role} CONNECTION LIMIT 1")).await;
    let listening = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE usename = '{role}' AND query NOT LIKE 'UPDATE%'"
    );
    assert_eq!(admin().await.execute(&listening, &[]).await.unwrap(), 1);
    leader(&owner, "b", 2, "e").await;
    until("a heartbeat tells of it", || async { told().await == Seq::new(4) }).await;
    assert_eq!(told().await, Seq::new(4), "and so does the next");
}

/// N1: forged, damaged and storming notifications change nothing.
#[tokio::test(flavor = "multi_thread")]
async fn forged_notifications_only_cause_a_look() {
    let place = Place::new();
    let store = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let mut following = store.follow(&ns()).await.unwrap();
    let storm = format!(
        "SELECT pg_notify('{}', format(E'default\\n%s\\nv\\te', g)) FROM generate_series(1, 10000) g",
        place.schema
    );
    admin().await.batch_execute(&storm).await.unwrap();
    for payload in ["", "default", "default\\n9999999999\\nz", "\\n\\n"] {
        place.sql(&format!("SELECT pg_notify('{{s}}', E'{payload}')")).await;
    }
    let alive = store.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
    assert!(matches!(alive, Beat::Alive { holds: Some(1), .. }), "{alive:?}");
    store.release(&ns(), &release(&term)).await.unwrap();
    let told = loop {
        // Whatever is heard makes one look; the last is what really happened.
        let next = tokio::time::timeout(Duration::from_secs(20), following.next()).await;
        next.expect("something is heard").unwrap();
        match store.journal(&ns(), Seq::new(3)).await.unwrap() {
            Page::Entries(told) if told.is_empty() => {}
            Page::Entries(told) => break told,
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(told[0].what, Happening::Released { .. }), "{told:?}");
    assert_eq!(told[0].seq, Seq::new(4));
}

/// C12: a heartbeat is one row's update that stays in its page, writes no
/// journal, notifies no session, and is the same whatever the member holds. On a server of
/// its own: where others have open transactions, what they might see is kept, and
/// the page fills up.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_updates_one_row_in_its_page() {
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let options = PostgresOptions::from_url(&server.url()).unwrap();
    let store = PostgresStore::open(options).await.unwrap();
    let term = leader(&store, "a", 1, "e").await;
    let client = connect(&server.url()).await;
    let stats = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables \
                 WHERE schemaname = 'tenure' AND relname = 'members'";
    for _ in 0..300 {
        let alive = store.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
        assert!(matches!(alive, Beat::Alive { holds: Some(1), .. }), "{alive:?}");
    }
    let journal = store.read(&ns(), &Query::nothing()).await.unwrap().seq;
    assert_eq!(journal, Seq::new(3), "the journal's place");
    // The server's own counting lags behind by up to a second.
    let counted = async || {
        let row = client.query_one(stats, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    until("the server has counted", || async { counted().await.0 >= 300 }).await;
    let (updates, hot) = counted().await;
    assert!(hot * 100 >= updates * 99, "{hot} of {updates} stayed in their page");
}

/// One life may be a member here and there, under one name or two: it beats for
/// each by itself.
#[tokio::test]
async fn a_life_that_is_several_members_beats_for_each_of_them() {
    let place = Place::new();
    let store = place.open().await;
    let all = [("one", "a"), ("one", "b"), ("two", "a")];
    let all = all.map(|(ns, id)| (Namespace::new(ns).unwrap(), member(id, 1)));
    for (ns, me) in &all {
        store.join(ns, &join(me)).await.unwrap();
    }
    let client = admin().await;
    let asked = format!("SELECT expires_at::text FROM {}.members ORDER BY ns, id", place.schema);
    let ends = async || -> Vec<String> {
        client.query(&asked, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    for _ in 0..3 {
        for (place, (ns, me)) in all.iter().enumerate() {
            // The second time it is the bare statement.
            for _ in 0..2 {
                let before = ends().await;
                store.heartbeat(ns, &beat(me)).await.unwrap();
                let after = ends().await;
                let changed: Vec<_> = (0..all.len()).filter(|i| before[*i] != after[*i]).collect();
                assert_eq!(changed, [place], "{me} in {ns}");
            }
        }
    }
}

/// Behind a pooler in transaction mode notifications do not arrive: the store
/// notices, says so, looks instead, and everything else works.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_is_noticed_and_looked_through() {
    let place = Place::new();
    drop(place.open().await);
    let pooler = tokio::task::spawn_blocking(|| Pooler::start(&common::url())).await.unwrap();
    let poll = Duration::from_millis(100);
    let options = PostgresOptions::from_url(&pooler.url).unwrap().schema(&place.schema).poll(poll);
    let store = PostgresStore::open(options.clone()).await.unwrap();
    let other = PostgresStore::open(options).await.unwrap();
    assert_eq!(store.capabilities().watch, Watch::Polled(poll));
    let mut hints = other.follow(&ns()).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Anything);
    let term = leader(&store, "a", 1, "e").await;
    for _ in 0..50 {
        let alive = store.heartbeat(&ns(), &beat(&term.member)).await.unwrap();
        assert!(matches!(alive, Beat::Alive { .. }), "{alive:?}");
    }
    assert_eq!(hint(&mut hints).await, Hint::Election(election("e")));
    store.release(&ns(), &release(&term)).await.unwrap();
    while !matches!(hint(&mut hints).await, Hint::Vacant { .. }) {}
    let Page::Entries(told) = other.journal(&ns(), Seq::START).await.unwrap() else { panic!() };
    assert_eq!(told.iter().map(|e| e.seq.get()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    while hints.next().await.unwrap() != Followed::Grown(Seq::new(4)) {}
}
