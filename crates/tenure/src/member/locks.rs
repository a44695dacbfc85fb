//! A lock and a semaphore over elections.
//!
//! A lock is an election that is campaigned for as long as it takes; a semaphore is several,
//! its places. What must stay true:
//!
//! - **A member stands for each election once.** Tasks of one member wait for each other
//!   in line, in [`Turns`], and only the first of the line campaigns. Who is served is out of
//!   the line when the place is given back, not before.
//! - **A line is never blocked by a task that left it.** A permit of the line goes with the place,
//!   also when the future that waits is dropped.
//! - **A task that waits stands for one place.** It stands for the one with the shortest line,
//!   and goes to another only if that is free and has no candidates. So a place that is
//!   given back goes to a task that stands for it, and not to a crowd.
//! - **Requests are bounded.** Beside its candidacy, a task that waits reads the places once when
//!   a hint says that one of them is free, a hundred milliseconds apart at least, and once in
//!   a ttl.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{ElectionName, ElectionView, Hint, LostReason, Query};
use tokio::sync::{OwnedSemaphorePermit, Semaphore as Line};

use crate::feed::Hints;
use crate::member::Shared;
use crate::{Attempt, Election, Error, Leadership, Result, Tenure};

/// How far looks that hints cause are apart, at least.
const PACE: Duration = Duration::from_millis(100);
/// The most places of a semaphore: they are read together.
const MOST: usize = 1_000;

impl Tenure {
    /// A lock that one task of one process has at a time: the election of this name, with a
    /// line for the tasks of this member. See [`Lock`].
    #[must_use]
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock { places: Places::new(self.shared.clone(), name.as_ref(), None) }
    }

    /// A semaphore that `places` tasks of all processes have at a time: the elections
    /// `name/0`, `name/1`, and so on. See [`Semaphore`].
    #[must_use]
    pub fn semaphore(&self, name: impl AsRef<str>, places: usize) -> Semaphore {
        Semaphore { places: Places::new(self.shared.clone(), name.as_ref(), Some(places)) }
    }
}

/// A lock among processes, made by [`Tenure::lock`]: a mutual exclusion that a crash, a pause
/// or a cut connection ends, as it ends a leadership. So each time it is taken it has a
/// [token](Place::token), and what it protects should refuse an older one.
///
/// Processes are served in the order in which they began to wait, nearly; tasks of one
/// member in exactly that order, one after the other.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let lock = tenure.lock("accounts/7");
///
/// let place = lock.take().await?;
/// assert!(lock.try_take().await?.is_none(), "also from another task of this process");
/// // … with place.is_current() before each side effect, and place.token() with each write
/// place.release().await?;
///
/// let again = lock.try_take().await?.ok_or("it is free")?;
/// assert_eq!(again.token(), 2);
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    places: Places,
}

impl Lock {
    /// Waits until it is free and takes it. Drop the future to stop waiting.
    pub async fn take(&self) -> Result<Place> {
        self.places.take().await
    }

    /// The same for at most this long; [`Error::NotElected`] after it.
    pub async fn take_timeout(&self, limit: Duration) -> Result<Place> {
        self.places.take_timeout(limit).await
    }

    /// Takes it if it is free now; `None` if it is not.
    pub async fn try_take(&self) -> Result<Option<Place>> {
        self.places.try_take().await
    }
}

/// A semaphore among processes, made by [`Tenure::semaphore`]: no more than so many have a
/// place at a time. A place is an election, with what that means for a crash: it is free
/// when its holder's ttl has run out, and its [token](Place::token) tells a late holder of
/// **this place** from the next.
///
/// Give the same number of places everywhere. A task that waits stands for one of them, the one
/// with the fewest before it, and goes to another that is free and has no candidates.
/// That is fair enough, not exactly so: who came later may be served earlier at another place.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let licences = tenure.semaphore("licences", 2);
/// let first = licences.take().await?;
/// let second = licences.take().await?;
/// assert_ne!(first.index(), second.index());
/// assert!(licences.try_take().await?.is_none());
/// drop(first);
/// let third = licences.take().await?;
/// assert!(third.token() > 1 && second.is_current());
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    places: Places,
}

impl Semaphore {
    /// Waits until a place is free and takes it. Drop the future to stop waiting.
    pub async fn take(&self) -> Result<Place> {
        self.places.take().await
    }

    /// The same for at most this long; [`Error::NotElected`] after it.
    pub async fn take_timeout(&self, limit: Duration) -> Result<Place> {
        self.places.take_timeout(limit).await
    }

    /// Takes a place if one is free now; `None` if none is.
    pub async fn try_take(&self) -> Result<Option<Place>> {
        self.places.try_take().await
    }
}

