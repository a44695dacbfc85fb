//! Following the journal of rows that lie elsewhere.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{Entry, Hint, Namespace, Seq};

use super::{Page, Rows};
use crate::{Followed, Following, From, Result};

/// The most entries taken at a time.
const BATCH: usize = 500;

/// Someone who follows one namespace from a position on.
#[derive(Debug)]
pub(super) struct Follower {
    rows: Arc<dyn Rows>,
    ns: Namespace,
    position: Seq,
    /// Hints not delivered yet; `None` for one who follows the entries.
    hints: Option<VecDeque<Hint>>,
}

impl Follower {
    pub(super) async fn new(rows: Arc<dyn Rows>, ns: &Namespace, from: From) -> Result<Self> {
        let ns = ns.clone();
        Ok(match from {
            From::After(position) => Self { rows, ns, position, hints: None },
            // Nothing that happens from this moment on is missed, even if the first look
            // comes much later.
            From::Hints => {
                let position = rows.look(&ns, &BTreeSet::new()).await?.seq;
                Self { rows, ns, position, hints: Some(VecDeque::from([Hint::Anything])) }
            }
        })
    }

    /// Takes what was found. Nothing moves before the answer is there, so that a future
    /// dropped while waiting loses nothing.
    fn take(&mut self, page: Page) -> Option<Followed> {
        let entries = match page {
            Page::Entries(entries) => entries,
            Page::Trimmed(place) => {
                self.position = place;
                return Some(match self.hints {
                    Some(_) => Followed::Hint(Hint::Anything),
                    None => Followed::Trimmed(place),
                });
            }
        };
        self.position = entries.last()?.seq;
        let Some(hints) = &mut self.hints else { return Some(Followed::Entries(entries)) };
        hints.extend(Entry::hints(&entries));
        hints.pop_front().map(Followed::Hint)
    }
}

#[async_trait]
impl Following for Follower {
    async fn next(&mut self) -> Result<Followed> {
        loop {
            if let Some(hint) = self.hints.as_mut().and_then(VecDeque::pop_front) {
                return Ok(Followed::Hint(hint));
            }
            let before = self.position;
            let page = self.rows.entries(&self.ns, before, BATCH).await?;
            if let Some(followed) = self.take(page) {
                return Ok(followed);
            }
            // Entries that amount to no hint: there may be more behind them.
            if self.position == before {
                self.rows.wait(&self.ns, before).await?;
            }
        }
    }
}
