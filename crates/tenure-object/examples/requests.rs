//! What an election costs: counts the requests of a leader and of those who wait,
//! in steady state, and says what they come to at list prices.
//! `cargo run -p tenure-object --example requests`.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tenure::Tenure;
use tenure_cas::{
    Batches, CasOptions, CasStore, Expect, Listed, Loaded, MemoryRegister, Register, Removed,
    Swapped, Version, Watching,
};
use tenure_store::{BootClock, Result};

/// Short, to be done soon; requests follow the ttl, so their number for each ttl
/// does not depend on it.
const TTL: Duration = Duration::from_secs(2);
const TTLS: u32 = 15;

/// Counts what goes to the register: writes, listings, and looks.
#[derive(Debug, Default)]
struct Counting {
    inner: MemoryRegister,
    writes: AtomicU64,
    lists: AtomicU64,
    looks: AtomicU64,
}

#[async_trait]
impl Register for Counting {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.inner.load(key, known).await
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.inner.swap(key, expect, bytes).await
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        self.inner.remove(key, expect).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.inner.list(prefix).await
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let inner = MemoryRegister::new();
    let mut all = Vec::new();
    for name in ["leader", "first to wait", "second to wait"] {
        let counting = Arc::new(Counting { inner: inner.clone(), ..Counting::default() });
        let options = CasOptions { poll: TTL, ..CasOptions::default() };
        let store = CasStore::new(counting.clone(), Arc::new(BootClock), options)?;
        let id = name.replace(' ', "-");
        let tenure = Tenure::with_store(Arc::new(store)).id(id).ttl(TTL).connect().await?;
        let election = tenure.election("e");
        tokio::spawn(async move {
            if let Ok(leadership) = election.campaign().await {
                leadership.lost().await;
            }
        });
        tokio::time::sleep(TTL / 4).await;
        all.push((name, counting, tenure));
    }
    tokio::time::sleep(TTL).await;
    let count = |n: &AtomicU64| n.swap(0, Ordering::Relaxed);
    for (_, counting, _) in &all {
        for n in [&counting.writes, &counting.lists, &counting.looks] {
            count(n);
        }
    }
    tokio::time::sleep(TTL * TTLS).await;
    println!("for each ttl: writes, listings, looks; dollars a month at a ttl of 10 s");
    for (name, counting, _) in &all {
        let [writes, lists, looks] = [&counting.writes, &counting.lists, &counting.looks]
            .map(|n| f64::from(u32::try_from(count(n)).unwrap_or(u32::MAX)) / f64::from(TTLS));
        let dollars = 30.0 * 8_640.0 * ((writes + lists) * 0.005 + looks * 0.0004) / 1_000.0;
        println!("{name:15} {writes:5.2} {lists:5.2} {looks:5.2}   {dollars:6.2}");
    }
    Ok(())
}
