//! The clock that deadlines are told on: it goes on while the machine sleeps.

use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tenure_core::Mono;

/// Now, on the clock that a leadership's trust is counted on (`CLOCK_BOOTTIME`). Every
/// process of this kernel reads the same one.
///
/// ```
/// assert!(tenure_guard::now() <= tenure_guard::now());
/// ```
#[must_use]
pub fn now() -> Mono {
    let now = clock_gettime(ClockId::Boottime);
    Mono::from_nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
}

/// Wakes a `poll` at a moment of that clock, also if the machine slept.
#[derive(Debug)]
pub(crate) struct Alarm {
    pub(crate) fd: OwnedFd,
}

impl Alarm {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { fd: timerfd_create(TimerfdClockId::Boottime, flags)? })
    }

    /// Replaces whatever was set before.
    pub(crate) fn set(&self, at: Mono) -> rustix::io::Result<()> {
        // Zero would disarm it; a moment in the past fires at once.
        let nanos = at.max(Mono::from_nanos(1)).since(Mono::ZERO);
        let at = Timespec {
            tv_sec: i64::try_from(nanos.as_secs()).unwrap_or(i64::MAX / 2),
            tv_nsec: nanos.subsec_nanos().into(),
        };
        let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timer = Itimerspec { it_interval: interval, it_value: at };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &timer)?;
        Ok(())
    }
}

/// Whole nanoseconds.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
