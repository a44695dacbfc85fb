//! Removal where a service cannot remove by version: the object stays, empty.
//!
//! S3 itself removes with `If-Match`; many who speak its language ignore the
//! condition there and would remove whatever they find. A record that was
//! written anew in between would vanish, and with it the sign of life of a
//! member that trusts in it. So the object is *emptied*, by the conditional
//! write that the service does have, and an empty object counts as absent:
//! looks find nothing, listings leave it out, and creating replaces it by a
//! swap on its version. It is never deleted by Tenure.
//!
//! All empty objects may have the same version. That is harmless: a swap
//! on it creates a cell that is absent at that very moment.

use std::sync::Arc;

use async_trait::async_trait;
use tenure_cas::{Batches, Expect, Listed, Loaded, Register, Removed, Swapped, Version, Watching};
use tenure_store::Result;

/// How often a creation begins again because tombstones come and go under it.
const ATTEMPTS: usize = 4;

/// A register whose removed cells stay as empty ones.
#[derive(Debug)]
pub(crate) struct Tombstones(pub(crate) Arc<dyn Register>);

#[async_trait]
impl Register for Tombstones {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        match self.0.load(key, known).await? {
            Loaded::Found { bytes, .. } if bytes.is_empty() => Ok(Loaded::Absent),
            loaded => Ok(loaded),
        }
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        if expect != Expect::Absent {
            return self.0.swap(key, expect, bytes).await;
        }
        for _ in 0..ATTEMPTS {
            if let stored @ Swapped::Stored(_) =
                self.0.swap(key, Expect::Absent, bytes.clone()).await?
            {
                return Ok(stored);
            }
            let tombstone = match self.0.load(key, None).await? {
                Loaded::Found { bytes, version } if bytes.is_empty() => version,
                Loaded::Absent => continue,
                _ => break,
            };
            let over = self.0.swap(key, Expect::Version(tombstone), bytes.clone()).await?;
            if let stored @ Swapped::Stored(_) = over {
                return Ok(stored);
            }
        }
        Ok(Swapped::Conflict)
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        match self.0.swap(key, Expect::Version(expect.clone()), Vec::new()).await? {
            Swapped::Stored(_) => Ok(Removed::Gone),
            Swapped::Conflict => match self.load(key, None).await? {
                Loaded::Absent => Ok(Removed::Gone),
                _ => Ok(Removed::Conflict),
            },
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.0.list(prefix).await
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

#[cfg(test)]
mod tests {
    use tenure_cas::MemoryRegister;

    use super::*;

    fn version(swapped: Swapped) -> Version {
        match swapped {
            Swapped::Stored(version) => version,
            Swapped::Conflict => panic!("a conflict"),
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_removed_cell_is_absent_and_can_be_made_again() {
        let tombstones = Tombstones(Arc::new(MemoryRegister::new()));
        let first = version(tombstones.swap("k", Expect::Absent, b"1".to_vec()).await.unwrap());
        assert_eq!(tombstones.remove("k", &first).await.unwrap(), Removed::Gone);
        assert_eq!(tombstones.load("k", None).await.unwrap(), Loaded::Absent);
        assert_eq!(tombstones.load("k", Some(&first)).await.unwrap(), Loaded::Absent);
        assert_eq!(tombstones.remove("k", &first).await.unwrap(), Removed::Gone);
        let again = tombstones.swap("k", Expect::Absent, b"2".to_vec()).await.unwrap();
        assert_ne!(version(again), first);
        let third = tombstones.swap("k", Expect::Absent, b"3".to_vec()).await.unwrap();
        assert_eq!(third, Swapped::Conflict);
    }

    /// M2: a late removal of an older life takes nothing from the newer one.
    #[tokio::test(flavor = "current_thread")]
    async fn a_late_removal_leaves_what_was_written_since() {
        let tombstones = Tombstones(Arc::new(MemoryRegister::new()));
        let old = version(tombstones.swap("k", Expect::Absent, b"1".to_vec()).await.unwrap());
        assert_eq!(tombstones.remove("k", &old).await.unwrap(), Removed::Gone);
        tombstones.swap("k", Expect::Absent, b"2".to_vec()).await.unwrap();
        assert_eq!(tombstones.remove("k", &old).await.unwrap(), Removed::Conflict);
        let found = tombstones.load("k", None).await.unwrap();
        assert!(matches!(found, Loaded::Found { bytes, .. } if bytes == b"2"));
    }

    /// Of many who create over one tombstone, one does.
    #[tokio::test(flavor = "current_thread")]
    async fn one_of_many_creates_over_a_tombstone() {
        let tombstones = Arc::new(Tombstones(Arc::new(MemoryRegister::new())));
        let old = version(tombstones.swap("k", Expect::Absent, b"1".to_vec()).await.unwrap());
        tombstones.remove("k", &old).await.unwrap();
        let mut won = 0;
        for n in 0..8 {
            let swapped = tombstones.swap("k", Expect::Absent, vec![n]).await.unwrap();
            won += u32::from(swapped != Swapped::Conflict);
        }
        assert_eq!(won, 1);
    }
}
