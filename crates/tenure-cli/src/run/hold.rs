//! What a command runs under: the term of an election, or a name.

use std::ffi::OsString;
use std::os::fd::OwnedFd;

use tenure::naming::{Name, Registration, Value};
use tenure::{Leadership, LostReason, Mono, Stopping};

/// What is wanted before the command is started.
pub(crate) enum Wanted {
    Election { election: String, priority: Option<u16> },
    Name { name: Name, value: Value },
}

impl Wanted {
    /// The election or the name.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Wanted::Election { election, .. } => election,
            Wanted::Name { name, .. } => name.as_str(),
        }
    }
}

/// What is held while the command runs.
pub(crate) enum Hold {
    Term(Leadership),
    Name(Registration),
}

impl Hold {
    pub(crate) fn is_current(&self) -> bool {
        match self {
            Hold::Term(leadership) => leadership.is_current(),
            Hold::Name(registration) => registration.is_current(),
        }
    }

    pub(crate) fn trusted_until(&self) -> Mono {
        match self {
            Hold::Term(leadership) => leadership.trusted_until(),
            Hold::Name(registration) => registration.trusted_until(),
        }
    }

    pub(crate) fn liveness_lock(&self) -> Option<OwnedFd> {
        match self {
            Hold::Term(leadership) => leadership.liveness_lock(),
            Hold::Name(registration) => registration.liveness_lock(),
        }
    }

    pub(crate) async fn lost(&self) -> LostReason {
        match self {
            Hold::Term(leadership) => leadership.lost().await,
            Hold::Name(registration) => registration.lost().await,
        }
    }

    /// No request asks the owner of a name to give it back.
    pub(crate) async fn stopping(&self) -> Stopping {
        match self {
            Hold::Term(leadership) => leadership.stopping().await,
            Hold::Name(_) => std::future::pending().await,
        }
    }

    /// Gives it back, or says why that is not confirmed.
    pub(crate) async fn give_back(self) -> Result<(), String> {
        match self {
            Hold::Term(leadership) => leadership.resign().await.map_err(|error| error.to_string()),
            Hold::Name(name) => name.release().await.map_err(|error| error.to_string()),
        }
    }

    /// `the term` or `the name`.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Hold::Term(_) => "the term",
            Hold::Name(_) => "the name",
        }
    }

    /// What the user is told when it begins.
    pub(crate) fn begun(&self, id: &str) -> String {
        match self {
            Hold::Term(leadership) => {
                let term = leadership.term();
                format!("{id} leads {} with term {}", term.election, term.number)
            }
            Hold::Name(name) => format!("{id} owns {} with token {}", name.name(), name.token()),
        }
    }

    /// What the command is told of it.
    pub(crate) fn environment(&self) -> [(&'static str, OsString); 2] {
        match self {
            Hold::Term(leadership) => [
                ("TENURE_ELECTION", leadership.term().election.as_str().into()),
                ("TENURE_TERM", leadership.token().to_string().into()),
            ],
            Hold::Name(name) => [
                ("TENURE_NAME", name.name().as_str().into()),
                ("TENURE_TOKEN", name.token().to_string().into()),
            ],
        }
    }
}
