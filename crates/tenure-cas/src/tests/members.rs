//! Who lives, who stands, who comes next.

use super::*;

/// C9, and the rank that waiting candidates are told.
#[test]
fn candidates_are_ranked_by_priority_and_then_by_who_stood_first() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    let ids = [("z", 100), ("y", 200), ("x", 100), ("w", 0)];
    let all: Vec<_> =
        (2..).zip(ids).map(|(life, (id, _))| Process::joined(&wire, id, life)).collect();
    for (process, (_, priority)) in all.iter().zip(ids) {
        process.bid_with("e", 1, priority);
    }
    let view = a.view("e");
    let order: Vec<_> = view.candidates.iter().map(|c| c.member.id.as_str()).collect();
    assert_eq!(order, ["y", "a", "z", "x", "w"]);
    let ahead = |n: usize, priority| match all[n].bid_with("e", 2, priority) {
        Claimed::Held(view) => view.ahead,
        other => panic!("{other:?}"),
    };
    assert_eq!([ahead(0, 100), ahead(1, 200), ahead(2, 100), ahead(3, 0)], [1, 0, 2, 3]);
}

/// C9, C10: the vacancy is kept for the preferred one, and only for a while.
#[test]
fn a_vacancy_is_kept_for_its_heir_until_the_grace_runs_out() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let c = Process::joined(&wire, "c", 3);
    a.win("e", 1);
    b.bid_with("e", 1, 100);
    c.bid_with("e", 1, 200);
    let Beat::Alive { attention, .. } = c.beat() else { panic!("ended") };
    a.release("e", Some(1));
    let Beat::Alive { attention: raised, .. } = c.beat() else { panic!("ended") };
    assert!(raised > attention, "the heir is made to look");
    let view = b.lose("e", 2);
    assert_eq!(view.holder, None);
    let kept = view.reserved.unwrap();
    assert_eq!((kept.member.as_str(), kept.remaining), ("c", Duration::from_millis(200)));
    b.clock.advance(Duration::from_millis(200));
    assert_eq!(b.win("e", 2), 2);
    b.release("e", Some(2));
    assert_eq!(c.win("e", 2), 3, "kept for it by name");
}

/// C10: a reservation does not outlive its heir's candidacy.
#[test]
fn a_vacancy_is_not_kept_for_one_who_no_longer_stands() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let c = Process::joined(&wire, "c", 3);
    a.win("e", 1);
    b.bid_with("e", 1, 100);
    c.bid_with("e", 1, 200);
    a.release("e", Some(1));
    c.release("e", None);
    assert_eq!(b.view("e").reserved, None);
    assert_eq!(b.win("e", 2), 2);
}

/// F4: a bidder that ends an expired holder leaves the vacancy to the preferred
/// candidate, in the same swap that ends the holder.
#[test]
fn an_expired_holder_is_ended_in_favour_of_the_preferred_candidate() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let c = Process::joined(&wire, "c", 3);
    a.win("e", 1);
    b.bid_with("e", 1, 100);
    c.bid_with("e", 1, 200);
    for process in [&b, &c] {
        process.clock.advance(WIDE / 2);
        process.beat();
    }
    b.clock.advance(WIDE / 2);
    c.clock.advance(WIDE / 4);
    b.beat();
    c.beat();
    let view = b.lose("e", 2);
    assert_eq!(view.holder, None);
    assert_eq!(view.reserved.unwrap().member, c.me.id);
    assert_eq!(c.win("e", 2), 2);
    assert!(!a.keeps("e", 1));
}

/// C30, C31, H27: gone at once, with all it held and nothing left behind.
#[test]
fn a_member_that_leaves_frees_what_it_holds_and_disappears() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    a.win("f", 1);
    b.win("g", 1);
    a.release("f", None);
    assert_eq!(b.members().iter().map(|m| m.holds).collect::<Vec<_>>(), [2, 1]);
    ready(a.store.leave(&ns(), &a.me)).unwrap();
    assert_eq!(b.members().len(), 1);
    assert_eq!((b.win("e", 1), b.win("f", 1)), (2, 2));
    assert!(b.view("g").is_held_by(b.me.incarnation));
    assert_eq!(ready(wire.list("tenure/default/members/")).unwrap().len(), 1);
    assert_eq!(a.beat(), Beat::Ended { superseded: false });
    ready(a.store.leave(&ns(), &a.me)).unwrap();
    let again = a.join(true);
    assert!(matches!(again, Joined::Taken { by, .. } if by == a.me.incarnation), "{again:?}");
}

/// C30: by the observer's rule.
#[test]
fn members_that_do_not_beat_are_not_listed_and_their_records_are_collected() {
    let wire = Wire::default();
    let _a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    assert_eq!(b.members().len(), 2);
    for _ in 0..2 {
        b.clock.advance(WIDE / 2);
        b.beat();
    }
    assert_eq!(b.members().len(), 1);
    b.clock.advance(WIDE / 2);
    b.beat();
    b.clock.advance(WIDE / 2);
    b.beat();
    b.win("e", 1);
    assert_eq!(ready(wire.list("tenure/default/members/")).unwrap().len(), 1);
}

