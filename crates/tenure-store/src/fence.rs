//! Checking the token inside the caller's own transaction.

use std::fmt;
use std::future::Future;

use tenure_core::{ElectionName, Namespace, Term, TermNumber};

use crate::Error;

/// A transaction of the caller's in which a term can be checked and held still.
///
/// Implemented by the store crates for the transactions of the drivers people
/// use. It must prove, in the transaction itself, that no newer term of the
/// election exists than the one given, and keep any from being given out until
/// the transaction ends; a check that is a separate read is no fence (B15).
///
/// `Via` is a type of the store crate's own. Without it that crate could not
/// implement this trait for a driver's transaction, since both belong to
/// others. It is inferred, and callers never write it.
pub trait FenceIn<Via> {
    /// Succeeds if `term` is the newest of its election, and holds it still
    /// until the transaction ends. After an error the caller rolls back.
    fn fence_in(
        &mut self,
        ns: &Namespace,
        term: &Term,
    ) -> impl Future<Output = Result<(), FenceError>>;
}

/// Why a fence did not hold.
#[derive(Debug)]
#[non_exhaustive]
pub enum FenceError {
    /// The term is not the newest of its election, or was given back: the
    /// caller does not lead. Roll back and stop.
    Superseded {
        /// The election.
        election: ElectionName,
        /// The term that was checked.
        number: TermNumber,
        /// The newest term; [`TermNumber::NONE`] if the store knows of none.
        newest: TermNumber,
    },
    /// It could not be found out. Roll back.
    Store(Error),
}

impl fmt::Display for FenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superseded { election, number, newest } if newest == number => write!(
                f,
                "term {number} of election {election} was given back: roll back and stop working"
            ),
            Self::Superseded { election, number, newest } => write!(
                f,
                "term {number} of election {election} is over, the newest is {newest}: \
                 roll back and stop working"
            ),
            Self::Store(error) => write!(f, "the fence could not be checked, roll back: {error}"),
        }
    }
}

impl std::error::Error for FenceError {}

impl From<Error> for FenceError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}
