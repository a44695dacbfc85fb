//! What the program says when it cannot do what it was asked.

use std::fmt;

use tenure::{Error, ErrorKind};

use crate::exit::Exit;

/// What every verb gives.
pub(crate) type Outcome<T = Exit> = Result<T, Failure>;

/// What happened, to what, and what to do; and the code to end with.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    text: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into() }
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Exit::Usage, text)
    }

    /// The operating system refused `what`.
    pub(crate) fn system(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::new(Exit::System, format!("{what} failed: {error}"))
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// A failed connection, with the store it was tried with.
    pub(crate) fn connecting(error: tenure::Error, shown_store: &str) -> Self {
        let named = matches!(&error, Error::Store(_)) && !error.to_string().contains(shown_store);
        let mut failure = Self::from(error);
        if named {
            failure.text = format!("{shown_store}: {}", failure.text);
        }
        failure
    }

    /// The reader of our output has gone: what is said would not be read.
    pub(crate) fn is_silent(&self) -> bool {
        self.text.is_empty()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Writing to a pipe whose reader has left is how `tenure watch | head` ends.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Ok, "");
        }
        Self::system("writing the output", error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Store(store) if store.kind() == ErrorKind::Invalid => Exit::Usage,
            Error::Store(store) if store.kind() == ErrorKind::Absent => Exit::NotFound,
            Error::Store(_) => Exit::Store,
            Error::Name(_) | Error::Settings(_) | Error::Url(_) => Exit::Usage,
            Error::NotElected { .. } | Error::Unconfirmed { .. } => Exit::NotInTime,
            _ => Exit::System,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<tenure::views::BadName> for Failure {
    fn from(bad: tenure::views::BadName) -> Self {
        Self::usage(bad.to_string())
    }
}

impl From<tenure::views::BadSettings> for Failure {
    fn from(bad: tenure::views::BadSettings) -> Self {
        Self::usage(bad.to_string())
    }
}

/// `; did you mean "x"?`, or nothing if no known name is near.
pub(crate) fn did_you_mean<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    tenure::store::nearest(given, known).map(|near| format!("; did you mean {near:?}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let known = ["nightly", "hourly", "reports"];
        assert_eq!(did_you_mean("nigthly", known).unwrap(), "; did you mean \"nightly\"?");
        assert_eq!(did_you_mean("backup", known), None);
    }

    /// A reader that left is not an error of ours.
    #[test]
    fn a_closed_pipe_is_silent() {
        let gone: Failure = std::io::Error::from(std::io::ErrorKind::BrokenPipe).into();
        assert!(gone.is_silent() && gone.exit() == Exit::Ok);
        let full: Failure = std::io::Error::from(std::io::ErrorKind::StorageFull).into();
        assert!(!full.is_silent() && full.exit() == Exit::System);
    }
}
