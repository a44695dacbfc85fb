//! Each guard on its own: what it keeps from happening.

use alloc::collections::BTreeSet;
use core::time::Duration;

use tenure_core::{
    Amend, Bid, Claim, Claimed, Claims, ElectionName, Heartbeat, Incarnation, Join, MemberId,
    MemberRef, Mono, Nonce, Note, Timestamp,
};

use super::{Looked, Partial, Turn, Want};
use crate::memory::MemoryState;
use crate::rows::{Moment, ReadRows};

const TTL: Duration = Duration::from_secs(10);
const WALL: Timestamp = Timestamp::from_unix_millis(1_700_000_000_000);

fn at(seconds: u64) -> Mono {
    Mono::from_millis(1_000_000 + seconds * 1_000)
}

fn member(id: &str) -> MemberRef {
    MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(1))
}

fn election() -> ElectionName {
    ElectionName::new("e").unwrap()
}

fn claim(member: &MemberRef) -> Claim {
    Claim::new(member.clone(), TTL, [Bid::new(election(), Nonce::new(1))])
}

/// Two members of which none holds anything.
fn two_members() -> MemoryState {
    let mut state = MemoryState::new();
    for id in ["a", "b"] {
        state.join(at(0), WALL, &Join::new(member(id), TTL));
    }
    state
}

fn everything() -> BTreeSet<Want> {
    let candidates = Want::Candidates(election());
    BTreeSet::from([Want::Members, Want::Elections, candidates, Want::Remains])
}

fn look(state: &MemoryState, now: Mono) -> Partial {
    let looked = Looked::of(state, Moment { now, wall: WALL }, 0, &everything());
    Partial::new(everything(), looked)
}

fn claiming(state: &MemoryState, now: Mono, caller: &MemberRef) -> Turn {
    let mut rows = look(state, now);
    let moment = rows.at();
    let Ok(Claims::Answered(answers)) = crate::claim(&mut rows, moment, &claim(caller)) else {
        panic!("it was not answered")
    };
    assert!(matches!(&answers[..], [Claimed::Won(_)]), "{answers:?}");
    rows.into_turn(Some(caller))
}

#[test]
fn of_two_turns_from_one_look_one_applies() {
    let mut state = two_members();
    let first = claiming(&state, at(1), &member("a"));
    let second = claiming(&state, at(1), &member("b"));
    assert!(first.may_apply(&state, at(1), 0));
    first.apply(&mut state);
    assert!(!second.may_apply(&state, at(1), 1));
    let Ok(held) = state.election(&election());
    assert!(held.is_some_and(|row| row.is_held_by(&member("a"))));
}

/// M1: the process was stopped between the look and the turn, and its ttl ran out.
#[test]
fn a_caller_whose_ttl_ran_out_since_the_look_wins_nothing() {
    let state = two_members();
    let turn = claiming(&state, at(1), &member("a"));
    assert!(turn.may_apply(&state, at(10) - Duration::from_millis(1), 0));
    assert!(!turn.may_apply(&state, at(10), 0));
}

/// M2: a row that is written back as it was seen would take a heartbeat back that came
/// between, and the holder would be ended while it still trusts that it leads.
#[test]
fn a_turn_takes_no_heartbeat_back() {
    let mut state = two_members();
    claiming(&state, at(1), &member("a")).apply(&mut state);
    let mut rows = look(&state, at(2));
    let moment = rows.at();
    let ask = Amend::step_down(election(), Note::default(), Note::default());
    crate::amend(&mut rows, moment, &ask).unwrap();
    let turn = rows.into_turn(None);
    assert!(turn.may_apply(&state, at(3), 0));
    state.heartbeat(at(3), &Heartbeat::new(member("a"), TTL));
    assert!(!turn.may_apply(&state, at(3), 0));
}

/// What a turn writes is what the rules would have written by themselves.
#[test]
fn a_turn_leaves_what_a_step_leaves() {
    let mut by_turn = two_members();
    let mut by_step = by_turn.clone();
    claiming(&by_turn, at(1), &member("a")).apply(&mut by_turn);
    by_step.claim(at(1), WALL, &claim(&member("a")));
    assert_eq!(by_turn, by_step);
}

#[test]
fn a_row_that_was_not_looked_at_is_named() {
    let state = two_members();
    let looked = Looked::of(&state, Moment { now: at(1), wall: WALL }, 0, &BTreeSet::new());
    let rows = Partial::new(BTreeSet::new(), looked);
    let missing = rows.election(&election()).unwrap_err();
    assert_eq!(missing.0, Want::Election(election()));
    let id = member("a").id;
    assert_eq!(rows.member(&id).unwrap_err().0, Want::Member(id));
}
