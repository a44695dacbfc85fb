//! The processes that the library starts from the program's own executable.

use std::ffi::OsString;
use std::io;

use crate::{guardian, stage};

/// How an auxiliary process ended; the program ends with the code it finds right.
#[derive(Debug)]
#[must_use]
pub enum AuxiliaryEnd {
    /// The guardian has done its work: nothing of the command is left.
    Done,
    /// The process could not do its work: its parent is gone, or the system refused.
    Failed,
    /// The command could not be executed. This is the process that was to become the
    /// command: its exit code is taken for the command's.
    NotExecuted {
        /// What was to be executed.
        program: OsString,
        /// Why it was not.
        error: io::Error,
    },
}

/// Does the work of an auxiliary process if this is one, and says how that
/// ended; gives `None` in every other process.
///
/// [`Guarded::start`](crate::Guarded::start) starts this very executable again, so
/// `main` must call this first, before it starts a thread or a runtime and before it
/// parses its arguments. `args` are those behind the name of the program.
///
/// ```
/// let args = ["status", "nightly"].map(std::ffi::OsString::from);
/// assert!(tenure_guard::auxiliary(args.into_iter()).is_none());
/// ```
pub fn auxiliary(mut args: impl Iterator<Item = OsString>) -> Option<AuxiliaryEnd> {
    let verb = args.next()?;
    match verb.to_str()? {
        guardian::VERB => Some(guardian::main(args)),
        stage::VERB => Some(stage::main(args)),
        _ => None,
    }
}
