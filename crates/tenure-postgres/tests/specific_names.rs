//! Names in PostgreSQL: what other transactions hold, what a copy forgot, who is told.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::words::*;
use common::{Place, admin, until, url, waits_for_a_lock};
use tenure_core::{
    Bind, BindAnswer, BindOp, Binding, Bindings, Hint, Joined, MemberRef, Name, Nonce, Rev, Seq,
    TermRef, Value, WhichNames,
};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::{Followed, Following, Store};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn take(text: &str, nonce: u64) -> BindOp {
    BindOp::take(name(text), Nonce::new(nonce), Value::at("h:1").unwrap())
}

async fn bind(store: &PostgresStore, member: &MemberRef, op: BindOp) -> BindAnswer {
    match store.bind(&ns(), &Bind::new(member.clone(), TTL, [op])).await.unwrap() {
        Bindings::Answered(mut answers) => answers.remove(0),
        other => panic!("{other:?}"),
    }
}

async fn bound(store: &PostgresStore, member: &MemberRef, op: BindOp) -> Binding {
    match bind(store, member, op).await {
        BindAnswer::Bound(binding) => binding,
        other => panic!("{other:?}"),
    }
}

/// Q10: a name that another transaction holds is not waited for, and the others are bound.
#[tokio::test]
async fn a_name_that_is_held_is_busy_and_the_others_are_bound() {
    let place = Place::new();
    let mut client = admin().await;
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let first = bound(&store, &a, take("n", 1)).await;
    let tx = client.transaction().await.unwrap();
    tx.batch_execute(&format!("SELECT FROM {}.names FOR UPDATE", place.schema)).await.unwrap();
    let change = || BindOp::change(name("n"), Nonce::new(2), first.token, Value::empty());
    let both = Bind::new(a.clone(), TTL, [change(), take("m", 3)]);
    let Bindings::Answered(answers) = store.bind(&ns(), &both).await.unwrap() else { panic!() };
    assert_eq!(answers[0], BindAnswer::Busy(name("n")));
    assert!(matches!(answers[1], BindAnswer::Bound(_)), "{answers:?}");
    tx.rollback().await.unwrap();
    assert_eq!(bound(&store, &a, change()).await.token, first.token);
}

/// Names wait for no claim: an open transition does not delay them.
#[tokio::test]
async fn names_are_bound_while_the_namespace_is_entered() {
    let place = Place::new();
    let mut client = admin().await;
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let tx = client.transaction().await.unwrap();
    let enter = format!("SELECT {}._enter('default', 0)", place.schema);
    tx.batch_execute(&enter).await.unwrap();
    bound(&store, &a, take("n", 1)).await;
    tx.rollback().await.unwrap();
}

/// U1: many take the same names at once; each has one owner, and no token is there twice.
#[tokio::test(flavor = "multi_thread")]
async fn each_name_has_one_owner_in_any_order() {
    let place = Place::new();
    let mut racers = tokio::task::JoinSet::new();
    for life in 1..=3_u64 {
        let store = place.open().await;
        let me = joined(&store, &format!("m{life}"), life.into()).await;
        racers.spawn(async move {
            let mut own = Vec::new();
            for nonce in 1..=40 {
                match bind(&store, &me, take(&format!("n{nonce}"), nonce)).await {
                    BindAnswer::Bound(binding) => own.push((binding.name, binding.token)),
                    BindAnswer::Taken(binding) => assert_ne!(binding.owner, Some(me.clone())),
                    other => panic!("{other:?}"),
                }
            }
            own
        });
    }
    let mut all: Vec<_> = racers.join_all().await.into_iter().flatten().collect();
    all.sort();
    assert_eq!(all.len(), 40);
    all.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(all.len(), 40, "each has one owner");
    all.sort_by_key(|(_, token)| *token);
    all.dedup_by_key(|(_, token)| *token);
    assert_eq!(all.len(), 40, "each has a token of its own");
}

/// The names of a batch, so many that they are made by one statement if all are new.
fn batch(prefix: &str, from: u64) -> impl DoubleEndedIterator<Item = BindOp> {
    (from..from + 12).map(move |nonce| take(&format!("{prefix}{nonce}"), nonce))
}

