//! Being asked to go: stop, drain, release, cool down (E3 to E5, C10).

use alloc::vec::Vec;
use core::time::Duration;

use super::script::*;
use crate::*;

/// A leader that was asked to step down at 1,000 ms, and knows it.
fn stopping(to: Option<&str>) -> Script {
    let mut script = Script::leading(WATCHED, "nightly");
    ask(&mut script, to);
    script
}

fn ask(script: &mut Script, to: Option<&str>) {
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    let view = asked_to_step_down(script.me(), 1, to);
    script.seen([view]);
}

fn released(script: &mut Script) -> ReleaseItem {
    let out = script.take(is_release);
    let Request::Release(release) = out.request else { unreachable!() };
    script.reply(out.id, Ok(Reply::Release));
    release.items[0].clone()
}

/// E4, H1, B7: the work is told first; the term is renewed while it drains, and
/// released when the work says that it stopped.
#[test]
fn a_step_down_tells_the_work_drains_and_then_releases() {
    let mut script = stopping(None);
    let drain_until = Mono::from_millis(11_000);
    let reason = Note::new("upgrade");
    let by = Note::new("ops");
    let reason = StopReason::Asked { reason, by, to: None };
    let election = name("nightly");
    let number = TermNumber::new(1);
    assert_eq!(script.events, [Event::Stopping { election, number, reason, drain_until }]);
    script.run_to(3_500);
    assert!(script.has_asked(is_beat), "it renews while it drains");
    script.alive(1);
    script.run_to(5_000);
    assert!(!script.has_asked(is_release), "never release first");
    script.resign("nightly", 1, None);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::SteppedDown)]);
    assert_eq!(released(&mut script).cause, ReleaseCause::SteppedDown);
}

/// E4, B7: a drain that takes too long ends, and the work gets the margin to
/// stop in before the term is released.
#[test]
fn a_drain_that_takes_too_long_is_cut_off() {
    let mut script = stopping(None);
    let beats = |_: Mono, request: &Request| is_beat(request).then(|| Ok(alive(1)));
    script.play(10_999, beats);
    assert_eq!(script.lost(), []);
    script.play(11_000, beats);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::DrainTimeout)]);
    script.play(11_999, |now, request| {
        assert!(!is_release(request), "released at {now} while the work may still run");
        beats(now, request)
    });
    script.run_to(12_000);
    assert_eq!(released(&mut script).cause, ReleaseCause::SteppedDown);
}

/// E5: the request reaches the holder by its heartbeat alone, with every hint
/// lost.
#[test]
fn a_step_down_works_without_hints() {
    let mut script = Script::leading(WATCHED, "nightly");
    let attention = 1;
    let seq = Seq::START;
    let beat = Beat::Alive { attention, holds: Some(1), seq, terms: Vec::new() };
    script.run_to(3_500);
    script.answer(Ok(Reply::Heartbeat(beat.clone())));
    let view = asked_to_step_down(script.me(), 1, None);
    script.seen([view]);
    assert!(matches!(script.events.last(), Some(Event::Stopping { .. })));
    script.run_to(6_000);
    script.answer(Ok(Reply::Heartbeat(beat)));
    assert!(script.sent.is_empty(), "the same attention is not looked at twice");
}

/// E5: a request meant for another term does nothing.
#[test]
fn a_step_down_of_another_term_is_ignored() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    let mut view = asked_to_step_down(script.me(), 1, None);
    view.step_down.as_mut().unwrap().number = TermNumber::new(2);
    script.seen([view]);
    assert_eq!(script.events, []);
}

/// E3: however often the store tells it, the work is told once.
#[test]
fn a_step_down_is_told_once() {
    let mut script = stopping(None);
    script.run_to(1_100);
    ask(&mut script, None);
    assert_eq!(script.events.len(), 1);
}

/// C10: the vacancy is kept for the successor named, for a ttl; a newer request
/// replaces the older, and one that resigns may name another still.
#[test]
fn a_hand_over_names_the_successor() {
    let successor = |script: &mut Script| {
        let (to, grace) = released(script).successor.expect("a successor is named");
        assert_eq!(grace, Duration::from_secs(10));
        to
    };
    let mut script = stopping(Some("b"));
    script.resign("nightly", 1, None);
    assert_eq!(successor(&mut script).as_str(), "b");

    let mut script = stopping(Some("b"));
    script.run_to(1_100);
    ask(&mut script, Some("c"));
    script.resign("nightly", 1, None);
    assert_eq!(successor(&mut script).as_str(), "c");

    let mut script = stopping(Some("b"));
    script.resign("nightly", 1, Some("d"));
    assert_eq!(successor(&mut script).as_str(), "d");
}

/// C10: also when the drain timed out, and when trust ended meanwhile.
#[test]
fn a_hand_over_survives_a_slow_drain_and_the_end_of_trust() {
    let mut script = stopping(Some("b"));
    script.play(11_999, |_, request| is_beat(request).then(|| Ok(alive(1))));
    script.run_to(12_000);
    assert_eq!(released(&mut script).successor.expect("named").0.as_str(), "b");

    let mut script = stopping(Some("b"));
    script.play(10_900, |_, _| None);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::TrustEnded)]);
    script.run_to(10_990);
    let item = released(&mut script);
    assert_eq!(item.cause, ReleaseCause::SteppedDown);
    assert_eq!(item.successor.expect("named").0.as_str(), "b");
}

