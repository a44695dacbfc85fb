//! What it costs and how soon it acts, by the real client: requests counted on
//! their way to a real server, against the time that passed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use common::line::{Act, Fate, start};
use common::{BUCKET, Server, fresh_prefix};
use tenure::{Leadership, Tenure};
use tenure_cas::{
    Batches, CasOptions, CasStore, Expect, Listed, Loaded, MemoryRegister, Register, Removed,
    Swapped, Version, Watching,
};
use tenure_core::SettingsBuilder;
use tenure_object::BucketStore;
use tenure_store::{BootClock, Result};
use tenure_testkit::{let_pass, until, within};

const TTL: Duration = Duration::from_millis(1_500);
/// For how many ttls requests are counted.
const TTLS: u64 = 15;
/// What a busy machine may delay a single step by.
const NOISE: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_secs(30);

/// A good line that counts, and can be cut.
#[derive(Debug, Default)]
struct Counting {
    requests: AtomicU64,
    writes: AtomicU64,
    /// When the last write passed.
    last: Mutex<Option<Instant>>,
    cut: AtomicBool,
}

impl Counting {
    fn counted(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.writes.load(Ordering::Relaxed))
    }
}

impl Fate for Counting {
    fn of(&self, line: &str) -> (Duration, Act) {
        if self.cut.load(Ordering::Relaxed) {
            return (Duration::ZERO, Act::CutBefore);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        if line.starts_with("PUT") {
            self.writes.fetch_add(1, Ordering::Relaxed);
            *self.last.lock().unwrap() = Some(Instant::now());
        }
        (Duration::ZERO, Act::Pass)
    }
}

/// A member behind a line of its own, with the timings that its URL would give it.
async fn member(server: Server, prefix: &str, id: &str) -> (Tenure, Arc<Counting>) {
    let line = Arc::<Counting>::default();
    let endpoint = start(&server.endpoint(), line.clone()).await;
    let settings = SettingsBuilder::ttl(TTL).build().unwrap();
    let options = server.options_at(&endpoint, BUCKET, prefix).settings(&settings);
    let store = BucketStore::open(options).await.unwrap().shared();
    let tenure = Tenure::with_store(store).id(id).ttl(TTL).connect().await.unwrap();
    (tenure, line)
}

/// Campaigns in the background; what is won is put where it says.
fn stand(tenure: &Tenure) -> tokio::task::JoinHandle<Leadership> {
    let election = tenure.election("e");
    tokio::spawn(async move { election.campaign().await.expect("it is elected") })
}

/// The bars: an idle follower makes at most 1.5 requests a ttl, and a leader one
/// write an interval; a resignation is noticed within one look; and a leader whose
/// line is cut has a successor within 1.15 ttl of its last heartbeat, and not
/// before its trust is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_looks_a_leader_beats_and_a_successor_comes_at_the_pace_stated() {
    let server = Server::SeaweedFs;
    server.make_bucket().await;
    let prefix = fresh_prefix();
    let (a, of_a) = member(server, &prefix, "a").await;
    let (b, of_b) = member(server, &prefix, "b").await;
    let (c, of_c) = member(server, &prefix, "c").await;
    let led = a.election("e").campaign_timeout(PATIENCE).await.unwrap();
    let waiting = [stand(&b), stand(&c)];
    let_pass(TTL * 4, "they learn when the beats are due").await;

    let before = [&of_a, &of_b, &of_c].map(|line| line.counted());
    let from = Instant::now();
    let_pass(TTL * u32::try_from(TTLS).unwrap(), "the time that is measured").await;
    let after = [&of_a, &of_b, &of_c].map(|line| line.counted());
    let ttls = from.elapsed().as_millis() / TTL.as_millis();
    let ttls = u64::try_from(ttls).unwrap();
    let made = |n: usize| (after[n].0 - before[n].0, after[n].1 - before[n].1);
    println!("in {ttls} ttls: {:?} {:?} {:?}", made(0), made(1), made(2));
    assert!(led.is_current() && waiting.iter().all(|task| !task.is_finished()));
    // One more at either end of the time, and one that was late.
    let (_, beats) = made(0);
    assert!((ttls * 4 - 3..=ttls * 4 + 2).contains(&beats), "{beats} writes in {ttls} ttls");
    for follower in [1, 2] {
        let (requests, _) = made(follower);
        assert!(requests <= ttls * 3 / 2 + 3, "{requests} requests in {ttls} ttls");
        assert!(requests >= ttls / 2, "{requests} requests in {ttls} ttls: it does not look");
    }

