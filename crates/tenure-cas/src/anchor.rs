//! The latest moment a heartbeat can have begun: how a few looks are enough to
//! take over in time.
//!
//! A member's record carries, beside its beat, `elapsed_ns`: what the writer's
//! own clock counted from an origin of its own to the **start** of the write
//! that made this beat, and `clock`, which says whose clock that was. No clock
//! is read off another: only differences between two beats of one clock are
//! used.
//!
//! # The inequality
//!
//! Let every clock run between `1 − d` and `1 + d` times as fast as true time,
//! `d` being the drift bound. An observer saw beat *j* in an answer that arrived
//! when its own clock showed `s`. Beat *j* had begun by then. Later it sees beat
//! *k* of the same life and the same clock, with `e = elapsed(k) − elapsed(j)`.
//!
//! - Between the starts of the two beats at most `e / (1 − d)` of true time
//!   passed: the writer's clock counted `e` and runs no slower than that.
//! - In that time the observer's clock counted at most `e · (1 + d) / (1 − d)`.
//! - So when beat *k* began, the observer's clock showed at most
//!   `s + e · (1 + d) / (1 − d)`.
//!
//! Of course it also had begun when it was first seen. The smallest of these, over
//! the last few beats seen, is a bound as good as first sight, and mostly a
//! tighter one: one look that came soon after a beat serves for many that did
//! not, at the price of `2d / (1 − d)` of the time between.
//!
//! In the same way it had begun no earlier than `r + e · (1 − d) / (1 + d)` if beat
//! *j* had begun no earlier than `r`. What lies between the two bounds is what the
//! observer does not know, and grows by about `4d` of the time between two looks.
//! Nothing is decided by the lower bound: it tells when a look is due that makes
//! the upper one sharper.
//!
//! The holder counts its trust from the start of the same write, or from before
//! it (rule T1), and for less than the ttl; the observer counts the whole ttl,
//! widened by `d`, from a moment that is not before that start. What the writer
//! must not do is count too little: a machine that lies about `elapsed` is outside the
//! assumptions, as is a register that gives an older record back.

use std::time::Duration;

use tenure_core::Mono;

/// The latest moment beat *k* can have begun, for an observer by whose clock
/// beat *j* had begun at `by`, where the writer counted `elapsed` between them.
pub(crate) fn begun_by(by: Mono, elapsed: Duration, drift_ppm: u32) -> Mono {
    by + spread(elapsed, drift_ppm)
}

/// The earliest moment beat *k* can have begun, for an observer by whose clock
/// beat *j* had not begun before `from`, where the writer counted `elapsed`
/// between them.
pub(crate) fn not_begun_before(from: Mono, elapsed: Duration, drift_ppm: u32) -> Mono {
    let (fast, slow) = rates(drift_ppm);
    let counted = elapsed.as_nanos().saturating_mul(slow) / fast;
    from + Duration::from_nanos(u64::try_from(counted).unwrap_or(u64::MAX))
}

/// The fastest and the slowest that a clock may run, in millionths.
fn rates(drift_ppm: u32) -> (u128, u128) {
    (1_000_000 + u128::from(drift_ppm), 1_000_000 - u128::from(drift_ppm))
}

/// `elapsed · (1 + d) / (1 − d)`, rounded up.
fn spread(elapsed: Duration, drift_ppm: u32) -> Duration {
    let (fast, slow) = rates(drift_ppm);
    let counted = elapsed.as_nanos().saturating_mul(fast).div_ceil(slow);
    Duration::from_nanos(u64::try_from(counted).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T5: at no pair of rates within the bound is the true start later than
    /// the bound, nor earlier than the other; at the extremes they are met to the
    /// nanosecond.
    #[test]
    fn no_two_clocks_within_the_drift_bound_make_a_beat_begin_outside_the_bounds() {
        for ppm in [0, 1, 1_000, 50_000, 100_000] {
            for truth in [0, 1, 999_999, 10_000_000_000_u128] {
                for writer in [1_000_000 - ppm, 1_000_000, 1_000_000 + ppm] {
                    for observer in [1_000_000 - ppm, 1_000_000, 1_000_000 + ppm] {
                        // What a clock counts is rounded up at the writer's, so
                        // as not to count too little, and down at the observer's:
                        // the lower bound may be a nanosecond or two above it.
                        let counted = (truth * u128::from(writer)).div_ceil(1_000_000);
                        let elapsed = Duration::from_nanos(u64::try_from(counted).unwrap());
                        let seen = truth * u128::from(observer) / 1_000_000;
                        let bound = begun_by(Mono::ZERO, elapsed, ppm);
                        assert!(u128::from(bound.as_nanos()) >= seen, "{ppm} {truth} {writer}");
                        let bound = not_begun_before(Mono::ZERO, elapsed, ppm);
                        assert!(u128::from(bound.as_nanos()) <= seen + 2, "{ppm} {truth} {writer}");
                    }
                }
            }
        }
        let ten = Duration::from_secs(10);
        assert_eq!(spread(ten, 0), ten);
        assert_eq!(spread(Duration::from_secs(9), 100_000), Duration::from_secs(11));
        let eleven = Duration::from_secs(11);
        let earliest = not_begun_before(Mono::ZERO, eleven, 100_000);
        assert_eq!(earliest, Mono::ZERO + Duration::from_secs(9));
    }

    #[test]
    fn no_elapsed_time_wraps_around() {
        assert_eq!(begun_by(Mono::MAX, Duration::MAX, 100_000), Mono::MAX);
        assert_eq!(not_begun_before(Mono::MAX, Duration::MAX, 100_000), Mono::MAX);
    }
}