/// A leader that already stops for its own reasons still answers the request.
#[test]
fn a_step_down_during_an_own_stop_is_answered() {
    let mut script = Script::leading(WATCHED, "nightly");
    let election = name("nightly");
    let number = TermNumber::new(1);
    script.feed(Input::StopLeading { election, number, to: None });
    ask(&mut script, Some("b"));
    assert_eq!(script.events.len(), 1, "the work is told once");
    script.resign("nightly", 1, None);
    assert_eq!(released(&mut script).successor.expect("named").0.as_str(), "b");
}

/// L2: whom the application hands over to has the term also when the work did not stop in
/// time, or trust ended first, and whether or not an operator named another.
#[test]
fn the_successor_that_the_application_chose_has_the_term_however_it_ends() {
    for (asked, answers) in [(false, true), (false, false), (true, true)] {
        let mut script = Script::leading(WATCHED, "nightly");
        let stop = |to: Option<&str>| Input::StopLeading {
            election: name("nightly"),
            number: TermNumber::new(1),
            to: to.map(|id| MemberId::new(id).unwrap()),
        };
        script.feed(stop(Some("b")));
        script.feed(stop(None));
        if asked {
            ask(&mut script, Some("c"));
        }
        let beats = |_, request: &Request| (answers && is_beat(request)).then(|| Ok(alive(1)));
        let given_back = if answers { 12_000 } else { 10_990 };
        script.play(given_back - 1, beats);
        script.run_to(given_back);
        let item = released(&mut script);
        assert_eq!(item.successor.expect("named").0.as_str(), "b", "{asked} {answers}");
    }
}

/// How the reign of one asked to step down may end.
fn endings() -> [fn(&mut Script); 4] {
    [
        |script| {
            script.resign("nightly", 1, None);
            released(script);
        },
        |script| {
            script.play(11_999, |_, request| is_beat(request).then(|| Ok(alive(1))));
            script.run_to(12_000);
            released(script);
        },
        |script| {
            script.play(10_989, |_, _| None);
            script.run_to(10_990);
            released(script);
        },
        |script| {
            script.run_to(3_500);
            script.first(is_beat).answer(Ok(ended(false)));
        },
    ]
}

/// E5, H22: a member that was asked to step down does not bid again within the
/// cooldown, however the reign ended, and no hint, look or lost answer shortens
/// it.
#[test]
fn one_who_stepped_down_cools_down() {
    for (which, end) in endings().into_iter().enumerate() {
        let mut script = stopping(None);
        end(&mut script);
        let lost = match which {
            0 => 1_000,
            1 => 11_000,
            2 => 9_990,
            _ => 3_500,
        };
        script.stand("nightly");
        script.sent.retain(|out| is_join(&out.request));
        let stale = held_by(
            "nightly",
            script.machine.membership.life().map_or(member("me", 0), |life| life.member.clone()),
            1,
            1,
        );
        let vacant = ElectionView::vacant(name("nightly"));
        let mut claimed = None;
        let mut looks = 0;
        while claimed.is_none() && script.now < Mono::from_millis(60_000) {
            let heir = Some(MemberId::new("me").unwrap());
            script.feed(Input::Hint(Hint::Vacant { election: name("nightly"), heir }));
            script.feed(Input::Hint(Hint::Anything));
            script.feed(Input::Hint(Hint::Election(name("nightly"))));
            let next = script.now.as_nanos() / 1_000_000 + 10;
            script.play(next, |now, request| match request {
                Request::Join(_) => Some(Ok(joined())),
                Request::Heartbeat(_) => Some(Ok(alive(0))),
                Request::Claim(_) => {
                    claimed = claimed.or(Some(now));
                    None
                }
                Request::Read(query) => {
                    let named = matches!(query.which, Which::Named(_));
                    looks += usize::from(named);
                    let view = [&stale, &vacant][looks % 2];
                    let elections = named.then(|| view.clone()).into_iter().collect();
                    Some(Ok(Reply::Read(Snapshot { elections, ..Snapshot::default() })))
                }
                _ => Some(Ok(Reply::Release)),
            });
        }
        assert_eq!(claimed, Some(Mono::from_millis(lost + 10_000)), "ending {which}");
        assert!(looks > 10, "{looks} looks");
    }
}

/// A leader that resigns of its own will does not cool down.
#[test]
fn one_who_resigned_may_bid_again_at_once() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.resign("nightly", 1, None);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::Resigned)]);
    script.stand("nightly");
    assert!(!script.has_asked(is_claim), "not while the release is out");
    assert_eq!(released(&mut script).cause, ReleaseCause::Resigned);
    assert!(script.has_asked(is_claim));
}

/// E1: a stop or a resignation that names another term leaves this one alone.
#[test]
fn stopping_another_term_does_nothing() {
    let mut script = Script::leading(WATCHED, "nightly");
    let election = name("nightly");
    let number = TermNumber::new(2);
    script.feed(Input::StopLeading { election: election.clone(), number, to: None });
    script.feed(Input::Resign { election, number, to: None });
    script.resign("weekly", 1, None);
    assert_eq!(script.events, []);
    assert!(script.sent.is_empty());
}
