//! Callbacks that are awaited: for programs that start and stop something when they
//! begin and cease to lead.
//!
//! What must stay true, for each term of which `on_elected` was told:
//!
//! - `on_stopping` is told after `on_elected` has returned, and at most once; `on_lost`
//!   is told last, and exactly once, however the reign ends: also if a callback
//!   panics, and if the future of [`Callbacks::stand`] is dropped.
//! - On a planned stop the term is released after `on_lost` has returned. So a program
//!   that has no `on_stopping`, and stops its work in `on_lost`, is right too.
//! - At the end of trust `on_lost` is told without I/O: the callback that runs is
//!   dropped, and nothing is awaited in between.
//! - All of them run inside the future that the application polls, none on the
//!   driver's thread (F2).

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use tenure_core::{LostReason, StopReason, Term};
use tracing::Instrument;

use crate::member::lead::{Ended, panic_text, run};
use crate::{Election, Error, LeadError, Leadership, Stopping};

type Awaited = Pin<Box<dyn Future<Output = ()> + Send>>;
type OnElected = Box<dyn FnMut(Leadership) -> Awaited + Send>;
type OnStopping = Box<dyn FnMut(Leadership, StopReason) -> Awaited + Send>;
type OnLost = Box<dyn FnMut(&Term, LostReason) + Send>;
type Panic = Box<dyn Any + Send>;

impl Election {
    /// Begins a set of callbacks. `elected` is told each time this member is elected,
    /// and **starts** what is to run while it leads; it is awaited before anything else
    /// is told. Give the leadership to what it starts: the term is not released before
    /// that is dropped, within the drain.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// # let stage = tenure::testing::Stage::new();
    /// # let tenure = stage.connect("web-1").await?;
    /// use std::sync::{Arc, Mutex};
    ///
    /// let worker = Arc::new(Mutex::new(None));
    /// let (starts, stops) = (worker.clone(), worker.clone());
    /// let callbacks = tenure
    ///     .election("nightly")
    ///     .on_elected(move |leadership| {
    ///         let task = tokio::spawn(async move {
    ///             while !leadership.is_stopping() {
    ///                 // … one item
    /// #               tokio::task::yield_now().await;
    ///             }
    ///         });
    ///         *starts.lock().unwrap() = Some(task);
    ///         async {}
    ///     })
    ///     .on_stopping(|_leadership, why| async move {
    ///         println!("asked to stop: {why:?}"); // the term is kept while this runs
    ///     })
    ///     .on_lost(move |_term, _why| {
    ///         if let Some(task) = stops.lock().unwrap().take() {
    ///             task.abort(); // too late for anything else
    ///         }
    ///     });
    /// let standing = tokio::spawn(callbacks.stand());
    /// # stage.until_led("nightly").await;
    /// tenure.shutdown().await?; // stops, in order
    /// standing.await??;
    /// # Ok(()) })
    /// # }
    /// ```
    ///
    /// For those who know `LeaderCallbacks` of Kubernetes' client-go:
    ///
    /// | there | here |
    /// |---|---|
    /// | `OnStartedLeading(ctx)`, which runs for as long as it leads | the closure of [`lead_always`](Election::lead_always), or what `on_elected` spawns |
    /// | `ctx` is cancelled | [`Leadership::stopping`] (finish) and [`Leadership::lost`] (too late) |
    /// | `OnStoppedLeading()` | [`on_lost`](Callbacks::on_lost); on a planned stop it is told *before* the term is released |
    /// | `OnNewLeader(identity)` | [`Election::observe`] |
    /// | `ReleaseOnCancel` | always, and never before the work has ended or the drain is over |
    pub fn on_elected<F, Fut>(&self, mut elected: F) -> Callbacks
    where
        F: FnMut(Leadership) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Callbacks {
            election: self.clone(),
            elected: Box::new(move |leadership| Box::pin(elected(leadership))),
            stopping: Box::new(|_, _| Box::pin(async {})),
            lost: Box::new(|_, _| {}),
        }
    }
}

/// What to call when this member begins and ceases to lead an election: made by
/// [`Election::on_elected`], in force by [`stand`](Self::stand).
#[must_use = "nothing stands before `stand` is awaited"]
pub struct Callbacks {
    election: Election,
    elected: OnElected,
    stopping: OnStopping,
    lost: OnLost,
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks").field("election", &self.election).finish_non_exhaustive()
    }
}

