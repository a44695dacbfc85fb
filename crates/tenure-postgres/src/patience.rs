//! How long to wait for an answer, with a timer that is used again.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that is left running between requests.
///
/// Setting one for each request and taking it back costs a little each time. Left
/// running, it goes off once in a while, and is set again then to where the request
/// that is under way ends.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    idle: Mutex<Option<Timer>>,
}

#[derive(Debug)]
struct Timer {
    sleep: Pin<Box<Sleep>>,
    /// Where it runs: it is of no use on another runtime, which may outlive its own.
    on: Id,
}

impl Patience {
    /// Waits for an answer for so long.
    pub(crate) async fn wait<T>(
        &self,
        limit: Duration,
        asked: impl Future<Output = T>,
    ) -> Option<T> {
        let (until, on) = (Instant::now() + limit, Handle::current().id());
        let usable = |timer: &Timer| timer.on == on && timer.sleep.deadline() <= until;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut timer = idle
            .filter(usable)
            .unwrap_or_else(|| Timer { sleep: Box::pin(sleep_until(until)), on });
        let mut asked = pin!(asked);
        let answer = poll_fn(|cx| {
            if let Poll::Ready(answer) = asked.as_mut().poll(cx) {
                return Poll::Ready(Some(answer));
            }
            while timer.sleep.as_mut().poll(cx).is_ready() {
                if timer.sleep.deadline() >= until {
                    return Poll::Ready(None);
                }
                timer.sleep.as_mut().reset(until);
            }
            Poll::Pending
        })
        .await;
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(timer);
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(3);

    /// How long it took until nobody waited any more.
    async fn gives_up(patience: &Patience) -> Duration {
        let from = Instant::now();
        assert_eq!(patience.wait(LIMIT, pending::<()>()).await, None);
        from.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn each_request_may_take_as_long_whenever_it_is_made() {
        let patience = Patience::default();
        assert_eq!(patience.wait(LIMIT, ready(7)).await, Some(7));
        for pause in [0, 1, 2_999, 3_000, 3_001, 60_000] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            assert_eq!(gives_up(&patience).await, LIMIT, "after a pause of {pause} ms");
            let slow = tokio::time::sleep(LIMIT - Duration::from_millis(1));
            assert_eq!(patience.wait(LIMIT, slow).await, Some(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_at_once_wait_each_for_itself() {
        let patience = Patience::default();
        assert_eq!(patience.wait(LIMIT, ready(())).await, Some(()));
        let both = async {
            tokio::join!(gives_up(&patience), async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                gives_up(&patience).await
            })
        };
        assert_eq!(both.await, (LIMIT, LIMIT));
    }

    /// A store may outlive the runtime that it was first used on.
    #[test]
    fn a_timer_of_a_runtime_that_is_gone_is_not_used() {
        let patience = Patience::default();
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            runtime.unwrap().block_on(async {
                let soon = tokio::task::yield_now();
                assert_eq!(patience.wait(LIMIT, soon).await, Some(()));
            });
        };
        run();
        run();
    }
}
