//! The clock that leaderships are measured on, and a timer on the same clock.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::Mono;
use tenure_store::{BootClock, Clock, ManualClock};
use tokio::runtime::Handle;

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

    /// Gives a request up when it takes longer than `limit`.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        request: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            answer = request => Some(answer),
            () = self.sleep(limit) => None,
        }
    }

    /// The same, wherever it is polled: the timer is that of `runtime`.
    pub(crate) async fn within_on<T>(
        &self,
        runtime: &Handle,
        limit: Duration,
        request: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            answer = request => Some(answer),
            () = self.sleep_on(runtime, limit) => None,
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

    /// The same, wherever it is polled: an application's runtime may have no timer.
    pub(crate) async fn sleep_on(&self, runtime: &Handle, span: Duration) {
        match self {
            Time::Boot => {
                let sleep = {
                    let _here = runtime.enter();
                    tokio::time::sleep(span)
                };
                sleep.await;
            }
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
    /// When it is set to go off.
    #[cfg(target_os = "linux")]
    set: Option<Mono>,
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
            #[cfg(target_os = "linux")]
            set: None,
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

    /// A timer that counts suspended time: it fires right after a resume. It may
    /// return early.
    ///
    /// The loop waits anew after each thing that happens, mostly for the same moment
    /// or for a later one. A timer that goes off by then is left as it is.
    #[cfg(target_os = "linux")]
    async fn wait(&mut self, at: Mono) {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        let Some(fd) = &self.fd else { return };
        if self.set.is_none_or(|set| set > at) {
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let value = Timespec {
                tv_sec: i64::try_from(at.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: (at.as_nanos() % 1_000_000_000) as _,
            };
            let spec = Itimerspec { it_interval: zero, it_value: value };
            if timerfd_settime(fd.get_ref(), TimerfdTimerFlags::ABSTIME, &spec).is_err() {
                // Setting an open timer does not fail; if it does, be slow, not dead.
                return tokio::time::sleep(Duration::from_millis(100)).await;
            }
            self.set = Some(at);
        }
        if let Ok(mut ready) = fd.readable().await {
            ready.clear_ready();
        }
        self.set = None;
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Waits, unless something else comes first.
    async fn begin(timer: &mut Timer, at: Mono) {
        tokio::select! {
            biased;
            () = timer.until(Some(at)) => {}
            () = std::future::ready(()) => {}
        }
    }

    /// The loop changes its mind about what it waits for all the time.
    #[tokio::test]
    async fn a_timer_goes_off_when_it_was_last_asked_to() {
        let time = Time::Boot;
        let mut timer = Timer::new(time.clone()).unwrap();
        let after = |millis| time.now() + Duration::from_millis(millis);
        for (first, then) in [(3_600_000, 20), (20, 60), (20, 20)] {
            let first = after(first);
            let then = after(then);
            begin(&mut timer, first).await;
            begin(&mut timer, then).await;
            timer.until(Some(then)).await;
            assert!(time.now() >= then);
        }
        // One that has gone off, unheard, does not stand for the next.
        begin(&mut timer, after(5)).await;
        let then = after(50);
        while time.now() < then {
            tokio::task::yield_now().await;
        }
        let then = after(20);
        begin(&mut timer, after(u64::try_from(HOUR.as_millis()).unwrap())).await;
        timer.until(Some(then)).await;
        assert!(time.now() >= then);
    }
}
