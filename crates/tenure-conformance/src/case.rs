//! A case, and how it fails.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use tenure_core::BadName;

use crate::Harness;

/// What a case comes to.
pub type Outcome<T = ()> = Result<T, CaseFailure>;

pub(crate) type Running<'h> = Pin<Box<dyn Future<Output = Outcome> + 'h>>;

/// One thing that must hold of every store.
#[derive(Clone, Copy)]
pub struct Case {
    /// The file it is in.
    pub topic: &'static str,
    /// What holds.
    pub name: &'static str,
    pub(crate) start: for<'h> fn(&'h dyn Harness) -> Running<'h>,
}

impl Case {
    /// Runs the case on a fresh backend.
    pub async fn run(&self, harness: &dyn Harness) -> Outcome {
        (self.start)(harness).await
    }

    /// Topic and name, as the test is called.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}::{}", self.topic, self.name)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.path())
    }
}

/// Why a store failed a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFailure(String);

impl CaseFailure {
    /// A failure that says what was expected and what was found.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for CaseFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CaseFailure {}

impl From<tenure_store::Error> for CaseFailure {
    fn from(error: tenure_store::Error) -> Self {
        Self(format!("the store answered with an error where it must not: {error}"))
    }
}

impl From<BadName> for CaseFailure {
    fn from(error: BadName) -> Self {
        Self(format!("the suite itself is wrong: {error}"))
    }
}

/// Fails the case.
macro_rules! fail {
    ($($message:tt)+) => {{
        let message = format!($($message)+);
        let at = format!("{}:{}", file!(), line!());
        return Err($crate::CaseFailure::new(format!("{message} [{at}]")));
    }};
}

/// Fails the case unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            $crate::case::fail!($($message)+);
        }
    };
}

/// Fails the case unless what was found is what was expected.
macro_rules! same {
    ($found:expr, $expected:expr, $what:expr) => {
        match (&$found, &$expected) {
            (found, expected) => $crate::case::ensure!(
                *found == *expected,
                "{}: expected {expected:?}, found {found:?}",
                $what
            ),
        }
    };
}

pub(crate) use {ensure, fail, same};
