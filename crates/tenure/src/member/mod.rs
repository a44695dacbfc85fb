//! A connected member: the loop around the machine, and what an application has of it.

mod addresses;
mod attempt;
mod builder;
mod callbacks;
mod campaigns;
mod cancellation;
pub(crate) mod driver;
mod election;
mod lead;
mod leadership;
mod left;
mod legacy;
mod locks;
mod name_error;
mod names;
mod owned;
pub(crate) mod reign;
mod renewals;
mod subscription;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{
    Amended, ElectionName, ElectionView, Examined, HeldUp, Input, MemberId, MemberRef, MemberView,
    Mono, Namespace, Seq, Settings, Term,
};
use tenure_store::{Capabilities, SharedStore};
use tokio::sync::{mpsc, oneshot, watch};

pub use attempt::Attempt;
pub use builder::Builder;
pub use callbacks::Callbacks;
pub use campaigns::Campaigns;
pub use cancellation::Cancellation;
pub use election::Election;
pub use leadership::{Leadership, Stopping};
pub use left::Left;
pub use locks::{Lock, Place, Semaphore};
pub use name_error::NameError;
pub use names::{NameHints, Names, Registration};
pub use renewals::Renewals;
pub use subscription::{Change, HoldingSubscription, Subscription};

use crate::client::Client;
use crate::feed::JournalStream;
use crate::member::driver::{Board, Command, Connection, Started, wait_for_end};
use crate::member::reign::Reign;
use crate::time::Time;
use crate::{Error, Operator, Result};

/// A member: one process's place in the store, and the way to every election.
///
/// Clones are the same member. When the last clone and everything made from it
/// is gone, the member leaves in order, in the background; to wait for that, use
/// [`shutdown`](Self::shutdown).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::Tenure;
///
/// let tenure = Tenure::connect("memory:").await?;
/// let leadership = tenure.election("nightly-report").campaign().await?;
/// assert!(leadership.is_current());
/// assert_eq!(leadership.token(), 1);
/// leadership.resign().await?;
/// tenure.shutdown().await?;
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tenure {
    pub(crate) shared: Arc<Shared>,
}

/// What a member's handles share. When the last is gone, the command channel
/// closes, and the driver leaves.
pub(crate) struct Shared {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) board: Arc<Board>,
    /// Here as well as in the client: a leadership reads the clock with no detour.
    pub(crate) time: Time,
    pub(crate) client: Arc<Client>,
    /// All verbs that need no membership.
    operator: Operator,
    pub(crate) connection: Arc<Connection>,
    tickets: AtomicU64,
    /// Who is in line for locks and semaphores.
    turns: locks::Turns,
    /// Its sender is gone once the driver has ended.
    ended: watch::Receiver<()>,
}

/// Which member it is: what its handles share would fill pages.
impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Member");
        shown.field("id", self.client.id()).field("namespace", self.client.namespace());
        shown.finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn send(&self, command: Command) -> Result<()> {
        self.commands.send(command).map_err(|_| Error::ShutDown)
    }

    /// A number that tells one campaign of this member from another.
    pub(crate) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns once the driver has dealt with everything that it could: for
    /// tests on a clock that stands.
    pub(crate) async fn idle(&self) {
        let (done, idle) = oneshot::channel();
        if self.send(Command::Idle { done }).is_ok() {
            // A driver that is gone has nothing left to do.
            let _ = idle.await;
        }
    }
}

impl Tenure {
    /// Connects to a store with the default options.
    pub async fn connect(url: impl AsRef<str>) -> Result<Self> {
        Self::builder(url).connect().await
    }

    /// Options for connecting to the store at `url`: `sqlite:/path/to/file.db`,
    /// `postgres://user@host/db`, `s3://bucket/prefix`, `gs://bucket/prefix`,
    /// `az://container/prefix`, as far as their features are on; `memory:` for a store of
    /// this member alone, or `memory:name` for one that members of this process share.
    pub fn builder(url: impl AsRef<str>) -> Builder {
        Builder::url(url.as_ref())
    }

    /// Options for using a store of one's own.
    pub fn with_store(store: SharedStore) -> Builder {
        Builder::store(store)
    }

    /// Opens the store at `url` to read and steer, and joins nothing. With options:
    /// [`Builder::operate`].
    pub async fn operate(url: impl AsRef<str>) -> Result<Operator> {
        Self::builder(url).operate().await
    }

