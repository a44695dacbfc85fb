//! For programs without async: the same member, whose calls block the thread that makes them.
//!
//! The heartbeat runs on the member's own thread all the same, so that a thread that works or
//! sleeps costs no leadership. What runs under a leadership cannot be cancelled from outside,
//! as a future can: a thread asks [`is_current`](crate::Leadership::is_current) before each
//! side effect and [`is_stopping`](crate::Leadership::is_stopping) between two items.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tenure::blocking::Tenure;
//!
//! let tenure = Tenure::connect("memory:")?;
//! let election = tenure.election("nightly");
//! let sent = election.lead(|leadership| {
//!     let mut sent = 0;
//!     for _item in 0..3 {
//!         if leadership.is_stopping() {
//!             break;
//!         }
//!         // … one item, with leadership.token(), or fenced by fence_blocking
//!         sent += 1;
//!     }
//!     Ok::<_, std::io::Error>(sent)
//! })?;
//! assert_eq!(sent, 3);
//! assert_eq!(tenure.shutdown()?, tenure::Left::Confirmed);
//! # Ok(())
//! # }
//! ```
//!
//! Do not call it from a task of an async program: it blocks the executor's thread, and with
//! it perhaps what it waits for. [`Tenure::asynchronous`] has the async handle of the same
//! member, with everything that has no blocking form here; [`block_on`] runs its futures.
//!
//! A fence in a transaction of rusqlite is
//! [`fence_blocking`](crate::Leadership::fence_blocking). For a blocking driver of
//! PostgreSQL there is none: call the SQL function `fence` in the transaction (docs/sql.md).

use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tenure_core::LostReason;

use crate::{Builder, LeadError, Left, Observation, Result, Stopping, WorkError};

/// Runs a future to its end on this thread, which sleeps while nothing can be done. Every
/// future of this crate may be run so.
///
/// ```
/// # fn main() -> tenure::Result<()> {
/// let tenure = tenure::blocking::Tenure::connect("memory:")?;
/// let names = tenure.asynchronous().names();
/// let all = tenure::naming::WhichNames::Prefix(String::new());
/// let read = tenure::blocking::block_on(names.read(all))?;
/// assert!(read.bindings.is_empty());
/// # Ok(())
/// # }
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        // A wake between the poll and the sleep is kept: the sleep returns at once.
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A member, whose calls block. Clones are the same member.
#[derive(Clone, Debug)]
pub struct Tenure {
    inner: crate::Tenure,
}

impl Tenure {
    /// Connects to a store with the default options.
    pub fn connect(url: impl AsRef<str>) -> Result<Self> {
        Self::with(crate::Tenure::builder(url))
    }

    /// Connects with these options.
    ///
    /// ```
    /// # fn main() -> tenure::Result<()> {
    /// use tenure::blocking::Tenure;
    ///
    /// let options = tenure::Tenure::builder("memory:").namespace("billing").id("web-1");
    /// let tenure = Tenure::with(options)?;
    /// assert_eq!(tenure.asynchronous().id().as_str(), "web-1");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with(options: Builder) -> Result<Self> {
        Ok(Self { inner: block_on(options.connect())? })
    }

    /// An election of the member's namespace.
    #[must_use]
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election { inner: self.inner.election(name) }
    }

    /// The async handle of the same member.
    #[must_use]
    pub fn asynchronous(&self) -> &crate::Tenure {
        &self.inner
    }

    /// Stops in order: see [`Tenure::shutdown`](crate::Tenure::shutdown).
    pub fn shutdown(&self) -> Result<Left> {
        block_on(self.inner.shutdown())
    }
}

impl From<crate::Tenure> for Tenure {
    fn from(inner: crate::Tenure) -> Self {
        Self { inner }
    }
}

/// An election, whose calls block.
#[derive(Clone, Debug)]
pub struct Election {
    inner: crate::Election,
}

impl Election {
    /// Stands with this priority: see [`Election::priority`](crate::Election::priority).
    #[must_use]
    pub fn priority(self, level: u16) -> Self {
        Self { inner: self.inner.priority(level) }
    }

    /// The async handle of the same election.
    #[must_use]
    pub fn asynchronous(&self) -> &crate::Election {
        &self.inner
    }

    /// Waits until this member leads.
    pub fn campaign(&self) -> Result<Leadership> {
        Ok(Leadership { inner: block_on(self.inner.campaign())? })
    }

