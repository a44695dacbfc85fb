//! Times as a run writes them down: nanoseconds of the clock that trust is measured on,
//! which every process of one kernel reads.

use std::time::Duration;

pub(crate) use tenure_testkit::stamp as now;

/// Nanoseconds since the machine started.
pub type Nanos = u64;

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
