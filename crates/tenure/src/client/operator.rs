//! A handle that reads and steers without being a member.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Amend, Amended, Bind, BindAnswer, BindOp, Binding, Bindings, ElectionName, ElectionView, Entry,
    Examined, MemberId, MemberView, Name, NamesView, Namespace, Nonce, Purge, Purged, Query, Seq,
    Snapshot, Token, Which, WhichNames,
};
use tenure_store::Capabilities;

use super::{Client, OperatorElection, Party};
use crate::Result;
use crate::feed::JournalStream;

/// A connection that reads and steers elections and joins nothing: for scripts,
/// dashboards and services that only look, or ask others to act.
///
/// It has no membership, no heartbeat and no thread of its own: requests run on the
/// tokio runtime in which it was opened. Clones are the same connection, which is closed
/// with the last of them and of what was made from it. Made by [`Tenure::operate`] or,
/// with options, by [`Builder::operate`]; a [`Tenure`] has the same verbs.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tenure::Tenure;
///
/// let tenure = Tenure::connect("memory:shown").await?;
/// let leadership = tenure.election("nightly").campaign().await?;
///
/// let operator = Tenure::operate("memory:shown").await?;
/// let leader = operator.election("nightly").leader().await?;
/// assert_eq!(leader.map(|holder| holder.member.id).as_ref(), Some(tenure.id()));
/// assert_eq!(operator.members().await?.len(), 1); // the operator is no member
///
/// operator.election("nightly").ask_to_step_down("maintenance").await?;
/// leadership.stopping().await;
/// # Ok(()) })
/// # }
/// ```
///
/// [`Tenure`]: crate::Tenure
/// [`Tenure::operate`]: crate::Tenure::operate
/// [`Builder::operate`]: crate::Builder::operate
#[derive(Clone, Debug)]
pub struct Operator {
    client: Arc<Client>,
}

impl Operator {
    pub(crate) fn new(client: Arc<Client>) -> Self {
        Self { client }
    }