/// U1: many take batches that overlap, in different orders. No taker waits for ever, and each
/// name has one owner.
#[tokio::test(flavor = "multi_thread")]
async fn batches_that_overlap_end_and_each_name_has_one_owner() {
    let place = Place::new();
    let mut racers = tokio::task::JoinSet::new();
    for life in 1..=3_u64 {
        let store = place.open().await;
        let me = joined(&store, &format!("m{life}"), life.into()).await;
        racers.spawn(async move {
            let mut own = Vec::new();
            for round in 0..60 {
                let mut ops: Vec<_> = batch("n", round * 12 + life * 4).collect();
                if life == 2 {
                    ops.reverse();
                }
                let answers = store.bind(&ns(), &Bind::new(me.clone(), TTL, ops)).await.unwrap();
                let Bindings::Answered(answers) = answers else { panic!("{answers:?}") };
                own.extend(answers.into_iter().filter_map(|answer| match answer {
                    BindAnswer::Bound(binding) => Some((binding.name, binding.token)),
                    BindAnswer::Taken(_) => None,
                    other => panic!("{other:?}"),
                }));
            }
            own
        });
    }
    let mut all: Vec<_> = racers.join_all().await.into_iter().flatten().collect();
    let count = all.len();
    all.sort();
    all.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(all.len(), count, "each has one owner");
    all.sort_by_key(|(_, token)| *token);
    all.dedup_by_key(|(_, token)| *token);
    assert_eq!(all.len(), count, "each has a token of its own");
    let store = place.open().await;
    let view = store.names(&ns(), &WhichNames::Prefix(String::new())).await.unwrap();
    let there: Vec<_> = view.bindings.into_iter().map(|found| (found.name, found.token)).collect();
    all.sort();
    assert_eq!(there, all);
}

/// Q10: a batch does not wait for a transaction that deletes one of its names.
#[tokio::test]
async fn a_batch_does_not_wait_for_a_name_that_is_being_deleted() {
    let place = Place::new();
    let mut client = admin().await;
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let b = joined(&store, "b", 2).await;
    bound(&store, &b, take("n5", 1)).await;
    store.leave(&ns(), &b).await.unwrap();
    // As if there had been more than the end of the life cleared away.
    let put_back = "INSERT INTO {s}.names SELECT 'default', 'n5', 1, 1, 'b', gen_random_uuid(), \
                    NULL, 1, NULL, '{}', '', now()";
    place.sql(put_back).await;
    let tx = client.transaction().await.unwrap();
    tx.batch_execute(&format!("DELETE FROM {}.names", place.schema)).await.unwrap();
    let all = Bind::new(a.clone(), TTL, batch("n", 1));
    let answered = tokio::time::timeout(TTL / 2, store.bind(&ns(), &all)).await;
    let Ok(Ok(Bindings::Answered(answers))) = answered else { panic!("{answered:?}") };
    for answer in &answers {
        match answer {
            BindAnswer::Busy(of) => assert_eq!(*of, name("n5")),
            BindAnswer::Bound(binding) => assert_ne!(binding.name, name("n5")),
            other => panic!("{other:?}"),
        }
    }
    tx.commit().await.unwrap();
    assert_eq!(bound(&store, &a, take("n5", 5)).await.owner, Some(a));
}

/// What is told in one row is told in a row for each to callers that do not ask for less.
#[tokio::test]
async fn a_batch_of_new_names_is_answered_in_full_or_in_short() {
    let place = Place::new();
    let client = admin().await;
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let call = |prefix: char, brief: bool| {
        format!(
            "SELECT op, outcome, rev, token, name, owner FROM {}.bind('default', 'a', '{}', \
             60000000, ARRAY(SELECT '{prefix}' || n FROM generate_series(1, 9) n), \
             ARRAY(SELECT generate_series(1, 9)), array_fill('take'::text, '{{9}}'), \
             p_brief => {brief})",
            place.schema, a.incarnation
        )
    };
    let rows = client.query(&call('n', false), &[]).await.unwrap();
    let told: Vec<(i32, &str, i64, i64, &str, &str)> =
        rows.iter().map(|r| (r.get(0), r.get(1), r.get(2), r.get(3), r.get(4), r.get(5))).collect();
    let first = told[0].2;
    let names: Vec<_> = (1..=9).map(|n| format!("n{n}")).collect();
    let expected = (1..).zip(first..).zip(&names);
    let expected = expected.map(|((op, rev), name)| (op, "bound", rev, rev, name.as_str(), "a"));
    assert_eq!(told, expected.collect::<Vec<_>>());
    let rows = client.query(&call('m', true), &[]).await.unwrap();
    assert_eq!(rows.len(), 1);
    let told: (i32, &str, i64) = (rows[0].get(0), rows[0].get(1), rows[0].get(2));
    assert_eq!(told, (0, "made", first + 8));
    // The library asks for it in short, and shows the same.
    let all = Bind::new(a.clone(), TTL, batch("o", 1));
    let Bindings::Answered(answers) = store.bind(&ns(), &all).await.unwrap() else { panic!() };
    assert_eq!(answers.len(), 12);
    let named = WhichNames::Prefix("o".into());
    let mut there = store.names(&ns(), &named).await.unwrap().bindings;
    there.sort_by_key(|binding| binding.rev);
    // E2: the same batch again is answered with the same.
    assert_eq!(store.bind(&ns(), &all).await.unwrap(), Bindings::Answered(answers.clone()));
    for (answer, mut found) in answers.into_iter().zip(there) {
        let BindAnswer::Bound(binding) = answer else { panic!("{answer:?}") };
        assert!(found.remaining <= TTL && found.remaining > TTL / 2);
        found.remaining = binding.remaining;
        assert_eq!(binding, found);
    }
}

