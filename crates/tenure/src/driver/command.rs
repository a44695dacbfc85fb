//! What the application's side asks of the driver's thread.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{ElectionName, MemberId, Priority, TermNumber, TermRef};
use tokio::sync::{mpsc, oneshot};

use crate::Result;
use crate::reign::Reign;

pub(crate) enum Command {
    Join,
    Stand {
        election: ElectionName,
        priority: Priority,
        patience: Patience,
        /// Tells this campaign from others for the same election.
        ticket: u64,
        reply: Answer,
    },
    /// Endlessly, and bid for together.
    StandForAll {
        elections: Vec<ElectionName>,
        ticket: u64,
        reply: mpsc::UnboundedSender<(ElectionName, Outcome)>,
    },
    Withdraw {
        election: ElectionName,
        ticket: u64,
    },
    /// Nobody works under the term any more.
    Resign {
        election: ElectionName,
        number: TermNumber,
        to: Option<MemberId>,
    },
    /// Tells whether the store confirmed, in time, that it has a lost term back.
    Confirm {
        term: TermRef,
        confirm: oneshot::Sender<bool>,
    },
    StopLeading {
        election: ElectionName,
        number: TermNumber,
    },
    /// Answered when the driver and the tasks beside it have had every chance to go on:
    /// for tests on a clock that stands.
    Idle {
        done: oneshot::Sender<()>,
    },
    Shutdown {
        done: oneshot::Sender<bool>,
    },
}

/// The outcome of a campaign. `None` means that somebody else holds the election
/// and the caller did not want to wait.
pub(crate) type Outcome = Result<Option<Arc<Reign>>>;

/// Where the outcome of a campaign goes.
#[derive(Debug)]
pub(crate) enum Answer {
    /// To one who stands for this election.
    One(oneshot::Sender<Outcome>),
    /// To one who stands for many.
    Among(mpsc::UnboundedSender<(ElectionName, Outcome)>),
}

impl Answer {
    /// `false` if nobody waits for it any more.
    pub(super) fn send(self, election: &ElectionName, outcome: Outcome) -> bool {
        match self {
            Answer::One(reply) => reply.send(outcome).is_ok(),
            Answer::Among(reply) => reply.send((election.clone(), outcome)).is_ok(),
        }
    }
}

/// How long a campaign may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until it is won.
    Endless,
    /// Until the store has answered once, and at most this long.
    OneAnswer(Duration),
    /// This long.
    For(Duration),
}

impl Patience {
    pub(crate) fn limit(self) -> Option<Duration> {
        match self {
            Patience::Endless => None,
            Patience::OneAnswer(limit) | Patience::For(limit) => Some(limit),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Command::Join => "Join",
            Command::Stand { .. } => "Stand",
            Command::StandForAll { .. } => "StandForAll",
            Command::Withdraw { .. } => "Withdraw",
            Command::Resign { .. } => "Resign",
            Command::Confirm { .. } => "Confirm",
            Command::StopLeading { .. } => "StopLeading",
            Command::Idle { .. } => "Idle",
            Command::Shutdown { .. } => "Shutdown",
        })
    }
}
