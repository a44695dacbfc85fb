//! The handle an application holds while it leads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::{Input, LostReason, MemberId, Mono, StopReason, Term, TermNumber, TermRef};
use tenure_store::{FenceBlocking, FenceError, FenceIn, Fenced, FencedTerm};
use tokio::sync::oneshot;

use crate::member::Shared;
use crate::member::cancellation::{Cancellation, When};
use crate::member::driver::Command;
use crate::member::reign::{LetGo, Phase, Reign};
use crate::member::renewals::Renewals;
use crate::{Error, Result};

/// One term, held by this process.
///
/// Ask [`is_current`](Self::is_current) before each side effect; it costs a
/// clock read. Give [`token`](Self::token) to whatever can refuse an older one,
/// or [`fence`](Self::fence) your transaction: that holds whatever clocks and
/// pauses do.
///
/// # Who keeps the term
///
/// Clones are the same leadership. When the last clone of the one that a campaign
/// gave is dropped, the term is given up, as by [`resign`](Self::resign). What runs
/// elsewhere under it has a leadership of its own from [`hold`](Self::hold), and so
/// has whatever [`lead`](crate::Election::lead),
/// [`run_if_leader`](crate::Election::run_if_leader), a callback or a
/// [holding subscription](crate::Election::subscribe_holding) hands out: **a term
/// that was given up is released when the last of them is dropped**, or when the drain
/// is over. Until then it is renewed, and [`stopping`](Self::stopping) has fired.
#[derive(Clone)]
pub struct Leadership {
    held: Arc<Held>,
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Leadership");
        shown.field("term", self.term()).field("is_current", &self.is_current());
        shown.field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}

/// One hold on a term, and the right to use it.
#[derive(Debug)]
struct Held {
    reign: Arc<Reign>,
    shared: Arc<Shared>,
    /// Whether the term is given up with this hold: it is the campaign's own.
    campaigned: bool,
    /// Whether this hold was let go explicitly.
    let_go: AtomicBool,
}

impl Held {
    /// The work under this hold has stopped. What that means for the term is decided
    /// in [`Reign`]; this only carries it to the driver.
    fn let_go(&self) -> Result<()> {
        if self.let_go.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let Term { election, number, .. } = self.reign.term.clone();
        match self.reign.let_go() {
            LetGo::Last { to } => {
                self.shared.send(Command::Tell(Input::Resign { election, number, to }))
            }
            LetGo::TellOthers { to } => {
                self.shared.send(Command::Tell(Input::StopLeading { election, number, to }))
            }
            LetGo::Nothing => Ok(()),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if *self.let_go.get_mut() {
            return;
        }
        if self.campaigned {
            self.reign.give_up(None, None);
        }
        // If the driver is gone, it has ended the reign before.
        let _ = self.let_go();
    }
}

impl Leadership {
    /// The campaign's own: the reign began with its hold.
    pub(crate) fn new(reign: Arc<Reign>, shared: Arc<Shared>) -> Self {
        Self::with(reign, shared, true)
    }

    /// A hold of its own on a reign that may have been won elsewhere in this process;
    /// `None` if it is over or in a phase that is not `wanted`.
    pub(crate) fn holding(
        reign: Arc<Reign>,
        shared: Arc<Shared>,
        wanted: impl Fn(&Phase) -> bool,
    ) -> Option<Self> {
        reign.hold(wanted).then(|| Self::with(reign, shared, false))
    }

    fn with(reign: Arc<Reign>, shared: Arc<Shared>, campaigned: bool) -> Self {
        let let_go = AtomicBool::new(false);
        Self { held: Arc::new(Held { reign, shared, campaigned, let_go }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.held.shared
    }

    /// A leadership of its own for other work under the same term: a task, a thread,
    /// a component. However this one ends, the term is not released before that one
    /// is dropped, within the drain. `None` if the term is given up or lost.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let leadership = tenure.election("nightly").campaign().await?;
    /// if let Some(mine) = leadership.hold() {
    ///     tokio::spawn(async move {
    ///         mine.stopping().await;
    ///         // … finish what cannot be left half done; then `mine` is dropped
    ///     });
    /// }
    /// leadership.resign().await?; // returns after the task has ended
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn hold(&self) -> Option<Self> {
        let Held { reign, shared, .. } = &*self.held;
        Self::holding(reign.clone(), shared.clone(), |_| true)
    }

    /// As [`hold`](Self::hold), and only while it was not asked to stop.
    pub(crate) fn hold_to_begin(&self) -> Option<Self> {
        let Held { reign, shared, .. } = &*self.held;
        Self::holding(reign.clone(), shared.clone(), |phase| *phase == Phase::Leading)
    }

    /// The fencing token: the number of the term.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.number().get()
    }

    /// The number of the term.
    #[must_use]
    pub fn number(&self) -> TermNumber {
        self.term().number
    }

    /// The term.
    #[must_use]
    pub fn term(&self) -> &Term {
        &self.held.reign.term
    }

    /// Whether this process leads at this very instant: two atomic loads and a
    /// clock read; no lock, no I/O. It is right also when the runtime is
    /// starved, and after the process was stopped and continued.
    #[inline]
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.held.reign.is_current(&self.held.shared.time)
    }

