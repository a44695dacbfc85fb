//! The common clock: every process of one kernel reads the same one, and it goes
//! on while the machine sleeps. It is the clock that trust is measured on.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine started.
pub type Nanos = u64;

/// Now.
pub(crate) fn now() -> Nanos {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// What this process takes for the time of day, in seconds. It is written down
/// to show that a clock was jumped, and decides nothing.
pub(crate) fn wall() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Whole nanoseconds.
pub(crate) fn nanos(span: Duration) -> Nanos {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Seconds, for people.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}
