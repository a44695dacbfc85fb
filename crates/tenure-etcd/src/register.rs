//! etcd as a register: a version is the revision of a cell's last change.

use async_trait::async_trait;
use std::sync::Arc;

use tenure_cas::{
    AllSwapped, Batches, Expect, Listed, Loaded, Register, Removed, Swapped, Version, Watching,
    Write,
};
use tenure_store::{Error, ErrorKind, Result};

use crate::messages::{Committed, KeyValue, Ranged, bytes, key, lists, reads, removes, stores};
use crate::watch::EtcdWatch;
use crate::wire::{Effect, Wire};

/// The most operations of one transaction, as etcd has it unless told otherwise.
pub(crate) const MOST: usize = 128;
/// How many cells one page of a listing has.
const PAGE: usize = 1_000;

/// The cells of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct Etcd(pub(crate) Arc<Wire>);

impl Etcd {
    async fn commit(&self, transaction: &serde_json::Value) -> Result<Committed> {
        let before = self.0.revision();
        let committed: Committed = self.0.ask("/v3/kv/txn", transaction, Effect::Writes).await?;
        // What is refused here may have been applied, by a cluster that has forgotten.
        self.0.check(committed.header, before).map_err(Error::maybe_applied)?;
        Ok(committed)
    }

    pub(crate) async fn range(&self, request: &serde_json::Value) -> Result<Ranged> {
        let before = self.0.revision();
        let ranged: Ranged = self.0.ask("/v3/kv/range", request, Effect::Reads).await?;
        self.0.check(ranged.header, before)?;
        Ok(ranged)
    }
}

/// What is no answer of etcd.
fn unreadable(what: &str) -> Error {
    Error::new(ErrorKind::Foreign, format!("etcd's answer cannot be read: {what}"))
        .remedy("check that the URL names etcd's client port")
}

fn content(kv: &KeyValue) -> Result<Vec<u8>> {
    bytes(&kv.value).ok_or_else(|| unreadable("a value"))
}

#[async_trait]
impl Register for Etcd {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        let found = self.range(&reads(key)).await?;
        let Some(kv) = found.kvs.first() else { return Ok(Loaded::Absent) };
        let version = Version::from(kv.mod_revision);
        if known == Some(&version) {
            return Ok(Loaded::Unchanged);
        }
        Ok(Loaded::Found { bytes: content(kv)?, version })
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        let write = Write { key: key.to_owned(), expect: Some(expect), bytes };
        let committed = self.commit(&stores(&[write])).await?;
        Ok(match committed.succeeded {
            true => Swapped::Stored(Version::from(committed.header.revision)),
            false => Swapped::Conflict,
        })
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        let committed = self.commit(&removes(key, expect.as_str())).await?;
        let found = committed.responses.first().and_then(|r| r.response_range.as_ref());
        let is_there = found.is_some_and(|found| !found.kvs.is_empty());
        Ok(if committed.succeeded || !is_there { Removed::Gone } else { Removed::Conflict })
    }

    /// In pages, each as of its own moment.
    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let mut listed = Vec::new();
        let mut from = prefix.as_bytes().to_vec();
        loop {
            let page = self.range(&lists(&from, prefix, PAGE)).await?;
            for kv in &page.kvs {
                // No key of ours has other than ASCII letters.
                let Some(key) = key(&kv.key) else { continue };
                let version = Some(Version::from(kv.mod_revision));
                listed.push(Listed { key, version, bytes: Some(content(kv)?) });
            }
            let last = page.kvs.last().and_then(|kv| bytes(&kv.key)).filter(|_| page.more);
            let Some(last) = last else { return Ok(listed) };
            from = last;
            // The first key after it.
            from.push(0);
        }
    }

    fn watch(&self, prefixes: &[String]) -> Option<Box<dyn Watching>> {
        Some(Box::new(EtcdWatch::new(self.0.clone(), prefixes.to_vec())))
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }
}

#[async_trait]
impl Batches for Etcd {
    fn most(&self) -> usize {
        MOST
    }

    async fn swap_all(&self, writes: Vec<Write>) -> Result<AllSwapped> {
        let committed = self.commit(&stores(&writes)).await?;
        if !committed.succeeded {
            return Ok(AllSwapped::Conflict);
        }
        // One revision for all that one transaction writes.
        let version = Version::from(committed.header.revision);
        Ok(AllSwapped::Stored(vec![version; writes.len()]))
    }
}
