//! What was granted to others, and when the last of it is over.

use core::time::Duration;

use crate::Mono;
use crate::time::nanos;

/// Spans of trust that were given to processes whose clocks are their own.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::{Grants, Mono};
///
/// let at = Mono::from_millis;
/// let mut grants = Grants::new(1_000);
/// assert_eq!(grants.give(at(100), Duration::from_secs(1)), Duration::from_secs(1));
/// // The clock of the other process may be slow, and ours fast.
/// assert!(grants.over_at() > at(1_102));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grants {
    drift_ppm: u32,
    over_at: Mono,
}

impl Grants {
    /// None yet. Clocks may be wrong by `drift_ppm` millionths.
    #[must_use]
    pub fn new(drift_ppm: u32) -> Self {
        Self { drift_ppm, over_at: Mono::ZERO }
    }

    /// How long must be waited, by a clock that may be fast, until a `span` is over that is
    /// counted by a clock that may be slow: `span × (1 + drift) / (1 − drift)`, rounded up. To
    /// widen it twice would be too little by the square of the drift.
    #[must_use]
    pub fn waited(span: Duration, drift_ppm: u32) -> Duration {
        const MILLION: u128 = 1_000_000;
        // No clock that stands still or runs backwards: settings refuse far less.
        let ppm = u128::from(drift_ppm).min(MILLION - 1);
        let product = u128::from(nanos(span)) * (MILLION + ppm);
        let waited = product.div_ceil(MILLION - ppm);
        Duration::from_nanos(u64::try_from(waited).unwrap_or(u64::MAX))
    }

    /// Grants a span from `now` on, and remembers when it is over. Gives the span.
    pub fn give(&mut self, now: Mono, span: Duration) -> Duration {
        if !span.is_zero() {
            self.over_at = self.over_at.max(now + Self::waited(span, self.drift_ppm));
        }
        span
    }

    /// When all of them are over.
    #[must_use]
    pub fn over_at(&self) -> Mono {
        self.over_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of the slowest clock has passed when the fastest has counted that long, and not
    /// a moment sooner.
    #[test]
    fn the_fastest_clock_waits_for_the_slowest() {
        for ppm in [0_u32, 1, 100, 1_000, 50_000, 100_000] {
            let span = Duration::from_secs(1);
            let drift = f64::from(ppm) / 1e6;
            let true_time = span.as_secs_f64() / (1.0 - drift);
            let counted = true_time * (1.0 + drift);
            let waited = Grants::waited(span, ppm).as_secs_f64();
            assert!((waited - counted).abs() < 2e-9, "{ppm}: {waited} is not {counted}");
            assert!(Grants::waited(span, ppm) >= span);
        }
        assert!(Grants::waited(Duration::MAX, 1_000) > Duration::from_secs(1));
    }
}