/// What was taken of a [`Lock`] or a [`Semaphore`]. It is given back when it is dropped.
///
/// It is lost as a leadership is: when it is not renewed in time, for one. What is done after
/// that may be done beside the next holder: watch [`lost`](Self::lost), ask
/// [`is_current`](Self::is_current) before each side effect, and give the token to what can
/// refuse an older one, or [fence](Leadership::fence) the transaction with
/// [`leadership`](Self::leadership).
#[must_use = "dropping it gives the place back"]
pub struct Place {
    /// Dropped first: the term is given back before the next of the line stands for it.
    leadership: Leadership,
    index: usize,
    _busy: Busy,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// The fencing token: it rises each time this place is taken.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.leadership.token()
    }

    /// Which place of the semaphore it is; 0 of a lock.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether it is held at this very instant.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.leadership.is_current()
    }

    /// Returns once it is lost, and why. Fires without any request to the store.
    pub async fn lost(&self) -> LostReason {
        self.leadership.lost().await
    }

    /// The leadership that it is: to fence a transaction, to hand on a
    /// [cancellation](Leadership::cancellation), or to hear that an operator asks for it back.
    #[must_use]
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Gives it back, and returns once the store has confirmed it.
    pub async fn release(self) -> Result<()> {
        self.leadership.give_up(None).await
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Place");
        shown.field("term", self.leadership.term()).field("index", &self.index);
        shown.finish_non_exhaustive()
    }
}

/// The elections of a lock or a semaphore.
#[derive(Clone)]
struct Places {
    shared: Arc<Shared>,
    elections: Result<Arc<[ElectionName]>, Arc<Refused>>,
    line: Arc<Line>,
}

/// Why there are no such places.
enum Refused {
    Name(tenure_core::BadName),
    Count(usize),
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.elections {
            Ok(elections) => f.debug_list().entries(elections.iter()).finish(),
            Err(_) => f.write_str("refused"),
        }
    }
}

impl Places {
    /// `count` is `None` for a lock, whose one election has its very name.
    fn new(shared: Arc<Shared>, name: &str, count: Option<usize>) -> Self {
        let names = match count {
            None => ElectionName::new(name).map(|name| vec![name]),
            Some(count) => {
                let names = (0..count.min(MOST)).map(|i| ElectionName::new(format!("{name}/{i}")));
                names.collect()
            }
        };
        let elections = match (names, count) {
            (Ok(_), Some(count)) if count == 0 || count > MOST => Err(Refused::Count(count)),
            (names, _) => names.map(Arc::from).map_err(Refused::Name),
        };
        let line = shared.turns.line(name, count.unwrap_or(1));
        Self { shared, elections: elections.map_err(Arc::new), line }
    }

    fn elections(&self) -> Result<&[ElectionName]> {
        self.elections.as_deref().map_err(|refused| match &**refused {
            Refused::Name(bad) => Error::Name(bad.clone()),
            Refused::Count(count) => Error::Places { count: *count, most: MOST },
        })
    }

    async fn take_timeout(&self, limit: Duration) -> Result<Place> {
        let elections = self.elections()?;
        let runtime = self.shared.client.runtime();
        if let Some(taken) = self.shared.time.within_on(runtime, limit, self.take()).await {
            return taken;
        }
        let because = self.shared.board.health().last_error.clone();
        Err(Error::NotElected { election: elections[0].clone(), waited: limit, because })
    }

    async fn try_take(&self) -> Result<Option<Place>> {
        let elections = self.elections()?;
        let Ok(permit) = self.line.clone().try_acquire_owned() else { return Ok(None) };
        let views = self.look(elections).await?;
        for index in self.in_order(&views, |view| view.holder.is_none()) {
            let Some(busy) = self.shared.turns.reserve(&elections[index]) else { continue };
            if let Attempt::Elected(leadership) = self.election(index).try_campaign().await? {
                return Ok(Some(Place { leadership, index, _busy: busy, _permit: permit }));
            }
        }
        Ok(None)
    }

    async fn take(&self) -> Result<Place> {
        let elections = self.elections()?;
        // The line is never closed.
        let permit = self.line.clone().acquire_owned().await.map_err(|_| Error::ShutDown)?;
        // Followed before the first look, so that no change falls between.
        let mut hints = self.shared.client.feed()?.hints()?;
        loop {
            let (index, busy) = self.choose(elections).await?;
            let election = self.election(index);
            tokio::select! {
                biased;
                leadership = election.campaign() => {
                    let leadership = leadership?;
                    return Ok(Place { leadership, index, _busy: busy, _permit: permit });
                }
                // The campaign is dropped, which withdraws it.
                () = self.another_is_free(elections, index, &mut hints) => {}
            }
        }
    }

