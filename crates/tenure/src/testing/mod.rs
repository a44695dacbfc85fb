//! For tests of your own code: a stage on which leaderships are won and lost as
//! the test says, without waiting for anything.
//!
//! A [`Stage`] is a store in memory and a clock that moves only when it is told
//! to. The members on it are real: the same client, the same machine, a thread
//! of their own. Only time and trouble are the test's to decide.
//!
//! # How to test code that leads
//!
//! Write the code so that it is handed its [`Tenure`] or its [`Election`](crate::Election), and
//! hand it one from a stage:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! use tenure::testing::Stage;
//! use tenure::{Election, LeadError, LostReason};
//!
//! // The code under test: it works until it is lost or asked to stop.
//! async fn work(election: Election) -> Result<(), LeadError> {
//!     election
//!         .lead(|leadership| async move {
//!             leadership.stopping().await;
//!             Ok::<(), std::io::Error>(())
//!         })
//!         .await
//! }
//!
//! let stage = Stage::new();
//! let tenure = stage.connect("web-1").await?;
//!
//! // It stops when it is asked to, and the term is given back.
//! let works = tokio::spawn(work(tenure.election("nightly")));
//! stage.until_led("nightly").await;
//! stage.ask_to_step_down("nightly", "deploying").await?;
//! works.await??;
//! assert!(tenure.election("nightly").leader().await?.is_none());
//!
//! // It is cancelled when the leadership is taken away.
//! let works = tokio::spawn(work(tenure.election("hourly")));
//! stage.until_led("hourly").await;
//! stage.lose("hourly").await?;
//! assert!(matches!(works.await?, Err(LeadError::Lost(LostReason::Superseded))));
//! # Ok(()) })
//! # }
//! ```
//!
//! # Outages and time
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! use std::time::Duration;
//! use tenure::testing::Stage;
//!
//! let stage = Stage::new();
//! let tenure = stage.connect("web-1").await?;
//! let leadership = tenure.election("nightly").campaign().await?;
//!
//! // Hours pass in no time, and the leadership is renewed all along.
//! stage.advance(Duration::from_secs(3600)).await;
//! assert!(leadership.is_current());
//!
//! // A short outage costs nothing; a long one costs the leadership, on time.
//! stage.outage(true);
//! stage.advance(Duration::from_secs(5)).await;
//! assert!(leadership.is_current());
//! stage.advance(Duration::from_secs(5)).await;
//! assert!(!leadership.is_current());
//! assert!(tenure.status().failures > 0);
//! # Ok(()) })
//! # }
//! ```

mod faults;
mod paced;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{
    Amend, Amended, ElectionName, ElectionView, Holder, MemberId, Namespace, Note, Query,
    TermNumber,
};
use tenure_store::MemoryStore;

pub use tenure_store::{Clock, ManualClock};

pub use self::faults::{Counts, Fault, FaultyStore, HintFault, StoreVerb};
use self::paced::Paced;
use crate::member::Shared;
use crate::{Builder, Result, Tenure};

/// How long a member may put off looking at what it was given a hint of, so
/// that a storm of hints makes one look.
const SETTLES: Duration = Duration::from_millis(100);

/// A store in memory and a clock, both in the hands of a test. See the
/// [module](self) for how to use it. Clones are the same stage.
#[derive(Clone, Debug)]
pub struct Stage {
    clock: Arc<ManualClock>,
    paced: Paced,
    faults: FaultyStore,
    cast: Arc<Mutex<Cast>>,
    /// Where its own verbs look; if not said, wherever its members are.
    only: Option<Namespace>,
}

/// Who was on a stage.
#[derive(Debug, Default)]
struct Cast {
    members: Vec<Weak<Shared>>,
    /// Of all that ever were, in the order in which they came.
    namespaces: Vec<Namespace>,
}

impl Default for Stage {
    fn default() -> Self {
        Self::new()
    }
}

