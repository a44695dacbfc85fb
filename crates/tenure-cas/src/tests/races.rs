//! Every interleaving that the module's head tells of.

use super::*;

fn pair() -> (Wire, Process, Process) {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    (wire, a, b)
}

/// A holds, and B has waited its ttl out.
fn expired() -> (Wire, Process, Process) {
    let (wire, a, b) = pair();
    a.win("e", 1);
    b.lose("e", 1);
    b.clock.advance(TTL / 2);
    b.beat();
    b.clock.advance(WIDE - TTL / 2);
    b.beat();
    // It may still beat, by its own clock.
    a.clock.advance(TTL - NS);
    (wire, a, b)
}

/// H9: the first-insert race.
#[test]
fn of_two_first_claims_one_wins_and_the_other_is_told_who() {
    let (wire, a, b) = pair();
    let rival = b.clone();
    wire.swap_meets("elections", Fault::First(Box::new(move || assert_eq!(rival.win("e", 1), 1))));
    assert!(a.lose("e", 1).is_held_by(b.me.incarnation));
}

#[test]
fn of_two_challengers_one_wins_and_the_other_waits_a_whole_ttl() {
    let (wire, _a, b) = expired();
    let c = Process::joined(&wire, "c", 3);
    c.bid_with("e", 1, 200);
    for part in [TTL / 2, WIDE - TTL / 2] {
        c.clock.advance(part);
        b.beat();
        c.beat();
    }
    let faster = c.clone();
    let win = move || assert!(matches!(faster.bid_with("e", 2, 200), Claimed::Won(_)));
    wire.swap_meets("elections", Fault::First(Box::new(win)));
    let view = b.lose("e", 1);
    assert!(view.is_held_by(c.me.incarnation));
    assert_eq!((view.number.get(), view.holder.unwrap().remaining), (2, WIDE));
}

/// M2: the heartbeat was in flight when the term was taken.
#[test]
fn a_heartbeat_that_arrives_after_the_takeover_changes_nothing() {
    let (wire, a, b) = expired();
    wire.swap_meets("members/a", Fault::HoldBack);
    assert!(a.try_beat().unwrap_err().may_have_applied());
    assert_eq!(b.win("e", 1), 2);
    assert_eq!(wire.deliver(), [Swapped::Conflict]);
    assert!(b.view("e").is_held_by(b.me.incarnation));
    assert_eq!(a.beat(), Beat::Ended { superseded: false });
}

/// M2, the other way round: the silent member is ended on the version seen, and
/// there is another now.
#[test]
fn a_heartbeat_that_arrives_before_the_takeover_prevents_it() {
    let (wire, a, b) = expired();
    let holder = a.clone();
    wire.swap_meets("members/a", Fault::First(Box::new(move || assert!(holder.keeps("e", 1)))));
    b.lose("e", 1);
    assert!(b.waits_for("e") > TTL);
    assert!(a.keeps("e", 1));
}

/// M2: the end of a member frees everything it held, in one write.
#[test]
fn all_terms_of_an_ended_member_are_free_at_once() {
    let (wire, a, b) = pair();
    a.win("e", 1);
    a.win("f", 1);
    b.lose("e", 1);
    b.clock.advance(WIDE / 2);
    b.beat();
    b.clock.advance(WIDE / 2);
    b.beat();
    assert_eq!(b.win("e", 1), 2);
    let c = Process::joined(&wire, "c", 3);
    assert_eq!(c.win("f", 1), 2, "it has seen nothing, and needs to see nothing");
}

/// M2 for claims: the counterexample of the module's head. Without the heartbeat
/// after the claim, A would be told that it won.
#[test]
fn a_win_of_one_who_is_ended_meanwhile_is_no_win() {
    let (wire, a, b) = pair();
    let challenger = b.clone();
    let end = move || {
        assert!(matches!(challenger.amend(evict("a", true)), Amended::Done { .. }));
    };
    wire.swap_meets("elections/e", Fault::First(Box::new(end)));
    assert!(matches!(a.try_bid("e", 1, 100).unwrap(), Claims::Ended { .. }));
    // The member's record was tidied away before the late swap landed, so that
    // nothing proves its life to be over: its ttl is waited out.
    b.lose("e", 1);
    b.clock.advance(WIDE / 2);
    b.beat();
    b.clock.advance(WIDE / 2);
    b.beat();
    assert_eq!(b.win("e", 2), 2);
}

