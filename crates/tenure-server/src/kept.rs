//! A hold on a term that others trust: nothing but a word lets it go.

use futures_util::FutureExt as _;
use tenure::{Leadership, Tenure};

/// A leadership whose work is in other processes.
///
/// Dropped without [`release`](Self::release), by a panic or with its runtime, it says nothing of
/// that work: the term is not given up, and the member is told to shut down. Then the member
/// drains, says *lost*, and keeps the term for as long as others may trust it
/// ([`trusted_elsewhere`](tenure::SettingsBuilder::trusted_elsewhere)).
#[derive(Debug)]
pub(crate) struct Kept {
    leadership: Option<Leadership>,
    member: Tenure,
}

impl Kept {
    pub(crate) fn new(leadership: Leadership, member: &Tenure) -> Self {
        Self { leadership: Some(leadership), member: member.clone() }
    }

    /// Gives the term back, which neither a client nor this server trusts any more. Whether the
    /// store has confirmed that it has it back; what it has not is repeated in the background.
    pub(crate) async fn release(mut self) -> bool {
        match self.leadership.take() {
            Some(leadership) => leadership.resign().await.is_ok(),
            None => true,
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(leadership) = self.leadership.take() {
            // The first poll tells the member's loop.
            let _ = self.member.shutdown().now_or_never();
            std::mem::forget(leadership);
        }
    }
}