    /// How much longer this term may be trusted if nothing renews it; zero if
    /// it is over. Just after a predecessor handed the election over it is little
    /// more than the margin, until the store has answered the first heartbeat, some
    /// milliseconds later.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.trusted_until().since(self.held.shared.time.now())
    }

    /// Until when this term may be trusted if nothing renews it, on this
    /// machine's boot-time clock; [`Mono::ZERO`] once it is over.
    #[must_use]
    pub fn trusted_until(&self) -> Mono {
        self.held.reign.trusted_until()
    }

    /// Tells with each renewal how long the term may be trusted from then on, and ends when
    /// the term is over: for a component that keeps a deadline of its own.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let leadership = tenure.election("nightly").campaign().await?;
    /// let mut renewals = leadership.renewed();
    /// assert!(renewals.next().await.is_some(), "the present state");
    /// leadership.resign().await?;
    /// assert_eq!(renewals.next().await, None);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn renewed(&self) -> Renewals {
        Renewals::new(self.held.reign.clone(), self.held.shared.time.clone())
    }

    /// Returns once the term is lost, and why. Whatever was done since may
    /// have been done beside a new leader: stop now.
    pub async fn lost(&self) -> LostReason {
        loop {
            if let Phase::Lost(reason) =
                self.held.reign.wait_for(|p| matches!(p, Phase::Lost(_))).await
            {
                return reason;
            }
        }
    }

    /// Returns once the work should stop: an operator asked this leader to step
    /// down, or the process shuts down. Finish what cannot be left half done,
    /// then drop the leadership or [`resign`](Self::resign): the term is
    /// renewed meanwhile, for as long as the drain time allows. A term that is
    /// lost also ends the wait.
    pub async fn stopping(&self) -> Stopping {
        match self.held.reign.wait_for(|p| !matches!(p, Phase::Leading)).await {
            Phase::Stopping { reason, drain_until } => {
                let left = drain_until.since(self.held.shared.time.now());
                Stopping::Asked { reason: *reason, drain_until, left }
            }
            Phase::Lost(reason) => Stopping::Lost(reason),
            Phase::Leading => unreachable!("waited for any other phase"),
        }
    }

    /// What can be handed on to whatever is to be cancelled when the work should stop: to
    /// tasks, threads and libraries that know nothing of leaderships. It keeps no term.
    /// See [`Cancellation`].
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        Cancellation::new(self.held.reign.clone(), self.held.shared.time.clone(), When::Stopping)
    }

    /// The same for work that may go on while the term drains: cancelled only when the term
    /// is lost.
    #[must_use]
    pub fn cancellation_on_loss(&self) -> Cancellation {
        Cancellation::new(self.held.reign.clone(), self.held.shared.time.clone(), When::Lost)
    }

    /// Whether the work should stop, as [`stopping`](Self::stopping) says it:
    /// for loops that ask between two items.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.held.reign.phase() != Phase::Leading
    }

    /// Gives the term up, and returns once the store has confirmed it. The work
    /// under this leadership and its clones must have stopped. Other work under the
    /// term is told to stop, and the term is released when it has, or when the drain
    /// is over.
    pub async fn resign(self) -> Result<()> {
        self.give_up(None).await
    }

    /// Gives the term up, as [`resign`](Self::resign) does, in favour of the
    /// candidate `to`: the vacancy is kept for it for one ttl, as long as it lives.
    /// That holds, too, if other work does not end within the drain.
    pub async fn hand_over(self, to: &MemberId) -> Result<()> {
        self.give_up(Some(to.clone())).await
    }

    pub(crate) async fn give_up(&self, to: Option<MemberId>) -> Result<()> {
        let (confirm, confirmed) = oneshot::channel();
        let lost = self.held.reign.give_up(to, Some(confirm));
        self.held.let_go()?;
        let Term { election, number, .. } = self.term().clone();
        if let Some(confirm) = lost {
            let term = TermRef { election: election.clone(), number };
            self.held.shared.send(Command::Confirm { term, confirm })?;
        }
        match confirmed.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Unconfirmed { election, number }),
            Err(_) => Err(Error::ShutDown),
        }
    }

    /// Asks this process's own leadership to stop as a step-down would: its
    /// [`stopping`](Self::stopping) fires, it is renewed while it drains, and
    /// released when it is dropped.
    pub fn stop(&self) -> Result<()> {
        let Term { election, number, .. } = self.term().clone();
        let stop = Input::StopLeading { election, number, to: None };
        self.held.shared.send(Command::Tell(stop))
    }

    /// A kernel lock for another process that works under this term, on a store
    /// that takes a free lock for a proof of death (rule M4); `None` on any other.
    ///
    /// As long as any process has it open, the others wait: after a crash of this
    /// process, and also when its ttl has run out. Hand it to a process that works
    /// under this term, let its children inherit it, and close it here: then
    /// no other member is elected before the last of them is gone. Each call gives a lock
    /// of its own, also under another term of this member, and each of them keeps all
    /// that the member holds. Giving the term up or leaving frees it whether or not a
    /// lock is held.
    #[cfg(unix)]
    #[must_use]
    pub fn liveness_lock(&self) -> Option<std::os::fd::OwnedFd> {
        self.held.shared.connection.locks.of(self.term().member.incarnation)
    }

    /// The term with the store that gave it out, as a fence takes it.
    fn fenced_term(&self) -> Fenced<'_> {
        let client = &self.held.shared.client;
        let store = &client.first_capabilities().identity;
        FencedTerm { store, ns: client.namespace(), term: self.term() }.into()
    }

    /// Proves in the caller's own transaction that no newer term exists, and
    /// holds the term still until the transaction ends. Roll back on an error.
    ///
    /// The transaction must be in the very store that gave the term out (for
    /// PostgreSQL: in its database, whatever its schema is called); any other is
    /// refused, with an error that names both.
    ///
    /// For transactions of tokio-postgres 0.7, sqlx 0.8 (with the feature `sqlx`) and
    /// rusqlite 0.41; one of the last cannot be kept across an `await` of a task that
    /// is spawned, so use [`fence_blocking`](Self::fence_blocking) there.
    pub fn fence<'a, T: FenceIn<Via>, Via>(
        &'a self,
        transaction: &'a mut T,
    ) -> impl Future<Output = Result<(), FenceError>> + Send + 'a + use<'a, T, Via> {
        transaction.fence_in(self.fenced_term())
    }

    /// [`fence`](Self::fence) for drivers that block, as rusqlite does: nothing is
    /// awaited between the transaction's beginning and its end. In a task that is
    /// spawned, put these into a function or a block of their own: a transaction of
    /// rusqlite's cannot be in scope at an `await` there. A transaction that has to last
    /// across one is begun by `BEGIN IMMEDIATE` on the connection, which
    /// [`fence`](Self::fence) takes as well.
    ///
    /// ```no_run
    /// # #[cfg(feature = "sqlite")]
    /// # async fn example(leadership: tenure::Leadership) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut db = rusqlite::Connection::open("app.db")?;
    /// let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    /// leadership.fence_blocking(&tx)?;
    /// tx.execute("UPDATE reports SET sent = 1 WHERE day = 7", [])?;
    /// tx.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn fence_blocking<T: FenceBlocking<Via>, Via>(
        &self,
        transaction: &T,
    ) -> Result<(), FenceError> {
        transaction.fence_blocking(self.fenced_term())
    }
}

/// Why the work should stop. Printed, it is a clause for a message or a log.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::Stopping;
///
/// # let tenure = tenure::Tenure::connect("memory:").await?;
/// let leadership = tenure.election("nightly").campaign().await?;
/// leadership.stop()?;
/// let why = leadership.stopping().await;
/// assert_eq!(why.to_string(), "the process shuts down"); // a handle of this process asked
/// let Stopping::Asked { left, .. } = why else { return Err("it was lost".into()) };
/// assert!(left > std::time::Duration::from_secs(1)); // to finish in
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopping {
    /// It may drain until then, and is renewed meanwhile.
    Asked {
        /// Who asked, and why.
        reason: StopReason,
        /// When the patience ends, on the member's clock.
        drain_until: Mono,
        /// How much of that was left when this was told.
        left: Duration,
    },
    /// It is too late: the term is lost.
    Lost(LostReason),
}

impl fmt::Display for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopping::Asked { reason, .. } => reason.fmt(f),
            Stopping::Lost(reason) => write!(f, "the term is lost: {reason}"),
        }
    }
}
