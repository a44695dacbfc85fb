//! A limit of this process that looks like something else.
//!
//! Where no more files may be opened, SQLite says that the database cannot be
//! opened, and `/proc` seems to be missing. Both send people the wrong way.

use std::fs::File;
use std::io;

use rustix::io::Errno;

/// What to say when the limit is reached.
pub(crate) const REMEDY: &str = "there are too many open files in this process or on this system: \
                                 raise the limit (ulimit -n, LimitNOFILE=, fs.file-max)";

/// Whether this process may open no more files.
pub(crate) fn is_reached() -> bool {
    File::open("/dev/null").is_err_and(|error| is_limit(&error))
}

/// Whether an error says so.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}
