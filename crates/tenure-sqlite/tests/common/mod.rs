//! What the tests of this crate share.
#![allow(dead_code, unreachable_pub, unused_imports, clippy::unwrap_used)]

pub mod child;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::ManualClock;
pub use tenure_testkit::requests::*;
pub use tenure_testkit::{let_pass, let_pass_blocking};

/// A database of its own, in a directory that goes with it.
pub struct Place {
    pub dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("tenure.db")
    }

    pub async fn open(&self) -> SqliteStore {
        self.open_with(SqliteOptions::new()).await
    }

    pub async fn open_with(&self, options: SqliteOptions) -> SqliteStore {
        SqliteStore::open(self.path(), options).await.unwrap()
    }

    pub fn lock_files(&self) -> Vec<String> {
        lock_files(&self.path())
    }

    /// The database as any other program sees it.
    pub fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

pub fn lock_files(path: &Path) -> Vec<String> {
    let mut directory = path.as_os_str().to_owned();
    directory.push("-live");
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".lock"))
        .collect();
    names.sort();
    names
}

pub fn manual() -> (Arc<ManualClock>, SqliteOptions) {
    let clock = Arc::new(ManualClock::new());
    (Arc::clone(&clock), SqliteOptions::new().clock(clock))
}