    pub(crate) fn new(started: Started, connection: Arc<Connection>) -> Self {
        let Started { commands, board, client, ended } = started;
        let shared = Shared {
            commands,
            board,
            time: client.time().clone(),
            operator: Operator::new(client.clone()),
            client,
            connection,
            tickets: AtomicU64::new(1),
            turns: locks::Turns::default(),
            ended,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Options for a member of another namespace that shares this member's thread and
    /// connections: it has a heartbeat and a [`shutdown`](Self::shutdown) of its own. Its
    /// id is this member's, and its timings the default ones, unless said otherwise; how
    /// long the store may take for a request was decided when it was opened. The
    /// connection is closed when the last of its members is gone.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let billing = tenure.member_in("billing").connect().await?;
    /// let here = tenure.election("nightly").campaign().await?;
    /// let there = billing.election("nightly").campaign().await?;
    /// assert!(here.is_current() && there.is_current());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn member_in(&self, namespace: impl Into<String>) -> Builder {
        Builder::beside(self.shared.connection.clone(), self.shared.time.clone())
            .namespace(namespace)
            .id(self.id().as_str())
    }

    /// Returns `true` once the member's own loop has taken a turn, and `false` if it has ended:
    /// for a watchdog, which is to know that heartbeats are still sent.
    pub async fn answers(&self) -> bool {
        let (done, idle) = oneshot::channel();
        self.shared.send(Command::Turn { done }).is_ok() && idle.await.is_ok()
    }

    /// The same connection for reading and steering alone: what it asks for is noted under
    /// this member's id.
    #[must_use]
    pub fn operator(&self) -> &Operator {
        &self.shared.operator
    }

    /// An election of the member's namespace. A name that cannot be used is
    /// refused by the first call that needs it.
    #[must_use]
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election::new(self.shared.clone(), ElectionName::new(name))
    }

