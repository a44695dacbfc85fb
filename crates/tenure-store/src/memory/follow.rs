//! Following a namespace of the memory store.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{Entry, Hint, Namespace, Rev, Seq};

use super::Shared;
use crate::{Followed, Following, Page, Result, ToldOfNames};

/// Someone who follows one namespace.
pub(super) struct Follower {
    shared: Arc<Shared>,
    ns: Namespace,
    /// Up to where the journal was turned into hints.
    position: Seq,
    names: ToldOfNames,
    /// What is not delivered yet.
    ready: VecDeque<Followed>,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, ns: Namespace) -> Self {
        // Nothing that happens from this moment on is missed, even if the
        // first look comes much later.
        let position = shared.look(&ns, super::MemoryState::seq).unwrap_or_default();
        let names = ToldOfNames::new(Self::rev(&shared, &ns));
        let ready = VecDeque::from([Followed::Hint(Hint::Anything)]);
        Self { shared, ns, position, names, ready }
    }

    /// The revision of the newest change of names.
    fn rev(shared: &Shared, ns: &Namespace) -> Rev {
        shared.look(ns, super::MemoryState::rev).unwrap_or_default()
    }

    /// What there is to tell right now.
    fn poll(&mut self) -> Option<Followed> {
        if self.ready.is_empty() {
            self.look();
        }
        self.ready.pop_front()
    }

    fn look(&mut self) {
        let changed = self.names.hint(Self::rev(&self.shared, &self.ns));
        self.ready.extend(changed.map(Followed::Hint));
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
            tokio::select! {
                () = rung => {}
                () = self.names.due() => {}
            }
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
