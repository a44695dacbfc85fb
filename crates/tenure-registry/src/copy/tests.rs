//! The copy equals the store, whatever is missed in between (R1–R5).

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use tenure::MemberId;
use tenure::views::Incarnation;

use super::*;

fn member(life: u128) -> MemberRef {
    MemberRef::new(MemberId::new(format!("m{life}")).unwrap(), Incarnation::from_u128(life))
}

fn binding(name: &str, life: u128, token: u64, rev: u64) -> Binding {
    Binding {
        name: Name::new(name).unwrap(),
        token: Token::new(token),
        rev: Rev::new(rev),
        owner: Some(member(life)),
        value: Value::empty(),
        remaining: Duration::from_secs(10),
        bound_at: Timestamp::default(),
    }
}

fn view(rev: u64, bindings: Vec<Binding>, lives: &[u128]) -> NamesView {
    let owners = lives.iter().map(|life| (member(*life), Duration::from_secs(10))).collect();
    NamesView { rev: Rev::new(rev), bindings, owners, ..NamesView::default() }
}

fn writer() -> (Arc<Copy>, Writer) {
    let copy = Arc::new(Copy::new());
    (copy.clone(), Writer::new(copy))
}

const NOW: Mono = Mono::from_millis(1_000);

/// R4: a life that is gone takes its names with it, and no other's; no request wrote that down.
#[test]
fn the_names_of_a_gone_life_vanish_and_no_others() {
    let (copy, mut writer) = writer();
    let all = vec![binding("a", 1, 1, 1), binding("b", 2, 2, 2), binding("c", 1, 3, 3)];
    writer.apply(NamesView { whole: true, ..view(3, all, &[1, 2]) }, NOW, &Meanwhile::new());
    let deltas = writer.apply(view(3, vec![], &[2]), NOW, &Meanwhile::new());
    assert_eq!(deltas.len(), 2);
    assert!(copy.get("a").is_none() && copy.get("c").is_none());
    assert!(copy.get("b").is_some());
}

/// R2, U4: a late answer changes nothing.
#[test]
fn an_answer_that_was_overtaken_changes_nothing() {
    let (copy, mut writer) = writer();
    writer.apply(view(5, vec![binding("a", 1, 5, 5)], &[1]), NOW, &Meanwhile::new());
    let late = NamesView { gone: vec![Name::new("a").unwrap()], ..view(4, vec![], &[1]) };
    assert!(writer.apply(late, NOW, &Meanwhile::new()).is_empty());
    assert_eq!((copy.get("a").unwrap().0.token, copy.stand().rev), (Token::new(5), Rev::new(5)));
}

/// R1: what this process registered is seen before the store is asked, and an older answer
/// does not take it away; one that knows of its end does.
#[test]
fn own_registrations_are_seen_at_once_and_outlive_older_answers() {
    let (copy, mut writer) = writer();
    writer.apply(view(1, vec![binding("x", 2, 1, 1)], &[2]), NOW, &Meanwhile::new());
    writer.apply_own(vec![binding("a", 1, 7, 7)], NOW);
    assert!(copy.get("a").is_some());
    assert_eq!(copy.stand().rev, Rev::new(1), "the copy has not read that far");
    let whole = NamesView { whole: true, ..view(6, vec![], &[1]) };
    writer.apply(whole, NOW, &Meanwhile::new());
    assert!(copy.get("a").is_some(), "it is newer than the answer");
    let gone = NamesView { gone: vec![Name::new("a").unwrap()], ..view(8, vec![], &[]) };
    writer.apply(gone, NOW, &Meanwhile::new());
    assert!(copy.get("a").is_none());
}

/// A name that this process has given back is not shown again by an answer that was on its
/// way; another's binding of it is.
#[test]
fn a_released_name_is_not_shown_by_an_older_answer() {
    let (copy, mut writer) = writer();
    writer.apply_own(vec![binding("a", 1, 7, 7)], NOW);
    writer.drop_own(&Name::new("a").unwrap(), Token::new(7), NOW);
    writer.apply(view(7, vec![binding("a", 1, 7, 7)], &[1]), NOW, &Meanwhile::new());
    assert!(copy.get("a").is_none());
    writer.apply(view(9, vec![binding("a", 2, 9, 9)], &[1, 2]), NOW, &Meanwhile::new());
    assert_eq!(copy.get("a").unwrap().0.token, Token::new(9));
}

/// M6: after a rollback the store's word counts, also where revisions went back.
#[test]
fn a_rolled_back_store_is_believed() {
    let (copy, mut writer) = writer();
    let all = vec![binding("a", 1, 8, 8), binding("b", 1, 9, 9)];
    writer.apply(view(9, all, &[1]), NOW, &Meanwhile::new());
    let back = NamesView { whole: true, ..view(3, vec![binding("b", 2, 3, 3)], &[2]) };
    writer.apply(back, NOW, &Meanwhile::new());
    assert!(copy.get("a").is_none());
    assert_eq!(copy.get("b").unwrap().0.token, Token::new(3));
}

