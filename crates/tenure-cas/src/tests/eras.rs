//! The floor of term numbers (M6): the interleavings of `eras.rs`.

use super::*;

fn restored() -> Amend {
    Amend::restored(Note::new("ops"))
}

/// A has won once and given back; an operator that has seen nothing stands by.
fn world() -> (Wire, Process, Process) {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    a.release("e", Some(1));
    let operator = Process::new(&wire, "ops", 9);
    (wire, a, operator)
}

/// M6: also of elections whose record was lost, and once only.
#[test]
fn an_operators_word_lifts_the_numbers_of_all_elections() {
    let (wire, _a, operator) = world();
    assert_eq!(operator.amend(restored()), Amended::Restored { before: 0, after: 1 });
    let b = Process::joined(&wire, "b", 2);
    let lifted = b.win("e", 1);
    assert!(lifted > 1 + Era::JUMP, "{lifted}");
    let founded = b.win("lost", 1);
    assert!(founded > 1 + Era::JUMP, "{founded}");
    assert_eq!(b.win("e", 2), lifted + 1);
    assert_eq!(operator.amend(restored()), Amended::Restored { before: 1, after: 2 });
    assert!(b.keeps("e", lifted + 1), "a leader goes on leading");
    assert!(b.win("e", 3) > lifted + 1 + Era::JUMP);
}

/// M6: the swap of a bid lands after the floor has risen, whether or not there is a record.
#[test]
fn a_bid_that_is_on_its_way_while_the_floor_rises_wins_above_it() {
    for election in ["e", "lost"] {
        let (wire, a, operator) = world();
        let raise = move || assert!(matches!(operator.amend(restored()), Amended::Restored { .. }));
        wire.swap_meets("elections", Fault::First(Box::new(raise)));
        let number = a.win(election, 2);
        assert!(number > 1 + Era::JUMP, "{election}: {number}");
        assert!(a.keeps(election, number), "it is a win like any other");
    }
}

/// M6, E2: it is not known whether the number is above the floor, so that the bid is open,
/// and its repeat finds out.
#[test]
fn a_win_whose_look_at_the_floor_failed_is_not_answered() {
    let (wire, _a, operator) = world();
    operator.amend(restored());
    let b = Process::joined(&wire, "b", 2);
    wire.load_meets("floor/elections", Fault::Fail);
    assert!(matches!(b.bid("e", 1), Claimed::Unknown(_)));
    let number = b.win("e", 1);
    assert!(number > 1 + Era::JUMP, "{number}");
}

/// M6: the tokens of names go by the same floor.
#[test]
fn an_operators_word_lifts_the_tokens_of_names() {
    let (wire, _a, operator) = world();
    operator.amend(restored());
    let b = Process::joined(&wire, "b", 2);
    let op = BindOp::take(Name::new("n").unwrap(), Nonce::new(1), Value::default());
    let bound = ready(b.store.bind(&ns(), &Bind::new(b.me.clone(), TTL, [op]))).unwrap();
    let Bindings::Answered(answers) = bound else { panic!("{bound:?}") };
    let [BindAnswer::Bound(binding)] = &answers[..] else { panic!("{answers:?}") };
    assert!(binding.token.get() > Era::JUMP, "{binding:?}");
}

/// A claim that has won nothing does not look at the floor.
#[test]
fn only_a_win_costs_a_look_at_the_floor() {
    let (wire, a, _operator) = world();
    a.win("e", 2);
    let b = Process::joined(&wire, "b", 2);
    wire.load_meets("floor/elections", Fault::Fail);
    b.lose("e", 1);
    assert!(matches!(b.bid("other", 1), Claimed::Unknown(_)), "the fault is still to come");
}
