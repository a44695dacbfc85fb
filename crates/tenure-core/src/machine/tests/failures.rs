//! A store that fails, for a moment or for hours (F1, H11, H15, B11, B12).

use alloc::vec::Vec;

use super::script::*;
use crate::*;

const TRUST_END: u64 = 1_000 + 8_990;

/// Joined and standing for `nightly`, with randomness of its own.
fn standing(seed: u128) -> Script {
    let mut script = Script::with(WATCHED, Settings::default(), seed);
    script.stand("nightly");
    script.answer(Ok(joined()));
    script
}

fn leading(seed: u128) -> Script {
    let mut script = standing(seed);
    script.win(1);
    script.events.clear();
    script
}

/// The busiest second of `times`, which are milliseconds in order.
fn busiest_second(times: &[u64]) -> usize {
    let within = |&from: &u64| times.iter().filter(|&&t| t >= from && t < from + 1_000).count();
    times.iter().map(within).max().unwrap_or(0)
}

/// H11: renewals that are refused at once are repeated at a bounded pace.
#[test]
fn failing_renewals_are_not_a_hot_loop() {
    for seed in 0..20 {
        let mut script = leading(seed);
        let mut times = Vec::new();
        script.play(TRUST_END, |now, _| {
            times.push(now.as_nanos() / 1_000_000);
            Some(Err(REFUSED))
        });
        assert_eq!(times.first(), Some(&3_500));
        assert!((5..40).contains(&times.len()), "{times:?}");
        assert!(busiest_second(&times) <= 13, "{times:?}");
    }
}

/// F1: the pauses shrink with what is left of trust, so that a store that comes
/// back shortly before the end still saves the leadership.
#[test]
fn renewals_are_retried_within_what_is_left_of_trust() {
    for seed in 0..50 {
        let mut script = leading(seed);
        let back = Mono::from_millis(TRUST_END - 300);
        script.play(TRUST_END + 1_000, |now, _| {
            Some(if now < back { Err(REFUSED) } else { Ok(alive(1)) })
        });
        assert_eq!(script.lost(), [], "seed {seed}");
    }
}

/// F1: one renewal may be lost completely, and the next still has its full time.
#[test]
fn one_lost_renewal_costs_nothing() {
    let mut script = leading(1);
    let mut beats = 0;
    script.play(60_000, |_, request| {
        beats += usize::from(is_beat(request));
        (beats % 2 == 0).then(|| Ok(alive(1)))
    });
    assert_eq!(script.lost(), []);
}

/// H11, B19: retries of different members do not fall together.
#[test]
fn retries_are_jittered() {
    let mut firsts = alloc::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut script = leading(seed);
        let mut times = Vec::new();
        script.play(5_000, |now, _| {
            times.push(now);
            Some(Err(REFUSED))
        });
        let pause = times[1].since(times[0]).as_millis();
        assert!((75..=100).contains(&pause), "{pause} ms");
        firsts.insert(times[1]);
    }
    assert!(firsts.len() >= 45, "{} different first retries of 50", firsts.len());
}

/// H15, B12, H11: with the store away for six hours, whether it refuses or hangs,
/// the campaign goes on at a bounded pace, no member leads on its own account, and
/// the first answer is taken up.
#[test]
fn a_campaign_outlives_six_hours_without_the_store() {
    for silent in [true, false] {
        let mut script = standing(3);
        let hours = 6 * 60 * 60 * 1_000;
        let mut times = Vec::new();
        script.play(hours, |now, _| {
            times.push(now.as_nanos() / 1_000_000);
            (!silent).then_some(Err(UNKNOWN))
        });
        assert_eq!(script.events.len(), 1, "joined, and nothing since: {:?}", script.events);
        // Claims and beats, each every 1.9 s at the fastest.
        assert!(times.len() <= hours as usize / 1_875 * 2 + 20, "{}", times.len());
        assert!(times.len() >= hours as usize / 5_000, "{}", times.len());
        script.play(hours + 5_100, |_, request| match request {
            Request::Heartbeat(_) => Some(Ok(ended(false))),
            Request::Join(_) => Some(Ok(joined())),
            Request::Claim(claim) => Some(Ok(all_won(claim, 9))),
            _ => None,
        });
        assert_eq!(script.elected(), [(name("nightly"), 9)]);
    }
}

