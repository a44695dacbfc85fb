//! A bucket that fails three times in ten and takes its time.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use common::{BUCKET, Server, fresh_prefix};
use tenure::{Leadership, Tenure};
use tenure_object::BucketStore;
use tenure_store::{
    BootClock, CasOptions, CasStore, Error, ErrorKind, Expect, Listed, Loaded, Register, Removed,
    Result, Swapped, Version,
};

/// How long the bad weather lasts, and the ttl under it.
const WEATHER: Duration = Duration::from_secs(40);
const TTL: Duration = Duration::from_secs(20);
const MEMBERS: usize = 4;

/// The bucket, through a bad line: of ten requests three fail, half of those
/// after they were applied; and two take two seconds.
#[derive(Debug)]
struct BadLine {
    inner: Arc<dyn Register>,
    dice: AtomicU64,
    requests: AtomicU64,
    failed: AtomicU64,
    /// Nothing gets through at all.
    cut: AtomicBool,
}

impl BadLine {
    fn new(inner: Arc<dyn Register>, seed: u64) -> Arc<Self> {
        let dice = AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let zero = || AtomicU64::new(0);
        let cut = AtomicBool::new(false);
        Arc::new(Self { inner, dice, requests: zero(), failed: zero(), cut })
    }

    fn roll(&self) -> u64 {
        let next = |dice: u64| {
            Some(dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f))
        };
        self.dice.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap() >> 33
    }

    async fn send<T>(&self, request: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if self.roll() % 10 < 2 {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let fails = self.roll() % 10 < 3;
        let before = self.roll().is_multiple_of(2);
        if self.cut.load(Ordering::Relaxed) || (fails && before) {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return Err(Error::new(ErrorKind::Busy, "the service throttles"));
        }
        let answer = request.await;
        if fails {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return Err(Error::new(ErrorKind::Unreachable, "the line broke").maybe_applied());
        }
        answer
    }
}

#[async_trait]
impl Register for BadLine {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        self.send(self.inner.load(key, known)).await
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        self.send(self.inner.swap(key, expect, bytes)).await
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        self.send(self.inner.remove(key, expect)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.send(self.inner.list(prefix)).await
    }
}

/// Who trusts that it leads, at any one moment.
#[derive(Default)]
struct Watched {
    now: AtomicUsize,
    twice: AtomicUsize,
    reigns: AtomicU64,
}

/// Stands again and again; every campaign must come to a leadership.
async fn stand(tenure: Tenure, watched: Arc<Watched>, over: Arc<AtomicBool>) {
    while !over.load(Ordering::Relaxed) {
        let election = tenure.election("e");
        let leadership: Leadership = tokio::select! {
            led = election.campaign() => led.expect("no campaign ends by an error of the store"),
            () = ended(&over) => return,
        };
        watched.reigns.fetch_add(1, Ordering::Relaxed);
        if watched.now.fetch_add(1, Ordering::SeqCst) > 0 {
            watched.twice.fetch_add(1, Ordering::SeqCst);
        }
        while leadership.is_current() && !over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        watched.now.fetch_sub(1, Ordering::SeqCst);
        drop(leadership);
    }
}

async fn ended(over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// F1: three errors in ten and delays of two seconds; then the leader's line is
/// cut. Nobody leads twice at once, no campaign ends, and no member asks more
/// than four times a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_line_makes_no_two_leaders_ends_no_campaign_and_no_storm() {
    let server = Server::FakeGcs;
    server.make_bucket().await;
    let prefix = fresh_prefix();
    let bucket = BucketStore::open(server.options(BUCKET, &prefix)).await.unwrap();
    let watched = Arc::new(Watched::default());
    let over = Arc::new(AtomicBool::new(false));
    let (mut lines, mut members, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
    let from = Instant::now();
    for n in 0..MEMBERS {
        let line = BadLine::new(bucket.register(), n as u64 + 1);
        let options = CasOptions { prefix: prefix.clone(), poll: TTL, ..CasOptions::default() };
        let store = CasStore::new(line.clone(), Arc::new(BootClock), options).unwrap();
        let builder = Tenure::with_store(Arc::new(store)).id(format!("m{n}")).ttl(TTL);
        let tenure = builder.connect().await.unwrap();
        tasks.push(tokio::spawn(stand(tenure.clone(), watched.clone(), over.clone())));
        lines.push(line);
        members.push(tenure);
    }
    let led = || members.iter().position(|m| m.election("e").is_led_here());
    // One leads; its line is cut for good, and another must come.
    let mut waited = 0;
    let first = loop {
        if let Some(n) = led() {
            break n;
        }
        waited += 1;
        assert!(waited < 6_000, "nobody leads within a minute of bad weather");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    lines[first].cut.store(true, Ordering::Relaxed);
    let mut other = None;
    while from.elapsed() < WEATHER || other.is_none() {
        other = other.or(led().filter(|n| *n != first));
        assert!(from.elapsed() < WEATHER * 3, "nobody took over");
        assert!(tasks.iter().all(|task| !task.is_finished()), "a campaign ended");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    over.store(true, Ordering::Relaxed);
    let seconds = from.elapsed().as_secs();
    for task in tasks {
        task.await.expect("it stood to the end");
    }
    assert_eq!(watched.twice.load(Ordering::SeqCst), 0, "two led at once");
    assert!(watched.reigns.load(Ordering::Relaxed) >= 2);
    for (n, line) in lines.iter().enumerate() {
        let (all, failed) =
            (line.requests.load(Ordering::Relaxed), line.failed.load(Ordering::Relaxed));
        println!("m{n}: {all} requests, {failed} failed, in {seconds} s");
        assert!(failed > 0, "the weather was fine for m{n}");
        assert!(failed < 4 * seconds, "m{n} repeated {failed} requests in {seconds} s");
    }
}
