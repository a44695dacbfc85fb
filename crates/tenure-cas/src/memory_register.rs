//! A register in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

use async_trait::async_trait;

use crate::register::{
    AllSwapped, Batches, Change, Expect, Listed, Loaded, Register, Removed, Swapped, Version,
    Watching, Write,
};
use tenure_store::{Error, ErrorKind, Result};

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
    /// Whether it tells of changes, gives content in listings and writes several cells at
    /// once.
    rich: bool,
}

#[derive(Debug, Default)]
struct Cells {
    /// Counts the writes of all cells, so that no version ever comes back, not
    /// even after a removal.
    writes: u64,
    cells: BTreeMap<String, (u64, Vec<u8>)>,
    watches: Vec<Weak<Mutex<Told>>>,
}

/// What one watch has not given yet.
#[derive(Debug)]
struct Told {
    prefixes: Vec<String>,
    changes: VecDeque<Change>,
    waiting: Option<Waker>,
}

/// A watch of cells in memory.
#[derive(Debug)]
struct MemoryWatch(Arc<Mutex<Told>>);

/// The most cells that are written at once.
const MOST: usize = 128;

impl MemoryRegister {
    /// A register without cells.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A register without cells that can all that a register can: it tells of changes, its
    /// listings have the content, and it writes several cells at once.
    ///
    /// ```
    /// use tenure_cas::{MemoryRegister, Register};
    /// assert!(MemoryRegister::rich().batches().is_some());
    /// assert!(MemoryRegister::new().batches().is_none());
    /// ```
    #[must_use]
    pub fn rich() -> Self {
        Self { rich: true, ..Self::default() }
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

    fn is_as(&self, key: &str, expect: &Expect) -> bool {
        match (self.version(key), expect) {
            (None, Expect::Absent) => true,
            (Some(found), Expect::Version(expected)) => found == *expected,
            _ => false,
        }
    }

    fn put(&mut self, key: String, bytes: Vec<u8>) -> Version {
        self.writes += 1;
        let version = Version::from(self.writes);
        let told =
            Change::Put { key: key.clone(), version: version.clone(), bytes: Some(bytes.clone()) };
        self.cells.insert(key.clone(), (self.writes, bytes));
        self.tell(&key, &told);
        version
    }

    fn tell(&mut self, key: &str, change: &Change) {
        self.watches.retain(|watch| {
            let Some(watch) = watch.upgrade() else { return false };
            let mut told = watch.lock().unwrap_or_else(PoisonError::into_inner);
            if told.prefixes.iter().any(|prefix| key.starts_with(prefix)) {
                told.changes.push_back(change.clone());
                if let Some(waiting) = told.waiting.take() {
                    waiting.wake();
                }
            }
            true
        });
    }
}

#[async_trait]
impl Watching for MemoryWatch {
    async fn next(&mut self) -> Result<Change> {
        let next = poll_fn(|context| {
            let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(change) = told.changes.pop_front() else {
                told.waiting = Some(context.waker().clone());
                return Poll::Pending;
            };
            Poll::Ready(change)
        });
        Ok(next.await)
    }
}

#[async_trait]
impl Batches for MemoryRegister {
    fn most(&self) -> usize {
        MOST
    }

    async fn swap_all(&self, writes: Vec<Write>) -> Result<AllSwapped> {
        let keys: BTreeSet<_> = writes.iter().map(|write| &write.key).collect();
        if keys.len() != writes.len() || writes.len() > MOST {
            let what = "several writes of one cell, or too many cells, in one step";
            return Err(Error::new(ErrorKind::Invalid, what).remedy("report this as a defect"));
        }
        let mut cells = self.cells();
        let as_expected = |write: &Write| {
            write.expect.as_ref().is_none_or(|expect| cells.is_as(&write.key, expect))
        };
        if !writes.iter().all(as_expected) {
            return Ok(AllSwapped::Conflict);
        }
        let stored = writes.into_iter().map(|write| cells.put(write.key, write.bytes));
        Ok(AllSwapped::Stored(stored.collect()))
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
        if !cells.is_as(key, &expect) {
            return Ok(Swapped::Conflict);
        }
        Ok(Swapped::Stored(cells.put(key.to_owned(), bytes)))
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        let mut cells = self.cells();
        match cells.version(key) {
            None => Ok(Removed::Gone),
            Some(found) if found != *expect => Ok(Removed::Conflict),
            Some(_) => {
                cells.writes += 1;
                cells.cells.remove(key);
                cells.tell(key, &Change::Gone { key: key.to_owned() });
                Ok(Removed::Gone)
            }
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let cells = self.cells();
        let from_prefix = cells.cells.range(prefix.to_owned()..);
        let below = from_prefix.take_while(|(key, _)| key.starts_with(prefix));
        let listed = below.map(|(key, (version, bytes))| Listed {
            key: key.clone(),
            version: Some(Version::from(*version)),
            bytes: self.rich.then(|| bytes.clone()),
        });
        Ok(listed.collect())
    }

    fn watch(&self, prefixes: &[String]) -> Option<Box<dyn Watching>> {
        let told = Told {
            prefixes: prefixes.to_vec(),
            changes: VecDeque::from([Change::Lost]),
            waiting: None,
        };
        let told = Arc::new(Mutex::new(told));
        self.rich.then(|| {
            self.cells().watches.push(Arc::downgrade(&told));
            Box::new(MemoryWatch(told)) as Box<dyn Watching>
        })
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.rich.then_some(self as &dyn Batches)
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
        for Listed { key, version, .. } in listed {
            assert_eq!(register.load(&key, version.as_ref()).await.unwrap(), Loaded::Unchanged);
        }
        assert!(register.list("c").await.unwrap().is_empty());
    }
}
