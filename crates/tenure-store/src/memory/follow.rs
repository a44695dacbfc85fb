//! Following a namespace of the memory store.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{Namespace, Rev};

use super::Shared;
use crate::{Followed, Following, Result, Told};

/// Someone who follows one namespace.
pub(super) struct Follower {
    shared: Arc<Shared>,
    ns: Namespace,
    told: Told,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, ns: Namespace) -> Self {
        // Nothing that happens from this moment on is missed, even if the
        // first look comes much later.
        let position = shared.look(&ns, super::MemoryState::seq).unwrap_or_default();
        let told = Told::new(position, Self::rev(&shared, &ns));
        Self { shared, ns, told }
    }

    /// The revision of the newest change of names.
    fn rev(shared: &Shared, ns: &Namespace) -> Rev {
        shared.look(ns, super::MemoryState::rev).unwrap_or_default()
    }

    /// What there is to tell right now.
    fn poll(&mut self) -> Option<Followed> {
        if self.told.is_empty() {
            self.told.names_at(Self::rev(&self.shared, &self.ns));
            self.told.page(self.shared.page(&self.ns, self.told.position()));
        }
        self.told.pop()
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
            tokio::select! {
                () = rung => {}
                () = self.told.due() => {}
            }
        }
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("ns", &self.ns)
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}