/// E2, H21: the win was applied and its answer lost. The retry gets the same
/// term, and others wait a whole ttl from the retry.
#[test]
fn a_repeated_claim_gets_its_term_back_and_a_new_sign_of_life() {
    let (wire, a, b) = pair();
    wire.swap_meets("elections", Fault::LoseAnswer);
    assert!(a.try_bid("e", 5, 100).unwrap_err().may_have_applied());
    assert!(b.lose("e", 1).is_held_by(a.me.incarnation));
    a.clock.advance(TTL / 2);
    b.clock.advance(TTL / 2);
    assert_eq!(a.win("e", 5), 1);
    assert_eq!(b.waits_for("e"), WIDE);
    assert_eq!(a.win("e", 6), 2, "a new attempt is a new term (H6)");
    assert!(a.lose("e", 5).is_held_by(a.me.incarnation), "a late copy (E1)");
}

/// M1 with E2: a win that its member's life did not outlast is not revived.
#[test]
fn a_repeated_claim_does_not_revive_a_member_whose_ttl_ran_out_meanwhile() {
    let (wire, a, _b) = pair();
    wire.swap_meets("elections", Fault::LoseAnswer);
    a.try_bid("e", 5, 100).unwrap_err();
    a.clock.advance(TTL);
    assert_eq!(a.try_bid("e", 5, 100).unwrap(), Claims::Ended { superseded: false });
}

/// E2: the win is written and the heartbeat after it is not: the bid is repeated.
#[test]
fn a_claim_whose_heartbeat_failed_is_no_win_until_it_is_repeated() {
    for fault in [Fault::Fail, Fault::LoseAnswer] {
        let (wire, a, b) = pair();
        wire.swap_meets("members/a", fault);
        assert!(a.try_bid("e", 5, 100).unwrap_err().may_have_applied());
        assert!(b.lose("e", 1).is_held_by(a.me.incarnation));
        assert_eq!(a.win("e", 5), 1);
        assert_eq!(b.waits_for("e"), WIDE);
    }
}

/// E2: the record itself is what conflicts with a retried write.
#[test]
fn a_conflict_with_ones_own_lost_write_is_a_win() {
    let (wire, a, _b) = pair();
    let twin = a.clone();
    wire.swap_meets("elections", Fault::First(Box::new(move || assert_eq!(twin.win("e", 5), 1))));
    assert_eq!(a.win("e", 5), 1);
}

/// E1: the caller gave up, and bid again under a newer nonce.
#[test]
fn a_late_claim_does_not_touch_a_newer_term_of_the_same_life() {
    let (wire, a, _b) = pair();
    wire.swap_meets("elections", Fault::HoldBack);
    a.try_bid("e", 5, 100).unwrap_err();
    assert_eq!(a.win("e", 6), 1);
    assert_eq!(wire.deliver(), [Swapped::Conflict]);
    a.release("e", Some(1));
    a.lose("e", 6);
    assert_eq!(a.view("e").holder, None, "the repeated bid was given back already");
}

/// A release that was applied, and then told as a conflict because another had
/// won by the time it was repeated: its followers are told all the same.
#[test]
fn a_release_that_conflicts_with_itself_is_told() {
    let (wire, a, b) = pair();
    let c = Process::joined(&wire, "c", 3);
    a.win("e", 1);
    for _ in 0..2 {
        assert!(c.view("e").is_held_by(a.me.incarnation));
    }
    let next = b.clone();
    let win = move || assert!(matches!(next.bid_with("e", 1, 200), Claimed::Won(_)));
    wire.swap_meets("elections/e", Fault::MeetsItself(Box::new(win)));
    a.release("e", Some(1));
    assert!(c.view("e").is_held_by(b.me.incarnation), "{:?}", c.view("e"));
}

/// E2: a release that was applied, and given up before it was answered. A process that
/// follows is told by the next heartbeat, or when the release is repeated.
#[test]
fn a_release_that_is_given_up_half_way_is_told() {
    for repeated in [false, true] {
        let (wire, a, b) = pair();
        a.win("e", 1);
        for _ in 0..2 {
            assert!(b.view("e").is_held_by(a.me.incarnation));
        }
        wire.swap_meets("elections/e", Fault::Hang);
        assert!(a.try_release("e", Some(1)).is_none());
        if repeated {
            a.release("e", Some(1));
        } else {
            a.beat();
        }
        assert!(b.view("e").holder.is_none(), "{:?}", b.view("e"));
    }
}

/// C4, H8: late releases name what they mean.
#[test]
fn a_late_release_does_not_touch_a_successor() {
    let (_wire, a, b) = expired();
    assert_eq!(b.win("e", 1), 2);
    a.release("e", Some(1));
    a.release("e", Some(2));
    assert!(b.view("e").is_held_by(b.me.incarnation));
}

