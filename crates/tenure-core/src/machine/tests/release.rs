//! What is owed to the store is paid, exactly and until it is confirmed (E1, B8).

use alloc::vec;
use alloc::vec::Vec;

use super::script::*;
use crate::*;

/// The items of the release that is out.
fn items(script: &Script) -> Vec<(ElectionName, Option<u64>)> {
    let out = script.sent.iter().find(|out| is_release(&out.request));
    let Some(Request::Release(release)) = out.map(|out| &out.request) else {
        panic!("no release: {script:?}")
    };
    release.items.iter().map(|i| (i.election.clone(), i.number.map(TermNumber::get))).collect()
}

/// B8: a resignation that failed is repeated until the store confirms it, and
/// the machine does not bid for the election meanwhile.
#[test]
fn a_failed_resignation_is_repeated_until_confirmed() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.resign("nightly", 1, None);
    script.stand("nightly");
    for failure in [UNKNOWN, REFUSED, UNKNOWN] {
        assert_eq!(items(&script), [(name("nightly"), Some(1))]);
        assert!(!script.has_asked(is_claim));
        let id = script.take(is_release).id;
        script.reply(id, Err(failure));
        assert!(!script.has_asked(is_release), "not at once");
        script.run_for(400);
    }
    let id = script.take(is_release).id;
    script.reply(id, Ok(Reply::Leave));
    script.run_for(1_000);
    let id = script.take(is_release).id;
    script.reply(id, Ok(Reply::Release));
    assert!(script.has_asked(is_claim));
    script.run_for(60_000);
    assert!(!script.has_asked(is_release), "paid once, it is over");
}

/// B8: that a term is given back is said when the store has confirmed it, when
/// the life that held it is over, and when the member has left; not before.
#[test]
fn given_back_is_said_when_nothing_keeps_the_term_any_more() {
    let said = |script: &Script| {
        let back = Event::GivenBack { election: name("nightly"), number: TermNumber::new(1) };
        script.events.iter().filter(|event| **event == back).count()
    };
    let resigned = || {
        let mut script = Script::leading(WATCHED, "nightly");
        script.resign("nightly", 1, None);
        assert_eq!(said(&script), 0);
        script
    };
    let mut script = resigned();
    script.answer(Err(UNKNOWN));
    assert_eq!(said(&script), 0, "it may still be ours");
    script.run_for(100);
    script.answer(Ok(Reply::Release));
    assert_eq!(said(&script), 1);

    let mut script = resigned();
    script.run_to(3_500);
    script.first(is_beat).answer(Ok(ended(false)));
    assert_eq!(said(&script), 1);

    for (answer, times) in [(Ok(Reply::Leave), 1), (Err(REFUSED), 0)] {
        let mut script = Script::leading(WATCHED, "nightly");
        script.feed(Input::Shutdown);
        script.resign("nightly", 1, None);
        script.play(19_500, |_, request| is_leave(request).then(|| answer.clone()));
        assert_eq!(said(&script), times);
        assert!(script.machine.is_done());
    }
}

/// B8: a release that is not answered is given up and repeated.
#[test]
fn a_release_that_is_not_answered_is_repeated() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.resign("nightly", 1, None);
    script.take(is_release);
    script.run_to(3_600);
    assert_eq!(items(&script), [(name("nightly"), Some(1))]);
}

/// B8, C12: what is owed and not yet given back keeps the member on the short
/// ttl, so that it is free soon if it never is.
#[test]
fn a_member_that_owes_a_term_beats_like_a_holder() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.resign("nightly", 1, None);
    script.run_to(3_500);
    let out = script.take(is_beat);
    let Request::Heartbeat(beat) = &out.request else { unreachable!() };
    assert_eq!(beat.ttl, script.machine.settings().ttl());
}

/// E1, H8, B16: a release names exactly the term that was led, and a late
/// confirmation of an older one does not pay a newer debt.
#[test]
fn a_release_names_its_term_and_pays_no_other() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.resign("nightly", 1, None);
    let first = script.take(is_release).id;
    script.run_to(3_500);
    script.run_for(100);
    let second = script.take(is_release).id;
    script.reply(first, Ok(Reply::Release));
    script.stand("nightly");
    assert!(!script.has_asked(is_claim), "the late answer to the first pays nothing");
    script.reply(second, Ok(Reply::Release));
    script.first(is_claim).win(2);
    script.resign("nightly", 2, None);
    assert_eq!(items(&script), [(name("nightly"), Some(2))]);
}

/// Withdrawing from an election that was never bid for costs the store nothing.
#[test]
fn withdrawing_unheard_asks_nothing() {
    let mut script = Script::new(WATCHED);
    script.stand("nightly");
    script.withdraw("nightly");
    script.withdraw("weekly");
    assert_eq!(script.events, [Event::Withdrawn { election: name("nightly") }]);
    script.answer(Ok(joined()));
    assert!(script.sent.is_empty());
}

/// Withdrawing ends the candidacy in the store; standing again waits for that.
#[test]
fn withdrawing_ends_the_candidacy_in_the_store() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.held([held_by("nightly", member("other", 1), 1, 9_000)]);
    script.withdraw("nightly");
    assert_eq!(items(&script), [(name("nightly"), None)]);
    assert!(!script.has_asked(is_read), "nothing is unclear");
    script.stand("nightly");
    assert!(!script.has_asked(is_claim));
    script.answer(Ok(Reply::Release));
    assert!(script.has_asked(is_claim));
}

