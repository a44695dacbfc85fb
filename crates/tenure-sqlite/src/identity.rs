//! A file that is really that file.
//!
//! Processes find each other by a path: the path of the database, and with it the
//! log, the shared memory and the lock files beside it. SQLite and the kernel's
//! locks go by the file that was opened. Where the two come apart, each side has
//! locks that the other does not see, and each elects a leader of its own, with
//! the same number. So:
//!
//! - a file that has a second name (a hard link, a mount of the file alone) is
//!   refused when it is opened;
//! - a file whose path leads elsewhere by now is noticed before each request.
//!
//! Nothing is opened for that: closing a database file would drop the locks that
//! SQLite holds on it elsewhere in this process.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};
use tenure_store::{Error, ErrorKind, Result};

use crate::filesystem;

/// What tells a file from every other one that exists at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file that a path leads to now, if there is one.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::of)
    }

    pub(crate) fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }

    pub(crate) fn inode(self) -> u64 {
        self.inode
    }
}

/// The files that a store handle has open, each under the path it was opened by.
#[derive(Debug)]
pub(crate) struct Identity {
    files: Vec<(PathBuf, FileId)>,
}

impl Identity {
    /// The database at `path`, which was `before` it was opened, and what SQLite
    /// has made beside it. To be called after it was read through SQLite.
    pub(crate) fn of(path: &Path, before: Option<FileId>) -> Result<Self> {
        let mut files = Vec::new();
        for suffix in ["", "-wal", "-shm"] {
            let mut name = OsString::from(path);
            name.push(suffix);
            let file = PathBuf::from(name);
            let id = FileId::at(&file).ok_or_else(|| moved(&file, false))?;
            if suffix.is_empty() && before.is_some_and(|before| before != id) {
                return Err(moved(&file, true));
            }
            files.push((file, id));
        }
        Ok(Self { files })
    }

    /// Whether every path still leads to the file that is open.
    pub(crate) fn check(&self) -> Result<()> {
        for (path, open) in &self.files {
            let found = FileId::at(path);
            if found != Some(*open) {
                return Err(moved(path, found.is_some()));
            }
        }
        Ok(())
    }
}

fn moved(path: &Path, replaced: bool) -> Error {
    let how = if replaced { "replaced" } else { "removed or renamed" };
    let what = format!(
        "{} was {how} while it was open: a process that opens it by its name now shares no lock with \
         this process, and there may be two leaders with the same number",
        path.display()
    );
    Error::new(ErrorKind::Foreign, what).remedy(
        "put the very same file back, or stop every process that uses it and start them again; \
         never move, copy over or delete the database or what lies beside it while any of them \
         runs",
    )
}

/// Refuses a file that has more than one name.
pub(crate) fn check_names(path: &Path, found: &Metadata) -> Result<()> {
    let shown = path.display();
    let why = "each name has lock files and a log of its own, so that there would be two leaders";
    let refuse = |what: String, remedy: &str| {
        Err(Error::new(ErrorKind::Invalid, format!("{what}: {why}")).remedy(remedy))
    };
    if found.nlink() > 1 {
        let what = format!("{shown} has {} names (hard links)", found.nlink());
        let remedy = "remove all but one, and make a symbolic link to the directory where it has \
                      to be found elsewhere";
        return refuse(what, remedy);
    }
    if is_mounted(path) {
        let what = format!("{shown} is mounted by itself");
        return refuse(what, "mount the directory that it lies in instead");
    }
    Ok(())
}

/// Whether the file itself, and not a directory above it, is what was mounted.
fn is_mounted(path: &Path) -> bool {
    let flags = StatxFlags::BASIC_STATS;
    let root = StatxAttributes::MOUNT_ROOT;
    match rustix::fs::statx(CWD, path, AtFlags::empty(), flags) {
        Ok(found) if found.stx_attributes_mask.contains(root) => {
            found.stx_attributes.contains(root)
        }
        // Kernels before 5.8 do not say.
        _ => filesystem::is_mount_point(path),
    }
}