    /// Waits until this member leads, for at most this long.
    pub fn campaign_timeout(&self, limit: Duration) -> Result<Leadership> {
        Ok(Leadership { inner: block_on(self.inner.campaign_timeout(limit))? })
    }

    /// Leads if the election is free now: see
    /// [`Election::try_campaign`](crate::Election::try_campaign).
    pub fn try_campaign(&self) -> Result<crate::Attempt> {
        block_on(self.inner.try_campaign())
    }

    /// Waits until this member leads, runs the work on this thread, and gives the term back.
    ///
    /// Asked to stop, the work has the drain to end in. A term that was lost while the work
    /// ran is [`LeadError::Lost`], whatever the work answered: what it did last may have been
    /// done beside another leader. If the work panics, the term is given back first.
    pub fn lead<T, E: Into<WorkError>>(
        &self,
        work: impl FnOnce(&Leadership) -> Result<T, E>,
    ) -> Result<T, LeadError> {
        // Dropped on a panic, which gives the term back.
        let leadership = self.campaign().map_err(LeadError::Campaign)?;
        let done = work(&leadership);
        let lost = leadership.lost_by_now();
        if let Err(error) = leadership.resign() {
            tracing::warn!(target: "tenure", %error, "the term is not confirmed as released");
        }
        match lost {
            Some(reason) => Err(LeadError::Lost(reason)),
            None => done.map_err(|error| LeadError::Work(error.into())),
        }
    }

    /// Follows the election without standing for it: an iterator that begins with the present
    /// state, waits for each change, and ends once the member is shut down.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tenure::Observed;
    ///
    /// let tenure = tenure::blocking::Tenure::connect("memory:")?;
    /// let election = tenure.election("nightly");
    /// let _leadership = election.campaign()?;
    /// for seen in election.observe()? {
    ///     if let Observed::Leads { term, .. } = seen.observed {
    ///         assert_eq!(term.number.get(), 1);
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&self) -> Result<Observer> {
        Ok(Observer { inner: self.inner.observe()? })
    }
}

/// One term, held by this process: a [`crate::Leadership`], with calls that block beside those
/// that need not wait.
#[derive(Clone, Debug)]
pub struct Leadership {
    inner: crate::Leadership,
}

impl Leadership {
    /// Sleeps until the term is lost, and says why.
    #[must_use]
    pub fn wait_until_lost(&self) -> LostReason {
        block_on(self.inner.lost())
    }

    /// Sleeps until the work should stop, and says why.
    #[must_use]
    pub fn wait_until_stopping(&self) -> Stopping {
        block_on(self.inner.stopping())
    }

    /// Sleeps for this long, or until the work should stop: then the answer is why. For a
    /// loop that works now and then.
    ///
    /// ```
    /// # fn main() -> tenure::Result<()> {
    /// use std::time::Duration;
    ///
    /// let tenure = tenure::blocking::Tenure::connect("memory:")?;
    /// let leadership = tenure.election("cron").campaign()?;
    /// assert!(leadership.pause(Duration::from_millis(5)).is_none());
    /// leadership.stop()?;
    /// assert!(leadership.pause(Duration::from_secs(60)).is_some());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn pause(&self, span: Duration) -> Option<Stopping> {
        let shared = self.inner.shared();
        let runtime = shared.client.runtime();
        block_on(shared.time.within_on(runtime, span, self.inner.stopping()))
    }

    /// Gives the term up, and returns once the store has confirmed it.
    pub fn resign(self) -> Result<()> {
        block_on(self.inner.resign())
    }

    /// Why the term is lost, if it is at this instant.
    fn lost_by_now(&self) -> Option<LostReason> {
        // Trust that has ended is told by the member's thread at that very moment.
        (!self.inner.is_current()).then(|| self.wait_until_lost())
    }
}

impl Deref for Leadership {
    type Target = crate::Leadership;

    fn deref(&self) -> &crate::Leadership {
        &self.inner
    }
}

impl From<crate::Leadership> for Leadership {
    fn from(inner: crate::Leadership) -> Self {
        Self { inner }
    }
}

/// An iterator over what is observed, made by [`Election::observe`].
#[derive(Debug)]
#[must_use = "an iterator does nothing unless it is asked"]
pub struct Observer {
    inner: crate::Observer,
}

impl Iterator for Observer {
    type Item = Observation;

    fn next(&mut self) -> Option<Observation> {
        block_on(self.inner.next())
    }
}