    /// Stands for all these elections at once, each until it is won, with the
    /// default priority. They are bid for together: ten thousand take as many
    /// requests as the store's [`batch`](Capabilities::batch) makes of them,
    /// and one bad name refuses them all. A name given twice counts once.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let mut campaigns = tenure.campaign_all((0..100).map(|n| format!("shard-{n}")))?;
    /// let mut shards = Vec::new();
    /// while let Some(leadership) = campaigns.next().await {
    ///     shards.push(leadership?);
    /// }
    /// assert_eq!(shards.len(), 100);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn campaign_all<S: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = S>,
    ) -> Result<Campaigns> {
        let names = names.into_iter().map(ElectionName::new).collect::<Result<_, _>>()?;
        Campaigns::begin(self.shared.clone(), names)
    }

    /// Whether this is a clone of the same member.
    #[must_use]
    pub fn is(&self, other: &Tenure) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The member's id.
    #[must_use]
    pub fn id(&self) -> &MemberId {
        self.shared.client.id()
    }

    /// The member's namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        self.shared.client.namespace()
    }

    /// The timings in force.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.shared.client.settings()
    }

    /// What the store can and cannot do at present: whether notifications arrive, for
    /// one, may change.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.shared.operator.capabilities()
    }

    /// This member's clock, on which trust is counted. It counts suspended time, and in a
    /// [`testing::Stage`](crate::testing::Stage) it is the stage's.
    #[must_use]
    pub fn now(&self) -> Mono {
        self.shared.time.now()
    }

    /// How long it is until this moment of the member's clock; zero once it has passed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// # let tenure = tenure::Tenure::connect("memory:").await?;
    /// let leadership = tenure.election("nightly").campaign().await?;
    /// let left = tenure.until(leadership.trusted_until());
    /// assert!(left > std::time::Duration::ZERO && left <= tenure.settings().ttl());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn until(&self, at: Mono) -> Duration {
        at.since(self.now())
    }

    /// Waits until this moment of the member's clock, roughly: for pauses, not for trust.
    pub async fn sleep_until(&self, at: Mono) {
        let runtime = self.shared.client.runtime();
        self.shared.time.sleep_on(runtime, at.since(self.now())).await;
    }

    /// Becomes a member without standing for anything, so that others see it in
    /// [`members`](Self::members). It happens in the background;
    /// [`status`](Self::status) says when.
    pub fn join(&self) -> Result<()> {
        self.shared.send(Command::Tell(Input::Join))
    }

    /// The live members of the namespace.
    pub async fn members(&self) -> Result<Vec<MemberView>> {
        self.shared.operator.members().await
    }

    /// Every election of the namespace, with its candidates.
    pub async fn elections(&self) -> Result<Vec<ElectionView>> {
        self.shared.operator.elections().await
    }

    /// The newest journal entries of the namespace, oldest first, at most
    /// `limit`; and the position they reach.
    pub async fn journal(&self, limit: usize) -> Result<(Seq, Vec<tenure_core::Entry>)> {
        self.shared.operator.journal(limit).await
    }

    /// Follows the journal of the namespace: every entry after `after`, or from
    /// now on. It survives failures of the store.
    pub fn follow(&self, after: Option<Seq>) -> Result<JournalStream> {
        self.shared.operator.follow(after)
    }

    /// Ends a member. What it holds becomes free when its ttl has run out.
    pub async fn evict(&self, member: &MemberId) -> Result<Amended> {
        self.shared.operator.evict(member).await
    }

    /// Ends a member and frees what it holds at once, **while it may still believe that
    /// it leads**: only the fence keeps such a leader harmless.
    pub async fn evict_now(&self, member: &MemberId) -> Result<Amended> {
        self.shared.operator.evict_now(member).await
    }

    /// Says that the store was restored from a backup, rolled back or copied, and may
    /// have forgotten terms that it gave out. The next number of every election jumps
    /// above what may have been forgotten; who leads goes on leading. In a store
    /// of single records, as object storage is, that is for this namespace alone. The answer is
    /// [`Amended::Restored`].
    pub async fn restored(&self) -> Result<Amended> {
        self.shared.operator.restored().await
    }

    /// What the store says of itself: the era of its term numbers, when and why it
    /// began, and what is peculiar to this kind of store.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// tenure.restored().await?;
    /// let era = tenure.examine().await?.era.ok_or("a store without eras")?;
    /// assert_eq!(era.era.count(), 1);
    /// assert!(era.raised.is_some_and(|raised| raised.why.contains("restored")));
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn examine(&self) -> Result<Examined> {
        self.shared.operator.examine().await
    }

    /// How this member and its store are doing. No I/O.
    #[must_use]
    pub fn status(&self) -> Status {
        let health = self.shared.board.health().clone();
        let watch_error = self.shared.operator.watch_error();
        let now = self.shared.time.now();
        let led = self.shared.board.led();
        let current = |reign: &&Arc<Reign>| reign.is_current(&self.shared.time);
        Status {
            member: health.member,
            conflict: health.conflict,
            rolled_back: health.rolled_back,
            failures: health.failures,
            last_error: health.last_error,
            last_success: health.last_success.map(|at| now.since(at)),
            watch_error,
            standing: health.standing,
            held_up: health.held_up.into_iter().collect(),
            leading: led.iter().filter(current).map(|reign| reign.term.clone()).collect(),
        }
    }

    /// Stops in order: asks the work of every leadership to stop, waits for it
    /// to drain (bounded), releases, leaves. The answer says whether the store has
    /// confirmed it.
    pub async fn shutdown(&self) -> Result<Left> {
        let (done, take) = oneshot::channel();
        if self.shared.send(Command::Shutdown { done }).is_err() {
            return Ok(Left::Already);
        }
        let confirmed = take.await.unwrap_or(false);
        wait_for_end(&self.shared.ended).await;
        self.shared.connection.ended().await;
        Ok(if confirmed { Left::Confirmed } else { Left::Unconfirmed })
    }
}

/// How a member and its store are doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// Which life of the member is in the store, if it is.
    pub member: Option<MemberRef>,
    /// Set when another process uses the same id: what is known, what to do.
    pub conflict: Option<String>,
    /// Set once the store was found to have forgotten what it told before: what is
    /// known, what to do. What was led then was lost
    /// ([`LostReason::RolledBack`](crate::LostReason)).
    pub rolled_back: Option<String>,
    /// How many requests in a row have failed.
    pub failures: u32,
    /// The last failure, also if the store has answered since.
    pub last_error: Option<String>,
    /// How long ago the store last answered.
    pub last_success: Option<Duration>,
    /// Why changes are not noticed at once, if so.
    pub watch_error: Option<String>,
    /// How many campaigns are under way.
    pub standing: usize,
    /// The elections that this member stands for, that are vacant, and that its last bid
    /// could not win all the same: what is in the way, and what to do.
    pub held_up: Vec<(ElectionName, HeldUp)>,
    /// The terms led at this very instant: not one whose trust has run out.
    pub leading: Vec<Term>,
}