/// H15: the same for one that cannot even join.
#[test]
fn a_join_is_retried_for_ever() {
    let mut script = Script::new(WATCHED);
    script.stand("nightly");
    let mut joins = 0;
    script.play(3_600_000, |_, request| {
        joins += usize::from(is_join(request));
        Some(Err(REFUSED))
    });
    assert!((1_400..2_000).contains(&joins), "{joins} joins in an hour");
    script.play(3_603_000, |_, request| is_join(request).then(|| Ok(joined())));
    assert!(script.events.iter().any(|e| matches!(e, Event::Joined { .. })));
}

/// B11: no request is waited for longer than the request timeout, and one that
/// hangs does not hold the lost signal up.
#[test]
fn a_hanging_request_does_not_outlive_its_deadline_nor_trust() {
    let mut script = leading(1);
    script.run_to(3_500);
    let timeout = script.machine.settings().request_timeout();
    assert_eq!(script.sent[0].deadline, script.now + timeout);
    script.run_to(TRUST_END);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::TrustEnded)]);
}

/// B11: where a claim is several steps at the store it has twice the time; a
/// heartbeat has not, since a second one must fit into what is left of trust.
#[test]
fn a_claim_in_steps_has_twice_the_time_and_a_heartbeat_has_not() {
    let mut script = Script::standing(StoreTraits { in_steps: true, ..WATCHED }, "nightly");
    let timeout = script.machine.settings().request_timeout();
    let due = |script: &Script, kind: fn(&Request) -> bool| {
        let sent = script.sent.iter().find(|sent| kind(&sent.request)).expect("it was sent");
        sent.deadline.since(script.now)
    };
    assert_eq!(due(&script, is_claim), timeout * 2);
    script.win(1);
    script.run_to(3_500);
    assert_eq!(due(&script, is_beat), timeout);
}

/// E2: of three bids one could not be decided. The others are; that one is made
/// again by itself, after a pause, and with its nonce.
#[test]
fn a_bid_of_which_nothing_is_known_is_repeated_alone_with_its_nonce() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::StandForAll {
        elections: ["a", "b", "c"].map(name).to_vec(),
        priority: Priority::default(),
    });
    script.answer(Ok(joined()));
    let Request::Claim(claim) = script.asked().clone() else { panic!("{:?}", script.sent) };
    let Reply::Claim(Claims::Answered(mut answers)) = all_won(&claim, 1) else { panic!() };
    answers[1] = Claimed::Unknown(claim.bids[1].election.clone());
    script.answer(Ok(Reply::Claim(Claims::Answered(answers))));
    assert_eq!(script.elected().len(), 2, "the others lead");
    assert!(script.sent.is_empty(), "not at once: {:?}", script.sent);
    script.run_to(1_101);
    let again = script.take(is_claim).request;
    let Request::Claim(again) = again else { panic!("{again:?}") };
    assert_eq!(again.bids, [claim.bids[1].clone()], "the same bid, with its nonce");
}

/// B12: no member leads while the store is unreachable from the start.
#[test]
fn no_member_leads_without_the_store() {
    let mut script = standing(1);
    script.play(600_000, |_, _| Some(Err(UNKNOWN)));
    assert_eq!(script.elected(), []);
}

/// F1: after an outage that cost the leadership, the member stands again by
/// itself as soon as the application does, and wins a new term.
#[test]
fn leadership_comes_back_after_an_outage() {
    let mut script = leading(1);
    script.play(30_000, |_, _| None);
    assert_eq!(script.lost().len(), 1);
    script.stand("nightly");
    script.play(40_000, |_, request| match request {
        Request::Heartbeat(_) => Some(Ok(ended(false))),
        Request::Join(_) => Some(Ok(joined())),
        Request::Claim(claim) => Some(Ok(all_won(claim, 2))),
        _ => None,
    });
    assert_eq!(script.elected(), [(name("nightly"), 2)]);
}

/// A claim that may have won wrote the short ttl: the next beat does not wait
/// for the idle member's interval.
#[test]
fn an_unclear_claim_is_followed_by_a_timely_beat() {
    let mut script = standing(1);
    script.answer(Err(UNKNOWN));
    script.play(3_499, |_, request| is_claim(request).then_some(Err(UNKNOWN)));
    script.run_to(3_500);
    assert!(script.has_asked(is_beat));
}
