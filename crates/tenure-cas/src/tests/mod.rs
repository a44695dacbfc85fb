//! Scripts over the memory register, with a clock for each observer. Every
//! verb but `follow` is polled once, without a runtime, and must be ready.

mod ending;
mod eras;
mod follow;
mod judging;
mod load;
mod many;
mod members;
mod names;
mod names_cost;
mod namesakes;
mod operators;
mod races;
mod records;
mod told;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use tenure_core::*;

use super::*;
use tenure_store::{Error, ErrorKind, ManualClock, Result, Store};
use tenure_testkit::requests::{election as named, member, ns};

const TTL: Duration = Duration::from_secs(10);
/// What others wait: [`TTL`], a thousandth for drift, and a fortieth.
const WIDE: Duration = Duration::from_millis(10_260);
const NS: Duration = Duration::from_nanos(1);
const HEIR_GRACE: Duration = Duration::from_millis(200);

fn ready<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("the memory register is ready at once")
}

fn options() -> CasOptions {
    CasOptions { listing_age: Duration::ZERO, seed: 7, ..CasOptions::default() }
}

/// What happens to a write on its way.
enum Fault {
    /// It is applied, and the answer is lost.
    LoseAnswer,
    /// It stays under way; [`Wire::deliver`] brings it.
    HoldBack,
    /// It never leaves.
    Fail,
    /// Something else happens first.
    First(Box<dyn FnOnce() + Send>),
    /// Something else happens before the answer arrives.
    Then(Box<dyn FnOnce() + Send>),
    /// It is applied, and never answered.
    Hang,
    /// It is applied, something else happens, and a repeat of it conflicts.
    MeetsItself(Box<dyn FnOnce() + Send>),
}

/// How changes are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Well,
    /// Each after the next one, and twice.
    Reordered,
    /// Not at all, although the connection stands.
    Dead,
}

/// A watch that tells in that way.
#[derive(Debug)]
struct OddWatch {
    inner: Box<dyn Watching>,
    way: Arc<Mutex<Way>>,
    queue: VecDeque<Change>,
}

#[async_trait]
impl Watching for OddWatch {
    async fn next(&mut self) -> Result<Change> {
        loop {
            if let Some(change) = self.queue.pop_front() {
                return Ok(change);
            }
            let change = self.inner.next().await?;
            let way = *self.way.lock().unwrap();
            match way {
                Way::Well => return Ok(change),
                Way::Dead => {}
                Way::Reordered => {
                    let after = self.inner.next().now_or_never().transpose()?;
                    self.queue.extend(after);
                    self.queue.extend([change.clone(), change]);
                }
            }
        }
    }
}

/// A write under way.
type Swap = (String, Expect, Vec<u8>);

