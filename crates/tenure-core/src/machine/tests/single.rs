//! Stores that renew each term on its own: trust is each term's own too.

use alloc::vec::Vec;

use super::script::*;
use crate::*;

const TRUST: u64 = 8_990;

/// A leader of `nightly` and `weekly`, both won by a claim sent at 1,000 ms.
fn leading_two() -> Script {
    let mut script = Script::new(SINGLE);
    script.stand("nightly");
    script.stand("weekly");
    script.answer(Ok(joined()));
    script.win(1);
    script.events.clear();
    script
}

/// Answers the heartbeat that is out, term by term.
fn renew(script: &mut Script, outcomes: &[(&str, u64, TermOutcome)]) {
    let term = |(election, number, outcome): &(&str, u64, TermOutcome)| TermBeat {
        term: TermRef { election: name(election), number: TermNumber::new(*number) },
        outcome: outcome.clone(),
    };
    let terms = outcomes.iter().map(term).collect();
    let (attention, seq) = (0, Seq::START);
    let beat = Beat::Alive { attention, holds: None, seq, terms };
    script.first(is_beat).answer(Ok(Reply::Heartbeat(beat)));
}

const RENEWED: TermOutcome = TermOutcome::Renewed { step_down: None };

/// The heartbeat names what is held, and each answer extends its own term, from
/// before the request was sent (T1).
#[test]
fn each_term_is_named_and_renewed_on_its_own() {
    let mut script = leading_two();
    script.run_to(3_500);
    let Request::Heartbeat(beat) = script.asked() else { panic!("{script:?}") };
    let held: Vec<_> = beat.held.iter().map(|t| (t.election.as_str(), t.number.get())).collect();
    assert_eq!(held, [("nightly", 1), ("weekly", 1)]);
    script.run_to(4_000);
    renew(&mut script, &[("weekly", 1, RENEWED)]);
    let [Event::Trusted { election, until, .. }] = &script.events[..] else {
        panic!("{:?}", script.events)
    };
    assert_eq!(election.as_ref(), Some(&name("weekly")));
    assert_eq!(*until, Mono::from_millis(3_500 + TRUST));
    script.events.clear();
    script.jump_to(1_000 + TRUST);
    script.feed(Input::Wake);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::TrustEnded)], "only the one");
}

/// H3: one term that is lost is lost alone, and at once.
#[test]
fn one_lost_term_is_lost_alone() {
    let mut script = leading_two();
    script.run_to(3_500);
    renew(&mut script, &[("nightly", 1, TermOutcome::Lost), ("weekly", 1, RENEWED)]);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::Superseded)]);
    script.run_to(6_000);
    let Request::Heartbeat(beat) = &script.take(is_beat).request else { unreachable!() };
    assert_eq!(beat.held.len(), 1);
}

/// F1: a term whose renewal is unknown is not extended, is tried again soon, and
/// ends when its trust does.
#[test]
fn an_unknown_renewal_extends_nothing_and_is_tried_again() {
    let mut script = leading_two();
    script.run_to(3_500);
    let outcomes = [("nightly", 1, TermOutcome::Unknown), ("weekly", 1, RENEWED)];
    renew(&mut script, &outcomes);
    script.run_to(4_125);
    assert!(script.has_asked(is_beat), "before the next interval");
    let mut beats = 0;
    while script.lost().is_empty() {
        if script.has_asked(is_beat) {
            beats += 1;
            renew(&mut script, &outcomes);
        }
        script.run_for(1);
    }
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::TrustEnded)]);
    assert_eq!(script.now, Mono::from_millis(1_000 + TRUST));
    assert!(beats <= 10, "{beats} beats in 6 s");
}

/// E1: an answer about another term, or one that is not held, changes nothing.
#[test]
fn an_answer_about_another_term_changes_nothing() {
    let mut script = leading_two();
    script.run_to(3_500);
    renew(&mut script, &[("nightly", 2, TermOutcome::Lost), ("hourly", 1, RENEWED)]);
    assert_eq!(script.events, []);
}

/// A failed heartbeat extends none of them.
#[test]
fn a_failed_heartbeat_extends_none() {
    let mut script = leading_two();
    script.play(1_000 + TRUST - 1, |_, _| Some(Err(UNKNOWN)));
    assert_eq!(script.lost(), []);
    script.run_to(1_000 + TRUST);
    assert_eq!(script.lost().len(), 2);
}

/// A term that was won after the heartbeat left was not renewed by it.
#[test]
fn a_heartbeat_does_not_renew_what_was_won_after_it_left() {
    let mut script = leading_two();
    script.run_to(3_500);
    script.stand("hourly");
    script.first(is_claim).win(1);
    script.events.clear();
    script.run_to(4_500);
    renew(&mut script, &[("nightly", 1, RENEWED), ("weekly", 1, RENEWED)]);
    assert_eq!(script.events.len(), 2);
    script.jump_to(3_500 + TRUST);
    script.feed(Input::Wake);
    assert_eq!(script.lost().len(), 3, "all three were asked for at 3,500 ms");
}

/// E5: a step-down comes with the renewal.
#[test]
fn a_step_down_comes_with_the_renewal() {
    let mut script = leading_two();
    script.run_to(3_500);
    let step_down = asked_to_step_down(script.me(), 1, None).step_down;
    let outcomes = [("nightly", 1, TermOutcome::Renewed { step_down }), ("weekly", 1, RENEWED)];
    renew(&mut script, &outcomes);
    let stopping = script.events.iter().filter(|e| matches!(e, Event::Stopping { .. }));
    assert_eq!(stopping.count(), 1);
    script.run_to(6_000);
    let Request::Heartbeat(beat) = script.asked() else { panic!("{script:?}") };
    assert_eq!(beat.held.len(), 2, "it is renewed while it drains");
}

/// M1: the end of the member is the end of all of them.
#[test]
fn the_end_of_the_member_ends_all_terms() {
    let mut script = leading_two();
    script.run_to(3_500);
    script.answer(Ok(ended(false)));
    assert_eq!(script.lost().len(), 2);
}

/// T1: a win is trusted from before its own claim was sent, whatever the
/// heartbeat of the member says meanwhile.
#[test]
fn a_win_is_trusted_from_its_own_claim() {
    let mut script = leading_two();
    script.run_to(3_400);
    script.stand("hourly");
    script.run_to(3_500);
    renew(&mut script, &[("nightly", 1, RENEWED), ("weekly", 1, RENEWED)]);
    script.run_to(5_000);
    script.first(is_claim).win(1);
    let Some(Event::Elected { trusted_until, .. }) = script.events.last() else {
        panic!("{:?}", script.events)
    };
    assert_eq!(*trusted_until, Mono::from_millis(3_400 + TRUST));
    script.jump_to(3_400 + TRUST);
    script.feed(Input::Wake);
    assert_eq!(script.lost(), [(name("hourly"), 1, LostReason::TrustEnded)]);
}
