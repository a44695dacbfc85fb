//! One election, seen from one member.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Amended, BadName, ElectionName, ElectionView, Entry, Holder, MemberId, Priority, Seq, Snapshot,
    TermNumber,
};
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::feed::Observer;
use crate::journal::PastTerm;
use crate::member::Shared;
use crate::member::addresses;
use crate::member::driver::{Campaigned, Command, OutcomeSender, Patience};
use crate::member::reign::{Phase, Reign};
use crate::member::subscription::{HoldingSubscription, Subscription};
use crate::{Attempt, Error, Leadership, OperatorElection, Result};

/// An election: stand for it, lead it, follow it, steer it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let election = tenure.election("nightly-report");
/// assert!(election.leader().await?.is_none());
/// let leadership = election.campaign().await?;
/// assert_eq!(election.leader().await?.unwrap().member.id, *tenure.id());
/// # drop(leadership); Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    pub(crate) shared: Arc<Shared>,
    /// All verbs that need no membership.
    operated: OperatorElection,
    priority: Priority,
}

impl Election {
    pub(crate) fn new(shared: Arc<Shared>, name: Result<ElectionName, BadName>) -> Self {
        let operated = OperatorElection::new(shared.client.clone(), name);
        Self { shared, operated, priority: Priority::default() }
    }

    /// Stands with this priority from now on: the highest live candidate is
    /// offered a vacancy first, 0 never leads, 100 is the default.
    #[must_use]
    pub fn priority(mut self, level: u16) -> Self {
        self.priority = Priority::new(level);
        self
    }

    /// The election's name, or why it cannot be used.
    pub fn name(&self) -> Result<&ElectionName> {
        self.operated.name()
    }

    /// Stands until this member leads. No failure of the store ends it; drop
    /// the future to withdraw.
    pub async fn campaign(&self) -> Result<Leadership> {
        self.stand(Patience::Endless).await?.leadership().ok_or(Error::ShutDown)
    }

    /// Stands for at most this long.
    pub async fn campaign_timeout(&self, limit: Duration) -> Result<Leadership> {
        self.stand(Patience::For(limit)).await?.leadership().ok_or(Error::ShutDown)
    }

    /// Leads if the election is free now, and says otherwise who leads or why no member can:
    /// see [`Attempt`]. An error if the store does not answer in time, or if a campaign of
    /// this member's is under way.
    pub async fn try_campaign(&self) -> Result<Attempt> {
        let limit = self.shared.client.settings().request_timeout() * 2;
        match self.stand(Patience::OneAnswer(limit)).await {
            Err(Error::AlreadyStanding(election)) => match self.hold_current() {
                Some(held) => Ok(Attempt::LedHere(held)),
                None => Err(Error::AlreadyStanding(election)),
            },
            attempt => attempt,
        }
    }

    async fn stand(&self, patience: Patience) -> Result<Attempt> {
        let election = self.name()?.clone();
        let (reply, answer) = oneshot::channel();
        let reply = OutcomeSender::One(reply);
        let priority = self.priority;
        let ticket = self.shared.ticket();
        let e = election.clone();
        self.shared.send(Command::Stand { election: e, priority, patience, ticket, reply })?;
        let span = tracing::info_span!(target: "tenure", "campaign", %election);
        let mut guard = WithdrawOnDrop { shared: &self.shared, election, ticket, standing: true };
        let answer = answer.instrument(span).await.map_err(|_| Error::ShutDown);
        // With an answer the candidacy is over, or is a leadership now.
        guard.standing = false;
        Ok(match answer?? {
            Campaigned::Won(reign) => Attempt::Elected(Leadership::new(reign, self.shared.clone())),
            Campaigned::NotNow(view) => Attempt::NotNow(view),
        })
    }

    /// The reign of this process in this election, if it leads.
    fn current(&self) -> Option<Arc<Reign>> {
        let reign = self.shared.board.reign(self.name().ok()?)?;
        reign.is_current(&self.shared.time).then_some(reign)
    }

