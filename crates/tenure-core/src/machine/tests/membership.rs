//! Being a member, being ended, coming back (M1, M3, C6, C32, B3, B25).

use alloc::vec::Vec;
use core::time::Duration;

use super::script::*;
use crate::*;

fn join(script: &Script) -> Join {
    match script.asked() {
        Request::Join(join) => join.clone(),
        other => panic!("no join: {other:?}"),
    }
}

/// M1, H7, C6: a holder that was ended has lost everything at once; it comes back
/// as another life, and wins only by a new claim.
#[test]
fn an_ended_holder_loses_everything_and_joins_anew() {
    let mut script = Script::leading(WATCHED, "nightly");
    let first = script.me();
    script.stand("weekly");
    script.first(is_claim).win(1);
    script.run_to(3_500);
    script.stand("hourly");
    script.first(is_beat).answer(Ok(ended(false)));
    let nightly = name("nightly");
    let weekly = name("weekly");
    let reason = LostReason::Superseded;
    assert_eq!(script.lost(), [(nightly, 1, reason), (weekly, 1, reason)]);
    let last = script.events.last();
    assert_eq!(last, Some(&Event::MemberEnded { member: first.clone(), superseded: false }));
    let again = script.take(is_join);
    let Request::Join(asked) = &again.request else { unreachable!() };
    assert_ne!(asked.member.incarnation, first.incarnation);
    assert!(asked.supersede);
    script.sent.clear();
    script.reply(again.id, Ok(joined()));
    let Request::Claim(claim) = script.asked() else { panic!("{script:?}") };
    let bids: Vec<_> = claim.bids.iter().map(|bid| bid.election.as_str()).collect();
    assert_eq!(bids, ["hourly"], "who still stands stands again; what was lost does not");
    assert!(!script.has_asked(is_release), "nothing is owed by a life that is over");
}

/// C6, H6: a member that stands again after it was ended leads under the new number.
#[test]
fn standing_again_after_the_end_wins_a_new_number() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(3_500);
    script.answer(Ok(ended(false)));
    script.stand("nightly");
    script.first(is_join).answer(Ok(joined()));
    script.win(2);
    assert_eq!(script.elected(), [(name("nightly"), 2)]);
}

/// M1: a claim that is answered *ended* ends the life as a heartbeat does.
#[test]
fn a_claim_can_say_that_the_life_is_over() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.stand("weekly");
    script.answer(Ok(Reply::Claim(Claims::Ended { superseded: false })));
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::Superseded)]);
    script.first(is_join).answer(Ok(joined()));
    let Request::Claim(claim) = script.asked() else { panic!("{script:?}") };
    assert_eq!(claim.bids[0].election, name("weekly"));
}

/// C32, B16: what comes late for an older life changes nothing in the next.
#[test]
fn late_replies_of_an_older_life_are_ignored() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.stand("weekly");
    let claim = script.take(is_claim);
    let Request::Claim(asked) = &claim.request else { unreachable!() };
    let won = all_won(asked, 5);
    script.run_to(3_500);
    script.first(is_beat).answer(Ok(ended(false)));
    script.first(is_join).answer(Ok(joined()));
    script.events.clear();
    script.reply(claim.id, Ok(won));
    assert_eq!(script.events, []);
    let Request::Claim(again) = script.asked() else { panic!("{script:?}") };
    assert_eq!(again.member, script.me());
    assert_ne!(again.bids[0].nonce, asked.bids[0].nonce, "a new life makes a new attempt");
}

/// M3: the holder writes a short ttl and beats to match; an idle member beats
/// slowly and writes a ttl to match.
#[test]
fn the_ttl_written_is_short_while_something_is_held() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::Join);
    assert_eq!(join(&script).ttl, Duration::from_secs(40));
    script.answer(Ok(joined()));
    script.run_to(10_999);
    assert!(script.sent.is_empty(), "an idle member beats once a ttl");
    script.run_to(11_000);
    let ttl = |script: &Script| match script.asked() {
        Request::Heartbeat(beat) => beat.ttl,
        other => panic!("no beat: {other:?}"),
    };
    assert_eq!(ttl(&script), Duration::from_secs(40));
    script.alive(0);
    script.stand("nightly");
    assert!(matches!(script.asked(), Request::Claim(c) if c.ttl == Duration::from_secs(10)));
    script.win(1);
    script.run_to(13_500);
    assert_eq!(ttl(&script), Duration::from_secs(10));
}

