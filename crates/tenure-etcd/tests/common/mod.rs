//! What the tests of this crate share: the server, and a prefix of one's own on it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

pub mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tenure_conformance::Harness;
use tenure_etcd::{EtcdOptions, EtcdStore};
use tenure_store::{Clock, ManualClock, SharedStore};

/// Where the server is, as `host:port`. `cargo xtask test` starts it.
pub fn address() -> String {
    let found = std::env::var("TENURE_TEST_ETCD_URL");
    found.expect("run the tests by `cargo xtask test`, or start servers by `cargo xtask serve`")
}

/// A prefix that no other test uses.
pub fn fresh_prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    format!("test-{}-{next}-{now}", std::process::id())
}

/// Options for a prefix of the server.
pub fn options(prefix: &str) -> EtcdOptions {
    EtcdOptions::from_url(&format!("etcd://{}/{prefix}", address())).unwrap()
}

/// A prefix of one's own, whose time is moved by hand.
#[derive(Debug)]
pub struct Place {
    prefix: String,
    clock: Arc<ManualClock>,
}

impl Place {
    pub fn new() -> Self {
        Self { prefix: fresh_prefix(), clock: Arc::new(ManualClock::new()) }
    }
}

#[async_trait]
impl Harness for Place {
    async fn open(&self) -> SharedStore {
        let opened = EtcdStore::open_with(options(&self.prefix), self.clock.clone()).await;
        opened.unwrap().shared()
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
        tokio::task::yield_now().await;
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    fn unit(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn journal_bound(&self) -> Option<usize> {
        None
    }
}
