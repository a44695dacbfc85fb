//! Moments by the store's clock, as the standard library has them.

use std::time::SystemTime;

use tenure_core::Timestamp;

/// Turns a [`Timestamp`] of a store into a [`SystemTime`], for people and for other
/// libraries. It is the store's wall clock, not this machine's, and no decision in Tenure is
/// taken on it.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tenure::{Timestamp, ToSystemTime};
///
/// let at = Timestamp::from_unix_millis(1_700_000_000_500).to_system_time();
/// assert_eq!(at, SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_500));
/// ```
pub trait ToSystemTime {
    /// The moment as a `SystemTime`; the Unix epoch if the system cannot tell so late a one.
    fn to_system_time(self) -> SystemTime;
}

impl ToSystemTime for Timestamp {
    fn to_system_time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH.checked_add(self.since_epoch()).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a store of another make may say is converted, not panicked on.
    #[test]
    fn the_latest_timestamp_is_converted() {
        let last = Timestamp::from_unix_millis(u64::MAX).to_system_time();
        assert!(last >= SystemTime::UNIX_EPOCH);
        assert_eq!(Timestamp::from_unix_millis(0).to_system_time(), SystemTime::UNIX_EPOCH);
    }
}
