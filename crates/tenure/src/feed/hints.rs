//! A subscription to hints.

use tenure_core::Hint;
use tokio::sync::broadcast::error::RecvError;

use super::follow::{News, Subscription};

/// Hints as they come. They are only hints: who falls behind is told to look at
/// everything instead (N1).
#[derive(Debug)]
pub(crate) struct Hints {
    subscription: Subscription,
    /// The first hint of the following, if it came before this subscription (H13).
    missed: Option<Hint>,
}

impl Hints {
    pub(super) fn new(subscription: Subscription, missed: Option<Hint>) -> Self {
        Self { subscription, missed }
    }

    /// Waits for a hint. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Hint {
        loop {
            if let Ok(hint) = self.heard().await {
                return hint;
            }
        }
    }

    /// Waits for a hint, or for why there are none at present. Cancel-safe.
    pub(super) async fn heard(&mut self) -> Result<Hint, String> {
        if let Some(hint) = self.missed.take() {
            return Ok(hint);
        }
        loop {
            match self.subscription.news.recv().await {
                Ok(News::Hint(hint)) => return Ok(hint),
                Ok(News::Interrupted(error)) => return Err(error.to_string()),
                Ok(News::Entries(_) | News::Trimmed { .. }) => {}
                Err(RecvError::Lagged(_)) => {
                    self.subscription.skip();
                    return Ok(Hint::Anything);
                }
                // The source, which this keeps, has the sender.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