impl Callbacks {
    /// Told when the work is to stop: an operator asked for a step-down, or the member
    /// shuts down. It is awaited, within the drain, before the term is released;
    /// the term is renewed meanwhile. It is dropped if the drain or the trust ends
    /// first, and then `on_lost` is told.
    pub fn on_stopping<F, Fut>(mut self, mut stopping: F) -> Self
    where
        F: FnMut(Leadership, StopReason) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.stopping = Box::new(move |leadership, why| Box::pin(stopping(leadership, why)));
        self
    }

    /// Told when a term is over, once for each `on_elected`, and last. It is not
    /// async, since there is no time for anything: on a planned stop it is told just
    /// before the term is released, and when trust ends, at that moment, with the
    /// margin left to stop in. Cancel what still runs.
    pub fn on_lost(mut self, lost: impl FnMut(&Term, LostReason) + Send + 'static) -> Self {
        self.lost = Box::new(lost);
        self
    }

    /// Stands for the election and calls back, again and again, until the member is
    /// shut down.
    ///
    /// A callback that panics ends it: those that are still due are told, the term is
    /// released, and the panic is the error. If the future is dropped, the callback
    /// that runs is dropped, `on_lost` is told, and the term is given up; what still
    /// has the leadership is told to stop, and keeps the term within the drain.
    pub async fn stand(mut self) -> Result<(), LeadError> {
        loop {
            let leadership = match self.election.campaign().await {
                Ok(leadership) => leadership,
                Err(Error::ShutDown) => return Ok(()),
                Err(error) => return Err(LeadError::Campaign(error)),
            };
            let election = &leadership.term().election;
            let term = leadership.number().get();
            let span = tracing::info_span!(target: "tenure", "lead", %election, term);
            let told = match leadership.hold_to_begin() {
                Some(held) => self.tell(held).instrument(span).await,
                // Asked to stop, or lost, before the application was told: nothing began.
                None => Ok(()),
            };
            if let Err(error) = leadership.give_up(None).await
                && !matches!(error, Error::ShutDown)
            {
                tracing::warn!(target: "tenure", %error, "the term is not confirmed as released");
            }
            told.map_err(|panic| LeadError::Panicked(panic_text(&*panic)))?;
        }
    }

    /// Tells of one reign, from its beginning to its end. The hold goes last.
    async fn tell(&mut self, held: Leadership) -> Result<(), Panic> {
        let mut end = TellLost { lost: &mut self.lost, held, told: false };
        let mut panicked = None;
        let elected = &mut self.elected;
        match run(end.held.clone(), elected).await {
            Ended::Lost(reason) => return end.tell(reason),
            Ended::Done(Ok(())) => {}
            Ended::Done(Err(panic)) => {
                panicked = Some(panic);
                // What it has started is stopped as on a request. Without a driver
                // the reign is over anyway.
                let _ = end.held.stop();
            }
        }
        let asked = match end.held.stopping().await {
            Stopping::Lost(reason) => return end.tell(reason).and(settled(panicked)),
            Stopping::Asked { reason, .. } => reason,
        };
        let orderly = match asked {
            StopReason::Asked { .. } => LostReason::SteppedDown,
            _ => LostReason::Resigned,
        };
        let stopping = &mut self.stopping;
        let reason = match run(end.held.clone(), |held| stopping(held, asked)).await {
            Ended::Lost(reason) => reason,
            Ended::Done(Ok(())) => orderly,
            Ended::Done(Err(panic)) => {
                panicked = panicked.or(Some(panic));
                orderly
            }
        };
        let told = end.tell(reason);
        settled(panicked).and(told)
    }
}

/// The first panic is the one to report.
fn settled(panicked: Option<Panic>) -> Result<(), Panic> {
    panicked.map_or(Ok(()), Err)
}

/// Tells the end of a reign once, also when it is dropped; its hold goes after that.
struct TellLost<'a> {
    lost: &'a mut OnLost,
    held: Leadership,
    told: bool,
}

impl TellLost<'_> {
    fn tell(&mut self, reason: LostReason) -> Result<(), Panic> {
        self.told = true;
        let lost = &mut self.lost;
        let term = self.held.term();
        catch_unwind(AssertUnwindSafe(|| lost(term, reason)))
    }
}

impl Drop for TellLost<'_> {
    fn drop(&mut self) {
        if !self.told
            && let Err(panic) = self.tell(LostReason::Resigned)
        {
            // There is no caller left to tell, and a panic in a drop may abort.
            let said = panic_text(&*panic);
            tracing::error!(target: "tenure", error = said, "on_lost panicked");
        }
    }
}
