//! Errors: few kinds, each saying what happened, to what, what to do about it,
//! and whether the write may have been applied.

use std::error::Error as StdError;
use std::fmt;

use tenure_core::Failed;

/// What a store's verbs answer with.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as far as a caller may want to tell apart. Losing a race is
/// not among them: that is an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store cannot be reached, is starting, or dropped the connection.
    Unreachable,
    /// No answer within the time allowed.
    Timeout,
    /// The store is busy with others and gave up waiting.
    Busy,
    /// The store refuses writes for now: read-only, recovering, disk full.
    Unwritable,
    /// The store does not let us: credentials, permissions.
    Denied,
    /// What is stored is not ours, is damaged, or is of a newer version.
    Foreign,
    /// What is to be looked at is not there: it has not been made yet.
    Absent,
    /// The request itself cannot be served: a limit, an unsupported option.
    Invalid,
    /// A defect: ours, or a store that breaks the contract.
    Internal,
}

/// A failed request.
///
/// ```
/// use tenure_store::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Unreachable, "connecting to db.example:5432 was refused")
///     .remedy("start the server, or check host and port")
///     .maybe_applied();
/// assert!(error.may_have_applied());
/// assert_eq!(
///     error.to_string(),
///     "connecting to db.example:5432 was refused; start the server, or check host and port \
///      (the write may have been applied)"
/// );
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    may_have_applied: bool,
    message: String,
    remedy: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error that left the store as it was. `message` says what happened to
    /// what, and holds no secret.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, may_have_applied: false, message, remedy: None, source: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds the cause, whose text must hold no secret.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Marks that the write may have been applied all the same.
    #[must_use]
    pub fn maybe_applied(mut self) -> Self {
        self.may_have_applied = true;
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the write may have been applied. If so, find out before you
    /// believe anything.
    #[must_use]
    pub fn may_have_applied(&self) -> bool {
        self.may_have_applied
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        if self.may_have_applied {
            f.write_str(" (the write may have been applied)")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The cause's text is part of ours already; its own cause is not.
        self.source.as_ref().and_then(|s| s.source())
    }
}

impl From<&Error> for Failed {
    fn from(error: &Error) -> Self {
        Failed { may_have_applied: error.may_have_applied }
    }
}
