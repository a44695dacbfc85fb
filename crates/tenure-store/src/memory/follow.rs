//! Following a namespace of the memory store.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{Entry, Hint, Namespace, Seq};

use super::Shared;
use crate::{Followed, Following, Page, Result};

/// Someone who follows one namespace.
pub(super) struct Follower {
    shared: Arc<Shared>,
    ns: Namespace,
    /// Up to where the journal was turned into hints.
    position: Seq,
    /// What is not delivered yet.
    ready: VecDeque<Followed>,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, ns: Namespace) -> Self {
        // Nothing that happens from this moment on is missed, even if the
        // first look comes much later.
        let position = shared.look(&ns, super::MemoryState::seq).unwrap_or_default();
        let ready = VecDeque::from([Followed::Hint(Hint::Anything)]);
        Self { shared, ns, position, ready }
    }

    /// What there is to tell right now.
    fn poll(&mut self) -> Option<Followed> {
        if self.ready.is_empty() {
            self.look();
        }
        self.ready.pop_front()
    }

    fn look(&mut self) {
        match self.shared.page(&self.ns, self.position) {
            Page::Entries(entries) => {
                let Some(last) = entries.last() else { return };
                self.position = last.seq;
                self.ready.extend(Entry::hints(&entries).map(Followed::Hint));
            }
            Page::Trimmed(place) => {
                self.position = place;
                self.ready.push_back(Followed::Hint(Hint::Anything));
            }
        }
        self.ready.push_back(Followed::Grown(self.position));
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
