//! Clocks: each process and the store count the same true time in their own way.

use tenure_core::Mono;

/// True time, in nanoseconds since the world began. No process can see it.
pub type Nanos = u64;

/// One second of true time.
pub const SECOND: Nanos = 1_000_000_000;

/// A clock with an offset and a rate of its own. It counts suspended time, as
/// rule T2 asks, unless it is told that it missed some.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    since: Nanos,
    offset: u64,
    ppm: i64,
}

const MILLION: i128 = 1_000_000;

impl Clock {
    /// A clock that shows `offset` at the beginning and runs `ppm` millionths
    /// fast, or slow if that is negative.
    #[must_use]
    pub fn new(offset: u64, ppm: i64) -> Self {
        Self { since: 0, offset, ppm }
    }

    /// What it shows at `now`.
    #[must_use]
    pub fn at(&self, now: Nanos) -> Mono {
        let passed = i128::from(now.saturating_sub(self.since));
        let counted = passed * (MILLION + i128::from(self.ppm)) / MILLION;
        Mono::from_nanos(self.offset + u64::try_from(counted).unwrap_or(0))
    }

    /// The first true moment at which it shows `local` or more.
    #[must_use]
    pub fn reaches(&self, local: Mono) -> Nanos {
        if local == Mono::MAX {
            return Nanos::MAX;
        }
        let to_count = i128::from(local.as_nanos().saturating_sub(self.offset));
        let rate = MILLION + i128::from(self.ppm);
        let passed = (to_count * MILLION + rate - 1) / rate;
        let at = self.since + u64::try_from(passed).unwrap_or(u64::MAX / 2);
        if self.at(at) >= local { at } else { at + 1 }
    }

    /// Begins to run at another rate at `now`.
    pub fn change_rate(&mut self, now: Nanos, ppm: i64) {
        self.offset = self.at(now).as_nanos();
        self.since = now;
        self.ppm = ppm;
    }

    /// Forgets that `span` of true time passed before `now`: a clock that does
    /// not count suspended time.
    pub fn miss(&mut self, now: Nanos, span: Nanos) {
        let shown = self.at(now - span.min(now - self.since));
        self.offset = shown.as_nanos();
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_reaches_what_it_shows_and_not_a_nanosecond_before() {
        for ppm in [-100_000, -1_000, -7, 0, 7, 1_000, 100_000] {
            let mut clock = Clock::new(123_456_789, ppm);
            clock.change_rate(77, ppm / 2);
            clock.change_rate(1_000_003, ppm);
            for local in [123_456_790u64, 124_999_999, 3_000_000_001, 86_400_000_000_000] {
                let local = Mono::from_nanos(local).max(clock.at(1_000_003));
                let at = clock.reaches(local);
                assert!(clock.at(at) >= local, "{ppm} {local}");
                assert!(at == 1_000_003 || clock.at(at - 1) < local, "{ppm} {local}");
            }
        }
    }

    #[test]
    fn a_clock_that_missed_a_span_is_behind_by_it() {
        let mut clock = Clock::new(0, 0);
        clock.miss(5 * SECOND, 2 * SECOND);
        assert_eq!(clock.at(6 * SECOND), Mono::from_millis(4_000));
    }
}