/// A register whose next writes meet faults.
#[derive(Clone, Default)]
struct Wire {
    inner: MemoryRegister,
    /// Which keys are concerned, and what meets them, in order.
    swaps: Arc<Mutex<VecDeque<(&'static str, Fault)>>>,
    loads: Arc<Mutex<VecDeque<(&'static str, Fault)>>>,
    held_back: Arc<Mutex<Vec<Swap>>>,
    /// What listings show, if they lag: the cells as they were then.
    stale: Arc<Mutex<Option<Vec<Listed>>>>,
    /// What loads show, if they lag: the cells as they were then.
    stale_loads: Arc<Mutex<Option<BTreeMap<String, Loaded>>>>,
    /// What the register tells arrives late, in another order and twice, or not at all.
    telling: Arc<Mutex<Way>>,
    loads_done: Arc<AtomicU64>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    fn swap_meets(&self, key: &'static str, fault: Fault) {
        self.swaps.lock().unwrap().push_back((key, fault));
    }

    fn load_meets(&self, key: &'static str, fault: Fault) {
        self.loads.lock().unwrap().push_back((key, fault));
    }

    /// The keys of all cells.
    fn keys(&self) -> Vec<String> {
        let listed = ready(self.inner.list("")).unwrap();
        let mut keys: Vec<_> = listed.into_iter().map(|listed| listed.key).collect();
        keys.sort();
        keys
    }

    fn take(faults: &Mutex<VecDeque<(&'static str, Fault)>>, key: &str) -> Option<Fault> {
        let mut faults = faults.lock().unwrap();
        let concerned = faults.front().is_some_and(|(part, _)| key.contains(part));
        concerned.then(|| faults.pop_front()).flatten().map(|(_, fault)| fault)
    }

    /// A wire to a register that tells of changes and writes several cells at once.
    fn rich() -> Self {
        Self { inner: MemoryRegister::rich(), ..Self::default() }
    }

    fn tells(&self, way: Way) {
        *self.telling.lock().unwrap() = way;
    }

    /// From now on loads show what is there now, as a replica's do that lags.
    fn let_loads_lag(&self) {
        let shown = |key: String| (key.clone(), ready(self.inner.load(&key, None)).unwrap());
        *self.stale_loads.lock().unwrap() = Some(self.keys().into_iter().map(shown).collect());
    }

    fn loads_are_up_to_date(&self) {
        *self.stale_loads.lock().unwrap() = None;
    }

    /// How many looks were made.
    fn looks(&self) -> u64 {
        self.loads_done.load(Ordering::Relaxed)
    }

    /// From now on listings show what was there now, as a replica's do that lags.
    fn let_listings_lag(&self) {
        *self.stale.lock().unwrap() = Some(ready(self.inner.list("")).unwrap());
    }

    /// What was held back arrives; says what became of it.
    fn deliver(&self) -> Vec<Swapped> {
        let late = std::mem::take(&mut *self.held_back.lock().unwrap());
        let late = late.into_iter();
        late.map(|(key, expect, bytes)| ready(self.inner.swap(&key, expect, bytes)).unwrap())
            .collect()
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Timeout, "no answer").maybe_applied()
}

#[async_trait]
impl Register for Wire {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        let fault = Self::take(&self.loads, key);
        if let Some(Fault::Fail) = fault {
            return Err(Error::new(ErrorKind::Unreachable, "no way there"));
        }
        self.loads_done.fetch_add(1, Ordering::Relaxed);
        if let Some(stale) = &*self.stale_loads.lock().unwrap() {
            return Ok(stale.get(key).cloned().unwrap_or(Loaded::Absent));
        }
        let loaded = self.inner.load(key, known).await;
        if let Some(Fault::Then(then)) = fault {
            then();
        }
        loaded
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        match Self::take(&self.swaps, key) {
            None => return self.inner.swap(key, expect, bytes).await,
            Some(Fault::LoseAnswer) => {
                self.inner.swap(key, expect, bytes).await?;
            }
            Some(Fault::HoldBack) => {
                self.held_back.lock().unwrap().push((key.to_owned(), expect, bytes));
            }
            Some(Fault::Fail) => return Err(Error::new(ErrorKind::Unreachable, "no way there")),
            Some(Fault::First(first)) => {
                first();
                return self.inner.swap(key, expect, bytes).await;
            }
            Some(Fault::Then(then)) => {
                let swapped = self.inner.swap(key, expect, bytes).await;
                then();
                return swapped;
            }
            Some(Fault::Hang) => {
                self.inner.swap(key, expect, bytes).await?;
                std::future::pending::<()>().await;
            }
            Some(Fault::MeetsItself(then)) => {
                self.inner.swap(key, expect, bytes).await?;
                then();
                return Ok(Swapped::Conflict);
            }
        }
        Err(lost())
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        self.inner.remove(key, expect).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        if let Some(Fault::Fail) = Self::take(&self.loads, prefix) {
            return Err(Error::new(ErrorKind::Unreachable, "no way there"));
        }
        self.loads_done.fetch_add(1, Ordering::Relaxed);
        if let Some(stale) = &*self.stale.lock().unwrap() {
            let listed = stale.iter().filter(|listed| listed.key.starts_with(prefix));
            return Ok(listed.cloned().collect());
        }
        self.inner.list(prefix).await
    }

    fn watch(&self, prefixes: &[String]) -> Option<Box<dyn Watching>> {
        let inner = self.inner.watch(prefixes)?;
        Some(Box::new(OddWatch { inner, way: self.telling.clone(), queue: VecDeque::new() }))
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.inner.batches()
    }
}

/// One process: its member, its clock, its store.
#[derive(Clone)]
struct Process {
    me: MemberRef,
    clock: Arc<ManualClock>,
    store: Arc<CasStore>,
}

impl Process {
    fn new(wire: &Wire, id: &str, life: u128) -> Self {
        let clock = Arc::new(ManualClock::new());
        // No two clocks agree on what time it is.
        clock.advance(Duration::from_secs(u64::try_from(life).unwrap() * 77_777));
        let store = CasStore::new(Arc::new(wire.clone()), clock.clone(), options()).unwrap();
        Self { me: member(id, life), clock, store: Arc::new(store) }
    }

    /// A process that takes looks for what may lag.
    fn wary(wire: &Wire, id: &str, life: u128) -> Self {
        let mut process = Self::new(wire, id, life);
        let options = CasOptions { looks_lag: true, ..options() };
        let register = Arc::new(wire.clone());
        let store = CasStore::new(register, process.clock.clone(), options).unwrap();
        process.store = Arc::new(store);
        assert!(matches!(process.join(true), Joined::In { .. }));
        process
    }

    /// A process that is a member already.
    fn joined(wire: &Wire, id: &str, life: u128) -> Self {
        let process = Self::new(wire, id, life);
        assert!(matches!(process.join(true), Joined::In { .. }));
        process
    }

    fn join(&self, supersede: bool) -> Joined {
        let profile = Profile::new(["host:1"], b"zone=a").unwrap();
        let join = Join::new(self.me.clone(), TTL).with_profile(profile).with_supersede(supersede);
        ready(self.store.join(&ns(), &join)).unwrap()
    }

    fn try_bid(&self, election: &str, nonce: u64, priority: u16) -> Result<Claims> {
        let bid = Bid::new(named(election), Nonce::new(nonce));
        let bid = bid.with_priority(Priority::new(priority));
        let claim = Claim::new(self.me.clone(), TTL, [bid]).with_heir_grace(HEIR_GRACE);
        ready(self.store.claim(&ns(), &claim))
    }

    fn bid(&self, election: &str, nonce: u64) -> Claimed {
        self.bid_with(election, nonce, 100)
    }

    fn bid_with(&self, election: &str, nonce: u64, priority: u16) -> Claimed {
        match self.try_bid(election, nonce, priority).unwrap() {
            Claims::Answered(mut answers) => answers.pop().unwrap(),
            Claims::Ended { superseded } => panic!("ended, superseded: {superseded}"),
        }
    }

    /// The number won.
    fn win(&self, election: &str, nonce: u64) -> u64 {
        match self.bid(election, nonce) {
            Claimed::Won(term) => term.number.get(),
            other => panic!("not won: {other:?}"),
        }
    }

    /// The view of a bid that lost.
    fn lose(&self, election: &str, nonce: u64) -> ElectionView {
        match self.bid(election, nonce) {
            Claimed::Held(view) => view,
            other => panic!("not held: {other:?}"),
        }
    }

    fn try_beat(&self) -> Result<Beat> {
        let beat = Heartbeat::new(self.me.clone(), TTL);
        ready(self.store.heartbeat(&ns(), &beat))
    }

    fn beat(&self) -> Beat {
        self.try_beat().unwrap()
    }

    /// Whether it lives, and holds this term.
    fn keeps(&self, election: &str, number: u64) -> bool {
        let alive = matches!(self.beat(), Beat::Alive { .. });
        let view = self.view(election);
        alive && view.number.get() == number && view.is_held_by(self.me.incarnation)
    }

    /// What this observer still has to wait for the holder.
    fn waits_for(&self, election: &str) -> Duration {
        self.view(election).holder.expect("a member holds it").remaining
    }

    fn release(&self, election: &str, number: Option<u64>) {
        self.try_release(election, number).expect("it is ready at once").unwrap();
    }

    /// `None` if it is not answered, and so was given up.
    fn try_release(&self, election: &str, number: Option<u64>) -> Option<Result<()>> {
        let item = match number.map(TermNumber::new) {
            Some(number) => ReleaseItem::term(TermRef::new(named(election), number)),
            None => ReleaseItem::candidacy(named(election)),
        };
        let release = Release::new(self.me.clone(), [item]).with_heir_grace(HEIR_GRACE);
        self.store.release(&ns(), &release).now_or_never()
    }

    fn amend(&self, amend: Amend) -> Amended {
        ready(self.store.amend(&ns(), &amend)).unwrap()
    }

    fn view(&self, election: &str) -> ElectionView {
        let query = Query { candidates: true, ..Query::elections([named(election)]) };
        ready(self.store.read(&ns(), &query)).unwrap().elections.pop().unwrap()
    }

    fn members(&self) -> Vec<MemberView> {
        ready(self.store.read(&ns(), &Query::members())).unwrap().members
    }
}

fn step_down(election: &str, reason: &str) -> Amend {
    Amend::step_down(named(election), Note::new(reason), Note::new("ops"))
}

fn pause(election: &str) -> Amend {
    Amend::pause(named(election), Note::new("deploy"), Note::new("ops"))
}

fn resume(election: &str) -> Amend {
    Amend::resume(named(election), Note::new("ops"))
}

fn evict(id: &str, now: bool) -> Amend {
    Amend::Evict { member: MemberId::new(id).unwrap(), now, by: Note::new("ops") }
}
