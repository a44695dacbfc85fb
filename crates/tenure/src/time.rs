//! The clock that leaderships are measured on, and a timer on the same clock.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::Mono;
use tenure_store::{BootClock, Clock, ManualClock};

/// The machine's own clock, or one that a test moves.
#[derive(Clone, Debug, Default)]
pub(crate) enum Time {
    #[default]
    Boot,
    Manual(Arc<ManualClock>),
}

impl Time {
    #[inline]
    pub(crate) fn now(&self) -> Mono {
        match self {
            Time::Boot => BootClock::read(),
            Time::Manual(clock) => clock.now(),
        }
    }

    /// Waits for `span` by this clock, roughly: for pauses and for giving
    /// requests up, not for trust.
    pub(crate) async fn sleep(&self, span: Duration) {
        match self {
            Time::Boot => tokio::time::sleep(span).await,
            Time::Manual(clock) => clock.reached(clock.now() + span).await,
        }
    }
}

/// Wakes at a moment of [`Time`], also if the machine was suspended meanwhile.
#[derive(Debug)]
pub(crate) struct Timer {
    time: Time,
    #[cfg(target_os = "linux")]
    fd: Option<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>,
}

impl Timer {
    /// Must be called inside a tokio runtime with I/O enabled.
    pub(crate) fn new(time: Time) -> std::io::Result<Self> {
        #[cfg(target_os = "linux")]
        let fd = match &time {
            Time::Boot => Some(boot_timer()?),
            Time::Manual(_) => None,
        };
        Ok(Self {
            time,
            #[cfg(target_os = "linux")]
            fd,
        })
    }

    /// Returns once the clock has reached `at`; never, for `None`. Cancel-safe.
    pub(crate) async fn until(&mut self, at: Option<Mono>) {
        let Some(at) = at else { return std::future::pending().await };
        if let Time::Manual(clock) = &self.time {
            return clock.reached(at).await;
        }
        while self.time.now() < at {
            self.wait(at).await;
        }
    }

    /// A timer that counts suspended time: it fires right after a resume.
    #[cfg(target_os = "linux")]
    async fn wait(&mut self, at: Mono) {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        let Some(fd) = &self.fd else { return };
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let at = Timespec {
            tv_sec: i64::try_from(at.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (at.as_nanos() % 1_000_000_000) as _,
        };
        let spec = Itimerspec { it_interval: zero, it_value: at };
        let armed = timerfd_settime(fd.get_ref(), TimerfdTimerFlags::ABSTIME, &spec);
        match armed {
            Ok(_) => {
                if let Ok(mut ready) = fd.readable().await {
                    ready.clear_ready();
                }
            }
            // Setting an open timer does not fail; if it does, be slow, not dead.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }

    /// Without such a timer: short naps, so that a resume is noticed soon.
    #[cfg(not(target_os = "linux"))]
    async fn wait(&mut self, at: Mono) {
        let left = at.since(self.time.now());
        tokio::time::sleep(left.min(Duration::from_millis(500))).await;
    }
}

#[cfg(target_os = "linux")]
fn boot_timer() -> std::io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let fd = timerfd_create(TimerfdClockId::Boottime, flags)?;
    // Deprecated in favour of an unsafe constructor, because a type whose
    // descriptor changes under the reactor is unsound. An owned one does not.
    #[allow(deprecated)]
    tokio::io::unix::AsyncFd::new(fd)
}
