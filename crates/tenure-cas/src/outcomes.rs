//! Requests of many parts: what the whole answers when some of its parts fail.
//!
//! An error is *passing* if the same request may succeed when it is repeated, and otherwise
//! final.

use tenure_store::{Error, ErrorKind, Result};

/// The results as they are, unless one of them is a final error: then that error. Asked before
/// anything is written.
pub(crate) fn none_for_good<T>(mut results: Vec<Result<T>>) -> Result<Vec<Result<T>>> {
    let for_good = |result: &Result<T>| result.as_ref().is_err_and(|error| !is_passing(error));
    match results.iter().position(for_good) {
        Some(one) => results.swap_remove(one).map(|_| results),
        None => Ok(results),
    }
}

/// `None` in the place of each passing error, as long as at least one part succeeded. A final
/// error is returned as it is, and so is the gravest passing error if no part succeeded.
pub(crate) fn passable<T>(results: Vec<Result<T>>) -> Result<Vec<Option<T>>> {
    let mut failed = None;
    let mut passed = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(value) => passed.push(Some(value)),
            Err(error) if is_passing(&error) => {
                passed.push(None);
                failed = Some(graver(failed, error));
            }
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(error) if passed.iter().all(Option::is_none) => Err(error),
        _ => Ok(passed),
    }
}

/// Of two errors the one that says more about what may have happened.
pub(crate) fn graver(one: Option<Error>, other: Error) -> Error {
    match one {
        Some(one) if one.may_have_applied() || !other.may_have_applied() => one,
        _ => other,
    }
}

/// Whether an error is of the way there, and may be gone the next time.
pub(crate) fn is_passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Busy)
}
