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
/// What is *not* asked: no clock, no expiry, no watch, no transactions, no
/// order of versions.
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
