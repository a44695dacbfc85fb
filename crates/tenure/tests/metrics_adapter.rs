//! The adapter to the `metrics` crate: the names and labels that dashboards rely
//! on.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use common::{secs, until, within};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tenure::MetricsRecorder;
use tenure::testing::{Fault, Stage, StoreVerb};

/// Keeps the names and labels it is asked for.
#[derive(Clone, Debug, Default)]
struct Names(Arc<Mutex<BTreeSet<String>>>);

impl Names {
    fn note(&self, kind: &str, key: &Key) {
        let labels: Vec<_> = key.labels().map(|l| format!("{}={}", l.key(), l.value())).collect();
        let line = format!("{kind} {} {}", key.name(), labels.join(" "));
        self.0.lock().unwrap().insert(line.trim_end().to_owned());
    }
}

impl Recorder for Names {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.note("counter", key);
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.note("gauge", key);
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.note("histogram", key);
        Histogram::noop()
    }
}

#[tokio::test]
async fn the_documented_names_and_labels_are_recorded() {
    let names = Names::default();
    metrics::set_global_recorder(names.clone()).unwrap();
    let stage = Stage::new();
    let tenure = stage.connect_with(|m| m.metrics(Arc::new(MetricsRecorder))).await.unwrap();
    let leadership = within(tenure.election("e").campaign()).await.unwrap();
    stage.faults().script(StoreVerb::Heartbeat, [Fault::FailBefore]);
    stage.advance(secs(10)).await;
    within(leadership.resign()).await.unwrap();

    let wanted = [
        "gauge tenure_is_leader election=e",
        "gauge tenure_term election=e",
        "counter tenure_transitions_total election=e reason=elected",
        "counter tenure_transitions_total election=e reason=resigned",
        "histogram tenure_margin_left_seconds",
        "histogram tenure_request_seconds verb=heartbeat",
        "counter tenure_errors_total verb=heartbeat",
    ];
    // The hook has a thread of its own.
    until("all measures", || async {
        wanted.iter().all(|line| names.0.lock().unwrap().contains(*line))
    })
    .await;
}