/// B18: a bid that wins after it was withdrawn is given back.
#[test]
fn a_win_after_the_withdrawal_is_given_back() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.withdraw("nightly");
    script.first(is_claim).win(1);
    assert_eq!(script.elected(), []);
    script.first(is_release).answer(Ok(Reply::Release));
    assert_eq!(items(&script), [(name("nightly"), Some(1))]);
    script.stand("nightly");
    script.first(is_release).answer(Ok(Reply::Release));
    script.first(is_claim).win(2);
    assert_eq!(script.elected(), [(name("nightly"), 2)]);
}

/// B18: a bid that was withdrawn while it was out may have come after the
/// release of its candidacy: that is ended once more, so that no vacancy is kept
/// for a member that does not stand.
#[test]
fn a_bid_that_overtakes_its_withdrawal_leaves_no_candidate_behind() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.withdraw("nightly");
    script.first(is_release).answer(Ok(Reply::Release));
    script.first(is_claim).held([held_by("nightly", member("other", 1), 1, 9_000)]);
    assert_eq!(items(&script), [(name("nightly"), None)]);

    let mut script = Script::standing(WATCHED, "nightly");
    script.withdraw("nightly");
    script.first(is_release).answer(Ok(Reply::Release));
    script.seen([]);
    script.first(is_claim).answer(Err(UNKNOWN));
    assert_eq!(items(&script), [(name("nightly"), None)]);
    script.run_for(50);
    let me = script.me();
    script.seen([held_by("nightly", me, 1, 9_000)]);
    script.first(is_release).answer(Ok(Reply::Release));
    assert_eq!(items(&script), [(name("nightly"), Some(1))], "it had won");
}

/// B18: a withdrawal with a bid of unknown outcome looks, and gives back what it
/// finds, even while the end of the candidacy is not confirmed yet.
#[test]
fn withdrawing_an_unclear_bid_finds_out() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.answer(Err(UNKNOWN));
    script.withdraw("nightly");
    let me = script.me();
    let ended = script.take(is_release).id;
    script.seen([held_by("nightly", me, 1, 9_000)]);
    script.reply(ended, Ok(Reply::Release));
    assert_eq!(items(&script), [(name("nightly"), Some(1))]);
}

/// B18: a term that the store has under our name and the machine does not know is
/// found by the count in the heartbeat, and given back.
#[test]
fn an_orphan_is_found_by_the_count_and_given_back() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(3_500);
    script.alive(2);
    let me = script.me();
    let orphan = held_by("weekly", me.clone(), 4, 9_000);
    script.seen([held_by("nightly", me, 1, 9_000), orphan]);
    assert_eq!(items(&script), [(name("weekly"), Some(4))]);
    assert_eq!(script.lost(), []);
    script.answer(Ok(Reply::Release));
    script.run_to(6_000);
    script.alive(1);
    assert!(!script.has_asked(is_read), "the count is right again");
}

/// H3: a term that the store no longer has is found by the count and lost.
#[test]
fn a_term_the_store_no_longer_has_is_lost() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(3_500);
    script.alive(0);
    script.seen([]);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::Superseded)]);
    assert_eq!(items(&script), [(name("nightly"), None)], "only the candidacy is left to end");
}

/// A number of ours that is not the one we lead: ours is lost, theirs goes back.
#[test]
fn a_term_under_another_number_is_given_back() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.feed(Input::Hint(Hint::Anything));
    let me = script.me();
    script.seen([held_by("nightly", me, 2, 9_000)]);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::Superseded)]);
    assert_eq!(items(&script), [(name("nightly"), Some(2))]);
}

/// E2: after a lost answer, a look that finds the term ours leads to the repeated
/// bid that adopts it, not to a release.
#[test]
fn a_look_does_not_give_back_what_a_repeated_bid_adopts() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.answer(Err(UNKNOWN));
    script.feed(Input::Hint(Hint::Anything));
    let me = script.me();
    script.seen([held_by("nightly", me, 1, 9_000)]);
    assert!(!script.has_asked(is_release));
    script.run_for(100);
    script.first(is_claim).win(1);
    assert_eq!(script.elected(), [(name("nightly"), 1)]);
}

/// A look that was under way while something was won or given back is not taken
/// for the truth: another follows.
#[test]
fn an_audit_that_was_overtaken_is_repeated() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.feed(Input::Hint(Hint::Anything));
    let look = script.take(is_read).id;
    script.stand("weekly");
    script.first(is_claim).win(1);
    let elections = vec![held_by("nightly", script.me(), 1, 9_000)];
    script.reply(look, Ok(Reply::Read(Snapshot { elections, ..Snapshot::default() })));
    assert_eq!(script.lost(), [], "the look may be older than the win");
    script.run_for(50);
    assert!(script.has_asked(is_read));
}

/// A bid answered with our own name, which is no win: it goes back, and then
/// there is another bid.
#[test]
fn a_term_of_ours_that_a_bid_did_not_win_is_given_back() {
    let mut script = Script::standing(WATCHED, "nightly");
    let me = script.me();
    script.held([held_by("nightly", me, 3, 9_000)]);
    assert_eq!(items(&script), [(name("nightly"), Some(3))]);
    script.run_to(2_000);
    script.first(is_release).answer(Ok(Reply::Release));
    assert!(script.has_asked(is_claim));
}
