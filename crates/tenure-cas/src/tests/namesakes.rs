//! Two lives of one id: the newcomer goes by the record that it replaces (C1).

use super::*;

/// C1: a listing that does not show the leader's election yet is no reason to end the
/// leader. It stays, and no other member wins within its ttl.
#[test]
fn a_namesake_ends_no_leader_whose_election_a_listing_does_not_show() {
    let wire = Wire::default();
    let leader = Process::joined(&wire, "a", 1);
    wire.let_listings_lag();
    leader.win("e", 1);
    let namesake = Process::new(&wire, "a", 2);
    let taken = namesake.join(true);
    assert!(matches!(taken, Joined::Taken { by, .. } if by == leader.me.incarnation), "{taken:?}");
    let third = Process::joined(&wire, "c", 3);
    assert_eq!(third.lose("e", 1).number.get(), 1);
    assert!(leader.keeps("e", 1));
}

/// C31: a leader that leaves gives up what it won, also where a listing does not show the
/// win yet. Its record is removed with the rest; a term that was left would have to be
/// waited out.
#[test]
fn a_leader_that_leaves_is_not_waited_for_where_a_listing_lags() {
    let wire = Wire::default();
    let leader = Process::joined(&wire, "a", 1);
    wire.let_listings_lag();
    leader.win("e", 1);
    ready(leader.store.leave(&ns(), &leader.me)).unwrap();
    let other = Process::joined(&wire, "b", 2);
    assert_eq!(other.win("e", 1), 2);
}

/// C1: the leader wins after the newcomer has looked, and before its swap arrives.
#[test]
fn a_win_between_a_newcomers_look_and_its_swap_is_respected() {
    let wire = Wire::default();
    let leader = Process::joined(&wire, "a", 1);
    let namesake = Process::new(&wire, "a", 2);
    let winner = leader.clone();
    let wins = move || assert_eq!(winner.win("e", 1), 1);
    wire.swap_meets("members/a", Fault::First(Box::new(wins)));
    let taken = namesake.join(true);
    assert!(matches!(taken, Joined::Taken { by, .. } if by == leader.me.incarnation), "{taken:?}");
    assert!(leader.keeps("e", 1));
}

/// C1: the newcomer's swap arrives after the older life has written the election and
/// before the heartbeat that makes it a win. Then nothing was won.
#[test]
fn a_newcomer_before_the_heartbeat_of_a_win_undoes_it() {
    let wire = Wire::default();
    let old = Process::joined(&wire, "a", 1);
    let new = Process::new(&wire, "a", 2);
    let newcomer = new.clone();
    let joins = move || assert!(matches!(newcomer.join(true), Joined::In { .. }));
    wire.swap_meets("elections/e", Fault::Then(Box::new(joins)));
    assert_eq!(old.try_bid("e", 1, 100).unwrap(), Claims::Ended { superseded: true });
    assert_eq!(new.win("e", 1), 2, "the number was used, and the life is over");
}

/// The id of a life that has given everything back is free again, whatever became of the
/// answers; that of a life that still holds something is not.
#[test]
fn a_life_that_gave_everything_back_can_be_replaced_again() {
    for fault in [None, Some(Fault::LoseAnswer), Some(Fault::Fail)] {
        let wire = Wire::default();
        let old = Process::joined(&wire, "a", 1);
        old.win("e", 1);
        old.win("f", 2);
        old.release("e", Some(1));
        let new = Process::new(&wire, "a", 2);
        assert!(matches!(new.join(true), Joined::Taken { .. }), "it holds another");
        let failed = fault.is_some();
        if let Some(fault) = fault {
            wire.swap_meets("elections/f", fault);
            assert!(old.try_release("f", Some(1)).unwrap().is_err());
        }
        old.release("f", Some(1));
        if failed {
            old.beat();
        }
        assert!(matches!(new.join(true), Joined::In { .. }), "it holds nothing");
    }
}

/// C1: a process that does not know all that a life has won does not say that it holds nothing.
#[test]
fn a_second_handle_of_a_life_does_not_clear_what_the_first_one_won() {
    let wire = Wire::default();
    let first = Process::joined(&wire, "a", 1);
    first.win("e", 1);
    let second = Process::new(&wire, "a", 1);
    assert!(matches!(second.join(true), Joined::In { .. }));
    second.win("f", 2);
    second.release("f", Some(1));
    second.beat();
    let new = Process::new(&wire, "a", 2);
    assert!(matches!(new.join(true), Joined::Taken { .. }));
    assert!(first.keeps("e", 1));
}

/// C1: a record that says nothing of it is one that may hold something.
#[test]
fn a_record_that_does_not_say_whether_it_holds_anything_is_respected() {
    let wire = Wire::default();
    let old = Process::joined(&wire, "a", 1);
    let key = "tenure/default/members/a";
    let Ok(Loaded::Found { bytes, version }) = ready(wire.load(key, None)) else { panic!() };
    let text = String::from_utf8(bytes).unwrap();
    let without = text.replace(r#","holds":"nothing""#, "");
    assert_ne!(without, text);
    ready(wire.swap(key, Expect::Version(version), without.into_bytes())).unwrap();
    let new = Process::new(&wire, "a", 2);
    assert!(matches!(new.join(true), Joined::Taken { by, .. } if by == old.me.incarnation));
}

/// C1, broken on purpose: a newcomer that goes by a listing ends a live leader, and a
/// third one wins within its ttl.
#[cfg(feature = "__lab")]
#[test]
fn a_newcomer_that_trusts_a_listing_ends_a_live_leader() {
    let wire = Wire::default();
    let leader = Process::joined(&wire, "a", 1);
    wire.let_listings_lag();
    leader.win("e", 1);
    let namesake = Process::new(&wire, "a", 2);
    namesake.store.mutate(crate::CasRule::JoinTrustsListing);
    assert!(matches!(namesake.join(true), Joined::In { .. }));
    let third = Process::joined(&wire, "c", 3);
    assert_eq!(third.win("e", 1), 2, "within the ttl of the leader that was ended");
}
