//! Names that are waited for: what a wait costs, who is next, and what is published.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tenure::Namespace;
use tenure::naming::{Name, Value};
use tenure::store::Store;
use tenure::testing::{Fault, Stage, StoreVerb};
use tenure_core::{Bind, BindOp, Nonce};
use tenure_registry::{Kept, Registered, Registry};
use tenure_testkit::within;

async fn two() -> (Stage, Registry, Registry) {
    let stage = Stage::new();
    let a = Registry::open(&stage.connect("a").await.unwrap(), "s").unwrap();
    let b = Registry::open(&stage.connect("b").await.unwrap(), "s").unwrap();
    within(a.ready()).await.unwrap();
    within(b.ready()).await.unwrap();
    (stage, a, b)
}

async fn passes(stage: &Stage, holds: impl Fn() -> bool) {
    let passed = async {
        while !holds() {
            stage.advance(Duration::from_millis(100)).await;
        }
    };
    within(passed).await;
}

fn at(endpoint: &str) -> Value {
    Value::at(endpoint).unwrap()
}

fn is_at(names: &Registry, name: &str, endpoint: &str) -> bool {
    names.lookup(name).is_some_and(|found| found.value().endpoint() == Some(endpoint))
}

/// A value that is set while another has the name is the one that is published.
#[tokio::test]
async fn a_value_set_during_the_wait_is_published() {
    let (stage, a, b) = two().await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    let mut kept = b.keep("n", at("h:1")).unwrap();
    stage.settle().await;
    kept.set(at("h:2")).await.unwrap();
    mine.release().await.unwrap();
    passes(&stage, || kept.is_current()).await;
    assert!(within(kept.held()).await.is_some());
    assert!(is_at(&b, "n", "h:2"), "{:?}", b.lookup("n"));
}

/// The same while the request that takes the name is on its way with the older value.
#[tokio::test]
async fn a_value_set_during_the_request_is_published_after_it() {
    let (stage, a, _) = two().await;
    stage.faults().script(StoreVerb::Bind, [Fault::HoldReply]);
    let mut kept = a.keep("n", at("h:1")).unwrap();
    stage.faults().called(StoreVerb::Bind, 1).await;
    kept.set(at("h:2")).await.unwrap();
    stage.settle().await;
    stage.faults().let_go();
    assert!(within(kept.held()).await.is_some());
    passes(&stage, || is_at(&a, "n", "h:2")).await;
    let there = a.lookup_consistent("n").await.unwrap().unwrap();
    assert_eq!(there.value.endpoint(), Some("h:2"));
}

/// A value that no name can have is refused at once, and the name stays kept.
#[tokio::test]
async fn a_value_that_cannot_be_does_not_end_the_keeping() {
    let (stage, a, b) = two().await;
    let big = || Value::empty().with_data(vec![0; 5_000]).unwrap();
    assert!(a.keep("n", big()).is_err());
    let mine = a.register("n", Value::empty()).await.unwrap();
    let kept = b.keep("n", at("h:1")).unwrap();
    stage.settle().await;
    let refused = kept.set(big()).await.unwrap_err().to_string();
    assert!(refused.contains("5000 bytes"), "{refused}");
    mine.release().await.unwrap();
    passes(&stage, || kept.is_current()).await;
    assert!(is_at(&b, "n", "h:1"));
}

/// A process that waits for many names asks for each once, and from then on for those that
/// became free.
#[tokio::test]
async fn a_wait_asks_for_nothing_until_the_name_is_free() {
    let (stage, a, b) = two().await;
    let batch = (0..500).map(|n| (format!("n{n}"), Value::empty()));
    let all = a.register_all(batch).await.unwrap();
    let mut mine: Vec<Registered> = all.into_iter().map(Result::unwrap).collect();
    within(b.reached(mine[499].rev())).await.unwrap();
    let kept: Vec<Kept> =
        (0..500).map(|n| b.keep(&format!("n{n}"), Value::empty()).unwrap()).collect();
    stage.advance(Duration::from_secs(3)).await;
    let first = stage.faults().counts().names;
    stage.advance(Duration::from_secs(60)).await;
    assert_eq!(stage.faults().counts().names, first, "all of them wait");
    drop(mine.swap_remove(7));
    passes(&stage, || kept[7].is_current()).await;
    let asked = stage.faults().counts().names - first;
    assert!(asked <= 4, "one was dropped and taken by {asked} changes");
    assert_eq!(kept.iter().filter(|kept| kept.is_current()).count(), 1);
}

