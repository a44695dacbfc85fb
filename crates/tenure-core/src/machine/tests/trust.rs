//! How long a holder may believe that it leads (T1 to T4).

use alloc::boxed::Box;
use alloc::vec;
use core::time::Duration;

use super::script::*;
use crate::*;

const TRUST: u64 = 8_990;

/// T1, H10: the first grant is trusted by the same rule as any other, from
/// before the claim was sent, however late the answer comes.
#[test]
fn the_first_trust_counts_from_before_the_claim_was_sent() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.run_to(3_000);
    script.win(1);
    let Some(Event::Elected { trusted_until, .. }) = script.events.last() else {
        panic!("{:?}", script.events)
    };
    assert_eq!(*trusted_until, Mono::from_millis(1_000 + TRUST));
}

/// T1: a second term won does not lengthen trust beyond what the newest
/// confirmed request gives, and the older of two answers does not shorten it.
#[test]
fn trust_is_that_of_the_newest_confirmed_request() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(3_500);
    let beat = script.take(is_beat);
    script.now = Mono::from_millis(3_600);
    script.stand("weekly");
    script.win(1);
    let until = Mono::from_millis(3_600 + TRUST);
    assert!(matches!(script.events.last(), Some(Event::Elected { trusted_until, .. })
        if *trusted_until == until));
    script.events.clear();
    script.reply(beat.id, Ok(alive(2)));
    assert_eq!(script.events, vec![], "the older request adds nothing");
    assert_eq!(script.machine.terms.trust_end(), Some(until));
}

/// The margin left at each renewal is what was left of the trust before, and a
/// win is no renewal.
#[test]
fn a_renewal_tells_what_was_left_of_the_trust_before() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.held([held_by("nightly", member("other", 1), 1, 15_000)]);
    script.run_to(11_000);
    script.alive(0);
    let claimed = 16_001;
    script.run_to(claimed);
    script.win(2);
    assert!(!script.events.iter().any(|e| matches!(e, Event::Trusted { .. })), "{script:?}");
    script.run_to(claimed + 4_000);
    script.alive(1);
    let left = Duration::from_millis(TRUST - 4_000);
    assert!(matches!(script.events.last(), Some(Event::Trusted { margin_left, .. })
        if *margin_left == left));
}

/// B1, F1: renewals that fail, whatever they say of their outcome, leave the end
/// of trust where it was.
#[test]
fn a_failed_renewal_extends_nothing() {
    for failure in [UNKNOWN, REFUSED] {
        let mut script = Script::leading(WATCHED, "nightly");
        script.play(1_000 + TRUST - 1, |_, _| Some(Err(failure)));
        assert_eq!(script.lost(), []);
        script.play(1_000 + TRUST, |_, _| Some(Err(failure)));
        assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::TrustEnded)]);
    }
}

/// An answer to a request that was given up, or to none at all, is ignored.
#[test]
fn only_the_request_in_flight_extends_trust() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(3_500);
    let given_up = script.take(is_beat);
    script.run_to(6_500);
    assert!(script.has_asked(is_beat), "it was given up and another sent");
    script.reply(given_up.id, Ok(alive(1)));
    script.reply(request_id(u64::MAX), Ok(alive(1)));
    assert_eq!(script.events, vec![]);
    assert_eq!(script.machine.terms.trust_end(), Some(Mono::from_millis(1_000 + TRUST)));
}

/// T3, C8: the lost signal comes before anything is asked of the store.
#[test]
fn lost_is_the_first_thing_said_after_the_end_of_trust() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.jump_to(1_000 + TRUST);
    let outputs = script.outputs(Input::Wake);
    let first = outputs.first();
    assert!(matches!(first, Some(Output::Event(Event::Lost { .. }))), "{outputs:?}");
}

/// H4, T2, B22, C8: time that passed while the process was stopped or the host
/// suspended counts, whatever the first input afterwards is.
#[test]
fn whatever_comes_first_after_a_suspend_ends_the_leadership() {
    let number = TermNumber::new(1);
    let priority = Priority::default();
    let inputs = [
        Input::Wake,
        Input::Join,
        Input::Stand { election: name("nightly"), priority },
        Input::Stand { election: name("weekly"), priority },
        Input::Withdraw { election: name("nightly") },
        Input::Resign { election: name("nightly"), number, to: None },
        Input::StopLeading { election: name("nightly"), number, to: None },
        Input::Hint(Hint::Anything),
        Input::Shutdown,
    ];
    for input in inputs {
        let mut script = Script::leading(WATCHED, "nightly");
        script.run_to(3_500);
        script.jump_to(3_600_000);
        let outputs = script.outputs(input.clone());
        let lost =
            Event::Lost { election: name("nightly"), number, reason: LostReason::TrustEnded };
        assert_eq!(outputs.first(), Some(&Output::Event(lost)), "{input:?}");
    }
}