/// C32, B3: a newer life of the id, while the older holds nothing and while it
/// holds something.
#[test]
fn a_newer_life_takes_the_place_of_one_that_holds_nothing_only() {
    let wire = Wire::default();
    let old = Process::joined(&wire, "a", 1);
    let new = Process::new(&wire, "a", 2);
    assert!(matches!(new.join(false), Joined::Taken { remaining: WIDE, .. }));
    assert!(matches!(new.join(true), Joined::In { .. }));
    assert_eq!(old.beat(), Beat::Ended { superseded: true });
    new.win("e", 1);
    let third = Process::new(&wire, "a", 3);
    let taken = third.join(true);
    assert!(matches!(taken, Joined::Taken { by, .. } if by == new.me.incarnation), "{taken:?}");
    assert_eq!(old.try_bid("e", 1, 100).unwrap(), Claims::Ended { superseded: true });
    old.release("e", Some(1));
    ready(old.store.leave(&ns(), &old.me)).unwrap();
    assert!(new.view("e").is_held_by(new.me.incarnation));
    assert!(matches!(new.beat(), Beat::Alive { .. }));
}

/// E2 for joins.
#[test]
fn a_join_whose_answer_was_lost_is_repeated_without_harm() {
    let wire = Wire::default();
    let a = Process::new(&wire, "a", 1);
    wire.swap_meets("members", Fault::LoseAnswer);
    let join = Join::new(a.me.clone(), TTL).with_supersede(false);
    assert!(ready(a.store.join(&ns(), &join)).unwrap_err().may_have_applied());
    assert!(matches!(ready(a.store.join(&ns(), &join)).unwrap(), Joined::In { .. }));
    assert!(matches!(a.beat(), Beat::Alive { .. }));
}

/// Quiet: a candidate that waits writes nothing, whatever it is told.
#[test]
fn a_bid_that_is_lost_again_writes_nothing() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let c = Process::joined(&wire, "c", 3);
    a.win("e", 1);
    b.bid_with("e", 1, 100);
    c.bid_with("e", 1, 200);
    let writes = wire.inner.writes();
    b.bid_with("e", 2, 100);
    assert_eq!(wire.inner.writes(), writes, "held by another");
    a.release("e", Some(1));
    let writes = wire.inner.writes();
    b.bid_with("e", 3, 100);
    assert_eq!(wire.inner.writes(), writes, "kept for another");
    b.amend(pause("e"));
    let writes = wire.inner.writes();
    c.bid_with("e", 4, 200);
    assert_eq!(wire.inner.writes(), writes, "paused");
}

/// A member that waits beats slowly and states a ttl to match; a bid that it
/// loses at the last moment must not shorten that.
#[test]
fn a_bid_that_is_lost_does_not_shorten_the_life_of_its_member() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let idle = Heartbeat::new(a.me.clone(), TTL * 4);
    ready(a.store.heartbeat(&ns(), &idle)).unwrap();
    wire.swap_meets("elections", Fault::First(Box::new(move || assert_eq!(b.win("e", 1), 1))));
    a.lose("e", 1);
    a.clock.advance(TTL * 3);
    assert!(matches!(a.beat(), Beat::Alive { .. }));
}

/// C5.
#[test]
fn namespaces_do_not_see_each_other() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    let other = Namespace::new("default/elections").unwrap();
    let snapshot = ready(a.store.read(&other, &Query::everything())).unwrap();
    assert_eq!(snapshot, Snapshot::default());
    let beat = Heartbeat::new(a.me.clone(), TTL);
    let beat = ready(a.store.heartbeat(&other, &beat)).unwrap();
    assert_eq!(beat, Beat::Ended { superseded: false });
    assert!(matches!(a.beat(), Beat::Alive { .. }));
}

/// A bound that is stated is kept, at it and above it.
#[test]
fn a_member_waits_for_ten_thousand_elections_and_no_more() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    for hundred in 0..100 {
        let bid = |n: u64| {
            Bid::new(named(&format!("election-{hundred}-of-many-{n}")), Nonce::new(1))
                .with_priority(Priority::NEVER)
        };
        let bids: Vec<_> = (0..100).map(bid).collect();
        let claim = Claim::new(a.me.clone(), TTL, bids);
        ready(a.store.claim(&ns(), &claim)).unwrap();
    }
    let error = a.try_bid("one-more", 1, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(!error.may_have_applied() && error.to_string().contains("10000"), "{error}");
    a.release("election-0-of-many-0", None);
    a.bid_with("one-more", 1, 0);
    assert_eq!(a.win("and-what-it-holds-is-not-counted", 1), 1);
}

/// What is not waited for is not written down: a member that wins at once, and
/// one that wins what it waited for, are in no list.
#[test]
fn only_what_is_waited_for_is_written_down() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    assert!(ready(wire.list("tenure/default/standing/")).unwrap().is_empty());
    b.lose("e", 1);
    assert_eq!(ready(wire.list("tenure/default/standing/")).unwrap().len(), 1);
    let writes = wire.inner.writes();
    a.release("e", Some(1));
    b.clock.advance(Duration::from_millis(200));
    assert_eq!(b.win("e", 2), 2);
    assert_eq!(wire.inner.writes(), writes + 5, "vacancy, change, heir; win, heartbeat");
    let ids: Vec<_> = b.view("e").candidates.into_iter().map(|c| c.member).collect();
    assert_eq!(ids, std::slice::from_ref(&b.me), "it stands once, as the holder");
}
