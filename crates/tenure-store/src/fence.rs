//! Checking the token inside the caller's own transaction.

use std::fmt;
use std::future::Future;

use tenure_core::{ElectionName, Namespace, Term, TermNumber};

use crate::{Error, Identity};

/// What a fence checks: a term, and the store and namespace that gave it out.
#[derive(Clone, Copy, Debug)]
pub struct FencedTerm<'a> {
    /// The store.
    pub store: &'a Identity,
    /// The namespace.
    pub ns: &'a Namespace,
    /// The term.
    pub term: &'a Term,
}

impl FencedTerm<'_> {
    /// The refusal of a term that another store gave out. `here` says what the
    /// transaction is in.
    #[must_use]
    pub fn stranger(&self, here: impl Into<String>) -> FenceError {
        FenceError::Stranger {
            election: self.term.election.clone(),
            number: self.term.number,
            from: Box::new(self.store.clone()),
            here: here.into(),
        }
    }
}

/// A transaction of the caller's in which a term can be checked and held still.
///
/// Implemented by the store crates for the transactions of the drivers people
/// use. It must prove, in the transaction itself, that it is in the very store
/// that gave the term out and that no newer term of the election exists, and keep
/// any from being given out until the transaction ends; a check that is a
/// separate read is no fence (B15). The store's number and the term are compared
/// in one statement: [`FenceError::Stranger`] is for everybody else's terms (L1).
///
/// `Via` is a type of the store crate's own. Without it that crate could not
/// implement this trait for a driver's transaction, since both belong to
/// others. It is inferred, and callers never write it.
pub trait FenceIn<Via> {
    /// Succeeds if `term` is the newest of its election, and holds it still
    /// until the transaction ends. After an error the caller rolls back.
    fn fence_in<'a>(
        &'a mut self,
        term: FencedTerm<'a>,
    ) -> impl Future<Output = Result<(), FenceError>> + Send + 'a;
}

/// As [`FenceIn`], for drivers that block: nothing is awaited, so that a
/// transaction which cannot be moved between threads can be fenced in a task
/// that is.
pub trait FenceBlocking<Via> {
    /// See [`FenceIn::fence_in`].
    fn fence_blocking(&self, term: FencedTerm<'_>) -> Result<(), FenceError>;
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
    /// The term was given out by another store than the one the transaction is
    /// in, which can prove nothing about it. Roll back.
    Stranger {
        /// The election.
        election: ElectionName,
        /// The term that was checked.
        number: TermNumber,
        /// The store that gave it out.
        from: Box<Identity>,
        /// What the transaction is in.
        here: String,
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
            Self::Stranger { election, number, from, here } => write!(
                f,
                "term {number} of election {election} was given out by {from}, and this \
                 transaction is in {here}, which can prove nothing about it: roll back, and \
                 fence in the database that the election is kept in"
            ),
            Self::Store(error) => write!(f, "the fence could not be checked, roll back: {error}"),
        }
    }
}

impl std::error::Error for FenceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Superseded { .. } | Self::Stranger { .. } => None,
        }
    }
}

impl From<Error> for FenceError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}