    let from = Instant::now();
    led.resign().await.unwrap();
    let (first, rest) = first_of(waiting).await;
    let heard = from.elapsed();
    println!("a resignation was noticed after {heard:?}");
    assert!(heard <= TTL * 11 / 10 + NOISE, "noticed after {heard:?}");

    let_pass(TTL * 4, "they learn when the beats are due").await;
    let leads_b = b.election("e").is_led_here();
    let line = if leads_b { &of_b } else { &of_c };
    // Right after a heartbeat, so that nothing is on its way.
    let beat = *line.last.lock().unwrap();
    until("a heartbeat", || async { *line.last.lock().unwrap() != beat }).await;
    line.cut.store(true, Ordering::Relaxed);
    let last = line.last.lock().unwrap().unwrap();
    let lost = tokio::time::timeout(PATIENCE, first.lost());
    let (lost, second) = tokio::join!(
        async { lost.await.map(|_| Instant::now()) },
        tokio::time::timeout(PATIENCE, rest)
    );
    let lost = lost.expect("it is lost");
    let second = second.expect("another leads").unwrap();
    let taken = last.elapsed();
    println!("taken over {taken:?} after the last heartbeat");
    assert!(second.is_current() && !first.is_current());
    assert!(lost - last < TTL, "trust ended {:?} after the last heartbeat", lost - last);
    assert!(taken > TTL, "taken {taken:?} after the last heartbeat");
    assert!(taken <= TTL * 115 / 100 + NOISE, "taken {taken:?} after the last heartbeat");
}

/// The member that is elected, and the other.
async fn first_of(
    tasks: [tokio::task::JoinHandle<Leadership>; 2],
) -> (Leadership, tokio::task::JoinHandle<Leadership>) {
    let [mut b, mut c] = tasks;
    within(async {
        tokio::select! {
            led = &mut b => (led.unwrap(), c),
            led = &mut c => (led.unwrap(), b),
        }
    })
    .await
}

/// Counts writes to a register in memory.
#[derive(Debug, Default)]
struct CountingRegister {
    inner: MemoryRegister,
    requests: AtomicU64,
}

#[async_trait]
impl Register for CountingRegister {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.load(key, known).await
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.swap(key, expect, bytes).await
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.remove(key, expect).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.list(prefix).await
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

/// C12: ten thousand elections of one leader cost what one does: a write an
/// interval. In memory, because making ten thousand objects would take the test
/// longer than counting the heartbeats does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_elections_of_one_leader_cost_one_write_an_interval() {
    const MANY: usize = 10_000;
    let register = Arc::<CountingRegister>::default();
    let options = CasOptions { poll: TTL * 100, ..CasOptions::default() };
    let store = CasStore::new(register.clone(), Arc::new(BootClock), options).unwrap();
    let tenure = Tenure::with_store(Arc::new(store)).ttl(TTL * 2).connect().await.unwrap();
    let names = (0..MANY).map(|n| format!("e{n}"));
    let mut campaigns = tenure.campaign_all(names).unwrap();
    let mut led = Vec::with_capacity(MANY);
    while let Some(leadership) = campaigns.next().await {
        led.push(leadership.unwrap());
    }
    assert_eq!(led.len(), MANY);
    let requests = register.requests.load(Ordering::Relaxed);
    let writes = register.inner.writes();
    let intervals = 10;
    let_pass(TTL * 2 / 4 * u32::try_from(intervals).unwrap(), "the time that is measured").await;
    let made = register.requests.load(Ordering::Relaxed) - requests;
    let written = register.inner.writes() - writes;
    println!("{made} requests, {written} writes in {intervals} intervals");
    assert!(led.iter().all(Leadership::is_current));
    assert!((intervals - 2..=intervals + 1).contains(&written), "{written} writes");
    assert!(made <= intervals + 3, "{made} requests");
}
