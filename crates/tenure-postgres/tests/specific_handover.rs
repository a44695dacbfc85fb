//! Handing over, where PostgreSQL itself has a say: fences, promotions, crashes.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::server::Server;
use common::words::*;
use common::{Place, admin, connect, waits_for_a_lock};
use tenure_core::{
    Amend, Amended, ElectionView, Era, Hint, Join, MemberRef, Note, Query, Release, Seq, Term,
};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{Followed, Store};

/// Long enough for anything, or over at once.
const LONG: Duration = Duration::from_secs(600);
const NOTHING: Duration = Duration::from_micros(1);

/// `a` leads `e`, and `b`, to whom a term may be handed, stands.
async fn couple(store: &PostgresStore) -> (Term, MemberRef) {
    let term = leader(store, "a", 1, "e").await;
    let heir = member("b", 2);
    let taking = Join { inherits: true, ..join(&heir) };
    store.join(&ns(), &taking).await.unwrap();
    held(store.claim(&ns(), &claim(&heir, "e", 1)).await.unwrap());
    (term, heir)
}

async fn hand_over(store: &PostgresStore, term: &Term, stands: Duration) {
    let given = Release { confirm_within: stands, heir_grace: LONG, ..release(term) };
    store.release(&ns(), &given).await.unwrap();
}

async fn view(store: &PostgresStore, asker: Option<&MemberRef>) -> ElectionView {
    let query = Query { asker: asker.cloned(), ..Query::elections([election("e")]) };
    store.read(&ns(), &query).await.unwrap().elections.remove(0)
}

/// C42: an open transaction that fenced the last term keeps a new one from
/// beginning. The release does not wait for it, and keeps the vacancy.
#[tokio::test]
async fn a_fenced_term_is_given_back_and_not_handed_over() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    let mut client = admin().await;
    let mut open = client.transaction().await.unwrap();
    fence_in(&store, &mut open, &term).await.unwrap();
    hand_over(&store, &term, LONG).await;
    let seen = view(&store, None).await;
    assert!(seen.holder.is_none() && seen.number == term.number, "{seen:?}");
    assert_eq!(seen.reserved.unwrap().member, heir.id);
    open.commit().await.unwrap();
    assert!(won(store.claim(&ns(), &claim(&heir, "e", 2)).await.unwrap()).number > term.number);
}

/// An operator hears what is left of the holder's ttl, also while its term is handed over
/// to it for less.
#[tokio::test]
async fn an_operator_hears_how_long_the_holder_lives() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    hand_over(&store, &term, TTL / 6).await;
    let pause =
        Amend::Pause { election: election("e"), reason: Note::default(), by: Note::default() };
    let Amended::Done { member, remaining, .. } = store.amend(&ns(), &pause).await.unwrap() else {
        panic!()
    };
    assert_eq!(member, Some(heir));
    assert!(remaining > TTL / 2, "{remaining:?}");
}

/// A term that was fenced, by a transaction that is over, is handed over like any other.
#[tokio::test]
async fn a_term_that_was_fenced_before_is_handed_over() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    let mut client = admin().await;
    for ends_well in [true, false] {
        let mut done = client.transaction().await.unwrap();
        fence_in(&store, &mut done, &term).await.unwrap();
        let ended = if ends_well { done.commit().await } else { done.rollback().await };
        ended.unwrap();
    }
    hand_over(&store, &term, LONG).await;
    let seen = view(&store, None).await;
    assert_eq!(seen.number, term.number.next());
    assert!(seen.handed_to(heir.incarnation).is_some(), "{seen:?}");
}

/// A release does not wait for ever for others of its namespace, nor for as long as it
/// may take in all: then it can say what it waited for.
#[tokio::test]
async fn a_release_says_that_it_waited_for_a_lock() {
    let place = Place::new();
    let store = place.open_with(place.options().request_timeout(Duration::from_secs(1))).await;
    let (term, _heir) = couple(&store).await;
    let mut blocker = admin().await;
    let blocking = blocker.transaction().await.unwrap();
    let ask = format!("SELECT {}.ask_step_down('default', 'nothing')", place.schema);
    blocking.batch_execute(&ask).await.unwrap();
    let given = Release { confirm_within: LONG, ..release(&term) };
    let refused = store.release(&ns(), &given).await.unwrap_err();
    assert!(refused.to_string().contains("lock"), "{refused}");
    assert!(!refused.may_have_applied(), "{refused}");
    blocking.commit().await.unwrap();
    store.release(&ns(), &given).await.unwrap();
}

/// A term that was handed over is fenced like any other, and the older one is not.
#[tokio::test]
async fn a_term_that_was_handed_over_can_be_fenced_at_once() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    hand_over(&store, &term, LONG).await;
    let number = term.number.next();
    let next = Term { number, member: heir, ..term.clone() };
    let mut client = admin().await;
    let mut tx = client.transaction().await.unwrap();
    fence_in(&store, &mut tx, &next).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    fence_in(&store, &mut tx, &term).await.unwrap_err();
}