    /// A hold on the leadership that this process has now, also while it is asked to stop.
    fn hold_current(&self) -> Option<Leadership> {
        Leadership::holding(self.current()?, self.shared.clone(), |_| true)
    }

    /// A hold on the leadership that this process has now, if it has, for work that
    /// begins: none while it is asked to stop. Dropping it gives nothing up: the
    /// leadership belongs to the caller that campaigned.
    pub(crate) fn hold_to_begin(&self) -> Option<Leadership> {
        Leadership::holding(self.current()?, self.shared.clone(), |p| *p == Phase::Leading)
    }

    /// A hold on the leadership that this process has now, for work that begins: `None` if it
    /// does not lead, and while it is asked to stop. Like
    /// [`Leadership::hold`](crate::Leadership::hold) it keeps the term until it is dropped,
    /// within the drain, and dropping it gives nothing up. For servers, which ask it once for
    /// each request; a job that runs to its end is easier with
    /// [`run_if_leader`](Self::run_if_leader).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let election = tenure.election("nightly");
    /// assert!(election.hold().is_none());
    /// let leadership = election.campaign().await?;
    /// let work = election.hold().ok_or("it leads")?;
    /// assert!(work.is_current() && work.token() == leadership.token());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn hold(&self) -> Option<Leadership> {
        self.hold_to_begin()
    }

    /// This host's addresses with a port, for [`Builder::endpoint`](crate::Builder::endpoint):
    /// those of all interfaces that are up, in the system's order, without loopback, link-local
    /// and multicast addresses. At most as many as a member may publish.
    ///
    /// An address that other hosts have as well, as a container bridge does, is among them: a
    /// client may reach another server by it. `tenure-grpc` goes on to the next endpoint when
    /// that one does not lead.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoints = tenure::Election::self_endpoints(8080)?;
    /// assert!(endpoints.iter().all(|endpoint| endpoint.ends_with(":8080")));
    /// let mut member = tenure::Tenure::builder("memory:");
    /// for endpoint in endpoints {
    ///     member = member.endpoint(endpoint);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn self_endpoints(port: u16) -> Result<Vec<String>> {
        addresses::endpoints(port)
    }

    /// Whether this process leads this election at this very instant. A
    /// [`Leadership`] can tell cheaper.
    #[must_use]
    pub fn is_led_here(&self) -> bool {
        self.current().is_some()
    }

    /// Who leads now, as the store knows it; `None` when the election is vacant.
    pub async fn leader(&self) -> Result<Option<Holder>> {
        self.operated.leader().await
    }

    /// The election as it stands, with its candidates.
    pub async fn view(&self) -> Result<ElectionView> {
        self.operated.view().await
    }

    /// The election with its candidates, and every live member of the namespace with what it
    /// publishes, all of one moment: for a program that is to reach the candidates, too.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::builder("memory:").endpoint("10.0.0.7:80").connect().await?;
    /// let leadership = tenure.election("nightly").campaign().await?;
    /// let snapshot = tenure.election("nightly").snapshot().await?;
    /// assert_eq!(snapshot.elections[0].number, leadership.number());
    /// assert_eq!(snapshot.members[0].profile.endpoints(), ["10.0.0.7:80"]);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn snapshot(&self) -> Result<Snapshot> {
        self.operated.snapshot().await
    }

    /// The newest journal entries of this election, oldest first.
    pub async fn journal(&self, limit: usize) -> Result<Vec<Entry>> {
        self.operated.journal(limit).await
    }

    /// The newest terms, oldest first: who, from when to when, and why they
    /// ended. As far back as the store keeps its journal.
    pub async fn history(&self, limit: usize) -> Result<Vec<PastTerm>> {
        self.operated.history(limit).await
    }

    /// Follows the election without standing: the present state first, then
    /// every change. It survives failures of the store.
    pub fn observe(&self) -> Result<Observer> {
        Ok(self.operated.observe()?.keeping(self.shared.clone()))
    }

    /// Follows the election from a place in the journal, as an earlier
    /// observation reported it: nothing that happened since is skipped, as far
    /// as the store still has it.
    pub fn observe_from(&self, after: Seq) -> Result<Observer> {
        Ok(self.operated.observe_from(after)?.keeping(self.shared.clone()))
    }

    /// Follows the election without standing, as [`observe`](Self::observe) does, and is told
    /// of each renewal of the leader ([`Observed::Renewed`](crate::Observed)) and when its
    /// ttl ran out ([`Observed::Expired`](crate::Observed)): for a program that shows how fresh a
    /// leader is. No store notifies of heartbeats, so the election is read four times in the
    /// leader's ttl, once for all such observers of this client; renewals between two reads
    /// are told as one.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// # use std::time::Duration;
    /// use tenure::{Observed, testing::Stage};
    ///
    /// let stage = Stage::new();
    /// let tenure = stage.connect("web-1").await?;
    /// let leadership = tenure.election("nightly").campaign().await?;
    /// let mut observer = tenure.election("nightly").observe_renewals()?;
    /// let first = observer.next().await.map(|seen| seen.observed);
    /// assert!(matches!(first, Some(Observed::Leads { .. })));
    /// stage.advance(Duration::from_secs(5)).await;
    /// let next = observer.next().await.map(|seen| seen.observed);
    /// assert!(matches!(next, Some(Observed::Renewed { number, .. }) if number.get() == 1));
    /// # drop(leadership); Ok(()) })
    /// # }
    /// ```
    pub fn observe_renewals(&self) -> Result<Observer> {
        Ok(self.operated.observe_renewals()?.keeping(self.shared.clone()))
    }

    /// This member's own changes in this election, in order, the present state
    /// first. A subscriber that is told of them keeps nothing: the term may be gone
    /// before it has reacted. To keep the term while you stop your work, use
    /// [`subscribe_holding`](Self::subscribe_holding) or
    /// [`on_elected`](Self::on_elected).
    pub fn subscribe(&self) -> Result<Subscription> {
        Ok(Subscription::new(self.shared.clone(), self.name()?.clone()))
    }

    /// This member's own leaderships of this election, each as it begins: for a
    /// component that works whenever the process leads. Each keeps its term until it
    /// is dropped, within the drain.
    pub fn subscribe_holding(&self) -> Result<HoldingSubscription> {
        let name = self.name()?.clone();
        Ok(HoldingSubscription::new(self.clone(), name))
    }

    /// Asks the leader to step down. It is told to stop its work first, and
    /// has its drain time; then the others elect, without it for a while.
    pub async fn ask_to_step_down(&self, reason: impl AsRef<str>) -> Result<Amended> {
        self.operated.ask_to_step_down(reason).await
    }

    /// Asks the leader to hand over to the candidate `to`.
    pub async fn ask_to_hand_over(
        &self,
        to: &MemberId,
        reason: impl AsRef<str>,
    ) -> Result<Amended> {
        self.operated.ask_to_hand_over(to, reason).await
    }

    /// Asks for a step-down of exactly this term; a newer one is left alone.
    pub async fn ask_term_to_step_down(
        &self,
        number: TermNumber,
        to: Option<MemberId>,
        reason: impl AsRef<str>,
    ) -> Result<Amended> {
        self.operated.ask_term_to_step_down(number, to, reason).await
    }

    /// No member is newly elected until [`resume`](Self::resume). The leader
    /// goes on.
    pub async fn pause(&self, reason: impl AsRef<str>) -> Result<Amended> {
        self.operated.pause(reason).await
    }

    /// Lifts a pause.
    pub async fn resume(&self) -> Result<Amended> {
        self.operated.resume().await
    }
}

/// A candidacy that ends when its future is dropped.
struct WithdrawOnDrop<'a> {
    shared: &'a Shared,
    election: ElectionName,
    ticket: u64,
    standing: bool,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        if self.standing {
            // If the driver is gone, so is the candidacy.
            let election = self.election.clone();
            let ticket = self.ticket;
            let _ = self.shared.send(Command::Withdraw { election, ticket });
        }
    }
}
