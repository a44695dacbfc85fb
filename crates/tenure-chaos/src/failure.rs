//! What this program says when something went wrong.

use std::fmt;

/// What happened, to what, and what to do, as one text.
#[derive(Clone, Debug)]
pub struct Failure(String);

/// What every step gives.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Says what was being done when a plain error came up.
pub(crate) trait Doing<T> {
    /// `what` reads as in "could not {what}: {error}".
    fn doing(self, what: impl FnOnce() -> String) -> Outcome<T>;
}

impl<T, E: fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Outcome<T> {
        self.map_err(|error| Failure(format!("could not {}: {error}", what())))
    }
}
