//! What the application's side asks of the driver's thread.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{ElectionName, ElectionView, Input, Name, Priority, TermRef, Token};
use tokio::sync::{mpsc, oneshot};

use super::NameCommand;
use crate::Result;
use crate::member::reign::Reign;

pub(crate) enum Command {
    /// Said to the machine as it is.
    Tell(Input),
    Stand {
        election: ElectionName,
        priority: Priority,
        patience: Patience,
        /// Tells this campaign from others for the same election.
        ticket: u64,
        reply: OutcomeSender,
    },
    /// Endlessly, and bid for together.
    StandForAll {
        elections: Vec<ElectionName>,
        ticket: u64,
        reply: mpsc::UnboundedSender<(ElectionName, CampaignOutcome)>,
    },
    Withdraw {
        election: ElectionName,
        ticket: u64,
    },
    /// Operations on names, asked for together.
    Bind(Vec<NameCommand>),
    /// The caller no longer waits for this operation.
    WithdrawName {
        name: Name,
        ticket: u64,
    },
    /// The owner's handle of a name is gone.
    LetGoOfName {
        name: Name,
        token: Token,
    },
    /// Tells whether the store confirmed, in time, that it has a lost term back.
    Confirm {
        term: TermRef,
        confirm: oneshot::Sender<bool>,
    },
    /// Answered when the driver and the tasks beside it have had every chance to go on:
    /// for tests on a clock that stands.
    Idle {
        done: oneshot::Sender<()>,
    },
    /// Answered at once: the loop goes on.
    Turn {
        done: oneshot::Sender<()>,
    },
    Shutdown {
        done: oneshot::Sender<bool>,
    },
}

/// How a campaign came to its end, unless by an error.
#[derive(Debug)]
pub(crate) enum Campaigned {
    /// This member leads.
    Won(Arc<Reign>),
    /// The caller did not want to wait: what the store showed of the election.
    NotNow(Option<Box<ElectionView>>),
}

/// The outcome of a campaign.
pub(crate) type CampaignOutcome = Result<Campaigned>;

/// Where the outcome of a campaign goes.
#[derive(Debug)]
pub(crate) enum OutcomeSender {
    /// To a caller that stands for this election.
    One(oneshot::Sender<CampaignOutcome>),
    /// To a caller that stands for many.
    Among(mpsc::UnboundedSender<(ElectionName, CampaignOutcome)>),
}

impl OutcomeSender {
    /// `false` if the caller no longer waits for it.
    pub(super) fn send(self, election: &ElectionName, outcome: CampaignOutcome) -> bool {
        match self {
            OutcomeSender::One(reply) => reply.send(outcome).is_ok(),
            OutcomeSender::Among(reply) => reply.send((election.clone(), outcome)).is_ok(),
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
            Command::Tell(_) => "Tell",
            Command::Stand { .. } => "Stand",
            Command::StandForAll { .. } => "StandForAll",
            Command::Withdraw { .. } => "Withdraw",
            Command::Bind(_) => "Bind",
            Command::WithdrawName { .. } => "WithdrawName",
            Command::LetGoOfName { .. } => "LetGoOfName",
            Command::Confirm { .. } => "Confirm",
            Command::Idle { .. } => "Idle",
            Command::Turn { .. } => "Turn",
            Command::Shutdown { .. } => "Shutdown",
        })
    }
}
