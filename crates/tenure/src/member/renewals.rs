//! A leadership's renewals, as a stream.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tenure_core::Mono;

use crate::member::reign::Reign;
use crate::time::Time;

/// How long a term may be trusted, told anew with each renewal: made by
/// [`Leadership::renewed`](crate::Leadership::renewed). It begins with the present state and
/// ends when the term is over. A reader that is slow sees the newest renewal, not each one.
///
/// It keeps nothing: the term is released without it.
#[must_use = "a stream does nothing unless it is polled"]
pub struct Renewals {
    reign: Arc<Reign>,
    time: Time,
    seen: Mono,
    waiting: Option<Waiting>,
}

type Waiting = Pin<Box<dyn Future<Output = Option<Mono>> + Send + Sync>>;

impl Renewals {
    pub(crate) fn new(reign: Arc<Reign>, time: Time) -> Self {
        Self { reign, time, seen: Mono::ZERO, waiting: None }
    }

    /// Waits for the next renewal, and says how long the term may be trusted from now on;
    /// `None` once the term is over.
    pub async fn next(&mut self) -> Option<Duration> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Duration>> {
        let seen = self.seen;
        let waiting = self.waiting.get_or_insert_with(|| {
            let reign = Arc::clone(&self.reign);
            Box::pin(async move { reign.renewed(seen).await })
        });
        let until = ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        let Some(until) = until else { return Poll::Ready(None) };
        self.seen = until;
        Poll::Ready(Some(until.since(self.time.now())))
    }
}

impl Stream for Renewals {
    type Item = Duration;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Duration>> {
        self.get_mut().poll(context)
    }
}

impl fmt::Debug for Renewals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewals").field("term", &self.reign.term).finish_non_exhaustive()
    }
}
