//! One election, read and steered by members and operators alike.

use std::sync::Arc;

use tenure_core::{
    Amend, Amended, BadName, ElectionName, ElectionView, Entry, Holder, MemberId, Note, Query, Seq,
    Snapshot, TermNumber,
};

use super::Client;
use super::history::{self, PastTerm};
use crate::feed::{Observer, Wanted};
use crate::{Error, Result};

/// An election, to be read, observed and steered without standing for it; made by
/// [`Operator::election`](crate::Operator::election).
#[derive(Clone, Debug)]
pub struct OperatorElection {
    client: Arc<Client>,
    name: Result<ElectionName, BadName>,
}

impl OperatorElection {
    pub(crate) fn new(client: Arc<Client>, name: Result<ElectionName, BadName>) -> Self {
        Self { client, name }
    }

    /// The election's name, or why it cannot be used.
    pub fn name(&self) -> Result<&ElectionName> {
        self.name.as_ref().map_err(|bad| Error::Name(bad.clone()))
    }

    /// Who leads now, as the store knows it; `None` when the election is vacant.
    pub async fn leader(&self) -> Result<Option<Holder>> {
        Ok(self.view().await?.holder)
    }

    /// The election as it stands, with its candidates.
    pub async fn view(&self) -> Result<ElectionView> {
        let name = self.name()?.clone();
        let query = Query { candidates: true, ..Query::elections([name.clone()]) };
        let snapshot = self.client.read(query).await?;
        Ok(snapshot.elections.into_iter().next().unwrap_or_else(|| ElectionView::vacant(name)))
    }

    /// The election with its candidates, and every live member of the namespace with what it
    /// publishes, all of one moment: for a program that is to reach the candidates, too.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let operator = tenure::Tenure::operate("memory:").await?;
    /// let snapshot = operator.election("nightly").snapshot().await?;
    /// assert!(snapshot.elections[0].holder.is_none() && snapshot.members.is_empty());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn snapshot(&self) -> Result<Snapshot> {
        let name = self.name()?.clone();
        let query = Query { candidates: true, members: true, ..Query::elections([name.clone()]) };
        let mut snapshot = self.client.read(query).await?;
        if snapshot.elections.is_empty() {
            snapshot.elections.push(ElectionView::vacant(name));
        }
        Ok(snapshot)
    }

    /// The newest journal entries of this election, oldest first.
    pub async fn journal(&self, limit: usize) -> Result<Vec<Entry>> {
        let query = Query { history: limit, ..Query::elections([self.name()?.clone()]) };
        Ok(self.client.read(query).await?.history)
    }

    /// The newest terms, oldest first: who, from when to when, and why they ended. As far
    /// back as the store keeps its journal.
    pub async fn history(&self, limit: usize) -> Result<Vec<PastTerm>> {
        history::read(&self.client, self.name()?, limit).await
    }

    /// Follows the election without standing: the present state first, then every
    /// change. It survives failures of the store.
    pub fn observe(&self) -> Result<Observer> {
        Observer::new(&self.client, self.name()?.clone(), Wanted::default())
    }

    /// Follows the election from a place in the journal, as an earlier observation
    /// reported it: nothing that happened since is skipped, as far as the store still
    /// has it.
    pub fn observe_from(&self, after: Seq) -> Result<Observer> {
        let wanted = Wanted { after: Some(after), ..Wanted::default() };
        Observer::new(&self.client, self.name()?.clone(), wanted)
    }

    /// Follows the election, and is told of each renewal of the leader and of its expiry:
    /// see [`Election::observe_renewals`](crate::Election::observe_renewals).
    pub fn observe_renewals(&self) -> Result<Observer> {
        let wanted = Wanted { renewals: true, ..Wanted::default() };
        Observer::new(&self.client, self.name()?.clone(), wanted)
    }

    /// Asks the leader to step down. It is told to stop its work first, and has its
    /// drain time; then the others elect, without it for a while.
    pub async fn ask_to_step_down(&self, reason: impl AsRef<str>) -> Result<Amended> {
        self.step_down(None, None, reason.as_ref()).await
    }

    /// Asks the leader to hand over to the candidate `to`.
    pub async fn ask_to_hand_over(
        &self,
        to: &MemberId,
        reason: impl AsRef<str>,
    ) -> Result<Amended> {
        self.step_down(None, Some(to.clone()), reason.as_ref()).await
    }

    /// Asks for a step-down of exactly this term; a newer one is left alone.
    pub async fn ask_term_to_step_down(
        &self,
        number: TermNumber,
        to: Option<MemberId>,
        reason: impl AsRef<str>,
    ) -> Result<Amended> {
        self.step_down(Some(number), to, reason.as_ref()).await
    }

    async fn step_down(
        &self,
        number: Option<TermNumber>,
        to: Option<MemberId>,
        reason: &str,
    ) -> Result<Amended> {
        let election = self.name()?.clone();
        let reason = Note::new(reason);
        let by = self.client.note();
        self.client.amend(Amend::StepDown { election, number, to, reason, by }).await
    }

    /// No member is newly elected until [`resume`](Self::resume). The leader goes on.
    pub async fn pause(&self, reason: impl AsRef<str>) -> Result<Amended> {
        let election = self.name()?.clone();
        let reason = Note::new(reason);
        self.client.amend(Amend::Pause { election, reason, by: self.client.note() }).await
    }

    /// Lifts a pause.
    pub async fn resume(&self) -> Result<Amended> {
        let election = self.name()?.clone();
        self.client.amend(Amend::Resume { election, by: self.client.note() }).await
    }
}
