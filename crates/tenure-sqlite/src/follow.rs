//! Following the journal, or the hints it amounts to.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::params;
use tenure_core::{Entry, Hint, Incarnation, Namespace, Seq};
use tenure_store::{Followed, Following, From, Result};
use tokio::sync::watch;

use crate::error::Outcome;
use crate::journal;
use crate::store::Inner;
use crate::txn::{Txn, place};

/// The most entries taken at a time.
const BATCH: usize = 500;

/// Someone who follows one namespace from a position on.
pub(crate) struct Follower {
    inner: Arc<Inner>,
    ns: Namespace,
    position: Seq,
    stirred: watch::Receiver<u64>,
    /// For one who follows hints; `None` for one who follows the entries.
    hints: Option<Hints>,
}

struct Hints {
    ready: VecDeque<Hint>,
    /// How many of the deaths noticed were looked at.
    deaths: u64,
}

/// What a look found.
enum Looked {
    Trimmed(Seq),
    Found { entries: Vec<Entry>, gone: Vec<Incarnation> },
}

impl Follower {
    pub(crate) async fn new(inner: Arc<Inner>, ns: &Namespace, from: From) -> Result<Self> {
        let stirred = inner.shared.stirred.subscribe();
        let (position, hints) = match from {
            From::After(position) => (position, None),
            // Nothing that happens from this moment on is missed, even if the
            // first look comes much later.
            From::Hints => {
                let deaths = inner.shared.gone.count();
                let here = inner.look("beginning to follow", ns, |txn| Ok(txn.seq())).await?;
                (here, Some(Hints { ready: VecDeque::from([Hint::Anything]), deaths }))
            }
        };
        Ok(Self { inner, ns: ns.clone(), position, stirred, hints })
    }

    /// Looks for what there is, and takes it. Nothing moves before the answer
    /// is there, so that a future dropped while waiting loses nothing.
    async fn poll(&mut self) -> Result<Option<Followed>> {
        let deaths = match &self.hints {
            Some(hints) => self.inner.shared.gone.after(hints.deaths),
            None => Some(Vec::new()),
        };
        let forgotten = deaths.is_none();
        let seen = self.inner.shared.gone.count();
        let deaths = deaths.unwrap_or_default();
        let told = deaths.len() as u64;
        let position = self.position;
        let looked = self
            .inner
            .look("following the journal", &self.ns, move |txn| look(txn, position, deaths));
        let looked = looked.await?;
        if let Some(hints) = &mut self.hints {
            if forgotten {
                hints.deaths = seen;
                hints.ready.push_back(Hint::Anything);
            } else {
                hints.deaths += told;
            }
        }
        Ok(self.take(looked))
    }

    fn take(&mut self, looked: Looked) -> Option<Followed> {
        let (entries, gone) = match looked {
            Looked::Trimmed(upto) => {
                self.position = upto;
                let Some(hints) = &mut self.hints else { return Some(Followed::Trimmed(upto)) };
                hints.ready.push_back(Hint::Anything);
                return hints.ready.pop_front().map(Followed::Hint);
            }
            Looked::Found { entries, gone } => (entries, gone),
        };
        if let Some(last) = entries.last() {
            self.position = last.seq;
        }
        let Some(hints) = &mut self.hints else {
            return (!entries.is_empty()).then_some(Followed::Entries(entries));
        };
        hints.ready.extend(gone.into_iter().map(Hint::Gone));
        hints.ready.extend(Entry::hints(&entries));
        hints.ready.pop_front().map(Followed::Hint)
    }
}

/// What happened after `position`, and which of `deaths` concern this
/// namespace.
fn look(txn: &Txn<'_>, position: Seq, deaths: Vec<Incarnation>) -> Outcome<Looked> {
    let (_, trimmed) = place(txn.db, txn.ns)?;
    if position.get() < trimmed {
        return Ok(Looked::Trimmed(Seq::new(trimmed)));
    }
    let mut gone = Vec::new();
    for life in deaths {
        let sql = include_str!("sql/member_exists_in.sql");
        if txn.one(sql, params![life.to_string(), txn.ns], |_| Ok(()))?.is_some() {
            gone.push(life);
        }
    }
    let entries = journal::after(txn.db, txn.ns, position, BATCH)?;
    Ok(Looked::Found { entries, gone })
}

#[async_trait]
impl Following for Follower {
    async fn next(&mut self) -> Result<Followed> {
        loop {
            if let Some(hint) = self.hints.as_mut().and_then(|hints| hints.ready.pop_front()) {
                return Ok(Followed::Hint(hint));
            }
            // Marked as seen before looking, so that no change falls between.
            self.stirred.borrow_and_update();
            let before = self.position;
            if let Some(followed) = self.poll().await? {
                return Ok(followed);
            }
            // Entries that amount to no hint: there may be more behind them.
            if self.position != before {
                continue;
            }
            // The sender is held by `inner`: it cannot be gone before us.
            drop(self.stirred.changed().await);
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
