//! Following the journal, or the hints it amounts to.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{Entry, Hint, Namespace, Seq};

use super::Shared;
use crate::{Followed, Following, From, Result};

/// Someone who follows one namespace from a position on.
pub(super) struct Follower {
    shared: Arc<Shared>,
    ns: Namespace,
    position: Seq,
    /// Hints not delivered yet; `None` for one who follows the entries.
    hints: Option<VecDeque<Hint>>,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, ns: Namespace, from: From) -> Self {
        let (position, hints) = match from {
            From::After(position) => (position, None),
            // Nothing that happens from this moment on is missed, even if the
            // first look comes much later.
            From::Hints => {
                let now = shared.look(&ns, super::MemoryState::seq).unwrap_or_default();
                (now, Some(VecDeque::from([Hint::Anything])))
            }
        };
        Self { shared, ns, position, hints }
    }

    /// What there is to tell right now.
    fn poll(&mut self) -> Option<Followed> {
        if let Some(hint) = self.hints.as_mut().and_then(VecDeque::pop_front) {
            return Some(Followed::Hint(hint));
        }
        match self.shared.look(&self.ns, |state| state.entries_after(self.position))? {
            Ok(entries) => self.take(entries),
            Err(trimmed) => {
                self.position = trimmed;
                Some(self.missed(trimmed))
            }
        }
    }

    fn take(&mut self, entries: Vec<Entry>) -> Option<Followed> {
        self.position = entries.last()?.seq;
        let Some(hints) = &mut self.hints else { return Some(Followed::Entries(entries)) };
        hints.extend(Entry::hints(&entries));
        hints.pop_front().map(Followed::Hint)
    }

    /// One who follows entries is told how far they are gone; to one who only
    /// wants hints it is just another reason to look.
    fn missed(&self, trimmed: Seq) -> Followed {
        match self.hints {
            Some(_) => Followed::Hint(Hint::Anything),
            None => Followed::Trimmed(trimmed),
        }
    }
}

#[async_trait]
impl Following for Follower {
    async fn next(&mut self) -> Result<Followed> {
        let shared = Arc::clone(&self.shared);
        loop {
            let rung = shared.bell.notified();
            tokio::pin!(rung);
            // Listening begins before looking, so that no change falls between.
            rung.as_mut().enable();
            if let Some(followed) = self.poll() {
                return Ok(followed);
            }
            rung.await;
        }
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("ns", &self.ns)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