/// What an heir reads is the same, whether it asks by itself or with others, but for
/// what it publishes itself.
#[tokio::test]
async fn the_look_of_an_heir_is_what_all_members_read() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    hand_over(&store, &term, LONG).await;
    let own = view(&store, Some(&heir)).await;
    let mut all = store.read(&ns(), &Query::everything()).await.unwrap();
    let mut shown = all.elections.remove(0);
    let left = own.handed_to(heir.incarnation).unwrap();
    assert!(left > shown.handed_to(heir.incarnation).unwrap());
    assert!(left <= TTL, "no more than the heir's own life: {left:?}");
    shown.candidates.clear();
    shown.holder.as_mut().unwrap().remaining = left;
    assert_eq!(own, shown);
    // And of one that it does not hold.
    let other = view(&store, Some(&term.member)).await;
    assert_eq!(other.holder.unwrap().member, heir);
    // And of one of which more is to be said than that.
    for (asked, told) in [
        ("pause('default', 'e', 'repairs', 'ops')", (true, false)),
        ("ask_step_down('default', 'e')", (true, true)),
        ("resume('default', 'e', 'ops')", (false, true)),
    ] {
        place.sql(&format!("SELECT {{s}}.{asked}")).await;
        let own = view(&store, Some(&heir)).await;
        assert_eq!((own.paused.is_some(), own.step_down.is_some()), told, "{asked}");
    }
    // And of one that it did not take on in time.
    place.sql("UPDATE {s}.elections SET heir_until = now() - interval '1 second'").await;
    let own = view(&store, Some(&heir)).await;
    let shown = view(&store, None).await;
    assert!(own.holder.is_none() && own == shown, "{own:?} {shown:?}");
}

/// The heir is told by name that the term is its own, and no member of a vacancy.
#[tokio::test]
async fn a_hand_over_is_hinted_at_by_the_name_of_the_heir() {
    let place = Place::new();
    let store = place.open().await;
    let other = place.open().await;
    let (term, heir) = couple(&store).await;
    let mut hints = other.follow(&ns()).await.unwrap();
    hand_over(&store, &term, LONG).await;
    let expected = [
        Hint::Anything,
        Hint::Handed { election: election("e"), to: heir.id },
        Hint::Election(election("e")),
    ];
    for expected in expected {
        let mut next = Followed::Grown(Seq::START);
        while matches!(next, Followed::Grown(_)) {
            next = tokio::time::timeout(LONG, hints.next()).await.unwrap().unwrap();
        }
        assert_eq!(next, Followed::Hint(expected));
    }
}

/// Who stands is answered without waiting where nothing changed. A term that was not
/// taken on in time is a change, although its holder lives.
#[tokio::test]
async fn a_bid_for_what_has_lapsed_waits_for_its_turn() {
    let place = Place::new();
    let store = place.open().await;
    let (term, _heir) = couple(&store).await;
    let c = joined(&store, "c", 3).await;
    held(store.claim(&ns(), &claim(&c, "e", 1)).await.unwrap());
    hand_over(&store, &term, NOTHING).await;
    let mut client = admin().await;
    let busy = client.transaction().await.unwrap();
    let lock = format!("SELECT pg_advisory_xact_lock({}._lock($1))", place.schema);
    busy.execute(&lock, &[&ns().as_str()]).await.unwrap();
    let bid = tokio::spawn(async move { store.claim(&ns(), &claim(&c, "e", 2)).await.unwrap() });
    waits_for_a_lock(&admin().await, &format!("{}\".claims", place.schema)).await;
    busy.commit().await.unwrap();
    assert!(won(bid.await.unwrap()).number > term.number);
}

/// A database that was promoted may have forgotten that a term was taken on: it is
/// not taken from its holder, whatever time it was given.
#[tokio::test]
async fn a_promotion_confirms_what_was_handed_over() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    hand_over(&store, &term, NOTHING).await;
    let c = joined(&store, "c", 3).await;
    place.sql(PROMOTED).await;
    let seen = held(store.claim(&ns(), &claim(&c, "e", 1)).await.unwrap());
    assert_eq!(seen.holder.unwrap().member, heir);
}

/// And it hands on what was handed to it before the promotion, by a number that
/// no term had on the other side of it.
#[tokio::test]
async fn what_was_handed_over_is_handed_on_after_a_promotion() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    hand_over(&store, &term, LONG).await;
    let again = Join { inherits: true, ..join(&term.member) };
    store.join(&ns(), &again).await.unwrap();
    held(store.claim(&ns(), &claim(&term.member, "e", 2)).await.unwrap());
    place.sql(PROMOTED).await;
    let handed = Term { number: term.number.next(), member: heir, ..term.clone() };
    hand_over(&store, &handed, LONG).await;
    let seen = view(&store, None).await;
    assert!(seen.number.get() > handed.number.get() + Era::JUMP, "{seen:?}");
    assert_eq!(seen.holder.unwrap().member, term.member);
}