/// Promise 4: a slow beat of an idle member that comes after the win would leave
/// its long ttl on the holder; the short one is written again at once.
#[test]
fn an_idle_beat_that_overlaps_a_win_is_followed_by_a_short_one() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::Join);
    script.answer(Ok(joined()));
    script.run_to(11_000);
    let idle = script.take(is_beat);
    script.stand("nightly");
    script.win(1);
    script.reply(idle.id, Ok(alive(1)));
    script.run_to(11_000);
    assert!(matches!(script.asked(), Request::Heartbeat(b) if b.ttl == Duration::from_secs(10)));
}

/// A join whose answer was lost is repeated by the same life, so that it cannot
/// stand in its own way.
#[test]
fn a_join_is_repeated_by_the_same_life() {
    let mut script = Script::new(WATCHED);
    script.stand("nightly");
    let first = join(&script);
    script.answer(Err(UNKNOWN));
    assert!(script.sent.is_empty(), "not at once");
    script.run_to(1_100);
    assert_eq!(join(&script), first);
}

/// B3: an id in use is waited for, for as long as its holder's ttl says.
#[test]
fn an_id_that_is_taken_is_tried_again_when_its_time_is_over() {
    let mut script = Script::new(WATCHED);
    script.stand("nightly");
    let by = Incarnation::from_u128(9);
    script.answer(Ok(Reply::Join(Joined::Taken { by, remaining: Duration::from_secs(7) })));
    let retry_at = Mono::from_millis(8_000);
    assert_eq!(script.events, [Event::IdTaken { by, retry_at }]);
    script.run_to(7_999);
    assert!(script.sent.is_empty());
    script.run_to(8_000);
    script.answer(Ok(joined()));
    assert!(script.has_asked(is_claim));
}

/// H16: an absurd ttl of a namesake is looked at again before it is over.
#[test]
fn an_id_that_is_taken_for_ever_is_tried_again() {
    let mut script = Script::new(WATCHED);
    script.stand("nightly");
    let by = Incarnation::from_u128(9);
    script.answer(Ok(Reply::Join(Joined::Taken { by, remaining: Duration::MAX })));
    script.run_to(41_000);
    assert!(script.has_asked(is_join));
}

/// B3: a life that was superseded does not push the other out in turn.
#[test]
fn one_who_was_superseded_waits_and_does_not_supersede() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.stand("weekly");
    script.first(is_claim).held([held_by("weekly", member("other", 1), 1, 60_000)]);
    script.run_to(3_500);
    script.answer(Ok(ended(true)));
    assert!(matches!(script.events.last(), Some(Event::MemberEnded { superseded: true, .. })));
    assert!(script.sent.is_empty(), "not at once");
    script.run_to(6_000);
    assert!(!join(&script).supersede);
}

/// B25: a life that was let in unheard and ended since is not the one to come
/// back: another is made, and the candidacy goes on.
#[test]
fn a_life_that_ended_before_the_join_was_answered_is_replaced() {
    let mut script = Script::new(WATCHED);
    script.stand("nightly");
    let first = join(&script).member;
    script.answer(Err(UNKNOWN));
    script.run_to(1_100);
    let by = first.incarnation;
    script.answer(Ok(Reply::Join(Joined::Taken { by, remaining: Duration::ZERO })));
    script.run_to(3_600);
    assert_ne!(join(&script).member.incarnation, by);
    script.answer(Ok(joined()));
    assert!(script.has_asked(is_claim));
}

/// H11: a store that lets a member in and ends it at once is not hammered.
#[test]
fn lives_that_end_at_once_are_spaced_out() {
    let mut script = Script::new(WATCHED);
    script.stand("nightly");
    let mut joins = 0;
    script.play(61_000, |_, request| match request {
        Request::Join(_) => {
            joins += 1;
            Some(Ok(joined()))
        }
        Request::Claim(_) => Some(Ok(Reply::Claim(Claims::Ended { superseded: false }))),
        _ => None,
    });
    assert!((20..60).contains(&joins), "{joins} joins in a minute");
}

/// A member that was asked for stays one with nothing to stand for, and comes
/// back after its end; one that stands for nothing does not.
#[test]
fn a_member_that_is_wanted_comes_back() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::Join);
    script.answer(Ok(joined()));
    script.run_to(11_000);
    script.alive(0);
    script.run_to(21_000);
    script.answer(Ok(ended(false)));
    assert!(script.has_asked(is_join));

    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(3_500);
    script.answer(Ok(ended(false)));
    assert!(script.sent.is_empty());
    assert_eq!(script.machine.next_wake(), None);
}
