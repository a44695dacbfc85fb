//! Following a namespace whose rows lie elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::Namespace;

use super::Rows;
use crate::{Followed, Following, Result, Told};

/// The most entries taken at a time.
pub(super) const BATCH: usize = 500;

/// Someone who follows one namespace.
#[derive(Debug)]
pub(super) struct Follower {
    rows: Arc<dyn Rows>,
    ns: Namespace,
    told: Told,
}

impl Follower {
    pub(super) async fn new(rows: Arc<dyn Rows>, ns: &Namespace) -> Result<Self> {
        // Nothing that happens from this moment on is missed, even if the first look
        // comes much later.
        let looked = rows.look(ns, &BTreeSet::new()).await?;
        let told = Told::new(looked.seq, looked.names.rev);
        Ok(Self { rows, ns: ns.clone(), told })
    }
}

#[async_trait]
impl Following for Follower {
    async fn next(&mut self) -> Result<Followed> {
        loop {
            if let Some(followed) = self.told.pop() {
                return Ok(followed);
            }
            let looked = self.rows.look(&self.ns, &BTreeSet::new()).await?;
            let position = self.told.position();
            if looked.seq != position {
                let page = self.rows.entries(&self.ns, position, BATCH).await?;
                self.told.page(page);
            }
            self.told.names_at(looked.names.rev);
            if self.told.is_empty() {
                tokio::select! {
                    waited = self.rows.wait(&self.ns, position, looked.names.rev) => waited?,
                    () = self.told.due() => {}
                }
            }
        }
    }
}