/// Without a promotion, the same bid takes what the heir has not taken on; the number
/// rises, and the heir's count of terms is right again.
#[tokio::test]
async fn what_has_lapsed_is_taken_without_ending_the_heir() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    hand_over(&store, &term, NOTHING).await;
    let c = joined(&store, "c", 3).await;
    let next = won(store.claim(&ns(), &claim(&c, "e", 1)).await.unwrap());
    assert_eq!(next.number.get(), term.number.get() + 2);
    let alive = store.heartbeat(&ns(), &beat(&heir)).await.unwrap();
    let none = matches!(alive, tenure_core::Beat::Alive { holds: Some(0), .. });
    assert!(none, "{alive:?}");
}

/// H18: a server that is killed right after the answer has the heir as its leader.
#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_survives_a_killed_server() {
    let mut server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let options = PostgresOptions::from_url(&server.url()).unwrap();
    let store = PostgresStore::open(options.clone()).await.unwrap();
    let (term, heir) = couple(&store).await;
    hand_over(&store, &term, LONG).await;
    server.kill();
    server.up();
    let store = PostgresStore::open(options).await.unwrap();
    let seen = view(&store, None).await;
    assert_eq!((seen.number, seen.holder.unwrap().member), (term.number.next(), heir));
}

/// Of more terms than are told one by one, the vacancies are kept for the heir.
#[tokio::test]
async fn of_many_terms_at_once_the_vacancies_are_kept() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    let mut given = Release { confirm_within: LONG, heir_grace: LONG, ..release(&term) };
    for n in 1..=8 {
        let name = format!("e{n}");
        let next = won(store.claim(&ns(), &claim(&term.member, &name, 1)).await.unwrap());
        held(store.claim(&ns(), &claim(&heir, &name, 1)).await.unwrap());
        given.items.extend(release(&next).items);
    }
    store.release(&ns(), &given).await.unwrap();
    let named = given.items.iter().map(|item| item.election.clone());
    let seen = store.read(&ns(), &Query::elections(named)).await.unwrap();
    assert_eq!(seen.elections.len(), 9);
    for view in seen.elections {
        assert!(view.holder.is_none(), "{view:?}");
        assert_eq!(view.reserved.unwrap().member, heir.id);
    }
}

/// Some servers do not say which timeline they write. That is taken for no change,
/// whether or not it was said once.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_its_timeline_to_itself_hands_over() {
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let admin = connect(&server.url()).await;
    admin.batch_execute("CREATE ROLE owner LOGIN SUPERUSER").await.unwrap();
    let silent = "REVOKE EXECUTE ON FUNCTION pg_walfile_name FROM PUBLIC; \
                  ALTER ROLE owner NOSUPERUSER; GRANT CREATE ON DATABASE postgres TO owner";
    for (schema, speaks) in [("told", true), ("untold", false)] {
        let its_url = server.url().replace("postgres@", "owner@");
        let options = PostgresOptions::from_url(&its_url).unwrap().schema(schema);
        let store = PostgresStore::open(options).await.unwrap();
        let (term, heir) = couple(&store).await;
        if speaks {
            admin.batch_execute(silent).await.unwrap();
        }
        let noted = format!("SELECT timeline FROM {schema}.settings");
        let noted = admin.query_one(&noted, &[]).await.unwrap();
        assert_eq!(noted.get::<_, Option<i32>>("timeline").is_some(), speaks);
        hand_over(&store, &term, LONG).await;
        let seen = view(&store, None).await;
        assert_eq!(seen.number, term.number.next(), "{schema}");
        assert!(seen.handed_to(heir.incarnation).is_some(), "{schema}: {seen:?}");
    }
}

/// E2: a bid with the nonce that a term is noted with which no bid won does not
/// revive what has lapsed; and what it is answered with, it holds for good.
#[tokio::test]
async fn a_bid_with_the_first_nonce_of_all_revives_nothing() {
    let place = Place::new();
    let store = place.open().await;
    let (term, heir) = couple(&store).await;
    hand_over(&store, &term, NOTHING).await;
    let mut bid = claim(&heir, "e", 0);
    let seen = held(store.claim(&ns(), &bid).await.unwrap());
    assert!(seen.holder.is_none(), "what has lapsed is vacant: {seen:?}");

    let term = won(store.claim(&ns(), &claim(&term.member, "e", 2)).await.unwrap());
    held(store.claim(&ns(), &claim(&heir, "e", 9)).await.unwrap());
    hand_over(&store, &term, LONG).await;
    bid.bids[0].priority = tenure_core::Priority::NEVER;
    let next = won(store.claim(&ns(), &bid).await.unwrap());
    assert_eq!(next.number, term.number.next());
    let seen = view(&store, None).await;
    assert!(seen.holder.is_some_and(|h| !h.unconfirmed), "an answer confirms it");
}
