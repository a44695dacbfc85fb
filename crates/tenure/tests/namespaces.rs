//! Several namespaces of one process on one connection.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use common::{secs, until, within};
use tenure::store::{Capabilities, SharedStore, Store};
use tenure::{Error, Left, Tenure};
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Heartbeat, Join, Joined, MemberRef,
    NamesView, Namespace, Query, Release, Seq, Snapshot, WhichNames,
};
use tenure_store::{Following, MemoryStore, Page, Result};

#[cfg(all(target_os = "linux", feature = "sqlite"))]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// L18: members of three namespaces have the threads of one, and leave one by one.
#[cfg(all(target_os = "linux", feature = "sqlite"))]
#[tokio::test]
async fn three_namespaces_share_the_threads_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let before = threads();
    let first = Tenure::builder(url).namespace("one").id("web-1").connect().await.unwrap();
    let held_one = within(first.election("e").campaign()).await.unwrap();
    let with_one = threads();
    let second = first.member_in("two").connect().await.unwrap();
    let third = second.member_in("three").connect().await.unwrap();
    let held_two = within(second.election("e").campaign()).await.unwrap();
    let held_three = within(third.election("e").campaign()).await.unwrap();
    let mut observer = third.election("e").observe().unwrap();
    within(observer.next()).await.unwrap();
    assert_eq!(threads(), with_one, "of {before} before");
    assert_eq!(third.id().as_str(), "web-1");
    assert_eq!(held_three.term().member.id, *third.id());
    assert_eq!(within(second.members()).await.unwrap().len(), 1, "each is in its own namespace");

    // The first one opened the connection; it does not close it for the others.
    drop(held_one);
    assert_eq!(within(first.shutdown()).await.unwrap(), Left::Confirmed);
    assert!(matches!(within(first.members()).await, Err(Error::ShutDown)));
    assert!(held_two.is_current() && held_three.is_current());
    assert!(within(second.election("e").leader()).await.unwrap().is_some());
    drop((held_two, second, held_three));
    assert_eq!(within(third.shutdown()).await.unwrap(), Left::Confirmed);
    // Its stream ends with the member, after what happened before.
    while within(observer.next()).await.is_some() {}
    assert!(matches!(third.member_in("four").connect().await, Err(Error::ShutDown)));
    until("its threads to be gone", || async { threads() <= before }).await;
}

/// A store on which every request of some namespaces hangs.
#[derive(Debug)]
struct HangsIn {
    inner: SharedStore,
    namespaces: Mutex<HashSet<String>>,
}

impl HangsIn {
    fn hang(&self, ns: &str) {
        self.namespaces.lock().unwrap().insert(ns.to_owned());
    }

    async fn pass(&self, ns: &Namespace) {
        let hangs = self.namespaces.lock().unwrap().contains(ns.as_str());
        if hangs {
            std::future::pending().await
        }
    }
}

#[async_trait]
impl Store for HangsIn {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        self.pass(ns).await;
        self.inner.join(ns, join).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        self.pass(ns).await;
        self.inner.heartbeat(ns, beat).await
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        self.pass(ns).await;
        self.inner.leave(ns, member).await
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        self.pass(ns).await;
        self.inner.claim(ns, claim).await
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        self.pass(ns).await;
        self.inner.release(ns, release).await
    }

    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        self.pass(ns).await;
        self.inner.bind(ns, bind).await
    }

    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        self.pass(ns).await;
        self.inner.names(ns, which).await
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        self.pass(ns).await;
        self.inner.amend(ns, amend).await
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        self.pass(ns).await;
        self.inner.read(ns, query).await
    }

    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page> {
        self.pass(ns).await;
        self.inner.journal(ns, after).await
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        self.pass(ns).await;
        self.inner.follow(ns).await
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}

/// L18: a namespace whose every request hangs costs another neither its heartbeat nor its
/// term, and its shutdown does not wait for the other.
#[tokio::test]
async fn a_namespace_that_hangs_delays_no_other() {
    let store = HangsIn { inner: MemoryStore::new().shared(), namespaces: Mutex::default() };
    let store = Arc::new(store);
    let builder = Tenure::with_store(store.clone()).namespace("hangs").ttl(secs(1));
    let hangs = builder.connect().await.unwrap();
    let works = hangs.member_in("works").ttl(secs(1)).connect().await.unwrap();
    let lost = within(hangs.election("e").campaign()).await.unwrap();
    let kept = within(works.election("e").campaign()).await.unwrap();
    store.hang("hangs");
    // Its trust ends only after several heartbeats of the other.
    within(lost.lost()).await;
    assert!(kept.is_current(), "the other namespace was not delayed");
    assert!(kept.remaining() > Duration::from_millis(300), "{:?} left", kept.remaining());
    assert_eq!(works.status().failures, 0);
    within(works.shutdown()).await.unwrap();
}
