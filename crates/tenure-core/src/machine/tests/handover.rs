//! Taking over what a predecessor handed to us: led from the look on, for as long
//! as it stands, and for good once a heartbeat was answered for it.

use alloc::vec::Vec;
use core::time::Duration;

use super::script::*;
use crate::*;

const HANDING: StoreTraits = StoreTraits { elects_heirs: true, ..WATCHED };

/// `election` was handed to `holder`, and stands for `left` more milliseconds.
fn handed(election: &str, holder: MemberRef, number: u64, left: u64) -> ElectionView {
    let mut view = held_by(election, holder, number, left);
    view.holder.as_mut().unwrap().unconfirmed = true;
    view
}

/// Waits for `nightly`, which another holds under number 1.
fn waiting() -> Script {
    let mut script = Script::standing(HANDING, "nightly");
    script.held([held_by("nightly", member("other", 7), 1, 10_000)]);
    script.run_to(2_000);
    script.events.clear();
    script
}

/// The same, and has been told that it was handed over: the look is out.
fn told() -> Script {
    let mut script = waiting();
    let to = MemberId::new("me").unwrap();
    script.feed(Input::Hint(Hint::Handed { election: name("nightly"), to }));
    script
}

/// Leads `nightly` under number 2 since 2,000 ms; the heartbeat that takes it on is
/// out since 2,001 ms.
fn taking() -> Script {
    let mut script = told();
    let me = script.me();
    script.seen([handed("nightly", me, 2, 2_200)]);
    script.run_for(1);
    script
}

fn named(request: &Request) -> Vec<u64> {
    let Request::Heartbeat(beat) = request else { panic!("no heartbeat: {request:?}") };
    beat.held.iter().map(|term| term.number.get()).collect()
}

fn trusted(script: &Script) -> Vec<u64> {
    let until = |event: &Event| match event {
        Event::Elected { trusted_until: until, .. } | Event::Trusted { until, .. } => {
            Some(until.as_nanos() / 1_000_000)
        }
        _ => None,
    };
    script.events.iter().filter_map(until).collect()
}

/// A release says how long a term stands for an heir, and a join that we are one
/// to hand it to, where the store can do that and its hints come at once.
#[test]
fn a_term_is_handed_over_where_that_is_of_use() {
    for (traits, hands) in
        [(HANDING, true), (WATCHED, false), (StoreTraits { native_watch: false, ..HANDING }, false)]
    {
        let mut script = Script::new(traits);
        script.stand("nightly");
        let Request::Join(join) = script.asked() else { panic!("no join") };
        assert_eq!(join.inherits, hands);
        script.answer(Ok(joined()));
        script.win(1);
        script.resign("nightly", 1, None);
        let Request::Release(release) = script.take(is_release).request else { panic!() };
        let expected = if hands { Settings::default().confirm_within() } else { Duration::ZERO };
        assert_eq!(release.confirm_within, expected);
    }
}

/// T1: it leads from the look on, and trusts it for what was left, less drift and
/// margin, from before the look was sent: 2,200 x 0.999 - 1,000.
#[test]
fn what_is_handed_over_is_led_after_a_look() {
    let mut script = told();
    let me = script.me();
    script.jump_to(2_010);
    script.seen([handed("nightly", me, 2, 2_200)]);
    assert_eq!(script.elected(), [(name("nightly"), 2)]);
    assert_eq!(trusted(&script), [3_197]);
    assert!(script.sent.is_empty(), "the application first, and no bid: {:?}", script.sent);
    script.run_for(1);
    assert_eq!(named(&script.take(is_beat).request), [2], "and the next heartbeat names it");
}

/// Never longer than our own ttl, which a beat on its way may yet write.
#[test]
fn it_is_not_trusted_for_longer_than_our_own_ttl() {
    let mut script = told();
    let me = script.me();
    script.seen([handed("nightly", me, 2, 60_000)]);
    assert_eq!(trusted(&script), [2_000 + 8_990]);
}

/// Once a heartbeat was answered for it, it is a term like any other.
#[test]
fn a_heartbeat_takes_it_on() {
    let mut script = taking();
    script.events.clear();
    script.first(is_beat).jump_to(2_005);
    script.alive(1);
    assert_eq!(trusted(&script), [2_001 + 8_990]);
    script.run_to(4_501);
    assert_eq!(named(&script.take(is_beat).request), [0_u64; 0], "it is named once");
    assert_eq!(script.lost(), []);
}