/// E5: the request goes with the term, whichever comes first.
#[test]
fn a_release_that_races_a_step_down_request_releases_and_answers_it() {
    let (wire, a, b) = pair();
    a.win("e", 1);
    let operator = b.clone();
    let ask = move || {
        assert!(matches!(operator.amend(step_down("e", "drain")), Amended::Done { .. }));
    };
    wire.swap_meets("elections", Fault::First(Box::new(ask)));
    a.release("e", Some(1));
    let view = b.view("e");
    assert_eq!((view.holder, view.step_down), (None, None));
    assert_eq!(b.amend(step_down("e", "again")), Amended::Vacant);
}

/// E5: nothing an operator wrote is lost to a heartbeat.
#[test]
fn a_heartbeat_that_races_a_step_down_request_shows_it() {
    let (wire, a, b) = pair();
    a.win("e", 1);
    let Beat::Alive { attention, .. } = a.beat() else { panic!("ended") };
    let operator = b.clone();
    let ask = move || {
        operator.amend(step_down("e", "drain"));
    };
    wire.swap_meets("members/a", Fault::First(Box::new(ask)));
    let Beat::Alive { attention: raised, .. } = a.beat() else { panic!("ended") };
    assert!(raised > attention);
    assert_eq!(a.view("e").step_down.unwrap().reason.as_str(), "drain");
}

/// E5: the holder's attention is all that tells it, so a request that could not
/// raise it is not done, and can be repeated.
#[test]
fn a_request_that_the_holder_was_not_told_of_is_an_error_and_is_told_when_repeated() {
    let (wire, a, b) = pair();
    a.win("e", 1);
    let Beat::Alive { attention, .. } = a.beat() else { panic!("ended") };
    wire.swap_meets("members/a", Fault::Fail);
    let error = ready(b.store.amend(&ns(), &step_down("e", "drain"))).unwrap_err();
    assert!(error.may_have_applied());
    assert_eq!(b.amend(step_down("e", "drain")), Amended::Unchanged);
    let Beat::Alive { attention: raised, .. } = a.beat() else { panic!("ended") };
    assert!(raised > attention);
}

/// E6.
#[test]
fn a_pause_that_comes_first_stops_the_claim_under_way() {
    let (wire, a, b) = pair();
    let operator = b.clone();
    let stop = move || assert!(matches!(operator.amend(pause("e")), Amended::Done { .. }));
    wire.swap_meets("elections", Fault::First(Box::new(stop)));
    assert!(a.lose("e", 1).paused.is_some());
    assert_eq!(a.view("e").number, TermNumber::NONE);
}

/// M1: an eviction and a heartbeat swap the same record.
#[test]
fn a_heartbeat_that_races_an_eviction_renews_nothing() {
    let (wire, a, b) = pair();
    a.win("e", 1);
    let operator = b.clone();
    let condemn =
        move || assert!(matches!(operator.amend(evict("a", false)), Amended::Done { .. }));
    wire.swap_meets("members/a", Fault::First(Box::new(condemn)));
    let before = b.view("e").holder.unwrap();
    assert_eq!(a.beat(), Beat::Ended { superseded: false });
    assert_eq!(b.view("e").holder.unwrap(), before);
}

/// E2: an error that came after a write says so.
#[test]
fn an_error_after_the_first_write_says_that_something_may_have_been_applied() {
    let (wire, a, _b) = pair();
    wire.swap_meets("members/a", Fault::Fail);
    let error = a.try_bid("e", 1, 100).unwrap_err();
    assert!(error.may_have_applied(), "the election is written: {error}");
    wire.load_meets("members", Fault::Fail);
    assert!(!a.try_bid("e", 1, 100).unwrap_err().may_have_applied());
}

/// C3 in small: the arithmetic of a contention must come out.
#[test]
fn sixteen_in_a_row_give_sixteen_numbers() {
    let wire = Wire::default();
    let all: Vec<_> = (1..=16).map(|n| Process::joined(&wire, &format!("m{n}"), n)).collect();
    for (number, process) in (1..).zip(&all) {
        assert_eq!(process.win("e", 1), number);
        process.release("e", Some(number));
        for other in &all {
            other.beat();
        }
    }
    let query = Query { history: 100, ..Query::elections([named("e")]) };
    let history = ready(all[0].store.read(&ns(), &query)).unwrap().history;
    assert_eq!(history.len(), 32);
    assert!(history.iter().all(|entry| entry.seq == Seq::START));
}
