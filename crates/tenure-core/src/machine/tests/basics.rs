//! The main path, and the end of trust.

use super::script::*;
use crate::*;

/// C1: the first candidate of an empty election joins, claims and leads term 1.
#[test]
fn the_first_candidate_joins_claims_and_leads() {
    let mut script = Script::new(WATCHED);
    script.stand("nightly");
    assert!(matches!(script.asked(), Request::Join(join) if join.supersede));
    script.answer(Ok(Reply::Join(Joined::In { attention: 0, seq: Seq::START })));
    assert!(matches!(script.asked(), Request::Claim(claim) if claim.bids.len() == 1));
    script.win(1);
    let Some(Event::Elected { term, trusted_until }) = script.events.last() else {
        panic!("{:?}", script.events)
    };
    assert_eq!(term.number.get(), 1);
    assert_eq!(*trusted_until, Mono::from_millis(1_000 + 8_990));
}

/// T1, C7: a slow success extends trust only from when its request was sent.
#[test]
fn a_slow_heartbeat_extends_trust_from_its_start() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(3_500);
    assert!(matches!(script.asked(), Request::Heartbeat(_)));
    script.run_to(5_900);
    script.alive(1);
    let [Event::Trusted { until, .. }] = &script.events[..] else { panic!("{:?}", script.events) };
    assert_eq!(*until, Mono::from_millis(3_500 + 8_990));
}

/// T3, H2, B1: with the store unreachable, lost is signalled at the end of
/// trust, to the nanosecond, and before anything else is tried.
#[test]
fn lost_fires_at_the_end_of_trust_without_the_store() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(9_989);
    assert_eq!(script.lost(), []);
    script.run_to(9_990);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::TrustEnded)]);
}

/// H4, C8, T4: after a pause that outlasts trust, the first input of whatever
/// kind ends the leadership: a success that waited in the socket comes too late.
#[test]
fn a_reply_that_slept_with_the_process_does_not_revive_trust() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.run_to(3_500);
    script.jump_to(60_000);
    script.alive(1);
    assert_eq!(script.lost(), [(name("nightly"), 1, LostReason::TrustEnded)]);
    assert!(!script.events.iter().any(|e| matches!(e, Event::Trusted { .. })));
}
