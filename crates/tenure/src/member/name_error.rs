//! Why a name is not this process's.

use std::fmt;
use std::time::Duration;

use tenure_core::{Binding, Name};

use crate::Error;

/// Why a name is not this process's.
#[derive(Debug)]
#[non_exhaustive]
pub enum NameError {
    /// A member owns it: which one, where and under which token is in the binding. It may be
    /// this very member, by an earlier call.
    Taken(Box<Binding>),
    /// The store has not answered in time. If it did what was asked, that is undone.
    Unknown {
        /// The name.
        name: Name,
        /// How long an answer was waited for.
        waited: Duration,
        /// The store's last error, if there was one.
        because: Option<String>,
    },
    /// The binding is over. What there is instead, if anything.
    Gone(Option<Box<Binding>>),
    /// The name has another revision than the one expected. Nothing was changed.
    Changed(Box<Binding>),
    /// The leadership that was named is not the newest of its election.
    Fenced {
        /// The newest term number.
        newest: u64,
    },
    /// Anything else.
    Other(Error),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Taken(binding) => {
                write!(f, "the name {} is taken", binding.name)?;
                match &binding.owner {
                    Some(owner) => write!(f, " by member {}", owner.id)?,
                    None => f.write_str(", and bound to no member")?,
                }
                if let Some(endpoint) = binding.value.endpoint() {
                    write!(f, " at {endpoint}")?;
                }
                write!(f, " under token {}", binding.token)?;
                if binding.owner.is_some() {
                    write!(f, "; what is left of that member's ttl is {:?}", binding.remaining)?;
                }
                Ok(())
            }
            NameError::Unknown { name, waited, because } => {
                write!(
                    f,
                    "the store did not answer about the name {name} within {waited:?}: it may have \
                     been done, and is undone as soon as the store can be reached; try again"
                )?;
                because.as_ref().map_or(Ok(()), |error| write!(f, " (its last error: {error})"))
            }
            NameError::Gone(Some(there)) => {
                write!(
                    f,
                    "the binding is over: {} is bound under token {}",
                    there.name, there.token
                )
            }
            NameError::Changed(there) => write!(
                f,
                "the name {} was changed meanwhile, at revision {}: nothing was changed now; look \
                 at its value and try again",
                there.name, there.rev
            ),
            NameError::Gone(None) => f.write_str("the binding is over: the name is free"),
            NameError::Fenced { newest } => write!(
                f,
                "the leadership is over: the newest term of its election is {newest}; nothing was \
                 changed"
            ),
            NameError::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NameError::Other(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for NameError {
    fn from(error: Error) -> Self {
        NameError::Other(error)
    }
}
