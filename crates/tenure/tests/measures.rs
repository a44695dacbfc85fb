//! What is measured: names that dashboards rely on.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Arc, Mutex};

use common::{secs, until, within};
use tenure::Namespace;
use tenure::measures::{Metric, Metrics, Verb};
use tenure::testing::{Fault, Stage, StoreVerb};

#[derive(Debug, Default)]
struct Kept(Mutex<Vec<String>>);

impl Metrics for Kept {
    fn record(&self, _: &Namespace, metric: &Metric) {
        let line = match metric {
            Metric::Elected { election, number } => format!("elected {election} {number}"),
            Metric::Lost { election, number, reason } => {
                format!("lost {election} {number} {reason:?}")
            }
            Metric::Renewed { margin_left } => format!("renewed {}", margin_left.as_millis()),
            Metric::Request { verb, failed, .. } => {
                format!("{} {}", verb.name(), if *failed { "failed" } else { "answered" })
            }
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

impl Kept {
    /// Waits until the hook, on its own thread, was told `line` so often.
    async fn until(&self, line: &str, times: usize) {
        until(line, || async { self.count(line) >= times }).await;
        assert_eq!(self.count(line), times, "{line}");
    }

    fn margins(&self) -> Vec<u64> {
        let kept = self.0.lock().unwrap();
        kept.iter().filter_map(|l| l.strip_prefix("renewed ")?.parse().ok()).collect()
    }

    fn count(&self, line: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|kept| *kept == line).count()
    }
}

/// The hook gets wins and losses with their reason, every request with its
/// outcome, and what was left of trust at each renewal.
#[tokio::test]
async fn the_hook_gets_transitions_requests_and_the_margin_left() {
    let stage = Stage::new();
    let kept = Arc::new(Kept::default());
    let hook = kept.clone();
    let tenure = stage.connect_with(|m| m.id("a").metrics(hook)).await.unwrap();
    let leadership = within(tenure.election("e").campaign()).await.unwrap();
    kept.until("elected e 1", 1).await;
    kept.until("join answered", 1).await;
    kept.until("claim answered", 1).await;
    stage.advance(secs(10)).await;
    kept.until("heartbeat answered", 4).await;
    // Trust less the heartbeat interval: 8,990 − 2,500, to the step of the
    // stage's clock.
    let margins = within(async {
        loop {
            let margins = kept.margins();
            if margins.len() >= 4 {
                return margins;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(margins.iter().all(|left| (5000..=6500).contains(left)), "{margins:?}");
    stage.faults().script(StoreVerb::Heartbeat, [Fault::FailBefore]);
    stage.advance(secs(5)).await;
    kept.until("heartbeat failed", 1).await;
    within(leadership.resign()).await.unwrap();
    kept.until("lost e 1 Resigned", 1).await;
    kept.until("release answered", 1).await;
    assert_eq!(Verb::Heartbeat.name(), "heartbeat");
}

/// F2: a hook that never returns delays no renewal, and costs no memory without
/// bound.
#[tokio::test]
async fn a_hook_that_blocks_delays_no_renewal() {
    #[derive(Debug)]
    struct Blocks(tokio::sync::mpsc::UnboundedSender<Option<String>>);
    impl Metrics for Blocks {
        fn record(&self, _: &Namespace, _: &Metric) {
            let _ = self.0.send(std::thread::current().name().map(str::to_owned));
            loop {
                std::thread::park();
            }
        }
    }
    let stage = Stage::new();
    let (called, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let hook = Arc::new(Blocks(called));
    let tenure = stage.connect_with(|m| m.id("a").metrics(hook)).await.unwrap();
    let campaign = tokio::spawn(async move { tenure.election("e").campaign().await.unwrap() });
    let thread = within(calls.recv()).await.unwrap();
    assert_eq!(thread.as_deref(), Some("tenure-metrics"), "the thread that the hook blocks");
    let leadership = within(campaign).await.unwrap();
    stage.advance(secs(60)).await;
    assert!(leadership.is_current());
    within(leadership.resign()).await.unwrap();
}
