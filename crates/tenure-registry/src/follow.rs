//! The task that keeps the copy up to date: it asks what changed since the copy's revision.
//!
//! A hint, a heartbeat's time without one, the coming end of an owner's ttl, a waiting caller
//! and a failure each lead to the same question, so that a lost hint costs time and nothing
//! else (R6). One question is on its way at a time. Nothing of this extends any trust.
//!
//! # What could break it
//!
//! - **The store cannot be asked.** Owners' ttl is counted down here, also while a question is
//!   on its way, and their names vanish (R5). An owner may have lived on all the same: so all
//!   names are read next, not what changed.
//! - **A registration during a question or a pause** is taken in at once, and laid over the
//!   answer, which may not know of it (R1).
//! - **The store forgot what this process owns** (it was promoted or restored). It answers
//!   with all names, under a revision that may be lower or higher than the copy's. What was
//!   registered before the question and is not in the answer is lost, and its owner is told
//!   at once (M6). It is asked for all names, too, if it stands before what a registration was
//!   given: the copy may not have read that one yet.
//! - **The member is shut down.** The task ends, and with it every wait and every watch.

mod task;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tenure::naming::{Binding, Name, Rev, Token};
use tenure::store::Backoff;
use tenure::views::MemberRef;
use tenure::{MemberView, Mono, Tenure};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::RegisterError;
use crate::copy::{Copy, Delta, Stand};
use crate::waiters::Waiters;
use task::{Shared, Task};

/// How many answers a watcher may be behind.
const ANSWERS_KEPT: usize = 1024;
/// The shortest pause, also between two questions that no caller waits for.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The pauses after failures.
pub(crate) const PAUSES: Backoff = Backoff::new(FIRST_PAUSE, Duration::from_secs(5));

/// What changed with one answer.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) stand: Stand,
    pub(crate) deltas: Arc<[Delta]>,
}

/// What the registry's handles tell the task.
#[derive(Debug)]
pub(crate) enum Told {
    /// This process has registered these names.
    Own(Vec<Binding>, oneshot::Sender<()>),
    /// This process has given a name back.
    Dropped(Name, Token, Option<oneshot::Sender<()>>),
    /// A caller waits for what is in the store now.
    Look(Option<oneshot::Sender<()>>),
    /// A watch asks which lives own names, and where the copy stands then: it
    /// was told everything up to there.
    Lives(oneshot::Sender<(Vec<MemberRef>, Stand)>),
}

/// The members, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) asked: Mono,
    pub(crate) views: Vec<MemberView>,
}

/// What is shared between the task and the handles.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) copy: Arc<Copy>,
    pub(crate) members: Arc<ArcSwap<Members>>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) told: mpsc::UnboundedSender<Told>,
    pub(crate) batches: broadcast::Sender<Batch>,
    /// The revision, once something was read. Its sender goes with the task.
    pub(crate) reached: watch::Receiver<Option<Rev>>,
    /// Whether the store can tell what changed since a revision.
    pub(crate) tells: bool,
    tenure: Tenure,
    task: tokio::task::AbortHandle,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The followers of this process: one for each member.
static OPEN: Mutex<Vec<Weak<Follower>>> = Mutex::new(Vec::new());

impl Follower {
    /// The one of this member, which is started if there is none. Must be called inside a
    /// runtime; one whose runtime has gone is not used again.
    pub(crate) fn of(tenure: &Tenure) -> tenure::Result<Arc<Self>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|follower| follower.strong_count() > 0);
        let works = |f: &Arc<Self>| f.tenure.is(tenure) && !f.task.is_finished();
        if let Some(found) = open.iter().filter_map(Weak::upgrade).find(works) {
            return Ok(found);
        }
        let started = Arc::new(Self::start(tenure)?);
        open.push(Arc::downgrade(&started));
        Ok(started)
    }

    fn start(tenure: &Tenure) -> tenure::Result<Self> {
        let tells = tenure.capabilities().keeps_names()?.since;
        let copy = Arc::new(Copy::new());
        let members = Arc::new(ArcSwap::default());
        let (told, hears) = mpsc::unbounded_channel();
        let (reach, reached) = watch::channel(None);
        let batches = broadcast::Sender::new(ANSWERS_KEPT);
        let waiters = Arc::new(Waiters::default());
        let shared = Shared {
            copy: copy.clone(),
            members: members.clone(),
            batches: batches.clone(),
            waiters: waiters.clone(),
            tells,
        };
        let task = Task::new(tenure, shared, reach)?;
        let task = tokio::spawn(task.run(hears)).abort_handle();
        let tenure = tenure.clone();
        Ok(Self { copy, members, waiters, told, batches, reached, tells, tenure, task })
    }

    /// Waits until the copy has read what the caller wants.
    pub(crate) async fn reaches(&self, wanted: impl Fn(Rev) -> bool) -> Result<(), RegisterError> {
        let mut reached = self.reached.clone();
        let waited = reached.wait_for(|at| at.is_some_and(&wanted)).await;
        waited.map(drop).map_err(|_| tenure::Error::ShutDown.into())
    }

    /// Returns once the task is over.
    pub(crate) async fn ended(&self) {
        let mut reached = self.reached.clone();
        while reached.changed().await.is_ok() {}
    }

    /// Tells the task of these, and waits until they are in the copy.
    pub(crate) async fn overlay(&self, own: Vec<Binding>) {
        let (seen, is_seen) = oneshot::channel();
        if self.told.send(Told::Own(own, seen)).is_ok() {
            // In this process: no request is waited for.
            let _ = is_seen.await;
        }
    }
}

/// Until an owner's ttl has run out, on the member's own clock.
pub(crate) async fn until(tenure: &Tenure, end: Option<Mono>) {
    match end {
        Some(end) => tenure.sleep_until(end).await,
        None => std::future::pending().await,
    }
}
