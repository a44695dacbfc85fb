//! F3, H25: each relation is tested at, below and above its bound.

use alloc::string::ToString;
use core::time::Duration;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

fn ten() -> SettingsBuilder {
    SettingsBuilder::ttl(10 * SECOND)
}

/// H25: the presets keep their own rules, and the documented figures.
#[test]
fn every_preset_builds_with_the_documented_timings() {
    let table = [(Preset::Fast, 3_000, 750), (Preset::Normal, 10_000, 2_500)];
    for (preset, ttl, heartbeat) in table.into_iter().chain([(Preset::Patient, 60_000, 15_000)]) {
        let settings = SettingsBuilder::preset(preset).build().unwrap();
        assert_eq!(settings.ttl(), Duration::from_millis(ttl));
        assert_eq!(settings.heartbeat(), Duration::from_millis(heartbeat));
    }
    assert_eq!(Settings::default(), ten().build().unwrap());
}

/// T1: the formula, to the nanosecond.
#[test]
fn trust_is_ttl_less_drift_less_margin() {
    let settings = ten().margin(SECOND).drift_ppm(1_000).build().unwrap();
    assert_eq!(settings.trust(), Duration::from_millis(8_990));
    assert_eq!(ten().drift_ppm(0).margin(Duration::ZERO).build().unwrap().trust(), 10 * SECOND);
}

#[test]
fn the_ttl_is_refused_outside_its_bounds() {
    for (ttl, fine) in [
        (Duration::ZERO, false),
        (MIN_TTL - NANO, false),
        (MIN_TTL, true),
        (MAX_TTL, true),
        (MAX_TTL + NANO, false),
        (Duration::MAX, false),
    ] {
        let built = SettingsBuilder::ttl(ttl).build();
        assert_eq!(built.is_ok(), fine, "{ttl:?}: {built:?}");
    }
    let said = SettingsBuilder::ttl(Duration::ZERO).build().unwrap_err().to_string();
    assert_eq!(said, "ttl is 0ns: it must be between 100ms and 86400s");
}

#[test]
fn drift_is_refused_above_its_bound() {
    assert!(ten().drift_ppm(MAX_DRIFT_PPM).heartbeat(SECOND).build().is_ok());
    let said = ten().drift_ppm(MAX_DRIFT_PPM + 1).build().unwrap_err().to_string();
    assert!(said.contains("100001 ppm"), "{said}");
}

#[test]
fn the_margin_must_leave_room_for_a_second_try() {
    // trust = 10 s − 10 ms − margin; 3 × 2.5 s are needed.
    let bound = Duration::from_millis(2_490);
    assert!(ten().margin(bound - NANO).build().is_ok());
    assert!(ten().margin(bound).build().is_ok());
    let refused = ten().margin(bound + NANO).build().unwrap_err();
    assert!(matches!(refused, BadSettings::NoSecondTry { .. }), "{refused}");
    let none = ten().margin(10 * SECOND).build().unwrap_err();
    assert!(none.to_string().contains("nothing is left to trust"), "{none}");
}

/// Promise 2, F3: a slow holder trusts for `ttl − margin / (1 − drift)` of true
/// time, a fast store keeps it for `ttl / (1 + drift)`.
#[test]
fn the_margin_must_cover_a_judge_whose_clock_runs_fast() {
    // ttl × drift = 10 ms.
    let bound = Duration::from_millis(10);
    assert!(ten().margin(bound).build().is_ok());
    assert!(ten().margin(bound + NANO).build().is_ok());
    let said = ten().margin(bound - NANO).build().unwrap_err().to_string();
    assert!(said.contains("would give two leaders"), "{said}");
    assert!(ten().drift_ppm(0).margin(Duration::ZERO).build().is_ok());
}

#[test]
fn the_heartbeat_must_leave_room_for_a_second_try() {
    // trust = 8.99 s, timeout 1 s: heartbeat at most 3.995 s.
    let with = |heartbeat| ten().request_timeout(SECOND).heartbeat(heartbeat).build();
    let bound = Duration::from_millis(3_995);
    assert!(with(bound - NANO).is_ok());
    assert!(with(bound).is_ok());
    assert!(with(bound + NANO).is_err());
    assert!(with(MIN_INTERVAL).is_ok());
    assert!(with(MIN_INTERVAL - NANO).is_err());
}

/// B11: a request may not outlast the renewal it serves.
#[test]
fn the_request_timeout_must_leave_room_for_a_second_try() {
    // trust = 8.99 s, 2 × 2.5 s: timeout at most 3.99 s.
    let bound = Duration::from_millis(3_990);
    assert!(ten().request_timeout(bound).build().is_ok());
    let said = ten().request_timeout(bound + NANO).build().unwrap_err().to_string();
    assert!(said.contains("one failed renewal would cost the leadership"), "{said}");
    assert!(ten().request_timeout(MIN_INTERVAL - NANO).build().is_err());
}

#[test]
fn drain_and_cooldown_are_refused_outside_their_bounds() {
    assert!(ten().drain(Duration::ZERO).cooldown(Duration::ZERO).build().is_ok());
    assert!(ten().drain(MAX_DRAIN).cooldown(MAX_TTL).build().is_ok());
    assert!(ten().drain(MAX_DRAIN + NANO).build().is_err());
    assert!(ten().cooldown(MAX_TTL + NANO).build().is_err());
    assert!(SettingsBuilder::ttl(MAX_TTL).build().is_ok(), "a long ttl caps its default drain");
}

#[test]
fn widening_rounds_up_and_saturates() {
    assert_eq!(widened(Duration::from_nanos(1), 1), Duration::from_nanos(2));
    assert_eq!(widened(Duration::ZERO, 1_000), Duration::ZERO);
    assert!(widened(Duration::MAX, 1) >= Duration::MAX);
}

/// The figures that the documentation states, for the default preset.
#[test]
fn what_follows_from_the_ttl_is_as_documented() {
    let settings = SettingsBuilder::preset(Preset::Normal).drift_ppm(2_000).build().unwrap();
    assert_eq!(settings.drift_ppm(), 2_000);
    assert_eq!(settings.stagger(), Duration::from_millis(100));
    assert_eq!(settings.look_gap(), Duration::from_millis(50));
    // Two heirs' turns, and the margin twice.
    assert_eq!(settings.confirm_within(), Duration::from_millis(2_200));
    assert!(settings.widened(Duration::from_secs(1)) > Duration::from_secs(1));
    assert_eq!(MAX_DRAIN, Duration::from_secs(3_600));

    let short = SettingsBuilder::ttl(Duration::from_secs(2)).build().unwrap();
    assert_eq!(short.stagger(), Duration::from_millis(20));
    assert_eq!(short.look_gap(), Duration::from_millis(10));
}

/// W4: long enough for a grant of the whole ttl, with both clocks wrong by the bound.
#[test]
fn a_lost_term_is_kept_for_the_margin_or_for_what_others_trust() {
    assert_eq!(ten().build().unwrap().release_after(), Duration::from_secs(1));
    let longer = ten().trusted_elsewhere().build().unwrap();
    assert_eq!(longer.release_after(), crate::Grants::waited(longer.ttl(), 1_000));
    assert!(longer.release_after() > Duration::from_millis(10_020));
}
