//! From SQLite's codes to errors that say what to do.

use std::path::Path;

use rusqlite::ffi::ErrorCode as Code;
use tenure_store::{Error, ErrorKind};

use crate::holder;

/// What went wrong inside a transaction or a query: SQLite's word, or ours.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// A row that Tenure cannot have written.
    #[error("the row {0} is not one that Tenure writes")]
    Damaged(String),
    #[error(transparent)]
    Ours(#[from] Error),
}

/// What to do about a file that cannot be read, and what that does to tokens.
const RESTORE: &str = "the file is damaged: restore it from a backup, and then run `tenure restored`, \
     since a backup lacks the last terms and their numbers would come again; or move it away to \
     begin with term 1: then whatever compares tokens refuses the new ones until it forgets the old";

pub(crate) type Outcome<T> = Result<T, Fault>;

impl Fault {
    /// Whether the disk was found full while writing.
    pub(crate) fn is_full(&self) -> bool {
        self.code() == Some(Code::DiskFull)
    }

    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(Code::DatabaseBusy | Code::DatabaseLocked))
    }

    /// Whether a table of ours, or a column of one, is not there any more.
    fn lacks_a_table(&self) -> bool {
        let Self::Sql(rusqlite::Error::SqliteFailure(failure, Some(said))) = self else {
            return false;
        };
        failure.code == Code::Unknown && said.starts_with("no such ")
    }

    /// Whether SQLite could not open the file or what has to lie beside it.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self.code(), Some(Code::CannotOpen | Code::ReadOnly))
    }

    fn code(&self) -> Option<Code> {
        match self {
            Self::Sql(rusqlite::Error::SqliteFailure(failure, _)) => Some(failure.code),
            _ => None,
        }
    }

    /// The error as a caller gets it: what was done, to which file, and what
    /// to do about it.
    pub(crate) fn told(self, doing: &str, path: &Path) -> Error {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType,
        };
        let file = path.display();
        let (kind, remedy) = match (&self, self.code()) {
            (Self::Ours(_), _) => (ErrorKind::Internal, ""),
            // The second: a value of a kind that Tenure never puts there.
            (
                Self::Damaged(_)
                | Self::Sql(
                    FromSqlConversionFailure(..)
                    | IntegralValueOutOfRange(..)
                    | InvalidColumnType(..),
                ),
                _,
            ) => (ErrorKind::Foreign, RESTORE),
            _ if self.lacks_a_table() => (ErrorKind::Foreign, RESTORE),
            (_, code) => kind_of(code),
        };
        let remedy = match kind {
            ErrorKind::Busy => holder::told(path),
            _ if self.code() == Some(Code::CannotOpen) && crate::limits::is_reached() => {
                crate::limits::REMEDY.into()
            }
            _ if self.code() == Some(Code::SystemIoFailure) && crate::limits::is_of_size() => {
                crate::limits::SIZE.into()
            }
            _ => remedy.into(),
        };
        match self {
            Self::Ours(error) => error,
            fault => Error::new(kind, format!("{doing} in {file} failed"))
                .caused_by(fault)
                .remedy(remedy),
        }
    }
}

fn kind_of(code: Option<Code>) -> (ErrorKind, &'static str) {
    match code {
        // Who holds the lock is found out.
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => (ErrorKind::Busy, ""),
        Some(Code::DiskFull) => {
            (ErrorKind::Unwritable, "the disk is full: free some space on its file system")
        }
        Some(Code::ReadOnly) => (
            ErrorKind::Unwritable,
            "let this process write the file, the directory it lies in, and what lies beside it \
             under the same name",
        ),
        Some(Code::SystemIoFailure) => (
            ErrorKind::Unwritable,
            "look at the disk and the kernel's log; do not delete the -wal file",
        ),
        Some(Code::CannotOpen) => (
            ErrorKind::Unwritable,
            "give the path of a file in a directory that exists and that this process may write",
        ),
        Some(Code::PermissionDenied | Code::AuthorizationForStatementDenied) => {
            (ErrorKind::Denied, "let this process write the file and its directory")
        }
        Some(Code::NotADatabase) => (
            ErrorKind::Foreign,
            "the file is not an SQLite database, or is encrypted: give another path",
        ),
        Some(Code::DatabaseCorrupt) => (ErrorKind::Foreign, RESTORE),
        Some(Code::OutOfMemory) => (
            ErrorKind::Unwritable,
            "give this process more memory: look at its limits (ulimit -v, MemoryMax=)",
        ),
        _ => (ErrorKind::Internal, "please report this"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    /// B24: each code leads to its policy.
    #[test]
    fn every_code_gives_its_kind_the_file_and_a_remedy() {
        for (code, kind, word) in [
            (ffi::SQLITE_BUSY, ErrorKind::Busy, "transaction left open"),
            (ffi::SQLITE_FULL, ErrorKind::Unwritable, "free some space"),
            (ffi::SQLITE_READONLY, ErrorKind::Unwritable, "let this process write"),
            (ffi::SQLITE_IOERR, ErrorKind::Unwritable, "look at the disk"),
            (ffi::SQLITE_CANTOPEN, ErrorKind::Unwritable, "directory that exists"),
            (ffi::SQLITE_PERM, ErrorKind::Denied, "let this process write"),
            (ffi::SQLITE_NOTADB, ErrorKind::Foreign, "another path"),
            (ffi::SQLITE_CORRUPT, ErrorKind::Foreign, "backup"),
            (ffi::SQLITE_NOMEM, ErrorKind::Unwritable, "more memory"),
            (ffi::SQLITE_MISUSE, ErrorKind::Internal, "report"),
        ] {
            let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let told = Fault::Sql(failure).told("claiming", Path::new("/x/t.db"));
            assert_eq!(told.kind(), kind, "{told}");
            let text = told.to_string();
            assert!(text.contains("claiming in /x/t.db failed") && text.contains(word), "{text}");
        }
    }
}
