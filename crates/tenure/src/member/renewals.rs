//! A leadership's renewals, as a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tenure_core::Mono;

use crate::member::reign::Reign;
use crate::stream::{Stepping, Steps};
use crate::time::Time;

/// How long a term may be trusted, told anew with each renewal: made by
/// [`Leadership::renewed`](crate::Leadership::renewed). It begins with the present state and
/// ends when the term is over. A reader that is slow sees the newest renewal, not each one.
///
/// It keeps nothing: the term is released without it.
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is polled"]
pub struct Renewals {
    renewals: Stepping<Extensions>,
}

impl Renewals {
    pub(crate) fn new(reign: Arc<Reign>, time: Time) -> Self {
        Self { renewals: Stepping::new(Extensions { reign, time, seen: Mono::ZERO }) }
    }

    /// Waits for the next renewal, and says how long the term may be trusted from now on;
    /// `None` at the [end](crate#streams): once the term is over. Cancel-safe.
    pub async fn next(&mut self) -> Option<Duration> {
        self.renewals.next().await
    }
}

impl Stream for Renewals {
    type Item = Duration;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Duration>> {
        self.get_mut().renewals.poll(context)
    }
}

/// How far the trust in a term reaches, as it moves.
struct Extensions {
    reign: Arc<Reign>,
    time: Time,
    seen: Mono,
}

impl Steps for Extensions {
    type Item = Duration;

    async fn step(&mut self) -> Option<Duration> {
        let until = self.reign.renewed(self.seen).await?;
        self.seen = until;
        Some(until.since(self.time.now()))
    }
}
