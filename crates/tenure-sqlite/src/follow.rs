//! Following a namespace, and reading its journal page by page.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::params;
use tenure_core::{Entry, Hint, Incarnation, Namespace, Rev, Seq};
use tenure_store::{Followed, Following, Page, Result, ToldOfNames};
use tokio::sync::watch;

use crate::error::Outcome;
use crate::journal;
use crate::store::Inner;
use crate::txn::{Txn, place};

/// The most entries taken at a time.
const BATCH: usize = 500;

/// Someone who follows one namespace.
pub(crate) struct Follower {
    inner: Arc<Inner>,
    ns: Namespace,
    /// Up to where the journal was turned into hints.
    position: Seq,
    names: ToldOfNames,
    stirred: watch::Receiver<u64>,
    /// What is not delivered yet.
    ready: VecDeque<Followed>,
    /// How many of the deaths noticed were looked at.
    deaths: u64,
}

/// What a look found.
struct Looked {
    page: Page,
    /// The revision of the newest change of names.
    rev: Rev,
    gone: Vec<Incarnation>,
}

impl Follower {
    pub(crate) async fn new(inner: Arc<Inner>, ns: &Namespace) -> Result<Self> {
        // Nothing that happens from this moment on is missed, even if the
        // first look comes much later.
        let stirred = inner.shared.stirred.subscribe();
        let deaths = inner.shared.gone.count();
        let stands = |txn: &Txn<'_>| Ok((txn.seq(), txn.names_at()?.rev));
        let (position, rev) = inner.look("beginning to follow", ns, stands).await?;
        let names = ToldOfNames::new(rev);
        let ready = VecDeque::from([Followed::Hint(Hint::Anything)]);
        Ok(Self { inner, ns: ns.clone(), position, names, stirred, ready, deaths })
    }

    /// Looks for what there is, and takes it. Nothing moves before the answer
    /// is there, so that a future dropped while waiting loses nothing.
    async fn look(&mut self) -> Result<()> {
        let seen = self.inner.shared.gone.count();
        let deaths = self.inner.shared.gone.after(self.deaths);
        let forgotten = deaths.is_none();
        let deaths = deaths.unwrap_or_default();
        let told = deaths.len() as u64;
        let position = self.position;
        let looked = self
            .inner
            .look("following the journal", &self.ns, move |txn| look(txn, position, deaths));
        let looked = looked.await?;
        if forgotten {
            self.deaths = seen;
            self.ready.push_back(Followed::Hint(Hint::Anything));
        } else {
            self.deaths += told;
        }
        self.take(looked);
        Ok(())
    }

    fn take(&mut self, looked: Looked) {
        let Looked { page, rev, gone } = looked;
        self.ready.extend(self.names.hint(rev).map(Followed::Hint));
        self.ready.extend(gone.into_iter().map(Hint::Gone).map(Followed::Hint));
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

/// What happened after `position`, and which of `deaths` concern this
/// namespace.
fn look(txn: &Txn<'_>, position: Seq, deaths: Vec<Incarnation>) -> Outcome<Looked> {
    let mut gone = Vec::new();
    for life in deaths {
        let sql = include_str!("sql/member_exists_in.sql");
        if txn.one(sql, params![life.to_string(), txn.ns], |_| Ok(()))?.is_some() {
            gone.push(life);
        }
    }
    Ok(Looked { page: page(txn, position)?, rev: txn.names_at()?.rev, gone })
}

/// A page of the journal.
pub(crate) fn page(txn: &Txn<'_>, after: Seq) -> Outcome<Page> {
    let (last, trimmed) = place(txn.db, txn.ns)?;
    if after.get() < trimmed || after.get() > last {
        return Ok(Page::Trimmed(Seq::new(trimmed.max(after.get().min(last)))));
    }
    Ok(Page::Entries(journal::after(txn.db, txn.ns, after, BATCH)?))
}

#[async_trait]
impl Following for Follower {
    async fn next(&mut self) -> Result<Followed> {
        loop {
            if let Some(followed) = self.ready.pop_front() {
                return Ok(followed);
            }
            // Marked as seen before looking, so that no change falls between.
            self.stirred.borrow_and_update();
            self.look().await?;
            if self.ready.is_empty() {
                tokio::select! {
                    // The sender is held by `inner`: it cannot be gone before us.
                    _ = self.stirred.changed() => {}
                    () = self.names.due() => {}
                }
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
