//! A register in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::register::{Expect, Listed, Loaded, Register, Removed, Swapped, Version};
use tenure_store::Result;

/// A register in this process, for tests and simulations. Clones are handles on
/// the same cells. Every future is ready at once, so that it can be polled by
/// hand.
///
/// ```
/// use tenure_cas::{Expect, Loaded, MemoryRegister, Register, Swapped};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> tenure_store::Result<()> {
/// let register = MemoryRegister::new();
/// let first = register.swap("a", Expect::Absent, b"1".to_vec()).await?;
/// assert!(matches!(first, Swapped::Stored(_)));
/// assert_eq!(register.swap("a", Expect::Absent, b"2".to_vec()).await?, Swapped::Conflict);
/// assert!(matches!(register.clone().load("a", None).await?, Loaded::Found { bytes, .. } if bytes == b"1"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryRegister {
    cells: Arc<Mutex<Cells>>,
}

#[derive(Debug, Default)]
struct Cells {
    /// Counts the writes of all cells, so that no version ever comes back, not
    /// even after a removal.
    writes: u64,
    cells: BTreeMap<String, (u64, Vec<u8>)>,
}

impl MemoryRegister {
    /// A register without cells.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many writes were applied since it was made: what the load of a
    /// protocol is measured by.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.cells().writes
    }

    fn cells(&self) -> MutexGuard<'_, Cells> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cells {
    fn version(&self, key: &str) -> Option<Version> {
        self.cells.get(key).map(|(version, _)| Version::from(*version))
    }
}

#[async_trait]
impl Register for MemoryRegister {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        let cells = self.cells();
        let Some((version, bytes)) = cells.cells.get(key) else {
            return Ok(Loaded::Absent);
        };
        let version = Version::from(*version);
        if known == Some(&version) {
            return Ok(Loaded::Unchanged);
        }
        Ok(Loaded::Found { bytes: bytes.clone(), version })
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        let mut cells = self.cells();
        let as_expected = match (cells.version(key), expect) {
            (None, Expect::Absent) => true,
            (Some(found), Expect::Version(expected)) => found == expected,
            _ => false,
        };
        if !as_expected {
            return Ok(Swapped::Conflict);
        }
        cells.writes += 1;
        let version = cells.writes;
        cells.cells.insert(key.to_owned(), (version, bytes));
        Ok(Swapped::Stored(Version::from(version)))
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        let mut cells = self.cells();
        match cells.version(key) {
            None => Ok(Removed::Gone),
            Some(found) if found != *expect => Ok(Removed::Conflict),
            Some(_) => {
                cells.writes += 1;
                cells.cells.remove(key);
                Ok(Removed::Gone)
            }
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let cells = self.cells();
        let from_prefix = cells.cells.range(prefix.to_owned()..);
        let below = from_prefix.take_while(|(key, _)| key.starts_with(prefix));
        let listed = below.map(|(key, (version, _))| Listed {
            key: key.clone(),
            version: Some(Version::from(*version)),
        });
        Ok(listed.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn stored(register: &MemoryRegister, expect: Expect, bytes: &[u8]) -> Version {
        match register.swap("k", expect, bytes.to_vec()).await.unwrap() {
            Swapped::Stored(version) => version,
            Swapped::Conflict => panic!("a conflict"),
        }
    }

    #[tokio::test]
    async fn a_version_does_not_come_back_after_a_removal() {
        let register = MemoryRegister::new();
        let first = stored(&register, Expect::Absent, b"same").await;
        assert_eq!(register.remove("k", &first).await.unwrap(), Removed::Gone);
        let second = stored(&register, Expect::Absent, b"same").await;
        assert_ne!(first, second);
        let late = register.swap("k", Expect::Version(first.clone()), b"x".to_vec()).await;
        assert_eq!(late.unwrap(), Swapped::Conflict);
        assert_eq!(register.remove("k", &first).await.unwrap(), Removed::Conflict);
    }

    #[tokio::test]
    async fn a_known_version_moves_no_bytes_and_an_older_one_does() {
        let register = MemoryRegister::new();
        let old = stored(&register, Expect::Absent, b"1").await;
        assert_eq!(register.load("k", Some(&old)).await.unwrap(), Loaded::Unchanged);
        let new = stored(&register, Expect::Version(old.clone()), b"2").await;
        let found = Loaded::Found { bytes: b"2".to_vec(), version: new };
        assert_eq!(register.load("k", Some(&old)).await.unwrap(), found);
        assert_eq!(register.load("other", Some(&old)).await.unwrap(), Loaded::Absent);
    }

    #[tokio::test]
    async fn a_list_gives_the_keys_under_the_prefix_and_no_others() {
        let register = MemoryRegister::new();
        for key in ["a/1", "a/2", "ab", "b/1"] {
            register.swap(key, Expect::Absent, Vec::new()).await.unwrap();
        }
        let listed = register.list("a/").await.unwrap();
        assert_eq!(listed.iter().map(|l| l.key.as_str()).collect::<Vec<_>>(), ["a/1", "a/2"]);
        for Listed { key, version } in listed {
            assert_eq!(register.load(&key, version.as_ref()).await.unwrap(), Loaded::Unchanged);
        }
        assert!(register.list("c").await.unwrap().is_empty());
    }
}
