//! R1 where the store's clock is set forward and back: a copy equals the store.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure::naming::{Name, Rev, Value, WhichNames};
use tenure::store::Store;
use tenure::views::MemberRef;
use tenure::{Mono, Timestamp};
use tenure_core::{Bind, BindOp, Bindings, Nonce};
use tenure_store::{Clock, MemoryStore};
use tenure_testkit::requests;

use super::changed;
use crate::copy::{Copy, Meanwhile, Writer};

/// A database's clock, which the test sets.
#[derive(Debug)]
struct Set(AtomicU64);

impl Clock for Set {
    fn now(&self) -> Mono {
        Mono::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Timestamp {
        Timestamp::default()
    }
}

struct World {
    clock: Arc<Set>,
    store: MemoryStore,
    copy: Arc<Copy>,
    writer: Writer,
    /// The newest revision that a registration of this process was given.
    given: Rev,
    /// What was asked of the store.
    asked: Vec<WhichNames>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(Set(AtomicU64::new(3_600_000)));
        let store = MemoryStore::with_clock(clock.clone());
        let copy = Arc::new(Copy::new());
        let writer = Writer::new(copy.clone());
        Self { clock, store, copy, writer, given: Rev::START, asked: Vec::new() }
    }

    async fn owner(&self, id: &str, life: u128) -> MemberRef {
        let member = requests::member(id, life);
        self.store.join(&requests::ns(), &requests::join(&member)).await.unwrap();
        member
    }

    async fn binds(&self, owner: &MemberRef, name: &str) {
        let take = BindOp::take(Name::new(name).unwrap(), Nonce::new(1), Value::empty());
        let bind = Bind::new(owner.clone(), Duration::from_secs(10), [take]);
        let bound = self.store.bind(&requests::ns(), &bind).await.unwrap();
        assert!(matches!(bound, Bindings::Answered(_)), "{bound:?}");
    }

    fn set_forward(&self) {
        self.clock.0.fetch_add(60_000, Ordering::Relaxed);
    }

    fn set_back(&self) {
        self.clock.0.fetch_sub(60_000, Ordering::Relaxed);
    }

    /// Brings the copy up to date, and says what it has.
    async fn reads(&mut self) -> Vec<String> {
        let since = if self.writer.is_partial() { Rev::START } else { self.copy.stand().rev };
        let asked = std::sync::Mutex::new(Vec::new());
        let store = &self.store;
        let ask = |which: WhichNames| {
            asked.lock().unwrap().push(which.clone());
            async move { Ok(store.names(&requests::ns(), &which).await?) }
        };
        let view = changed(ask, since, self.given, true, self.writer.answered()).await.unwrap();
        self.asked = asked.into_inner().unwrap();
        self.writer.apply(view, Mono::from_millis(1), &Meanwhile::new());
        let mut names: Vec<_> =
            self.copy.select(|_| true).0.iter().map(|entry| entry.name.to_string()).collect();
        names.sort();
        names
    }
}

/// R1: a life whose ttl had run out by a clock that was set forward, and has not by the clock
/// that was set back, owns what it owned, although none of it was changed.
#[tokio::test]
async fn a_life_that_is_back_has_its_names_again() {
    let mut world = World::new();
    let a = world.owner("a", 1).await;
    world.binds(&a, "a1").await;
    world.binds(&a, "a2").await;
    assert_eq!(world.reads().await, ["a1", "a2"]);
    world.set_forward();
    assert!(world.reads().await.is_empty());
    world.set_back();
    assert_eq!(world.reads().await, ["a1", "a2"]);
    assert_eq!(world.reads().await, ["a1", "a2"]);
    assert_eq!(world.asked.len(), 1, "only what changed, once it is complete");
}

/// The same where it binds another name before any copy looks, and in a copy that begins while
/// the clock is ahead.
#[tokio::test]
async fn a_life_that_is_back_and_binds_a_name_has_the_others_too() {
    for begins_late in [false, true] {
        let mut world = World::new();
        let a = world.owner("a", 1).await;
        world.binds(&a, "a1").await;
        if !begins_late {
            assert_eq!(world.reads().await, ["a1"]);
        }
        world.set_forward();
        assert!(world.reads().await.is_empty());
        world.set_back();
        world.binds(&a, "a2").await;
        assert_eq!(world.reads().await, ["a1", "a2"], "begins late: {begins_late}");
    }
}

/// A life that is new costs a look at what it owns, once, and not at every name.
#[tokio::test]
async fn a_new_life_does_not_make_all_names_be_read() {
    let mut world = World::new();
    let a = world.owner("a", 1).await;
    world.binds(&a, "a1").await;
    world.reads().await;
    let b = world.owner("b", 2).await;
    world.binds(&b, "b1").await;
    assert_eq!(world.reads().await, ["a1", "b1"]);
    assert!(
        matches!(&world.asked[..], [WhichNames::Since(_), WhichNames::OwnedBy(of)] if *of == b)
    );
    world.binds(&b, "b2").await;
    assert_eq!(world.reads().await, ["a1", "b1", "b2"]);
    assert!(matches!(&world.asked[..], [WhichNames::Since(_)]), "{:?}", world.asked);
}

/// M6: a store that stands before what this process was given has forgotten it, also where it
/// still has the copy's revision: all names are read.
#[tokio::test]
async fn a_store_that_stands_before_a_registration_is_asked_for_all_names() {
    let mut world = World::new();
    let a = world.owner("a", 1).await;
    world.binds(&a, "a1").await;
    assert_eq!(world.reads().await, ["a1"]);
    world.given = world.copy.stand().rev;
    world.reads().await;
    assert!(matches!(&world.asked[..], [WhichNames::Since(_)]), "{:?}", world.asked);
    world.given = Rev::new(world.given.get() + 1);
    assert_eq!(world.reads().await, ["a1"]);
    let [WhichNames::Since(since), WhichNames::Since(Rev::START)] = &world.asked[..] else {
        panic!("{:?}", world.asked)
    };
    assert!(*since > Rev::START);
}