/// R5: where the store cannot be asked, names vanish with their owner's ttl.
#[test]
fn names_vanish_with_their_owners_ttl() {
    let (copy, mut writer) = writer();
    writer.apply(view(1, vec![binding("a", 1, 1, 1)], &[1]), NOW, &Meanwhile::new());
    let end = writer.next_end().unwrap();
    assert_eq!(end, NOW + Duration::from_secs(10));
    assert!(writer.expire(NOW).is_empty());
    assert_eq!(writer.expire(end).len(), 1);
    assert!(copy.get("a").is_none());
}

/// A query looks at the names that have the rarest of its pairs, and at no others; what a name
/// was found by before it changed does not find it any more.
#[test]
fn a_query_looks_at_few_of_many_names() {
    let (copy, mut writer) = writer();
    let value = |pairs: &[(&str, &str)]| Value::empty().with_index(pairs.iter().copied()).unwrap();
    let of = |n: u64| Binding {
        value: match n {
            0..10 => value(&[("role", "worker"), ("zone", "x")]),
            _ => value(&[("role", "worker")]),
        },
        ..binding(&format!("n{n}"), 1, n + 1, n + 1)
    };
    writer.apply(view(20_000, (0..20_000).map(of).collect(), &[1]), NOW, &Meanwhile::new());
    let looked = std::cell::Cell::new(0);
    let query = |pairs: &[String]| {
        looked.set(0);
        let counts = |_: &Entry| {
            looked.set(looked.get() + 1);
            true
        };
        copy.query(pairs, counts).0.len()
    };
    let both = [pair("role", "worker"), pair("zone", "x")];
    assert_eq!((query(&both), looked.get()), (10, 10));
    assert_eq!(query(&[pair("role", "worker")]), 20_000);
    assert_eq!(query(&[pair("role", "cook"), pair("role", "worker")]), 0);
    let moved = Binding { value: value(&[("zone", "y")]), ..binding("n3", 1, 4, 20_001) };
    writer.apply(view(20_001, vec![moved], &[1]), NOW, &Meanwhile::new());
    assert_eq!((query(&both), query(&[pair("zone", "y")])), (9, 1));
    writer.apply(view(20_001, vec![], &[]), NOW, &Meanwhile::new());
    assert_eq!((query(&both), query(&[pair("zone", "y")])), (0, 0));
}

/// R1: a registration that an answer does not know of, because it was made while the answer was
/// on its way, stays visible throughout, and no watch is told that it was gone.
#[test]
fn a_registration_made_meanwhile_is_not_taken_for_gone() {
    let (copy, mut writer) = writer();
    writer.apply(NamesView { whole: true, ..view(3, vec![], &[]) }, NOW, &Meanwhile::new());
    let own = binding("a", 1, 4, 4);
    writer.apply_own(vec![own.clone()], NOW);
    for whole in [false, true] {
        let deltas = writer.apply(
            NamesView { whole, ..view(3, vec![], &[]) },
            NOW,
            &Meanwhile::from([(own.name.clone(), own.clone())]),
        );
        assert!(deltas.is_empty(), "{deltas:?}");
        assert!(copy.get("a").is_some());
    }
}

/// R2: after a rollback the store's names count, and the revision does not go back.
#[test]
fn a_revision_never_goes_back() {
    let (copy, mut writer) = writer();
    writer.apply(view(9, vec![binding("a", 1, 9, 9)], &[1]), NOW, &Meanwhile::new());
    let back = NamesView { whole: true, ..view(3, vec![binding("a", 2, 3, 3)], &[2]) };
    writer.apply(back, NOW, &Meanwhile::new());
    assert_eq!((copy.get("a").unwrap().0.token, copy.stand().rev), (Token::new(3), Rev::new(9)));
}

/// R1, R3, Q8: over a thousand random gaps the copy equals the store.
#[test]
fn across_random_gaps_the_copy_equals_the_store() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut roll = |sides: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % sides
    };
    let (copy, mut writer) = writer();
    let mut store: BTreeMap<String, Binding> = BTreeMap::new();
    let mut dropped: Vec<(u64, String)> = Vec::new();
    let mut rev = 0;
    // Which life each of four members has: none is used again.
    let mut lives_of = [1, 2, 3, 4];
    let mut last_life = 4;
    for _ in 0..1_000 {
        let since = copy.stand().rev.get();
        for _ in 0..roll(8) {
            rev += 1;
            let name = format!("n{}", roll(20));
            let who = usize::try_from(roll(4)).unwrap();
            let life: u128 = lives_of[who];
            match roll(4) {
                0 => {
                    if store.remove(&name).is_some() {
                        dropped.push((rev, name));
                    }
                }
                1 => {
                    store.retain(|_, binding| binding.owner != Some(member(life)));
                    last_life += 1;
                    lives_of[who] = last_life;
                }
                _ => {
                    let token = store.get(&name).map_or(rev, |old| old.token.get());
                    let life = store
                        .get(&name)
                        .map_or(life, |old| old.owner.as_ref().unwrap().incarnation.as_u128());
                    store.insert(name.clone(), binding(&name, life, token, rev));
                }
            }
        }
        let changed: Vec<_> = store.values().filter(|b| b.rev.get() > since).cloned().collect();
        let gone = dropped.iter().filter(|(at, name)| *at > since && !store.contains_key(name));
        let gone = gone.map(|(_, name)| Name::new(name).unwrap()).collect();
        let mut lives: Vec<_> =
            store.values().map(|b| b.owner.as_ref().unwrap().incarnation.as_u128()).collect();
        lives.dedup();
        writer.apply(NamesView { gone, ..view(rev, changed, &lives) }, NOW, &Meanwhile::new());
        let (there, at) = copy.select(|_| true);
        let there: Vec<_> = there.iter().map(|e| (e.name.to_string(), e.token, e.rev)).collect();
        let wanted: Vec<_> = store.values().map(|b| (b.name.to_string(), b.token, b.rev)).collect();
        let mut there = there;
        let mut wanted = wanted;
        there.sort();
        wanted.sort();
        assert_eq!((there, at.rev), (wanted, Rev::new(rev)));
    }
}

