//! A register whose requests are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tenure_cas::{
    AllSwapped, Batches, Expect, Listed, Loaded, Register, Removed, Swapped, Version, Watching,
    Write,
};

/// Counts requests. A stream of changes is one, whatever it tells.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    inner: Arc<dyn Register>,
    requests: Arc<AtomicU64>,
}

impl Counting {
    pub(crate) fn new(inner: Arc<dyn Register>) -> Self {
        Self { inner, requests: Arc::default() }
    }

    fn one_more(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn so_far(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Register for Counting {
    async fn load(&self, key: &str, known: Option<&Version>) -> tenure_store::Result<Loaded> {
        self.one_more();
        self.inner.load(key, known).await
    }

    async fn swap(
        &self,
        key: &str,
        expect: Expect,
        bytes: Vec<u8>,
    ) -> tenure_store::Result<Swapped> {
        self.one_more();
        self.inner.swap(key, expect, bytes).await
    }

    async fn remove(&self, key: &str, expect: &Version) -> tenure_store::Result<Removed> {
        self.one_more();
        self.inner.remove(key, expect).await
    }

    async fn list(&self, prefix: &str) -> tenure_store::Result<Vec<Listed>> {
        self.one_more();
        self.inner.list(prefix).await
    }

    fn watch(&self, prefixes: &[String]) -> Option<Box<dyn Watching>> {
        self.inner.watch(prefixes)
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.inner.batches().is_some().then_some(self as &dyn Batches)
    }
}

#[async_trait]
impl Batches for Counting {
    fn most(&self) -> usize {
        self.inner.batches().map_or(1, Batches::most)
    }

    async fn swap_all(&self, writes: Vec<Write>) -> tenure_store::Result<AllSwapped> {
        self.one_more();
        match self.inner.batches() {
            Some(batches) => batches.swap_all(writes).await,
            None => Ok(AllSwapped::Conflict),
        }
    }
}
