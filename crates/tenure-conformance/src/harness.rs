//! How the suite gets at a store and at its time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_store::{BootClock, Clock, ManualClock, SharedStore};

/// One fresh, empty backend, and the time that passes for it.
///
/// Every case gets a harness of its own, so a harness **is** a backend: a new
/// file, a new schema, a new key prefix. Nothing another case did may be seen in
/// it.
#[async_trait]
pub trait Harness: Send + Sync {
    /// One more handle on this backend, as one more process would have: its own
    /// connection, its own memory of what it saw. A handle that cannot be opened
    /// is a panic: there is nothing to test.
    async fn open(&self) -> SharedStore;

    /// Lets time pass for the stores: moves their clock, or waits.
    async fn pass(&self, time: Duration);

    /// The clock that [`pass`](Self::pass) moves on, for measuring how long the
    /// store itself took.
    fn clock(&self) -> Arc<dyn Clock>;

    /// The length of the short lives in the cases; everything else that takes
    /// time is stated in parts and multiples of it. Long enough for a handful of
    /// requests, short enough to be waited out: 300 ms for a real server, anything
    /// where the clock is moved by hand.
    fn unit(&self) -> Duration;

    /// How many journal entries the backend keeps in one namespace, for the case
    /// that overruns it; a few hundred at most. `None` for a store without a
    /// journal, or one that never drops an entry: then that is what the case
    /// checks.
    fn journal_bound(&self) -> Option<usize>;
}

/// A harness for stores that take a [`Clock`]: time passes by hand, and a suite
/// of lifetimes takes no time.
///
/// ```
/// use std::sync::Arc;
/// use tenure_conformance::ManualHarness;
/// use tenure_store::{ManualClock, MemoryStore};
///
/// let clock = Arc::new(ManualClock::new());
/// let store = MemoryStore::keeping(clock.clone(), 200);
/// let harness = ManualHarness::new(clock, move || store.clone().shared()).keeping(200);
/// # let _ = harness;
/// ```
pub struct ManualHarness {
    clock: Arc<ManualClock>,
    open: Box<dyn Fn() -> SharedStore + Send + Sync>,
    journal_bound: Option<usize>,
}

impl ManualHarness {
    /// A backend on `clock`; `open` gives one more handle on it.
    pub fn new(
        clock: Arc<ManualClock>,
        open: impl Fn() -> SharedStore + Send + Sync + 'static,
    ) -> Self {
        Self { clock, open: Box::new(open), journal_bound: None }
    }

    /// The backend keeps `bound` journal entries.
    #[must_use]
    pub fn keeping(mut self, bound: usize) -> Self {
        self.journal_bound = Some(bound);
        self
    }
}

#[async_trait]
impl Harness for ManualHarness {
    async fn open(&self) -> SharedStore {
        (self.open)()
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
        // A task that waits on the clock gets its turn.
        tokio::task::yield_now().await;
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    fn unit(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn journal_bound(&self) -> Option<usize> {
        self.journal_bound
    }
}

impl fmt::Debug for ManualHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualHarness").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// A harness for stores whose clock is the world's: time passes by waiting.
/// `open` may block the thread it runs on for as long as connecting takes.
pub struct RealTimeHarness {
    unit: Duration,
    open: Box<dyn Fn() -> SharedStore + Send + Sync>,
    journal_bound: Option<usize>,
}

impl RealTimeHarness {
    /// A backend whose short lives last `unit`; `open` gives one more handle.
    pub fn new(unit: Duration, open: impl Fn() -> SharedStore + Send + Sync + 'static) -> Self {
        Self { unit, open: Box::new(open), journal_bound: None }
    }

    /// The backend keeps `bound` journal entries.
    #[must_use]
    pub fn keeping(mut self, bound: usize) -> Self {
        self.journal_bound = Some(bound);
        self
    }
}

#[async_trait]
impl Harness for RealTimeHarness {
    async fn open(&self) -> SharedStore {
        (self.open)()
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(BootClock)
    }

    fn unit(&self) -> Duration {
        self.unit
    }

    fn journal_bound(&self) -> Option<usize> {
        self.journal_bound
    }
}

impl fmt::Debug for RealTimeHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealTimeHarness").field("unit", &self.unit).finish_non_exhaustive()
    }
}

/// The pause before something is asked again that another task has to allow first. The suite
/// lets real time pass here and in [`RealTimeHarness`] alone: `cargo xtask tidy` sees to it.
pub(crate) async fn ask_again_in(pause: Duration) {
    tokio::time::sleep(pause).await;
}