/// U8: what a process owned that is gone goes to one that waits, all of it.
#[tokio::test]
async fn all_names_of_a_dead_process_move_to_who_waits() {
    let (stage, a, b) = two().await;
    let batch = (0..300).map(|n| (format!("n{n}"), Value::empty()));
    let mine = a.register_all(batch).await.unwrap();
    let kept: Vec<Kept> =
        (0..300).map(|n| b.keep(&format!("n{n}"), Value::empty()).unwrap()).collect();
    stage.settle().await;
    let operator = stage.connect("operator").await.unwrap();
    operator.evict_now(&tenure::MemberId::new("a").unwrap()).await.unwrap();
    passes(&stage, || kept.iter().all(Kept::is_current)).await;
    drop(mine);
}

/// Among those who wait in one process the first has the name; one that gives up, also at the
/// very moment at which it is its turn, makes no other wait longer.
#[tokio::test]
async fn a_wait_that_is_given_up_is_passed_on() {
    let (stage, a, _) = two().await;
    let mut held = a.register("n", Value::empty()).await.unwrap();
    let waits = |names: &Registry| {
        let names = names.clone();
        tokio::spawn(async move { names.lock("n", Value::empty()).await.unwrap() })
    };
    for _ in 0..20 {
        let first = waits(&a);
        stage.settle().await;
        let second = waits(&a);
        stage.settle().await;
        let before = stage.faults().counts().names;
        held.release().await.unwrap();
        // The first was told, and has asked, or has the name already.
        first.abort();
        drop(first);
        passes(&stage, || second.is_finished()).await;
        held = second.await.unwrap();
        assert!(held.is_current());
        let asked = stage.faults().counts().names - before;
        assert!(asked <= 8, "{asked} changes for one hand-over");
    }
}

/// Such a name has no owner, so that no ttl says when it may be free: it is waited for without
/// asking, and had as soon as it is dropped.
#[tokio::test]
async fn a_name_without_an_owner_is_waited_for_without_asking() {
    let (stage, a, b) = two().await;
    let ns = Namespace::default();
    let name = Name::new("s:n").unwrap();
    let post = BindOp::post(name.clone(), Nonce::new(1), Value::empty());
    stage.faults().bind(&ns, &Bind::anonymous([post])).await.unwrap();
    let token = a.lookup_consistent("n").await.unwrap().unwrap().token;
    let kept = b.keep("n", Value::empty()).unwrap();
    stage.advance(Duration::from_secs(5)).await;
    let before = stage.faults().counts().names;
    stage.advance(Duration::from_secs(30)).await;
    assert_eq!(stage.faults().counts().names - before, 0);
    let drops = BindOp::drop(name, Nonce::new(2), token);
    stage.faults().bind(&ns, &Bind::anonymous([drops])).await.unwrap();
    passes(&stage, || kept.is_current()).await;
}

/// A wait ends with the member.
#[tokio::test]
async fn a_wait_ends_with_the_member() {
    let (stage, a, _) = two().await;
    let _mine = a.register("n", Value::empty()).await.unwrap();
    let tenure = stage.connect("c").await.unwrap();
    let names = Registry::open(&tenure, "s").unwrap();
    within(names.ready()).await.unwrap();
    let waits = tokio::spawn(async move { names.lock("n", Value::empty()).await });
    stage.settle().await;
    assert!(!waits.is_finished());
    tenure.shutdown().await.unwrap();
    passes(&stage, || waits.is_finished()).await;
    let refused = within(waits).await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("shut down"), "{refused}");
}

/// gproc #30: a caller that stops waiting when its answer has arrived, and before it has looked
/// at it, owns nothing: neither one name, nor any of many.
#[tokio::test]
async fn an_answer_that_is_not_received_is_given_back() {
    for many in [1, 50] {
        let (stage, a, b) = two().await;
        let batch: Vec<_> = (0..many).map(|n| (format!("n{n}"), Value::empty())).collect();
        let mut asks = Box::pin(a.register_all(batch.clone()));
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        assert!(asks.as_mut().poll(context).is_pending());
        stage.faults().called(StoreVerb::Bind, 1).await;
        // The answers are delivered, and not looked at.
        stage.settle().await;
        drop(asks);
        let free = async {
            loop {
                let all = within(b.register_all(batch.clone())).await.unwrap();
                if all.iter().all(Result::is_ok) {
                    break;
                }
                drop(all);
                stage.advance(Duration::from_millis(500)).await;
            }
        };
        within(free).await;
    }
}