/// Q2: while a term is being given to another nothing is bound under it, nor afterwards;
/// and while names are bound under it no other is given it.
#[tokio::test]
async fn a_fence_that_changes_hands_is_not_passed() {
    let place = Place::new();
    let mut client = admin().await;
    let store = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let post = |nonce| BindOp::post(name("n"), Nonce::new(nonce), Value::empty());
    let fenced =
        |nonce| Bind::new(term.member.clone(), TTL, [post(nonce)]).with_fence(TermRef::from(&term));
    let tx = client.transaction().await.unwrap();
    let call = format!(
        "SELECT outcome FROM {}.bind('default', 'a', '{}', 60000000, '{{m}}', '{{1}}', \
         '{{post}}', p_election => 'e', p_number => 1)",
        place.schema, term.member.incarnation
    );
    assert_eq!(tx.query_one(&call, &[]).await.unwrap().get::<_, String>(0), "bound");
    let row = format!("SELECT FROM {}.elections FOR UPDATE SKIP LOCKED", place.schema);
    assert_eq!(admin().await.query(&row, &[]).await.unwrap().len(), 0, "the term is kept");
    tx.commit().await.unwrap();

    let tx = client.transaction().await.unwrap();
    let win = format!("UPDATE {}.elections SET number = number + 1", place.schema);
    tx.batch_execute(&win).await.unwrap();
    let busy = store.bind(&ns(), &fenced(2)).await.unwrap();
    assert_eq!(busy, Bindings::Answered(vec![BindAnswer::Busy(name("n"))]));
    tx.commit().await.unwrap();
    let newest = term.number.next();
    assert_eq!(store.bind(&ns(), &fenced(3)).await.unwrap(), Bindings::Fenced { newest });
    let named = WhichNames::Named(vec![name("n")]);
    assert!(store.names(&ns(), &named).await.unwrap().bindings.is_empty());
}

/// A life that takes a name while a newcomer of its id replaces it is not replaced.
#[tokio::test(flavor = "multi_thread")]
async fn one_who_takes_a_name_at_this_moment_is_not_superseded() {
    let place = Place::new();
    let mut client = admin().await;
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let tx = client.transaction().await.unwrap();
    let call = format!(
        "SELECT outcome FROM {}.bind('default', 'a', '{}', 60000000, '{{n}}', '{{1}}', \
         '{{take}}')",
        place.schema, a.incarnation
    );
    assert_eq!(tx.query_one(&call, &[]).await.unwrap().get::<_, String>(0), "bound");
    let other = store.clone();
    let joining =
        tokio::spawn(async move { other.join(&ns(), &join(&member("a", 2))).await.unwrap() });
    waits_for_a_lock(&admin().await, &format!("\"{}\".join", place.schema)).await;
    tx.commit().await.unwrap();
    let answer = joining.await.unwrap();
    assert!(matches!(answer, Joined::Taken { by, .. } if by == a.incarnation), "{answer:?}");
}

/// M6, Q7: a promoted copy, and a server that was started again and may have been given an
/// older copy of its files, give out no token twice, and tell all readers to read all names.
#[tokio::test]
async fn tokens_jump_when_some_may_be_forgotten() {
    for forgot in [PROMOTED, "UPDATE {s}.settings SET started_at = NULL"] {
        let place = Place::new();
        let store = place.open().await;
        let a = joined(&store, "a", 1).await;
        let first = bound(&store, &a, take("n", 1)).await;
        place.sql(forgot).await;
        let second = bound(&store, &a, take("m", 2)).await;
        assert!(second.token.get() > first.token.get() + 65_536, "{forgot}: {second:?}");
        let since = |rev| WhichNames::Since(rev);
        let all = store.names(&ns(), &since(first.rev)).await.unwrap();
        assert!(all.whole && all.bindings.len() == 2, "{forgot}: {all:?}");
        assert!(!store.names(&ns(), &since(second.rev)).await.unwrap().whole);
        assert_eq!(bound(&store, &a, take("o", 3)).await.rev, second.rev.next());
    }
}

