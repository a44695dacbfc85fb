//! How the streams of this crate are made.
//!
//! Each is written as steps: a state, and an async function that gives what comes next. The
//! step under way is kept in the stream, not in the future that waits for it, so that a
//! future that is dropped loses nothing.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// What a stream is made of.
pub(crate) trait Steps: Send + Sync + 'static {
    type Item: 'static;

    /// What comes next; `None` if nothing ever will.
    fn step(&mut self) -> impl Future<Output = Option<Self::Item>> + Send + Sync;
}

/// A stream made of steps. It stays at its end.
pub(crate) struct Stepping<S: Steps>(State<S>);

enum State<S: Steps> {
    Idle(Box<S>),
    Waiting(Step<S>),
    Ended,
}

/// A step under way, and the state for the one after it.
type Step<S> = Pin<Box<dyn Future<Output = (Box<S>, Option<<S as Steps>::Item>)> + Send + Sync>>;

impl<S: Steps> Stepping<S> {
    pub(crate) fn new(steps: S) -> Self {
        Self(State::Idle(Box::new(steps)))
    }

    pub(crate) async fn next(&mut self) -> Option<S::Item> {
        poll_fn(|context| self.poll(context)).await
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        loop {
            match std::mem::replace(&mut self.0, State::Ended) {
                State::Idle(mut steps) => {
                    self.0 = State::Waiting(Box::pin(async move {
                        let next = steps.step().await;
                        (steps, next)
                    }));
                }
                State::Waiting(mut step) => {
                    let polled = step.as_mut().poll(context);
                    if polled.is_pending() {
                        self.0 = State::Waiting(step);
                    }
                    let (steps, next) = ready!(polled);
                    if next.is_some() {
                        self.0 = State::Idle(steps);
                    }
                    return Poll::Ready(next);
                }
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}

impl<S: Steps> fmt::Debug for Stepping<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Idle(_) => "Idle",
            State::Waiting(_) => "Waiting",
            State::Ended => "Ended",
        })
    }
}