/// A heartbeat that was on its way says nothing of it: trust stays as it was, and
/// another names it at once.
#[test]
fn a_heartbeat_that_does_not_name_it_stretches_nothing() {
    let mut script = Script::standing(HANDING, "nightly");
    script.held([held_by("nightly", member("other", 7), 1, 30_000)]);
    script.run_to(11_000);
    let before = script.take(is_beat);
    assert_eq!(named(&before.request), [0_u64; 0]);
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    let me = script.me();
    script.seen([handed("nightly", me, 2, 2_200)]);
    assert!(!script.has_asked(is_beat), "one heartbeat at a time");
    script.events.clear();
    script.reply(before.id, Ok(alive(1)));
    assert_eq!(trusted(&script), [0_u64; 0]);
    assert_eq!(named(&script.take(is_beat).request), [2]);
    script.run_to(12_197);
    assert_eq!(script.lost(), []);
    script.run_to(12_198);
    assert_eq!(script.lost(), [(name("nightly"), 2, LostReason::TrustEnded)]);
}

/// The win of another election does not stretch the trust in it either, and is
/// trusted no longer itself until the answer has come.
#[test]
fn a_win_meanwhile_hangs_on_it() {
    let mut script = taking();
    script.stand("weekly");
    script.events.clear();
    let claim = script.take(is_claim);
    let Request::Claim(bids) = &claim.request else { panic!() };
    let won = all_won(bids, 5);
    script.reply(claim.id, Ok(won));
    assert_eq!(trusted(&script), [3_197]);
    script.first(is_beat).alive(2);
    assert_eq!(trusted(&script), [3_197, 2_001 + 8_990]);
}

/// T3: without an answer it is lost when the trust in it ends, and given back under
/// its number after the margin.
#[test]
fn what_is_never_taken_on_is_lost_in_time_and_given_back() {
    let mut script = taking();
    script.run_to(3_197);
    assert_eq!(script.lost(), []);
    script.run_to(3_198);
    assert_eq!(script.lost(), [(name("nightly"), 2, LostReason::TrustEnded)]);
    assert!(!script.has_asked(is_release));
    script.run_to(4_198);
    let Request::Release(release) = script.take(is_release).request else { panic!() };
    assert_eq!(release.items[0].number, Some(TermNumber::new(2)));
}

/// F1: a heartbeat that failed is repeated within what is left of that trust.
#[test]
fn a_failed_heartbeat_is_tried_again_in_time() {
    let mut script = taking();
    script.first(is_beat).answer(Err(UNKNOWN));
    script.run_to(2_900);
    assert_eq!(named(&script.take(is_beat).request), [2]);
}

/// E1, H3: the store says that another member has it, or that it is vacant.
#[test]
fn a_term_that_is_over_is_lost_at_once() {
    let mut script = taking();
    let beat = script.take(is_beat);
    let Request::Heartbeat(asked) = &beat.request else { panic!() };
    let term = asked.held[0].clone();
    let terms = alloc::vec![TermBeat { term, outcome: TermOutcome::Lost }];
    let attention = 0;
    let seq = Seq::START;
    let answer = Beat::Alive { attention, holds: Some(1), seq, terms };
    script.reply(beat.id, Ok(Reply::Heartbeat(answer)));
    assert_eq!(script.lost(), [(name("nightly"), 2, LostReason::Superseded)]);
}

/// E4: a step-down asked of it works as of any other.
#[test]
fn a_step_down_comes_with_the_answer() {
    let mut script = taking();
    let beat = script.take(is_beat);
    let Request::Heartbeat(asked) = &beat.request else { panic!() };
    let term = asked.held[0].clone();
    let step_down = asked_to_step_down(script.me(), 2, None).step_down;
    let terms = alloc::vec![TermBeat { term, outcome: TermOutcome::Renewed { step_down } }];
    let attention = 0;
    let seq = Seq::START;
    let answer = Beat::Alive { attention, holds: Some(1), seq, terms };
    script.reply(beat.id, Ok(Reply::Heartbeat(answer)));
    assert!(script.events.iter().any(|event| matches!(event, Event::Stopping { .. })));
}

/// It can be given up before the answer: exactly that term.
#[test]
fn it_can_be_resigned_before_the_answer() {
    let mut script = taking();
    script.resign("nightly", 2, None);
    assert_eq!(script.lost(), [(name("nightly"), 2, LostReason::Resigned)]);
    let Request::Release(release) = script.take(is_release).request else { panic!() };
    assert_eq!(release.items[0].number, Some(TermNumber::new(2)));
    script.events.clear();
    script.first(is_beat).alive(0);
    assert_eq!((script.elected(), script.lost()), (Vec::new(), Vec::new()));
}