    /// The place to stand for: one that is free, or else the one with the shortest line.
    async fn choose(&self, elections: &[ElectionName]) -> Result<(usize, Busy)> {
        if let [only] = elections {
            let busy = self.shared.turns.reserve(only);
            return busy.map(|busy| (0, busy)).ok_or(Error::AlreadyStanding(only.clone()));
        }
        let views = match self.look(elections).await {
            Ok(views) => views,
            Err(Error::ShutDown) => return Err(Error::ShutDown),
            // The campaign waits for the store; any place will do.
            Err(_) => elections.iter().cloned().map(ElectionView::vacant).collect(),
        };
        for index in self.in_order(&views, |_| true) {
            if let Some(busy) = self.shared.turns.reserve(&elections[index]) {
                return Ok((index, busy));
            }
        }
        // This member has more in hand than the line says: another number of places.
        Err(Error::AlreadyStanding(elections[0].clone()))
    }

    /// The places that are wanted: free ones first, then those with the fewest candidates;
    /// among equals in an order of this member's own, so that not all begin with the same.
    fn in_order(
        &self,
        views: &[ElectionView],
        wanted: impl Fn(&ElectionView) -> bool,
    ) -> Vec<usize> {
        let mine = self.shared.ticket() as usize + self.shared.client.id().as_str().len();
        let turned = |index: usize| (index + mine) % views.len();
        let mut order: Vec<usize> = (0..views.len()).map(turned).collect();
        order.retain(|index| wanted(&views[*index]));
        order.sort_by_key(|index| {
            let view = &views[*index];
            (view.holder.is_some(), view.candidates.len())
        });
        order
    }

    /// Returns when another place than this one is free and has no candidates.
    async fn another_is_free(&self, elections: &[ElectionName], index: usize, hints: &mut Hints) {
        if elections.len() == 1 {
            return std::future::pending().await;
        }
        let runtime = self.shared.client.runtime();
        let every = self.shared.client.settings().ttl();
        loop {
            let hinted = until_one_may_be_free(elections, hints);
            let _ = self.shared.time.within_on(runtime, every, hinted).await;
            // Those who stand for it come first.
            self.shared.time.sleep_on(runtime, PACE).await;
            let Ok(views) = self.look(elections).await else { continue };
            let free = |view: &ElectionView| {
                let is_mine = view.election == elections[index];
                !is_mine && view.holder.is_none() && view.candidates.is_empty()
            };
            // One that has become vacant under this candidacy is won by it.
            let stands = views.get(index).is_none_or(|view| view.holder.is_some());
            if stands && views.iter().any(free) {
                return;
            }
        }
    }

    async fn look(&self, elections: &[ElectionName]) -> Result<Vec<ElectionView>> {
        let query = Query { candidates: true, ..Query::elections(elections.iter().cloned()) };
        let mut views = self.shared.client.read(query).await?.elections;
        // In the order of the places, whatever order the store answers in.
        let at: HashMap<_, _> = elections.iter().enumerate().map(|(i, name)| (name, i)).collect();
        views.sort_by_key(|view| at.get(&view.election).copied());
        Ok(views)
    }

    fn election(&self, index: usize) -> Election {
        let name = self.elections().map(|elections| elections[index].clone());
        match name {
            Ok(name) => Election::new(self.shared.clone(), Ok(name)),
            Err(_) => Election::new(self.shared.clone(), ElectionName::new("")),
        }
    }
}

/// Waits for a hint after which one of these elections may be free.
async fn until_one_may_be_free(elections: &[ElectionName], hints: &mut Hints) {
    loop {
        match hints.next().await {
            Hint::Anything | Hint::Gone(_) => return,
            Hint::Vacant { election, .. } if elections.contains(&election) => return,
            _ => {}
        }
    }
}

/// Who of this member is in line for what.
#[derive(Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    lines: HashMap<(String, usize), Weak<Line>>,
    /// The elections that are stood for, or held, from here.
    busy: HashSet<ElectionName>,
}

impl Turns {
    /// The line for so many places of this name.
    fn line(&self, name: &str, places: usize) -> Arc<Line> {
        let mut lines = lock(&self.0);
        lines.lines.retain(|_, line| line.strong_count() > 0);
        let key = (name.to_owned(), places);
        if let Some(line) = lines.lines.get(&key).and_then(Weak::upgrade) {
            return line;
        }
        let line = Arc::new(Line::new(places.min(MOST)));
        lines.lines.insert(key, Arc::downgrade(&line));
        line
    }

    /// Keeps others of this member from standing for the same election.
    fn reserve(&self, election: &ElectionName) -> Option<Busy> {
        let is_free = lock(&self.0).busy.insert(election.clone());
        is_free.then(|| Busy { lines: self.0.clone(), election: election.clone() })
    }
}

/// An election that this member stands for or holds by a lock or a semaphore.
struct Busy {
    lines: Arc<Mutex<Lines>>,
    election: ElectionName,
}

impl Drop for Busy {
    fn drop(&mut self) {
        lock(&self.lines).busy.remove(&self.election);
    }
}

fn lock(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}
