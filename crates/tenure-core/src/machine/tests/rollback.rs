//! A store that forgets what it told (M6, P1, R6).

use super::script::*;
use crate::*;

fn alive_at(place: u64) -> Result<Reply, Failed> {
    let attention = 0;
    let holds = None;
    let seq = Seq::new(place);
    Ok(Reply::Heartbeat(Beat::Alive { attention, holds, seq, terms: alloc::vec![] }))
}

fn rollbacks(script: &Script) -> usize {
    script.events.iter().filter(|event| matches!(event, Event::RolledBack { .. })).count()
}

/// A leader whose store stood at place 10 when it last asked.
fn leading_at_ten() -> Script {
    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(3_500);
    script.first(is_beat).answer(alive_at(10));
    script
}

/// R6: it is told, once; what was led is lost without waiting for trust to end; and the
/// next bid says what was seen.
#[test]
fn a_store_that_has_less_than_it_told_was_rolled_back() {
    let mut script = leading_at_ten();
    script.run_to(6_000);
    script.first(is_beat).answer(alive_at(9));
    let told = Event::RolledBack { seen: Seq::new(10), found: Seq::new(9) };
    assert!(script.events.contains(&told), "{script:?}");
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::RolledBack)]);
    script.stand("nightly");
    script.run_to(8_500);
    let release = script.take(is_release);
    script.reply(release.id, Ok(Reply::Release));
    let claim = script.take(is_claim);
    let Request::Claim(claimed) = &claim.request else { unreachable!() };
    assert_eq!(claimed.seen, Told::new(Seq::new(10), TermNumber::new(1)));
    if script.has_asked(is_beat) {
        script.first(is_beat).answer(alive_at(9));
    }
    assert_eq!(rollbacks(&script), 1, "it is known already");
    script.reply(claim.id, Ok(all_won(claimed, 1 << 20)));
    assert_eq!(script.elected(), [(name("nightly"), 1 << 20)]);
}

/// Of two requests on their way at once, the one that was answered later may speak of
/// an earlier moment; a place of none says nothing.
#[test]
fn an_answer_that_was_overtaken_is_no_rollback() {
    let mut script = leading_at_ten();
    script.feed(Input::Hint(Hint::Anything));
    script.run_to(6_000);
    let look = script.take(is_read);
    script.first(is_beat).answer(alive_at(12));
    let snapshot = Snapshot {
        seq: Seq::new(11),
        elections: alloc::vec![held_by("nightly", script.me(), 1, 9_000)],
        ..Snapshot::default()
    };
    script.reply(look.id, Ok(Reply::Read(snapshot)));
    script.sent.clear();
    script.run_to(9_000);
    script.first(is_beat).answer(alive_at(0));
    assert_eq!(rollbacks(&script), 0, "{script:?}");
    assert!(script.lost().is_empty(), "{script:?}");
}

/// R6: a number that was another's, or lower than one that was shown, is not led: it is
/// given back, and the next bid claims to have seen more than the journal has.
#[test]
fn a_win_under_a_number_seen_before_is_not_believed() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.held([held_by("nightly", member("other", 7), 5, 3_000)]);
    script.run_to(4_500);
    script.first(is_claim).win(5);
    assert!(script.elected().is_empty(), "{script:?}");
    assert_eq!(rollbacks(&script), 1);
    let release = script.take(is_release);
    script.reply(release.id, Ok(Reply::Release));
    script.run_to(7_000);
    let Request::Claim(claim) = script.take(is_claim).request else { unreachable!() };
    assert!(claim.seen.place > Seq::new(1 << 19), "{claim:?}");
    assert_eq!(claim.seen.number, TermNumber::new(5));
}

/// The highest number of any election is told, whatever showed it: a bid that was not
/// won, a win, or a look.
#[test]
fn the_highest_number_that_was_seen_is_told() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.held([held_by("nightly", member("other", 7), 500, 60_000)]);
    script.stand("weekly");
    assert_eq!(told(&script), 500);
    script.first(is_claim).win(600);
    script.stand("monthly");
    assert_eq!(told(&script), 600);
    script.held([held_by("monthly", member("other", 7), 7, 60_000)]);
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    script.run_to(1_100);
    script.seen([held_by("nightly", member("third", 8), 700, 60_000)]);
    script.stand("yearly");
    assert_eq!(told(&script), 700);
}

/// The number that the claim on its way tells.
fn told(script: &Script) -> u64 {
    let claim = script.sent.iter().rev().find_map(|sent| match &sent.request {
        Request::Claim(claim) => Some(claim),
        _ => None,
    });
    claim.unwrap_or_else(|| panic!("a claim: {script:?}")).seen.number.get()
}

/// A life that the store forgot joins anew, and its join says what was seen.
#[test]
fn a_join_says_what_was_seen() {
    let mut script = leading_at_ten();
    script.run_to(6_000);
    script.first(is_beat).answer(Ok(ended(false)));
    script.stand("nightly");
    let Request::Join(join) = script.take(is_join).request else { unreachable!() };
    assert_eq!(join.seen, Told::new(Seq::new(10), TermNumber::new(1)));
}
