//! Limits of this process that look like something else.
//!
//! Where no more files may be opened, SQLite says that the database cannot be
//! opened, and `/proc` seems to be missing. Where a file may not grow, SQLite tells of the
//! disk. All of it sends people the wrong way.

use std::fs::File;
use std::io;

use rustix::io::Errno;

/// What to say when the limit is reached.
pub(crate) const REMEDY: &str = "there are too many open files in this process or on this system: \
                                 raise the limit (ulimit -n, LimitNOFILE=, fs.file-max)";

/// What to say where writing fails and files may not be of any size.
pub(crate) const SIZE: &str = "this process may not make files of any size: raise the limit \
                               (ulimit -f, LimitFSIZE=); or look at the disk and the kernel's \
                               log; do not delete the -wal file";

/// Whether the size of files is limited.
pub(crate) fn is_of_size() -> bool {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current.is_some()
}

/// Whether this process may open no more files.
pub(crate) fn is_reached() -> bool {
    File::open("/dev/null").is_err_and(|error| is_limit(&error))
}

/// Whether an error says so.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}
