//! Following a namespace, and reading its journal page by page.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::params;
use tenure_core::{Hint, Incarnation, Namespace, Rev, Seq};
use tenure_store::{Followed, Following, Page, Result, Told};
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
    told: Told,
    stirred: watch::Receiver<u64>,
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
        let told = Told::new(position, rev);
        Ok(Self { inner, ns: ns.clone(), told, stirred, deaths })
    }

    /// Looks for what there is, and takes it. Nothing moves before the answer
    /// is there, so that a future dropped while waiting loses nothing.
    async fn look(&mut self) -> Result<()> {
        let seen = self.inner.shared.gone.count();
        let deaths = self.inner.shared.gone.after(self.deaths);
        let forgotten = deaths.is_none();
        let deaths = deaths.unwrap_or_default();
        let told = deaths.len() as u64;
        let position = self.told.position();
        let looked = self
            .inner
            .look("following the journal", &self.ns, move |txn| look(txn, position, deaths));
        let looked = looked.await?;
        if forgotten {
            self.deaths = seen;
            self.told.hint(Hint::Anything);
        } else {
            self.deaths += told;
        }
        self.told.names_at(looked.rev);
        looked.gone.into_iter().map(Hint::Gone).for_each(|hint| self.told.hint(hint));
        self.told.page(looked.page);
        Ok(())
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
            if let Some(followed) = self.told.pop() {
                return Ok(followed);
            }
            // Marked as seen before looking, so that no change falls between.
            self.stirred.borrow_and_update();
            self.look().await?;
            if self.told.is_empty() {
                tokio::select! {
                    // The sender is held by `inner`: it cannot be gone before us.
                    _ = self.stirred.changed() => {}
                    () = self.told.due() => {}
                }
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
