//! A store that keeps no names: a registry on it is refused at once, with what to do, and
//! everything else works.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use async_trait::async_trait;
use tenure::journal::Seq;
use tenure::naming::{NamesView, WhichNames};
use tenure::store::Store;
use tenure::{Namespace, Tenure};
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Heartbeat, Join, Joined, MemberRef, Query,
    Release, Snapshot,
};
use tenure_registry::{NameLooks, RegisterError, Registry};
use tenure_store::{Capabilities, Following, MemoryStore, Page, Result};

/// A store that a user wrote before there were names.
#[derive(Debug, Default)]
struct Nameless(MemoryStore);

#[async_trait]
impl Store for Nameless {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        self.0.join(ns, join).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        self.0.heartbeat(ns, beat).await
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        self.0.leave(ns, member).await
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        self.0.claim(ns, claim).await
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        self.0.release(ns, release).await
    }

    async fn bind(&self, _: &Namespace, _: &Bind) -> Result<Bindings> {
        Err(self.capabilities().without_names())
    }

    async fn names(&self, _: &Namespace, _: &WhichNames) -> Result<NamesView> {
        Err(self.capabilities().without_names())
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        self.0.amend(ns, amend).await
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        self.0.read(ns, query).await
    }

    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page> {
        self.0.journal(ns, after).await
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        self.0.follow(ns).await
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.0.capabilities();
        capabilities.name = "theirs";
        capabilities.names = None;
        capabilities
    }
}

#[tokio::test]
async fn a_registry_on_a_store_without_names_is_refused() {
    let store = Arc::new(Nameless::default());
    let tenure = Tenure::with_store(store.clone()).id("a").connect().await.unwrap();
    let refused = Registry::open(&tenure, "orders").unwrap_err();
    assert!(matches!(refused, RegisterError::Other(_)), "{refused:?}");
    for said in ["the store theirs keeps no names", "use SQLite or PostgreSQL for names"] {
        assert!(refused.to_string().contains(said), "{refused}");
    }
    let operator = Tenure::with_store(store).operate().await.unwrap();
    let refused = NameLooks::new(&operator, "").unwrap_err().to_string();
    assert!(refused.contains("the store theirs keeps no names"), "{refused}");
    let leadership = tenure.election("e").campaign().await.unwrap();
    assert!(leadership.is_current(), "elections need no names");
}
