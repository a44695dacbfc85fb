//! The small trait under [`CasStore`](crate::CasStore): named cells that can be
//! compared and swapped.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use tenure_store::Result;

/// Which content a cell has: an entity tag, a revision, a resource version. It
/// is compared for equality and for nothing else.
///
/// ```
/// use tenure_cas::Version;
/// assert_eq!(Version::new("\"9b2cf\"").as_str(), "\"9b2cf\"");
/// assert_eq!(Version::from(7), Version::new("7"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// The version a service calls `text`.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().into())
    }

    /// What the service calls it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<u64> for Version {
    fn from(revision: u64) -> Self {
        Self::new(revision.to_string())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Named cells of bytes, each of which can be compared and swapped: an object
/// store with conditional writes, a key-value bucket with revisions, an API
/// server with resource versions.
///
/// Keys are made of ASCII letters, digits, `-`, `_`, `=` and `/`, and are told
/// apart by case. A service with a stricter alphabet maps them, one to one.
/// Cells stay below [`MAX_RECORD`](crate::MAX_RECORD) bytes.
///
/// # What must hold, to ensure correctness
///
/// - **Linearizable for each key.** Every [`load`](Self::load),
///   [`swap`](Self::swap) and [`remove`](Self::remove) of one key takes effect
///   at one moment between its call and its answer. A replica, a cache or a
///   content network that may answer with something older is not a register:
///   a member would be judged dead by a record it has long replaced. Nothing is
///   asked of two different keys.
/// - **A version stands for one content.** It never comes back with other bytes
///   under the same key, not after a removal either. (A hash of the content
///   will do: Tenure never writes the same bytes twice to one key.)
/// - **Unclear is an error.** If it is not known whether a write was applied,
///   the answer is an [`Error`](tenure_store::Error) with `may_have_applied`. In
///   particular a register that retries by itself must not report the conflict
///   with its own first attempt as a plain success, unless it has looked and
///   found its own bytes; reporting it as a conflict is fine, because one that
///   loses looks who won. It need not retry:
///   [`Retrying`](crate::Retrying) does it for any register.
/// - **An error without `may_have_applied` is a promise** that the write was
///   not and will not be applied.
/// - **Durable.** What was stored survives a crash of the service.
/// - **Cancel-safe.** A future that is dropped counts as a lost answer.
///
/// What is *not* asked: no clock, no expiry, no order of versions. A watch
/// ([`watch`](Self::watch)) and writes of several cells at once
/// ([`batches`](Self::batches)) make a store quicker and never safer: a register whose
/// service has none answers `None` to both.
#[async_trait]
pub trait Register: Send + Sync + fmt::Debug {
    /// What the cell holds. If its version is `known` the answer is
    /// [`Loaded::Unchanged`] and moves no content; a register that cannot ask
    /// its service that way compares by itself.
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded>;

    /// Stores `bytes` if the cell is exactly as expected, and answers with the
    /// version they got; otherwise changes nothing and answers
    /// [`Swapped::Conflict`].
    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped>;

    /// Removes the cell if it has exactly this version. A cell that is not
    /// there is [`Removed::Gone`].
    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed>;

    /// The cells whose keys begin with `prefix`, in any order. A key stored or
    /// removed while the list is made may be in it or not; every other one is
    /// there. A listing that lags behind the cells shows members and elections late;
    /// it makes no member win or be ended wrongly (C1).
    async fn list(&self, prefix: &str) -> Result<Vec<Listed>>;

    /// Follows the cells whose keys begin with one of these prefixes; `None` if the service
    /// does not tell of changes by itself. It connects with the first
    /// [`next`](Watching::next).
    fn watch(&self, prefixes: &[String]) -> Option<Box<dyn Watching>>;

    /// Writes of several cells at once; `None` if the service has none.
    fn batches(&self) -> Option<&dyn Batches>;
}

/// The changes of some cells of a [`Register`], as the service tells them.
///
/// # What must hold
///
/// - The first answer is [`Change::Lost`], and so is the first after each time at which
///   something may have been missed: a connection that was made anew, a history that the
///   service has forgotten. Whatever is applied after the request for the changes that
///   follow a `Lost` was taken by the service is told, in the end.
/// - Nothing is asked of *when* it is told, nor of the order, nor that it is told once:
///   a change may arrive late, twice, or after a later one. What is told is a record that
///   the cell had at some moment.
#[async_trait]
pub trait Watching: Send + Sync + fmt::Debug {
    /// The next change. Cancel-safe: a future that is dropped loses nothing. After an
    /// error the next call connects anew.
    async fn next(&mut self) -> Result<Change>;
}

/// What a [`Watching`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The cell was stored.
    Put {
        /// Its key.
        key: String,
        /// The version that it got.
        version: Version,
        /// What it holds, if the service tells that.
        bytes: Option<Vec<u8>>,
    },
    /// The cell was removed.
    Gone {
        /// Its key.
        key: String,
    },
    /// Changes before this moment may have been missed; from here on none is.
    Lost,
}

/// Writes of several cells in one step of the service.
#[async_trait]
pub trait Batches: Send + Sync {
    /// How many cells may be written at once; at least 2.
    fn most(&self) -> usize;

    /// Stores all of these if every cell is exactly as expected, and answers with their
    /// versions, in order; otherwise changes nothing and answers
    /// [`AllSwapped::Conflict`]. No two are of one key. What holds of
    /// [`Register::swap`] holds of it.
    async fn swap_all(&self, writes: Vec<Write>) -> Result<AllSwapped>;
}

/// One write of [`Batches::swap_all`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The cell.
    pub key: String,
    /// How it must be found; `None` if it is overwritten whatever it holds, because it is
    /// never written but together with another cell of the batch, which is compared.
    pub expect: Option<Expect>,
    /// What it is to hold.
    pub bytes: Vec<u8>,
}

/// The answer to [`Batches::swap_all`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllSwapped {
    /// All were stored, under these versions.
    Stored(Vec<Version>),
    /// One of the cells was not as expected; nothing was changed.
    Conflict,
}

/// One cell in the answer to [`Register::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// The version the cell had at some moment between call and answer, where
    /// the service tells it in a listing. A version that is known already saves
    /// the load; a register that is not sure of it says `None`.
    pub version: Option<Version>,
    /// What it held in that version, where a listing tells that too: it saves the load.
    /// A register that says no version says no content.
    pub bytes: Option<Vec<u8>>,
}

/// The answer to [`Register::load`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// There is no such cell.
    Absent,
    /// It has the version that was known.
    Unchanged,
    /// It holds this.
    Found {
        /// The content.
        bytes: Vec<u8>,
        /// Its version.
        version: Version,
    },
}

/// What [`Register::swap`] expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// That there is no such cell.
    Absent,
    /// That it has this version.
    Version(Version),
}

/// The answer to [`Register::swap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swapped {
    /// Stored, under this version.
    Stored(Version),
    /// The cell was not as expected; nothing was changed.
    Conflict,
}

/// The answer to [`Register::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// The cell is not there any more, or never was.
    Gone,
    /// The cell has another version; nothing was changed.
    Conflict,
}
