//! Work that runs in one process at a time, with the draining of a leadership.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure::Leadership;
use tenure::naming::Value;
use tenure::testing::Stage;
use tenure_registry::{RegisterError, Registry};
use tenure_testkit::within;
use tokio::sync::mpsc;

async fn two() -> (Stage, Registry, Registry) {
    let stage = Stage::new();
    let a = Registry::open(&stage.connect("a").await.unwrap(), "s").unwrap();
    let b = Registry::open(&stage.connect("b").await.unwrap(), "s").unwrap();
    within(a.ready()).await.unwrap();
    within(b.ready()).await.unwrap();
    (stage, a, b)
}

/// Runs a singleton in the background that says what happens to it.
fn run(
    registry: &Registry,
    id: &'static str,
) -> mpsc::UnboundedReceiver<(&'static str, Leadership)> {
    let (tell, told) = mpsc::unbounded_channel();
    let registry = registry.clone();
    tokio::spawn(async move {
        let value = Value::at(format!("{id}:1")).unwrap();
        let work = |leadership: Leadership| {
            let tell = tell.clone();
            async move {
                tell.send(("begins", leadership.clone())).unwrap();
                leadership.stopping().await;
                tell.send(("stops", leadership)).unwrap();
            }
        };
        drop(registry.singleton("n", value, work).await);
    });
    told
}

async fn passes(stage: &Stage, holds: impl Fn() -> bool) {
    while !holds() {
        stage.advance(Duration::from_millis(200)).await;
    }
}

/// Asked to step down, the work is told and drains; only when it has ended, and its leadership
/// is dropped, is the term given back, and the name before it. The next one then has both.
#[tokio::test]
async fn a_singleton_drains_before_the_next_one_begins() {
    let (stage, a, b) = two().await;
    let mut of_a = run(&a, "a");
    let (said, first) = within(of_a.recv()).await.unwrap();
    assert_eq!(said, "begins");
    let mut of_b = run(&b, "b");
    stage.settle().await;
    stage.ask_to_step_down("s:n", "a new version").await.unwrap();
    let (said, draining) = {
        let stopped = async {
            loop {
                stage.advance(Duration::from_millis(200)).await;
                if let Ok(said) = of_a.try_recv() {
                    break said;
                }
            }
        };
        within(stopped).await
    };
    assert_eq!(said, "stops");
    stage.advance(Duration::from_secs(1)).await;
    assert!(of_b.try_recv().is_err(), "the other one does not begin while this one drains");
    assert!(draining.is_current(), "it is renewed while it drains");
    drop((first, draining));
    let begun = async {
        loop {
            stage.advance(Duration::from_millis(200)).await;
            if let Ok(said) = of_b.try_recv() {
                break said;
            }
        }
    };
    let (said, second) = within(begun).await;
    assert_eq!(said, "begins");
    let found = b.lookup_consistent("n").await.unwrap().unwrap();
    assert_eq!(found.value.endpoint(), Some("b:1"));
    assert!(second.is_current());
}

/// While another process has the name, the singleton leads and waits, and its work does not
/// run; it begins when the name is free. The leadership is not given up meanwhile.
#[tokio::test]
async fn a_singleton_waits_for_its_name_and_leads_meanwhile() {
    let (stage, a, b) = two().await;
    let plain = b.register("n", Value::empty()).await.unwrap();
    let mut of_a = run(&a, "a");
    stage.until_led("s:n").await.unwrap();
    let operator = stage.connect("operator").await.unwrap();
    let term = operator.election("s:n").view().await.unwrap().number;
    stage.advance(Duration::from_secs(30)).await;
    assert!(of_a.try_recv().is_err(), "it has no name to be found under");
    assert_eq!(operator.election("s:n").view().await.unwrap().number, term, "the same term");
    plain.release().await.unwrap();
    within(passes(&stage, || a.lookup("n").is_some_and(|f| f.value().endpoint() == Some("a:1"))))
        .await;
    assert_eq!(within(of_a.recv()).await.unwrap().0, "begins");
}

/// Two singletons (akka #27487): of two processes that run one, at most one works at any time,
/// also when the one is ended while it works; its work is cancelled.
#[tokio::test]
async fn there_are_never_two_singletons() {
    let (stage, a, b) = two().await;
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let start = |registry: &Registry| {
        let registry = registry.clone();
        let running = running.clone();
        let most = most.clone();
        tokio::spawn(async move {
            let work = |_| {
                let guard = Running::begin(&running, &most);
                async move {
                    let _guard = guard;
                    std::future::pending::<()>().await
                }
            };
            registry.singleton("n", Value::empty(), work).await
        })
    };
    let _one = start(&a);
    let _two = start(&b);
    let operator = stage.connect("operator").await.unwrap();
    let mut terms = Vec::new();
    for _ in 0..6 {
        within(passes(&stage, || running.load(Ordering::SeqCst) > 0)).await;
        let view = operator.election("s:n").view().await.unwrap();
        terms.push(view.number);
        operator.evict(&view.holder.unwrap().member.id).await.unwrap();
        within(passes(&stage, || running.load(Ordering::SeqCst) == 0)).await;
    }
    terms.dedup();
    assert_eq!((terms.len(), most.load(Ordering::SeqCst)), (6, 1));
}

/// Counts those that run.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn begin(count: &Arc<AtomicUsize>, most: &AtomicUsize) -> Self {
        most.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A panic of the work reaches the caller as an error, with the name and the term given back.
#[tokio::test]
async fn a_panic_gives_the_name_and_the_term_back() {
    let (stage, a, b) = two().await;
    let work = |_| async {
        if true {
            panic!("no more ink")
        }
    };
    let failed = within(a.singleton("n", Value::empty(), work)).await.unwrap_err();
    assert!(matches!(&failed, RegisterError::Panicked(text) if text == "no more ink"), "{failed}");
    stage.settle().await;
    let mine = within(b.register("n", Value::empty())).await.unwrap();
    assert!(mine.is_current());
}