/// What this process says of its own names counts only above what the store has answered: a
/// name that was bound and is gone again is not shown, neither when its word comes after the
/// answer nor when it came while the answer was on its way.
#[test]
fn a_late_word_of_a_name_that_is_gone_does_not_show_it() {
    let (copy, mut writer) = writer();
    writer.apply(view(3, vec![binding("x", 1, 3, 3)], &[1]), NOW, &Meanwhile::new());
    let own = binding("a", 1, 5, 5);
    let gone = NamesView { gone: vec![own.name.clone()], ..view(7, vec![], &[1]) };
    let meanwhile = Meanwhile::from([(own.name.clone(), own.clone())]);
    writer.apply(gone, NOW, &meanwhile);
    assert!(copy.get("a").is_none(), "the answer knew better");
    assert!(writer.apply_own(vec![own], NOW).is_empty());
    assert!(copy.get("a").is_none(), "and still does");
    writer.apply_own(vec![binding("a", 1, 8, 8)], NOW);
    assert!(copy.get("a").is_some(), "a newer one is news");
}

/// R1, R5: an answer of what changed, to a question from before names vanished here, does not
/// make the copy complete.
#[test]
fn a_copy_stays_partial_until_all_names_were_read() {
    let (copy, mut writer) = writer();
    writer.apply(view(1, vec![binding("a", 1, 1, 1)], &[1]), NOW, &Meanwhile::new());
    writer.expire(NOW + Duration::from_secs(11));
    writer.apply(view(1, vec![], &[1]), NOW, &Meanwhile::new());
    assert!(copy.get("a").is_none() && writer.is_partial());
    let all = NamesView { whole: true, ..view(1, vec![binding("a", 1, 1, 1)], &[1]) };
    writer.apply(all, NOW, &Meanwhile::new());
    assert!(copy.get("a").is_some() && !writer.is_partial());
}

/// A name that was given back is forgotten with the answer that says so, also where that was
/// on its way before: no later answer says it again.
#[test]
fn what_was_given_back_is_remembered_no_longer_than_needed() {
    let (_, mut writer) = writer();
    for n in 0..10 {
        let token = 2 * n + 2;
        writer.apply_own(vec![binding("a", 1, token, token)], NOW);
        let asked = NOW + Duration::from_millis(n);
        writer.drop_own(&Name::new("a").unwrap(), Token::new(token), asked);
        let older =
            NamesView { gone: vec![Name::new("a").unwrap()], ..view(token - 1, vec![], &[1]) };
        writer.apply(older, asked, &Meanwhile::new());
        assert_eq!(writer.released.len(), 1, "that one was dropped before");
        let gone =
            NamesView { gone: vec![Name::new("a").unwrap()], ..view(token + 1, vec![], &[1]) };
        writer.apply(gone, asked, &Meanwhile::new());
        assert!(writer.released.is_empty());
    }
}

/// A life that owns one name comes and goes at the same cost however many names others own:
/// what is looked at is one part of the copy.
#[test]
fn the_end_of_a_life_with_one_name_does_not_look_at_all_names() {
    let shards_with = |others: u64| {
        let (copy, mut writer) = writer();
        let all = (1..=others).map(|n| binding(&format!("n{n}"), 1, n, n)).collect();
        writer.apply(view(others, all, &[1]), NOW, &Meanwhile::new());
        let rev = others + 1;
        writer.apply(view(rev, vec![binding("x", 2, rev, rev)], &[1, 2]), NOW, &Meanwhile::new());
        let of = HashSet::from([Incarnation::from_u128(2)]);
        let root = copy.root.load();
        let count = root.shards.iter().filter(|shard| shard.has_any(&of)).count();
        writer.apply(view(rev, vec![], &[1]), NOW, &Meanwhile::new());
        assert!(copy.get("x").is_none() && copy.get("n1").is_some());
        let root = copy.root.load();
        assert!(root.shards.iter().all(|shard| !shard.has_any(&of)), "nothing is left of it");
        count
    };
    assert_eq!([shards_with(1), shards_with(20_000)], [1, 1]);
}