/// M6: names were rolled back and the journal was not. A member that knows a later revision makes
/// them jump before a token is given out.
#[tokio::test]
async fn a_revision_that_was_forgotten_is_found_out_by_one_who_knows_it() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    bound(&store, &a, take("n", 1)).await;
    let known = Rev::new(5);
    let bind = Bind::new(a, TTL, [take("m", 2)]).with_seen(Seq::START, known);
    let Bindings::Answered(answers) = store.bind(&ns(), &bind).await.unwrap() else { panic!() };
    let found = answers[0].binding().unwrap();
    assert!(found.rev > known && found.token.get() == found.rev.get(), "{found:?}");
    assert!(store.names(&ns(), &WhichNames::Since(known)).await.unwrap().whole);
}

/// The end of a life that owns thousands clears a few away; the rest goes bit by bit.
#[tokio::test]
async fn what_an_ended_life_owned_is_cleared_away_bit_by_bit() {
    let place = Place::new();
    let client = admin().await;
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    let b = joined(&store, "b", 2).await;
    let ops = (1..=1_000).map(|nonce| take(&format!("n{nonce}"), nonce));
    store.bind(&ns(), &Bind::new(a.clone(), TTL, ops)).await.unwrap();
    store.leave(&ns(), &a).await.unwrap();
    let count = format!("SELECT count(*) FROM {}.names WHERE owner = 'a'", place.schema);
    let left = async || client.query_one(&count, &[]).await.unwrap().get::<_, i64>(0);
    assert!(left().await > 900, "the end is not that of each");
    let all = WhichNames::Prefix(String::new());
    assert!(store.names(&ns(), &all).await.unwrap().bindings.is_empty());
    for nonce in 1..=20 {
        bound(&store, &b, take("m", nonce)).await;
        let token = store.names(&ns(), &all).await.unwrap().bindings[0].token;
        bind(&store, &b, BindOp::drop(name("m"), Nonce::new(nonce), token)).await;
    }
    assert_eq!(left().await, 0);
    let remains = format!("SELECT FROM {}.remains", place.schema);
    assert!(client.query(&remains, &[]).await.unwrap().is_empty());
}

/// Who may call the verbs alone binds and reads names, and touches no table.
#[tokio::test]
async fn a_role_with_execute_alone_binds_names() {
    let place = Place::new();
    let owner = place.open().await;
    let role = format!("names_{}", place.schema);
    place.sql(&format!("CREATE ROLE {role} LOGIN; SELECT {{s}}.grant_to('{role}')")).await;
    let its_url = url().replace("postgres@", &format!("{role}@"));
    let options = PostgresOptions::from_url(&its_url).unwrap().schema(&place.schema);
    let guest = place.open_with(options.migrate(false)).await;
    let a = joined(&guest, "a", 1).await;
    let own = bound(&guest, &a, take("n", 1)).await;
    let seen = owner.names(&ns(), &WhichNames::OwnedBy(a)).await.unwrap();
    assert_eq!((seen.bindings.len(), seen.bindings[0].token), (1, own.token));
    let client = common::connect(&its_url).await;
    for table in ["names", "names_at", "names_gone", "live_names"] {
        let asked = client.query(&format!("SELECT FROM {}.{table}", place.schema), &[]).await;
        assert_eq!(asked.unwrap_err().code().unwrap().code(), "42501", "{table}");
    }
    drop(guest);
    place.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

async fn told_of_names(following: &mut dyn Following) {
    let told = async { while following.next().await.unwrap() != Followed::Hint(Hint::Names) {} };
    tokio::time::timeout(Duration::from_secs(20), told).await.expect("a hint of names");
}

/// Who gets no notifications finds within its pace that names changed, and a change without
/// a notification is found in the same way.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_names_is_found_by_looking() {
    let place = Place::new();
    let poll = Duration::from_millis(100);
    let store = place.open_with(place.options().listen(false).poll(poll)).await;
    let mut following = store.follow(&ns()).await.unwrap();
    for nonce in 1..=2 {
        let op = BindOp::post(name("n"), Nonce::new(nonce), Value::at("h:1").unwrap());
        let other = BindOp { name: name(&format!("n{nonce}")), ..op };
        store.bind(&ns(), &Bind::anonymous([other])).await.unwrap();
        told_of_names(&mut *following).await;
    }
}

/// Followers are told of a change of names, also of one that came too soon after another
/// to be told at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_comes_too_soon_is_told_later() {
    let place = Place::new();
    let store = place.open().await;
    let a = joined(&store, "a", 1).await;
    until("notifications arrive", || async { store.capabilities().polled_because.is_none() }).await;
    let mut following = store.follow(&ns()).await.unwrap();
    for nonce in 1..=2 {
        bound(&store, &a, take(&format!("n{nonce}"), nonce)).await;
        told_of_names(&mut *following).await;
        // As if the last time were a moment ago for as long as this test runs.
        let soon = "UPDATE {s}.names_at SET told_at = now() + interval '1 h'";
        place.sql(soon).await;
    }
}
