//! Pauses between attempts.

use std::time::Duration;

/// The pauses between attempts that fail: each is twice as long as the one before, up to
/// a longest, and up to a quarter shorter at random, so that the many who lost one store
/// do not all try again in the same moment.
///
/// ```
/// use std::time::Duration;
/// use tenure_store::Backoff;
///
/// let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(150));
/// assert!((75..=100).contains(&backoff.pause().as_millis()));
/// assert!((112..=150).contains(&backoff.pause().as_millis()));
/// assert!((112..=150).contains(&backoff.pause().as_millis()));
/// backoff.reset();
/// assert!((75..=100).contains(&backoff.pause().as_millis()));
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Begins with `first` and never pauses for more than `longest`.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// How long to pause after one more failure.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next.min(self.longest);
        self.next = pause.saturating_mul(2).min(self.longest);
        jittered(pause)
    }

    /// An attempt succeeded: the next pause is the first again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Between three quarters of `span` and all of it.
///
/// ```
/// use std::time::Duration;
/// let span = tenure_store::jittered(Duration::from_secs(4));
/// assert!((3_000..=4_000).contains(&span.as_millis()));
/// ```
#[must_use]
pub fn jittered(span: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness the pause is only less spread.
    let _ = getrandom::fill(&mut byte);
    span.mul_f64(0.75 + f64::from(byte[0]) / 1_024.0)
}