/// T3, H1: the end of trust is no excuse to release while the work still runs:
/// the term is given back after the margin, or once the work says it stopped.
#[test]
fn a_distrusted_term_is_released_only_after_the_margin() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.play(1_000 + TRUST + 999, |_, request| (!is_beat(request)).then_some(Err(REFUSED)));
    assert_eq!(script.lost().len(), 1);
    assert!(!script.has_asked(is_release));
    let mut early = Script::leading(WATCHED, "nightly");
    early.run_to(1_000 + TRUST);
    early.resign("nightly", 1, None);
    assert!(early.has_asked(is_release), "the work said that it stopped");
    script.run_to(1_000 + TRUST + 1_000);
    assert!(script.has_asked(is_release));
}

/// E4: work that is told of a loss late has longer than the margin, whatever ended the term.
#[test]
fn a_lost_term_is_kept_for_as_long_as_others_may_trust_it() {
    let settings = SettingsBuilder::ttl(Duration::from_secs(10)).drain(Duration::from_millis(200));
    let settings = settings.trusted_elsewhere().build().unwrap();
    let kept = settings.release_after();
    assert!(kept > Duration::from_secs(10));
    let mut script = Script::with(WATCHED, settings, 1);
    script.stand("nightly");
    script.answer(Ok(joined()));
    script.win(1);
    script.events.clear();
    script.run_to(1_100);
    let number = TermNumber::new(1);
    script.feed(Input::StopLeading { election: name("nightly"), number, to: None });
    let mut released = None;
    script.play(20_000, |now, request| {
        if is_release(request) {
            released.get_or_insert(now);
            return Some(Ok(Reply::Release));
        }
        is_beat(request).then(|| Ok(alive(1)))
    });
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::DrainTimeout)]);
    assert_eq!(released, Some(Mono::from_millis(1_300) + kept), "the margin is a second");
}

/// B5: a win whose grant is over by the time its answer comes is given back, and
/// the candidate stands again.
#[test]
fn a_win_that_comes_too_late_is_given_back() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.jump_to(1_000 + TRUST);
    script.win(1);
    assert_eq!(script.elected(), []);
    let release = script.take(is_release);
    let Request::Release(asked) = &release.request else { unreachable!() };
    assert_eq!(asked.items[0].number, Some(TermNumber::new(1)));
    assert!(!script.has_asked(is_claim), "not before the release is confirmed");
    script.reply(release.id, Ok(Reply::Release));
    script.first(is_claim).win(2);
    assert_eq!(script.elected(), [(name("nightly"), 2)]);
}

/// H3: a look that finds the term gone, or another's, ends it at once.
#[test]
fn superseded_means_lost_now() {
    let other = member("other", 1);
    let views = [
        ElectionView { number: TermNumber::new(1), ..ElectionView::vacant(name("nightly")) },
        held_by("nightly", other, 2, 9_000),
    ];
    for view in views {
        let mut script = Script::leading(WATCHED, "nightly");
        script.feed(Input::Hint(Hint::Election(name("nightly"))));
        script.seen([view]);
        assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::Superseded)]);
    }
}

/// H3: a heartbeat that says the member lives but counts fewer terms than it
/// leads extends no trust, until a look has said which one is gone.
#[test]
fn trust_is_not_extended_while_a_term_is_missing() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.stand("weekly");
    script.win(1);
    script.events.clear();
    let until = script.machine.terms.trust_end();
    script.run_to(3_500);
    script.alive(1);
    assert_eq!(script.events, vec![]);
    assert_eq!(script.machine.terms.trust_end(), until);
    let me = script.me();
    script.seen([held_by("nightly", me, 1, 9_000)]);
    assert_eq!(script.lost(), [(name("weekly"), 1, LostReason::Superseded)]);
    script.run_to(6_000);
    script.first(is_beat).alive(1);
    assert_eq!(script.machine.terms.trust_end(), Some(Mono::from_millis(6_000 + TRUST)));
}

/// A look that left before the answer of the win came may have been answered before
/// it happened: it says nothing about the new term.
#[test]
fn a_look_older_than_the_win_does_not_end_it() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.held([held_by("nightly", member("other", 1), 1, 100)]);
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    let look = script.take(is_read);
    script.run_to(1_101);
    script.win(2);
    script.events.clear();
    let elections = vec![held_by("nightly", member("other", 1), 1, 0)];
    let snapshot = Snapshot { elections, ..Snapshot::default() };
    script.reply(look.id, Ok(Reply::Read(snapshot)));
    assert_eq!(script.lost(), []);
}

/// T4 is the client's; the machine's part is that every extension is told.
#[test]
fn every_extension_of_trust_is_told() {
    let mut script = Script::leading(WATCHED, "nightly");
    for beat in 1..=4u64 {
        script.run_to(1_000 + beat * 2_500);
        script.alive(1);
        let until = Mono::from_millis(1_000 + beat * 2_500 + TRUST);
        let Some(Event::Trusted { until: told, .. }) = script.events.last() else {
            panic!("{:?}", script.events)
        };
        assert_eq!(*told, until);
        assert_eq!(script.machine.terms.trust_end(), Some(until));
    }
    let reply = Box::new(Ok(alive(1)));
    script.feed(Input::Reply { id: request_id(1), result: reply });
    assert_eq!(script.events.len(), 4);
}
