//! Following a namespace whose rows lie elsewhere.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{Entry, Hint, Namespace, Seq};

use super::Rows;
use crate::{Followed, Following, Page, Result, ToldOfNames};

/// The most entries taken at a time.
pub(super) const BATCH: usize = 500;

/// Someone who follows one namespace.
#[derive(Debug)]
pub(super) struct Follower {
    rows: Arc<dyn Rows>,
    ns: Namespace,
    /// Up to where the journal was turned into hints.
    position: Seq,
    names: ToldOfNames,
    /// What is not delivered yet.
    ready: VecDeque<Followed>,
}

impl Follower {
    pub(super) async fn new(rows: Arc<dyn Rows>, ns: &Namespace) -> Result<Self> {
        // Nothing that happens from this moment on is missed, even if the first look
        // comes much later.
        let looked = rows.look(ns, &BTreeSet::new()).await?;
        let (position, names) = (looked.seq, ToldOfNames::new(looked.names.rev));
        let ready = VecDeque::from([Followed::Hint(Hint::Anything)]);
        Ok(Self { rows, ns: ns.clone(), position, names, ready })
    }

    /// Takes what was found. Nothing moves before the answer is there, so that a future
    /// dropped while waiting loses nothing.
    fn take(&mut self, page: Page) {
        match page {
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
        loop {
            if let Some(followed) = self.ready.pop_front() {
                return Ok(followed);
            }
            let looked = self.rows.look(&self.ns, &BTreeSet::new()).await?;
            if looked.seq != self.position {
                let page = self.rows.entries(&self.ns, self.position, BATCH).await?;
                self.take(page);
            }
            self.ready.extend(self.names.hint(looked.names.rev).map(Followed::Hint));
            if self.ready.is_empty() {
                tokio::select! {
                    waited = self.rows.wait(&self.ns, self.position, looked.names.rev) => waited?,
                    () = self.names.due() => {}
                }
            }
        }
    }
}