/// A look that took too long leaves no time for the answer: a bid is surer. So is
/// it for a member that holds something, whose trust is one for all.
#[test]
fn who_cannot_be_sure_of_an_answer_in_time_bids() {
    let mut script = told();
    let me = script.me();
    script.jump_to(2_200);
    script.seen([handed("nightly", me.clone(), 2, 2_200)]);
    assert_eq!(script.elected(), []);
    script.first(is_claim).win(2);
    assert_eq!(script.elected(), [(name("nightly"), 2)]);

    let mut script = Script::leading(HANDING, "weekly");
    script.stand("nightly");
    script.held([held_by("nightly", member("other", 7), 1, 10_000)]);
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    let me = script.me();
    script.seen([handed("nightly", me, 2, 2_200)]);
    assert_eq!(script.elected(), []);
    assert!(script.has_asked(is_claim));
}

/// A look that is older than what was given back since is not believed.
#[test]
fn an_old_look_is_not_believed() {
    let mut script = told();
    let me = script.me();
    script.stand("weekly");
    script.seen([handed("nightly", me, 2, 2_200)]);
    assert_eq!(script.elected(), []);
    script.run_for(100);
    let Request::Read(query) = script.take(is_read).request else { panic!() };
    assert_eq!(query.which, Which::Named(alloc::vec![name("nightly")]), "it looks again");
}

/// Who finds it under its name without a hint bids for it.
#[test]
fn an_audit_finds_what_was_handed_over() {
    let mut script = waiting();
    let me = script.me();
    script.feed(Input::Hint(Hint::Anything));
    script.seen([handed("nightly", me, 2, 1_000)]);
    assert!(script.has_asked(is_claim), "{:?}", script.sent);
    assert!(!script.has_asked(is_release), "{:?}", script.sent);
}

/// A bid that came late made an heir of a member that no longer stands, or that never
/// leads: it gives back what it is handed, as soon as it is told.
#[test]
fn who_does_not_want_it_gives_it_back() {
    let mut script = waiting();
    let me = script.me();
    script.withdraw("nightly");
    script.first(is_release).answer(Ok(Reply::Release));
    let to = MemberId::new("me").unwrap();
    script.feed(Input::Hint(Hint::Handed { election: name("nightly"), to }));
    script.seen([handed("nightly", me, 2, 2_000)]);
    let Request::Release(release) = script.take(is_release).request else { panic!() };
    assert_eq!(release.items[0].number, Some(TermNumber::new(2)));
    assert_eq!(script.elected(), []);
}

/// Interleaving: a bid wins what was handed over, its answer is slow, and the
/// candidate withdraws and stands again. The term is given back, and no bid goes
/// out before that is confirmed: the store would answer it with the same term, and
/// then carry out the release.
#[test]
fn no_member_bids_for_a_term_that_it_is_giving_back() {
    let mut script = Script::standing(HANDING, "nightly");
    script.withdraw("nightly");
    script.stand("nightly");
    script.first(is_release).answer(Ok(Reply::Release));
    script.first(is_claim).win(2);
    assert_eq!(script.elected(), []);
    let Request::Release(release) = script.take(is_release).request else { panic!() };
    assert_eq!(release.items[0].number, Some(TermNumber::new(2)));
    script.run_for(100);
    assert!(!script.has_asked(is_claim), "{:?}", script.sent);
}

/// An heir that has only just looked looks again at once; a storm of such hints
/// makes one such look.
#[test]
fn an_heir_does_not_wait_to_look() {
    let mut script = waiting();
    let me = script.me();
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    script.seen([held_by("nightly", member("other", 7), 1, 10_000)]);
    let to = MemberId::new("me").unwrap();
    let hint = || Input::Hint(Hint::Handed { election: name("nightly"), to: to.clone() });
    script.feed(hint());
    script.seen([held_by("nightly", member("other", 7), 1, 10_000)]);
    script.feed(hint());
    assert!(!script.has_asked(is_read), "{:?}", script.sent);
    script.run_for(60);
    script.seen([handed("nightly", me, 2, 2_000)]);
    assert_eq!(script.elected(), [(name("nightly"), 2)]);
}

/// The same, of a heartbeat that was as short as a holder's, because a bid may have
/// won elsewhere: the next one does not wait for its turn.
#[test]
fn the_heartbeat_that_takes_it_on_follows_any_other_at_once() {
    let mut script = waiting();
    script.stand("weekly");
    script.first(is_claim).answer(Err(UNKNOWN));
    script.play(4_499, |_, request| is_claim(request).then_some(Err(UNKNOWN)));
    script.run_to(4_500);
    let short = script.take(is_beat);
    script.sent.clear();
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    let me = script.me();
    script.seen([handed("nightly", me, 2, 2_200)]);
    assert_eq!(script.elected(), [(name("nightly"), 2)]);
    script.reply(short.id, Ok(alive(1)));
    assert_eq!(named(&script.take(is_beat).request), [2]);
}
