//! Checking the token inside the caller's own transaction.

use std::fmt;
use std::future::Future;

use tenure_core::{ElectionName, Incarnation, MemberRef, Name, Namespace, Term, TermNumber, Token};

use crate::{Error, Identity};

/// What a fence checks, as it was given out: a term of an election, or the binding of a
/// name.
#[derive(Clone, Copy, Debug)]
pub enum Fenced<'a> {
    /// A term: it must be the newest of its election.
    Term(FencedTerm<'a>),
    /// A binding: its token must be the newest of its name.
    Name(FencedName<'a>),
}

/// A term, and the store and namespace that gave it out.
#[derive(Clone, Copy, Debug)]
pub struct FencedTerm<'a> {
    /// The store.
    pub store: &'a Identity,
    /// The namespace.
    pub ns: &'a Namespace,
    /// The term.
    pub term: &'a Term,
}

/// The binding of a name to a life, and the store and namespace that gave it out.
#[derive(Clone, Copy, Debug)]
pub struct FencedName<'a> {
    /// The store.
    pub store: &'a Identity,
    /// The namespace.
    pub ns: &'a Namespace,
    /// The name.
    pub name: &'a Name,
    /// The token of the binding.
    pub token: Token,
    /// The life that it is bound to.
    pub owner: &'a MemberRef,
}

impl<'a> From<FencedTerm<'a>> for Fenced<'a> {
    fn from(term: FencedTerm<'a>) -> Self {
        Self::Term(term)
    }
}

impl<'a> From<FencedName<'a>> for Fenced<'a> {
    fn from(name: FencedName<'a>) -> Self {
        Self::Name(name)
    }
}

impl<'a> Fenced<'a> {
    /// The store that gave it out.
    #[must_use]
    pub fn store(&self) -> &'a Identity {
        match self {
            Self::Term(term) => term.store,
            Self::Name(name) => name.store,
        }
    }

    /// The namespace that it is of.
    #[must_use]
    pub fn ns(&self) -> &'a Namespace {
        match self {
            Self::Term(term) => term.ns,
            Self::Name(name) => name.ns,
        }
    }

    /// The election or the name.
    #[must_use]
    pub fn subject(&self) -> &'a str {
        match self {
            Self::Term(term) => term.term.election.as_str(),
            Self::Name(name) => name.name.as_str(),
        }
    }

    /// The number of the term, or the token of the binding.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Self::Term(term) => term.term.number.get(),
            Self::Name(name) => name.token.get(),
        }
    }

    /// The life that it was given to.
    #[must_use]
    pub fn life(&self) -> Incarnation {
        match self {
            Self::Term(term) => term.term.member.incarnation,
            Self::Name(name) => name.owner.incarnation,
        }
    }

    /// The refusal of what another store gave out. `here` says what the transaction is in.
    #[must_use]
    pub fn stranger(&self, here: impl Into<String>) -> FenceError {
        let what = self.to_string();
        let from = Box::new(self.store().clone());
        FenceError::Stranger { what, from, here: here.into() }
    }

    /// The refusal of what is over. `newest` is the number that there is instead; zero if
    /// there is none.
    #[must_use]
    pub fn over(&self, newest: u64) -> FenceError {
        match self {
            Self::Term(FencedTerm { term, .. }) => FenceError::Superseded {
                election: term.election.clone(),
                number: term.number,
                newest: TermNumber::new(newest),
            },
            Self::Name(FencedName { name, token, .. }) => FenceError::NameOver {
                name: (*name).clone(),
                token: *token,
                newest: (newest > 0).then(|| Token::new(newest)),
            },
        }
    }
}

/// `term 7 of election nightly`, `the binding of the name user/42 under token 9`.
impl fmt::Display for Fenced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.subject();
        let number = self.number();
        match self {
            Self::Term(_) => write!(f, "term {number} of election {subject}"),
            Self::Name(_) => write!(f, "the binding of the name {subject} under token {number}"),
        }
    }
}

/// A transaction of the caller's in which a term or a binding can be checked and held still.
///
/// Implemented by the store crates for the transactions of the drivers people
/// use. It must prove, in the transaction itself, that it is in the very store
/// that gave the term out and that no newer term of the election exists, and keep
/// any from being given out until the transaction ends; a check that is a
/// separate read is no fence (B15). The store's number and the term are compared
/// in one statement: [`FenceError::Stranger`] is for the terms of other stores (L1). The same
/// holds of a binding and its name.
///
/// `Via` is a type of the store crate's own. Without it that crate could not
/// implement this trait for a driver's transaction, since both belong to
/// others. It is inferred, and callers never write it.
pub trait FenceIn<Via> {
    /// Succeeds if this is the newest of its election or name, and holds it still
    /// until the transaction ends. After an error the caller rolls back.
    fn fence_in<'a>(
        &'a mut self,
        fenced: Fenced<'a>,
    ) -> impl Future<Output = Result<(), FenceError>> + Send + 'a;
}

/// As [`FenceIn`], for drivers that block: nothing is awaited, so that a
/// transaction which cannot be moved between threads can be fenced in a task
/// that is.
pub trait FenceBlocking<Via> {
    /// See [`FenceIn::fence_in`].
    fn fence_blocking(&self, fenced: Fenced<'_>) -> Result<(), FenceError>;
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
    /// The binding is over: the name is free, or another's. Roll back and stop.
    NameOver {
        /// The name.
        name: Name,
        /// The token that was checked.
        token: Token,
        /// The token under which the name is bound instead, if it is.
        newest: Option<Token>,
    },
    /// The term or binding was given out by another store than the one the transaction
    /// is in, which can prove nothing about it. Roll back.
    Stranger {
        /// What was checked.
        what: String,
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
            Self::NameOver { name, token, newest } => {
                write!(f, "the binding of the name {name} under token {token} is over, ")?;
                match newest {
                    Some(newest) => write!(f, "it is bound under token {newest}")?,
                    None => f.write_str("and the name is free")?,
                }
                f.write_str(": roll back and stop working")
            }
            Self::Stranger { what, from, here } => write!(
                f,
                "{what} was given out by {from}, and this transaction is in {here}, which can \
                 prove nothing about it: roll back, and fence in the database that it is kept in"
            ),
            Self::Store(error) => write!(f, "the fence could not be checked, roll back: {error}"),
        }
    }
}

impl std::error::Error for FenceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for FenceError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}
