//! One member that holds ten thousand elections, beside one that holds one: what
//! the store is asked to write in an interval, how many requests it takes to
//! claim them, and what each costs in the client's memory.

// A counting allocator cannot be written without unsafe code.
#![allow(clippy::print_stdout, missing_docs, unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tenure::testing::{FaultyStore, StoreVerb};
use tenure::{Leadership, Tenure};

const MANY: usize = 10_000;
const INTERVALS: u32 = 4;

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let one = hold(1, &folder.path().join("one.db")).await?;
    let many = hold(MANY, &folder.path().join("many.db")).await?;

    println!("claiming {MANY} elections took {:.0} ms", common::millis(many.claiming));
    let mut bars = common::Bars::default();
    let batches = MANY.div_ceil(many.batch) as f64;
    bars.at_most("claims sent for 10,000 elections", many.claims as f64, batches, "");
    println!("{:<58} {:>10}", format!("writes in {INTERVALS} intervals, holding 1"), one.writes);
    let ratio = many.writes as f64 / one.writes as f64;
    bars.at_most("writes in the same time, holding 10,000 / holding 1", ratio, 1.0, "x");
    let each = (many.bytes - one.bytes) as f64 / (MANY - 1) as f64;
    bars.at_most("client memory for each election held", each, 1024.0, "B");
    bars.finish();
    Ok(())
}

struct Held {
    claims: u64,
    claiming: Duration,
    writes: u64,
    bytes: i64,
    batch: usize,
}

/// Holds `count` elections and measures a few intervals.
async fn hold(count: usize, path: &std::path::Path) -> Outcome<Held> {
    let store = tenure_sqlite::SqliteStore::open(path, tenure_sqlite::SqliteOptions::new()).await?;
    let store = FaultyStore::new(Arc::new(store));
    let tenure = Tenure::with_store(store.shared()).connect().await?;
    let before = LIVE.load(Ordering::Relaxed);

    let start = Instant::now();
    let mut campaigns = tenure.campaign_all((0..count).map(|n| format!("shard-{n}")))?;
    let mut held: Vec<Leadership> = Vec::with_capacity(count);
    while let Some(leadership) = campaigns.next().await {
        held.push(leadership?);
    }
    let claiming = start.elapsed();
    drop(campaigns);
    let claims = store.counts().calls(StoreVerb::Claim);

    // From one heartbeat to another: whole intervals, none cut in two.
    let beats = || store.counts().calls(StoreVerb::Heartbeat);
    let first = beats();
    while beats() == first {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    store.reset_counts();
    tokio::time::sleep(tenure.settings().heartbeat() * INTERVALS + Duration::from_millis(500))
        .await;
    let writes = store.counts().writes();
    // What is kept, once the looks that follow the claims are over: each holds
    // what it read of a batch for a moment.
    let bytes = LIVE.load(Ordering::Relaxed) - before;
    assert!(held.iter().all(Leadership::is_current), "a leadership was lost meanwhile");
    let batch = tenure.capabilities().batch;
    drop(held);
    tenure.shutdown().await?;
    Ok(Held { claims, claiming, writes, bytes, batch })
}
