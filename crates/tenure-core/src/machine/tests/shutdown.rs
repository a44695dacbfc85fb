//! Stopping everything in order, and in bounded time (E4).

use alloc::vec::Vec;

use super::script::*;
use crate::*;

fn left(script: &Script) -> Option<bool> {
    script.events.iter().find_map(|event| match event {
        Event::Left { confirmed } => Some(*confirmed),
        _ => None,
    })
}

fn beats(_: Mono, request: &Request) -> Answer {
    is_beat(request).then(|| Ok(alive(1)))
}

/// E4: the work is told, the term is renewed while it drains, and only then the
/// member leaves, which releases everything.
#[test]
fn a_shutdown_drains_before_it_leaves() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.feed(Input::Shutdown);
    let stopping = script.events.last();
    assert!(matches!(stopping, Some(Event::Stopping { reason: StopReason::Shutdown, .. })));
    script.play(8_000, |now, request| {
        assert!(!is_leave(request), "it leaves at {now}, while the work still runs");
        beats(now, request)
    });
    assert_eq!(script.lost(), [], "it renews while it drains");
    script.resign("nightly", 1, None);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::Resigned)]);
    assert!(!script.has_asked(is_release), "leaving gives it back too");
    let id = script.take(is_leave).id;
    script.reply(id, Ok(Reply::Leave));
    assert_eq!(left(&script), Some(true));
}

/// E4: a drain that takes too long is cut off, and the work still gets the margin
/// before the member leaves.
#[test]
fn a_shutdown_cuts_a_slow_drain_off() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.feed(Input::Shutdown);
    script.play(11_000, beats);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::DrainTimeout)]);
    script.play(11_999, |now, request| {
        assert!(!is_leave(request), "it leaves at {now}, before the margin is over");
        beats(now, request)
    });
    script.run_to(12_000);
    assert!(script.has_asked(is_leave));
}

/// Candidacies that wait are withdrawn at once; standing during a shutdown is refused.
#[test]
fn candidacies_end_with_the_shutdown() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.stand("weekly");
    script.first(is_claim).held([held_by("weekly", member("other", 1), 1, 9_000)]);
    script.events.clear();
    script.feed(Input::Shutdown);
    script.stand("hourly");
    let withdrawn = |event: &Event| match event {
        Event::Withdrawn { election } => Some(election.clone()),
        _ => None,
    };
    let withdrawn: Vec<_> = script.events.iter().filter_map(withdrawn).collect();
    assert_eq!(withdrawn, [name("weekly"), name("hourly")]);
    script.feed(Input::Hint(Hint::Vacant { election: name("weekly"), heir: None }));
    script.play(10_000, |now, request| {
        assert!(is_beat(request), "{request:?}");
        beats(now, request)
    });
}

/// B8: a leave that failed is repeated, a few times.
#[test]
fn a_leave_is_tried_three_times() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.feed(Input::Shutdown);
    for _ in 0..2 {
        let id = script.take(is_leave).id;
        script.reply(id, Err(REFUSED));
        assert!(!script.has_asked(is_leave), "not at once");
        assert_eq!(left(&script), None);
        script.run_for(200);
    }
    let id = script.take(is_leave).id;
    script.reply(id, Ok(Reply::Release));
    assert_eq!(left(&script), Some(false), "the answer to something else confirms nothing");
    assert!(script.machine.is_done());
}

/// With the store silent, it is over within drain, margin and three requests.
#[test]
fn a_shutdown_ends_in_bounded_time() {
    for silent in [true, false] {
        let mut script = Script::leading(WATCHED, "nightly");
        script.feed(Input::Shutdown);
        script.play(19_500, |_, _| (!silent).then_some(Err(UNKNOWN)));
        assert_eq!(left(&script), Some(false));
        assert_eq!(script.lost().len(), 1);
        assert!(script.machine.is_done());
    }
}

/// Nothing moves a machine that has shut down.
#[test]
fn nothing_is_accepted_afterwards() {
    let mut script = Script::standing(WATCHED, "nightly");
    let claim = script.take(is_claim);
    let Request::Claim(asked) = &claim.request else { unreachable!() };
    let won = all_won(asked, 1);
    script.feed(Input::Shutdown);
    let id = script.take(is_leave).id;
    script.reply(id, Ok(Reply::Leave));
    assert_eq!(left(&script), Some(true));
    script.events.clear();
    script.reply(claim.id, Ok(won));
    script.stand("weekly");
    script.feed(Input::Join);
    script.feed(Input::Hint(Hint::Anything));
    script.feed(Input::Shutdown);
    script.feed(Input::Wake);
    assert_eq!(script.events, []);
    assert!(script.sent.is_empty());
    assert_eq!(script.machine.next_wake(), None);
}

/// A member that never joined leaves without a request.
#[test]
fn a_machine_that_never_joined_is_done_at_once() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::Shutdown);
    assert_eq!(left(&script), Some(true));
    assert!(script.sent.is_empty());
}

/// B18: a join on its way is waited for, and whatever became of it is left, so
/// that no member stays behind for its ttl.
#[test]
fn a_join_on_its_way_is_left_behind_by_a_leave() {
    for answer in [Some(Ok(joined())), Some(Err(UNKNOWN)), None] {
        let mut script = Script::new(WATCHED);
        script.feed(Input::Join);
        let join = script.take(is_join);
        let Request::Join(asked) = join.request else { unreachable!() };
        script.feed(Input::Shutdown);
        assert!(!script.has_asked(is_leave), "the join might come after it");
        match answer {
            Some(answer) => script.reply(join.id, answer),
            None => script.run_to(3_500),
        }
        let leave = script.take(is_leave);
        assert_eq!(leave.request, Request::Leave(asked.member));
    }
}

/// B18: a bid that wins during the shutdown leads to nothing but the leave.
#[test]
fn a_win_during_the_shutdown_is_not_led() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.stand("weekly");
    script.feed(Input::Shutdown);
    script.first(is_claim).win(1);
    assert_eq!(script.elected(), []);
    script.resign("nightly", 1, None);
    let id = script.take(is_leave).id;
    script.reply(id, Ok(Reply::Leave));
    assert_eq!(left(&script), Some(true));
}

/// A second request to shut down does not prolong the first.
#[test]
fn a_second_shutdown_changes_nothing() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.feed(Input::Shutdown);
    script.play(9_000, beats);
    script.feed(Input::Shutdown);
    assert_eq!(script.events.iter().filter(|e| matches!(e, Event::Stopping { .. })).count(), 1);
    script.play(19_500, beats);
    assert_eq!(left(&script), Some(false));
}

/// A life that is over during the shutdown needs no leave.
#[test]
fn an_ended_member_needs_no_leave() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.feed(Input::Shutdown);
    script.run_to(3_500);
    script.first(is_beat).answer(Ok(ended(false)));
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::Superseded)]);
    assert_eq!(left(&script), Some(true));
}
