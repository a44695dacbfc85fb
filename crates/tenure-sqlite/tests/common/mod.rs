//! What the tests of this crate share.
#![allow(dead_code, unreachable_pub, unused_imports, clippy::unwrap_used)]

pub mod child;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::ManualClock;
pub use tenure_testkit::requests::*;
pub use tenure_testkit::{let_pass, let_pass_blocking, wait_for};

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

/// Waits until this process has the file closed. The threads of a store that is dropped may
/// still write the log back, and a copy that is made meanwhile has half of it.
pub fn closed(file: &Path) {
    let name = file.file_name().unwrap().to_str().unwrap();
    let is_part = |path: &Path| {
        let is_beside = path.parent() == file.parent();
        is_beside && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(name))
    };
    wait_for("the file to be closed", || {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let mut paths = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        (!paths.any(|path| is_part(&path))).then_some(())
    });
    // The log and the shared memory go with the last connection. Two that close at the same
    // moment each take the other for the last one: then a third removes them.
    let db = rusqlite::Connection::open(file).unwrap();
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).unwrap();
}