    /// The same connection, for another namespace of the store.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let operator = tenure::Tenure::operate("memory:").await?;
    /// let billing = operator.in_namespace("billing")?;
    /// assert_eq!(billing.namespace().as_str(), "billing");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn in_namespace(&self, namespace: impl Into<String>) -> Result<Self> {
        let party = Party {
            ns: Namespace::new(namespace.into())?,
            id: self.client.id().clone(),
            settings: self.client.settings().clone(),
            time: self.client.time().clone(),
        };
        Ok(Self { client: Arc::new(self.client.beside(party)?) })
    }

    /// The operator's namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        self.client.namespace()
    }

    /// The name under which the journal has what this operator asks for; see
    /// [`Builder::id`](crate::Builder::id).
    #[must_use]
    pub fn id(&self) -> &MemberId {
        self.client.id()
    }

    /// What the store can and cannot do at present.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.client.capabilities()
    }

    /// An election of the operator's namespace. A name that cannot be used is refused by
    /// the first call that needs it.
    #[must_use]
    pub fn election(&self, name: impl AsRef<str>) -> OperatorElection {
        OperatorElection::new(self.client.clone(), ElectionName::new(name))
    }

    /// The live members of the namespace.
    pub async fn members(&self) -> Result<Vec<MemberView>> {
        Ok(self.client.read(Query::members()).await?.members)
    }

    /// Names of the namespace, all of one moment; an error if the store keeps none.
    pub async fn names(&self, which: WhichNames) -> Result<NamesView> {
        self.client.first_capabilities().keeps_names()?;
        self.client.names(which).await
    }

    /// Every election of the namespace, with its candidates.
    pub async fn elections(&self) -> Result<Vec<ElectionView>> {
        let query = Query { which: Which::All, candidates: true, ..Query::nothing() };
        Ok(self.client.read(query).await?.elections)
    }

    /// Every election with its candidates, and every live member, all of one moment.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        self.client.read(Query::everything()).await
    }

    /// The newest journal entries of the namespace, oldest first, at most `limit`; and
    /// the position they reach.
    pub async fn journal(&self, limit: usize) -> Result<(Seq, Vec<Entry>)> {
        let query = Query { which: Which::All, history: limit, ..Query::nothing() };
        let snapshot = self.client.read(query).await?;
        Ok((snapshot.seq, snapshot.history))
    }

    /// Follows the journal of the namespace: every entry after `after`, or from now on.
    /// It survives failures of the store.
    pub fn follow(&self, after: Option<Seq>) -> Result<JournalStream> {
        self.client.follow(after)
    }

    /// Why changes are not followed at present, if so. No I/O.
    pub(crate) fn watch_error(&self) -> Option<String> {
        self.client.feed().ok()?.trouble()
    }

    /// What the store says of itself: the era of its term numbers, when and why it
    /// began, and what is peculiar to this kind of store.
    pub async fn examine(&self) -> Result<Examined> {
        Ok(self.client.read(Query::examination()).await?.examined.unwrap_or_default())
    }

    /// Ends a member. What it holds becomes free when its ttl has run out.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use tenure::{MemberId, Tenure};
    /// use tenure::views::Amended;
    ///
    /// let operator = Tenure::operate("memory:").await?;
    /// let evicted = operator.evict(&MemberId::new("web-1")?).await?;
    /// assert_eq!(evicted, Amended::NoSuchMember);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn evict(&self, member: &MemberId) -> Result<Amended> {
        self.client.amend(Amend::evict(member.clone(), self.client.note())).await
    }

    /// Ends a member and frees what it holds at once, **while it may still believe that
    /// it leads**: only the fence keeps such a leader harmless.
    pub async fn evict_now(&self, member: &MemberId) -> Result<Amended> {
        self.client.amend(Amend::evict_now(member.clone(), self.client.note())).await
    }

    /// Says that the store was restored from a backup, rolled back or copied, and may
    /// have forgotten terms that it gave out. The next number of every election jumps
    /// above what may have been forgotten, and leaders go on leading. In a store of single
    /// records, as object storage is, that is for this namespace alone: call it for each.
    /// The answer is [`Amended::Restored`].
    pub async fn restored(&self) -> Result<Amended> {
        self.client.amend(Amend::Restored { by: self.client.note() }).await
    }

    /// Takes one bounded step in forgetting what is no longer used: see [`Purge`]. The next
    /// step is [`Purge::following`]. A store that cannot forget without numbers coming back
    /// answers with an error, and nothing was changed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::time::Duration;
    /// use tenure::Tenure;
    /// use tenure::store::Purge;
    ///
    /// let operator = Tenure::operate("memory:").await?;
    /// let mut next = Some(Purge::older_than(Duration::from_secs(90 * 24 * 60 * 60)));
    /// while let Some(step) = next {
    ///     let purged = operator.purge(&step).await?;
    ///     next = step.following(&purged);
    /// }
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn purge(&self, step: &Purge) -> Result<Purged> {
        let step = Purge { by: self.client.note(), ..step.clone() };
        match self.client.amend(Amend::Purge(step)).await? {
            Amended::Purged(purged) => Ok(purged),
            _ => Ok(Purged::default()),
        }
    }

    /// Drops a name that has no owner, under exactly this token. `None` if it is free
    /// now, or was; else the binding that is there: of another token, or of a member, whose
    /// own it is to drop.
    pub async fn drop_name(&self, name: Name, token: Token) -> Result<Option<Binding>> {
        self.client.first_capabilities().keeps_names()?;
        // A drop is told by its token; an attempt that is repeated finds nothing.
        let bind = Bind::anonymous([BindOp::drop(name, Nonce::default(), token)]);
        loop {
            let answers = match self.client.bind(bind.clone()).await? {
                Bindings::Answered(answers) => answers,
                // Only a member is ended, and only a term is fenced.
                _ => return Ok(None),
            };
            match answers.into_iter().next() {
                Some(BindAnswer::Busy(_)) => {
                    self.client.time().sleep(Duration::from_millis(20)).await;
                }
                Some(BindAnswer::Gone(there)) => return Ok(there),
                _ => return Ok(None),
            }
        }
    }
}
