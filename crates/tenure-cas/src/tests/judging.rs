//! The observer's rule, and the holder's own.

use super::*;

/// C1.
#[test]
fn the_first_candidate_of_an_empty_election_leads_under_number_one() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    assert_eq!(a.win("e", 1), 1);
    let b = Process::joined(&wire, "b", 2);
    let view = b.lose("e", 1);
    assert_eq!(view.holder.unwrap().member, a.me);
    assert_eq!(view.number.get(), 1);
}

/// H10, T5, M3: from first sight, by the observer's own clock, for the ttl the
/// holder wrote and the drift on top, to the nanosecond.
#[test]
fn a_holder_first_seen_just_now_has_its_whole_ttl_left() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    let b = Process::joined(&wire, "b", 2);
    b.clock.advance(TTL * 50);
    // It did not look all the while, so it knows nothing.
    let b = Process::joined(&wire, "b2", 3);
    assert_eq!(b.waits_for("e"), WIDE);
    b.clock.advance(TTL / 2);
    b.beat();
    b.clock.advance(WIDE - TTL / 2 - NS);
    b.beat();
    assert_eq!(b.waits_for("e"), NS);
    b.clock.advance(NS);
    assert_eq!(b.win("e", 1), 2);
}

/// C2: over a thousand renewals.
#[test]
fn a_holder_that_renews_is_never_replaced() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    for _ in 0..1_000 {
        a.clock.advance(TTL / 4);
        b.clock.advance(TTL / 4);
        assert!(a.keeps("e", 1));
        b.beat();
        assert!(b.lose("e", 1).is_held_by(a.me.incarnation));
    }
}

/// What an operator writes is no sign of life of the holder's.
#[test]
fn requests_of_operators_do_not_keep_a_dead_holder_alive() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let operator = Process::new(&wire, "ops", 3);
    a.win("e", 1);
    b.lose("e", 1);
    for (reason, asks) in [("1", &b), ("2", &operator), ("3", &b)] {
        b.clock.advance(WIDE / 4);
        assert!(matches!(asks.amend(step_down("e", reason)), Amended::Done { .. }));
        b.beat();
        b.lose("e", 1);
    }
    b.clock.advance(WIDE / 4);
    assert_eq!(b.win("e", 1), 2);
}

/// The answer of a look may be long on its way; what was written meanwhile must
/// not seem older than it is.
#[test]
fn first_sight_counts_from_after_the_answer_arrived() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    let clock = b.clock.clone();
    wire.load_meets("members/a", Fault::Then(Box::new(move || clock.advance(TTL / 2))));
    assert_eq!(b.waits_for("e"), WIDE);
}

/// M3, H24, B20: the holder's ttl, not the challenger's.
#[test]
fn the_ttl_the_holder_wrote_is_waited_out() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    let long = Heartbeat::new(a.me.clone(), TTL * 3);
    ready(a.store.heartbeat(&ns(), &long)).unwrap();
    assert_eq!(b.waits_for("e"), WIDE * 3);
}

/// M1, H7, C6: no other replaced it, and yet it is over; anew, a higher number.
#[test]
fn a_member_whose_ttl_ran_out_does_not_renew_and_comes_back_under_a_higher_number() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    a.clock.advance(TTL);
    let writes = wire.inner.writes();
    assert_eq!(a.beat(), Beat::Ended { superseded: false });
    assert_eq!(a.try_bid("e", 1, 100).unwrap(), Claims::Ended { superseded: false });
    let taken = |by| matches!(by, Joined::Taken { by, .. } if by == a.me.incarnation);
    assert!(taken(a.join(true)), "a life that is over comes back");
    assert_eq!(wire.inner.writes(), writes, "it was written for a life that is over");
    a.clock.advance(WIDE - TTL);
    let anew = Process { me: member("a", 9), ..a };
    assert!(matches!(anew.join(false), Joined::In { .. }));
    assert_eq!(anew.win("e", 1), 2);
}

/// C7, seen from the store: a renewal counts from its start.
#[test]
fn a_slow_renewal_is_counted_from_its_start() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    let clock = a.clock.clone();
    wire.swap_meets("members", Fault::Then(Box::new(move || clock.advance(TTL * 6 / 10))));
    assert!(matches!(a.beat(), Beat::Alive { .. }));
    a.clock.advance(TTL * 4 / 10);
    assert_eq!(a.beat(), Beat::Ended { superseded: false });
}

/// T1 for those who share a handle: a write is not fresher only because its
/// answer was slow.
#[test]
fn a_handle_counts_the_writes_of_its_own_members_from_their_start() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process { me: member("b", 2), ..a.clone() };
    b.join(true);
    let clock = a.clock.clone();
    wire.swap_meets("members/a", Fault::Then(Box::new(move || clock.advance(TTL / 2))));
    a.win("e", 1);
    assert_eq!(b.waits_for("e"), WIDE - TTL / 2);
    b.beat();
    a.clock.advance(WIDE - TTL / 2);
    assert_eq!(b.win("e", 2), 2);
}

/// H5: even if a record is removed that must never be removed.
#[test]
fn numbers_do_not_go_back_when_the_record_is_removed() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    a.release("e", Some(1));
    assert_eq!(a.win("e", 2), 2);
    b.lose("e", 1);
    let key = "tenure/default/elections/e";
    let Loaded::Found { version, .. } = ready(wire.load(key, None)).unwrap() else {
        panic!("no record");
    };
    ready(wire.remove(key, &version)).unwrap();
    assert!(!a.keeps("e", 2));
    assert_eq!(b.win("e", 1), 3, "it saw the second, though it never won");
}

/// Promise 3, for who compares a token with what the store says: a holder that gave
/// its term back and could not say so yet is not taken at its word.
#[test]
fn a_read_shows_the_newest_term_though_its_former_holder_said_nothing() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let reader = Process::new(&wire, "r", 3);
    a.win("e", 1);
    for _ in 0..3 {
        assert!(reader.view("e").is_held_by(a.me.incarnation));
    }
    wire.swap_meets("members/a", Fault::Fail);
    a.release("e", Some(1));
    assert_eq!(b.win("e", 1), 2);
    let view = reader.view("e");
    assert_eq!((view.number.get(), view.holder.unwrap().member), (2, b.me.clone()));
}
