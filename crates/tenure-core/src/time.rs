//! Time as the machine knows it: an instant on one member's own clock.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// An instant on **one** member's clock, in nanoseconds since an origin of that
/// clock's own.
///
/// The clock must count suspended time (`CLOCK_BOOTTIME` on Linux). Two values
/// are comparable only if they come from the same clock; nothing in Tenure
/// compares clocks of two machines. All arithmetic saturates, so that no
/// setting and no reply can make time wrap around.
///
/// ```
/// use core::time::Duration;
/// use tenure_core::Mono;
///
/// let start = Mono::from_nanos(5);
/// assert_eq!((start + Duration::from_nanos(7)).as_nanos(), 12);
/// assert_eq!(start.since(Mono::from_nanos(9)), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(u64);

impl Mono {
    /// The clock's origin.
    pub const ZERO: Mono = Mono(0);
    /// Later than every instant that will be reached: "never".
    pub const MAX: Mono = Mono(u64::MAX);

    /// The instant `nanos` after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `millis` after the clock's origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Mono) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Mono {
    type Output = Mono;

    fn add(self, after: Duration) -> Mono {
        Mono(self.0.saturating_add(nanos(after)))
    }
}

impl Sub<Duration> for Mono {
    type Output = Mono;

    fn sub(self, before: Duration) -> Mono {
        Mono(self.0.saturating_sub(nanos(before)))
    }
}

impl fmt::Display for Mono {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}

/// `duration` in whole nanoseconds, saturating after 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A moment by the **store's** wall clock, in milliseconds of Unix time.
///
/// For people to read, in listings and histories. It is never compared with
/// another clock and no decision is taken on it.
///
/// ```
/// let at = tenure_core::Timestamp::from_unix_millis(1_700_000_000_000);
/// assert_eq!(at.unix_millis(), 1_700_000_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The moment `millis` after the Unix epoch.
    pub const fn from_unix_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn unix_millis(self) -> u64 {
        self.0
    }

    /// How long after the Unix epoch it is: `SystemTime::UNIX_EPOCH + at.since_epoch()` is
    /// the moment as the standard library has it.
    pub const fn since_epoch(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Mono::MAX + Duration::MAX, Mono::MAX);
        assert_eq!(Mono::ZERO - Duration::from_secs(1), Mono::ZERO);
        assert_eq!(Mono::from_millis(u64::MAX), Mono::MAX);
        assert_eq!(Mono::ZERO.since(Mono::MAX), Duration::ZERO);
    }
}
