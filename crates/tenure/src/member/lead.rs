//! Scopes: work that runs only while this process leads.

use std::any::Any;
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tenure_core::LostReason;
use tracing::Instrument;

use crate::{Election, Error, LeadError, Leadership, WorkError};

impl Election {
    /// Stands until this member leads, runs the work, and gives the term back.
    ///
    /// - The work is cancelled (its future is dropped) the moment the
    ///   leadership is lost; only then may another member be told that the
    ///   election is free.
    /// - When it is asked to stop, [`Leadership::stopping`] fires inside; the
    ///   work may finish within the drain time.
    /// - When it returns, fails or panics, the term is released and then the
    ///   outcome reported.
    /// - What it spawned elsewhere keeps the term for as long as it has the
    ///   leadership (or a clone of it), within the drain, and must stop itself when
    ///   that says *stopping* or *lost*.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let done = tenure
    ///     .election("nightly-report")
    ///     .lead(|leadership| async move {
    ///         // … the work, with leadership.is_current() before each side effect
    ///         Ok::<_, std::io::Error>(leadership.token())
    ///     })
    ///     .await?;
    /// assert_eq!(done, 1);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn lead<T, E, F, Fut>(&self, work: F) -> Result<T, LeadError>
    where
        F: FnOnce(Leadership) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: Into<WorkError>,
    {
        let leadership = self.campaign().await.map_err(LeadError::Campaign)?;
        scope(leadership, work).await
    }

    /// Leads again and again: whenever this member is elected the work runs,
    /// and whenever the leadership is lost it is cancelled and the member
    /// stands again. Ends when the work breaks, fails or panics; and with `None` when the
    /// member is shut down, which is not an error.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use std::ops::ControlFlow;
    ///
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let mut reigns = 0;
    /// let last = tenure
    ///     .election("shard-7")
    ///     .lead_always(|leadership| {
    ///         reigns += 1;
    ///         let enough = reigns == 3;
    ///         async move {
    ///             let token = leadership.token();
    ///             Ok::<_, std::io::Error>(match enough {
    ///                 true => ControlFlow::Break(token),
    ///                 false => ControlFlow::Continue(()),
    ///             })
    ///         }
    ///     })
    ///     .await?;
    /// assert_eq!(last, Some(3));
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn lead_always<T, E, F, Fut>(&self, mut work: F) -> Result<Option<T>, LeadError>
    where
        F: FnMut(Leadership) -> Fut,
        Fut: Future<Output = Result<ControlFlow<T>, E>>,
        E: Into<WorkError>,
    {
        loop {
            let leadership = match self.campaign().await {
                Ok(leadership) => leadership,
                Err(Error::ShutDown) => return Ok(None),
                Err(error) => return Err(LeadError::Campaign(error)),
            };
            match scope(leadership, &mut work).await {
                Ok(ControlFlow::Break(done)) => return Ok(Some(done)),
                Ok(ControlFlow::Continue(())) | Err(LeadError::Lost(_)) => {}
                Err(other) => return Err(other),
            }
        }
    }

    /// Runs the work only if this process leads the election right now, under a
    /// campaign that is under way elsewhere in it. `None` if it does not lead, is
    /// asked to stop leading, or lost the leadership meanwhile.
    ///
    /// The work keeps the term: asked to step down, [`Leadership::stopping`] fires
    /// inside, and the term is released when the work has ended, or when the drain is
    /// over. It is cancelled (its future is dropped) the moment the leadership is
    /// lost.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let election = tenure.election("cron");
    /// assert_eq!(election.run_if_leader(|_| async { 1 }).await, None);
    /// let _leadership = election.campaign().await?;
    /// let token = election.run_if_leader(|leadership| async move { leadership.token() });
    /// assert_eq!(token.await, Some(1));
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn run_if_leader<T, F, Fut>(&self, work: F) -> Option<T>
    where
        F: FnOnce(Leadership) -> Fut,
        Fut: Future<Output = T>,
    {
        let leadership = self.hold_to_begin()?;
        let work = work(leadership.clone());
        tokio::select! {
            biased;
            _ = leadership.lost() => None,
            done = work => Some(done),
        }
    }
}

/// Runs the work under the leadership and settles both.
async fn scope<T, E, F, Fut>(leadership: Leadership, work: F) -> Result<T, LeadError>
where
    F: FnOnce(Leadership) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    E: Into<WorkError>,
{
    let term = leadership.number().get();
    let span =
        tracing::info_span!(target: "tenure", "lead", election = %leadership.term().election, term);
    // A hold of the work's own: whatever it moves that into keeps the term.
    let Some(held) = leadership.hold() else {
        // Lost already, or given up by other work of this process.
        drop(leadership.give_up(None).await);
        return Err(LeadError::Lost(leadership.lost().await));
    };
    match run(held, work).instrument(span).await {
        Ended::Lost(reason) => {
            // The work is dropped by now: the store may know. This hold says so
            // when it goes, unless the work moved its own elsewhere.
            drop(leadership);
            Err(LeadError::Lost(reason))
        }
        Ended::Done(outcome) => {
            let unconfirmed = leadership.give_up(None).await.err();
            if let Some(error) = unconfirmed {
                tracing::warn!(target: "tenure", %error, "the term is not confirmed as released");
            }
            match outcome {
                Ok(Ok(done)) => Ok(done),
                Ok(Err(error)) => Err(LeadError::Work(error.into())),
                Err(panic) => Err(LeadError::Panicked(panic_text(&*panic))),
            }
        }
    }
}

/// How work under a leadership ended.
pub(crate) enum Ended<T> {
    Lost(LostReason),
    /// By itself, or with a panic.
    Done(Result<T, Box<dyn Any + Send>>),
}

/// Runs the work until it ends or the leadership is lost; the work's future is
/// dropped when this returns, and so is the hold, unless the work kept it.
pub(crate) async fn run<T, F, Fut>(leadership: Leadership, work: F) -> Ended<T>
where
    F: FnOnce(Leadership) -> Fut,
    Fut: Future<Output = T>,
{
    let made = catch_unwind(AssertUnwindSafe(|| work(leadership.clone())));
    let work = match made {
        Ok(work) => work,
        Err(panic) => return Ended::Done(Err(panic)),
    };
    tokio::select! {
        biased;
        reason = leadership.lost() => Ended::Lost(reason),
        outcome = Caught(Box::pin(work)) => Ended::Done(outcome),
    }
}

/// A future whose panic is its output.
struct Caught<F>(Pin<Box<F>>);

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "with something that is not text".to_owned()
    }
}
