//! What a channel follows: an election, seen by a member or by an operator.

use tenure::views::{ElectionView, Snapshot};
use tenure::{Election, Observer, OperatorElection, Result};

/// An election that a channel follows. Made from an [`Election`], whose process may stand for
/// it or not, or from an [`OperatorElection`], whose process is no member at all.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tenure::Tenure;
/// use tenure_grpc::LeaderChannel;
///
/// // No member, no heartbeat, no thread: a client that only calls.
/// let operator = Tenure::operate("memory:greeter").await?;
/// let channel = LeaderChannel::builder(operator.election("greeter")).build()?;
/// # drop(channel); Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Watched(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Member(Box<Election>),
    Operator(Box<OperatorElection>),
}

impl From<Election> for Watched {
    fn from(election: Election) -> Self {
        Self(Kind::Member(Box::new(election)))
    }
}

impl From<OperatorElection> for Watched {
    fn from(election: OperatorElection) -> Self {
        Self(Kind::Operator(Box::new(election)))
    }
}

impl Watched {
    pub(crate) fn name(&self) -> Result<String> {
        let name = match &self.0 {
            Kind::Member(election) => election.name(),
            Kind::Operator(election) => election.name(),
        };
        name.map(|name| name.as_str().to_owned())
    }

    pub(crate) fn observe(&self) -> Result<Observer> {
        match &self.0 {
            Kind::Member(election) => election.observe(),
            Kind::Operator(election) => election.observe(),
        }
    }

    pub(crate) async fn view(&self) -> Result<ElectionView> {
        match &self.0 {
            Kind::Member(election) => election.view().await,
            Kind::Operator(election) => election.view().await,
        }
    }

    /// The election with its candidates, and the members.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot> {
        match &self.0 {
            Kind::Member(election) => election.snapshot().await,
            Kind::Operator(election) => election.snapshot().await,
        }
    }
}
