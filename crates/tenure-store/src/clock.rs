//! The one place in this crate that reads real clocks.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{Mono, Timestamp};

/// A clock that counts suspended time (rule T2), and a wall clock for people.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Now, for every decision.
    fn now(&self) -> Mono;

    /// Now, as people write it; never compared.
    fn wall(&self) -> Timestamp;
}

/// The machine's own clock: `CLOCK_BOOTTIME` on Linux, which goes on counting
/// while the machine is suspended, unlike [`std::time::Instant`].
///
/// ```
/// use tenure_store::{BootClock, Clock};
/// let clock = BootClock;
/// assert!(clock.now() <= clock.now());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl BootClock {
    /// Now: one clock read, without a virtual call.
    #[inline]
    #[must_use]
    pub fn read() -> Mono {
        os::read()
    }
}

#[cfg(unix)]
mod os {
    use tenure_core::Mono;

    #[inline]
    pub(super) fn read() -> Mono {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const ID: rustix::time::ClockId = rustix::time::ClockId::Boottime;
        // Darwin's CLOCK_MONOTONIC counts sleep. Elsewhere suspended time is
        // not counted, and docs/guarantees.md says so.
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const ID: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
        #[allow(clippy::disallowed_methods)]
        let now = rustix::time::clock_gettime(ID);
        #[allow(clippy::cast_sign_loss)]
        Mono::from_nanos((now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64)
    }
}

/// Windows' performance counter, on which `Instant` goes there, counts suspended time.
#[cfg(not(unix))]
mod os {
    use std::sync::OnceLock;
    use std::time::Instant;

    use tenure_core::Mono;

    #[allow(clippy::disallowed_methods)]
    pub(super) fn read() -> Mono {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let since = ORIGIN.get_or_init(Instant::now).elapsed();
        // Not zero, which stands for "never trusted".
        Mono::from_millis(1) + since
    }
}

impl Clock for BootClock {
    fn now(&self) -> Mono {
        Self::read()
    }

    #[allow(clippy::disallowed_methods)]
    fn wall(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        Timestamp::from_unix_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

/// A clock that moves only when it is told to, for tests.
///
/// ```
/// use std::time::Duration;
/// use tenure_store::{Clock, ManualClock};
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.now().since(before), Duration::from_secs(5));
/// ```
#[derive(Debug)]
pub struct ManualClock {
    nanos: AtomicU64,
    moved: tokio::sync::Notify,
    order: Mutex<()>,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualClock {
    /// A clock that stands at one hour, so that subtracting from it is fine.
    #[must_use]
    pub fn new() -> Self {
        let nanos = AtomicU64::new(3_600_000_000_000);
        Self { nanos, moved: tokio::sync::Notify::new(), order: Mutex::new(()) }
    }

    /// Moves the clock on, and wakes those that wait on it.
    pub fn advance(&self, by: Duration) {
        let guard = self.order.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let next = Mono::from_nanos(self.nanos.load(Ordering::Acquire)) + by;
        self.nanos.store(next.as_nanos(), Ordering::Release);
        drop(guard);
        self.moved.notify_waiters();
    }

    /// Returns once the clock has reached `until`.
    pub async fn reached(&self, until: Mono) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.now() >= until {
                return;
            }
            moved.await;
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Mono {
        Mono::from_nanos(self.nanos.load(Ordering::Acquire))
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_unix_millis(1_700_000_000_000 + self.now().as_nanos() / 1_000_000)
    }
}