impl Stage {
    /// An empty stage.
    #[must_use]
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::new());
        let memory = MemoryStore::with_clock(clock.clone()).shared();
        let paced = Paced::new(memory, clock.clone());
        let faults = FaultyStore::new(Arc::new(paced.clone()));
        Self { clock, paced, faults, cast: Arc::default(), only: None }
    }

    /// The same stage, whose [`until_led`](Self::until_led), [`lose`](Self::lose),
    /// [`ask_to_step_down`](Self::ask_to_step_down), [`pause`](Self::pause) and so on
    /// are about this namespace alone. Without it they are about the first namespace of
    /// the stage's members in which a member leads that election or stands for it, so
    /// that it is needed only where two namespaces have elections of one name.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use tenure::testing::Stage;
    ///
    /// let stage = Stage::new();
    /// let here = stage.connect_with(|m| m.id("a").namespace("billing")).await?;
    /// let there = stage.connect_with(|m| m.id("b").namespace("shipping")).await?;
    /// let kept = here.election("nightly").campaign().await?;
    /// let lost = there.election("nightly").campaign().await?;
    /// stage.in_namespace("shipping")?.lose("nightly").await?;
    /// assert!(kept.is_current() && !lost.is_current());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn in_namespace(&self, namespace: impl Into<String>) -> Result<Self> {
        Ok(Self { only: Some(Namespace::new(namespace.into())?), ..self.clone() })
    }

    /// A member called `id` on this stage, with the default timings: a ttl of
    /// ten seconds.
    pub async fn connect(&self, id: &str) -> Result<Tenure> {
        self.connect_with(|member| member.id(id)).await
    }

    /// A member on this stage, with options.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use tenure::{Preset, testing::Stage};
    ///
    /// let stage = Stage::new();
    /// let tenure = stage.connect_with(|m| m.id("web-1").preset(Preset::Fast)).await?;
    /// assert_eq!(tenure.settings().ttl().as_secs(), 3);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn connect_with(&self, options: impl FnOnce(Builder) -> Builder) -> Result<Tenure> {
        let builder = Tenure::with_store(self.faults.shared());
        let tenure = options(builder).manual_clock(self.clock.clone()).connect().await?;
        let mut cast = self.cast();
        cast.members.retain(|member| member.strong_count() > 0);
        cast.members.push(Arc::downgrade(&tenure.shared));
        if !cast.namespaces.contains(tenure.namespace()) {
            cast.namespaces.push(tenure.namespace().clone());
        }
        drop(cast);
        Ok(tenure)
    }

    /// The store, with every fault it can be told to make, and its counts.
    #[must_use]
    pub fn faults(&self) -> &FaultyStore {
        &self.faults
    }

    /// The clock. Moving it by hand is a [`jump`](Self::jump).
    #[must_use]
    pub fn clock(&self) -> &Arc<ManualClock> {
        &self.clock
    }

    /// Begins or ends an outage: every request fails at once.
    pub fn outage(&self, on: bool) {
        self.faults.outage(on);
    }

    /// Makes every request take this long, by the stage's clock.
    pub fn slow(&self, by: Duration) {
        self.paced.slow(by);
    }

    /// Lets time pass in small steps, with everything done on time: heartbeats
    /// are sent and answered, ttls run out, campaigns bid.
    pub async fn advance(&self, by: Duration) {
        let mut left = by;
        self.settle().await;
        while left > Duration::ZERO {
            let step = left.min(self.step());
            self.clock.advance(step);
            self.settle().await;
            left -= step;
        }
    }

    /// Lets time pass all at once, as if the machine had been suspended or the
    /// process stopped: nothing was done in between.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// # let stage = tenure::testing::Stage::new();
    /// # let tenure = stage.connect("web-1").await?;
    /// let leadership = tenure.election("nightly").campaign().await?;
    /// stage.jump(std::time::Duration::from_secs(60));
    /// assert!(!leadership.is_current());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn jump(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// A step short enough for every member's shortest timing.
    fn step(&self) -> Duration {
        let heartbeats = self.members().into_iter().map(|m| m.client.settings().heartbeat() / 4);
        heartbeats.min().unwrap_or(Duration::from_secs(1)).max(Duration::from_millis(1))
    }

    fn members(&self) -> Vec<Arc<Shared>> {
        self.cast().members.iter().filter_map(Weak::upgrade).collect()
    }

    fn cast(&self) -> MutexGuard<'_, Cast> {
        self.cast.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once no member has anything to do before the clock moves on.
    ///
    /// What the members' threads do is waited for; what the application's own
    /// tasks make of it is theirs.
    pub async fn settle(&self) {
        let mut quiet = 0;
        while quiet < 3 {
            let before = self.faults.counts();
            for member in self.members() {
                member.idle().await;
            }
            tokio::task::yield_now().await;
            quiet = if self.faults.counts() == before { quiet + 1 } else { 0 };
        }
    }

    /// Waits until a member leads this election.
    pub async fn until_led(&self, election: impl AsRef<str>) -> Option<Holder> {
        let name = ElectionName::new(election).ok()?;
        loop {
            self.settle().await;
            if let Some(holder) = self.find(&name).await.1.and_then(|view| view.holder) {
                return Some(holder);
            }
        }
    }

    /// Takes the leadership of an election away from its leader, as when
    /// its member is ended behind its back; returns once it knows. `None` if
    /// the election is vacant.
    ///
    /// Like all that is asked of members here, it takes a tenth of a second by
    /// the stage's clock to arrive.
    pub async fn lose(&self, election: impl AsRef<str>) -> Result<Option<TermNumber>> {
        let name = ElectionName::new(election)?;
        let Some(view) = self.find(&name).await.1 else { return Ok(None) };
        let (Some(holder), number) = (view.holder, view.number) else { return Ok(None) };
        self.amend(&name, Amend::Evict { member: holder.member.id, now: true, by: note() }).await?;
        Ok(Some(number))
    }

    /// Asks the leader of an election to step down.
    pub async fn ask_to_step_down(
        &self,
        election: impl AsRef<str>,
        reason: impl AsRef<str>,
    ) -> Result<Amended> {
        let election = ElectionName::new(election)?;
        let number = None;
        let to = None;
        let reason = Note::new(reason);
        let by = note();
        let name = election.clone();
        self.amend(&name, Amend::StepDown { election, number, to, reason, by }).await
    }

    /// Asks the leader of an election to hand over to the candidate `to`.
    pub async fn ask_to_hand_over(
        &self,
        election: impl AsRef<str>,
        to: &MemberId,
    ) -> Result<Amended> {
        let election = ElectionName::new(election)?;
        let number = None;
        let to = Some(to.clone());
        let reason = Note::default();
        let by = note();
        let name = election.clone();
        self.amend(&name, Amend::StepDown { election, number, to, reason, by }).await
    }

    /// No member is newly elected until [`resume`](Self::resume).
    pub async fn pause(&self, election: impl AsRef<str>) -> Result<Amended> {
        let election = ElectionName::new(election)?;
        let reason = Note::default();
        let by = note();
        let name = election.clone();
        self.amend(&name, Amend::Pause { election, reason, by }).await
    }

    /// Lifts a pause.
    pub async fn resume(&self, election: impl AsRef<str>) -> Result<Amended> {
        let election = ElectionName::new(election)?;
        let by = note();
        let name = election.clone();
        self.amend(&name, Amend::Resume { election, by }).await
    }

    /// The test's own requests meet no faults and no delay, and are not
    /// counted.
    async fn amend(&self, election: &ElectionName, amend: Amend) -> Result<Amended> {
        let (ns, _) = self.find(election).await;
        let amended = self.paced.inner().amend(&ns, &amend).await?;
        self.advance(SETTLES).await;
        Ok(amended)
    }

    /// The namespace that a verb about this election is about, and what is known of
    /// the election there.
    async fn find(&self, election: &ElectionName) -> (Namespace, Option<ElectionView>) {
        let all = match &self.only {
            Some(only) => vec![only.clone()],
            None => self.cast().namespaces.clone(),
        };
        let mut first = None;
        for ns in all {
            let query = Query { candidates: true, ..Query::elections([election.clone()]) };
            let read = self.paced.inner().read(&ns, &query).await.ok();
            let view = read.and_then(|snapshot| snapshot.elections.into_iter().next());
            if view.as_ref().is_some_and(|v| v.holder.is_some() || !v.candidates.is_empty()) {
                return (ns, view);
            }
            first.get_or_insert((ns, view));
        }
        first.unwrap_or_default()
    }
}

/// Who asks, in the journal.
fn note() -> Note {
    Note::new("the test")
}
