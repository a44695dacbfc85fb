//! The adapter to the `metrics` crate: the names and labels that dashboards rely
//! on.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use common::{secs, until, within};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tenure::measures::MetricsRecorder;
use tenure::testing::{Fault, Stage, StoreVerb};

/// Keeps the names and labels it is asked for, the descriptions, and each value that a gauge
/// is set to.
#[derive(Clone, Debug, Default)]
struct Names(Arc<Mutex<BTreeSet<String>>>);

/// A gauge that notes what it is set to.
struct Noted(Names, Key);

impl metrics::GaugeFn for Noted {
    fn increment(&self, _: f64) {}
    fn decrement(&self, _: f64) {}

    fn set(&self, value: f64) {
        self.0.note(&format!("set {value}"), &self.1);
    }
}

impl Names {
    fn note(&self, kind: &str, key: &Key) {
        let labels: Vec<_> = key.labels().map(|l| format!("{}={}", l.key(), l.value())).collect();
        let line = format!("{kind} {} {}", key.name(), labels.join(" "));
        self.0.lock().unwrap().insert(line.trim_end().to_owned());
    }

    fn described(&self, name: &KeyName, help: &str) {
        assert!(help.len() > 20, "{help}");
        self.0.lock().unwrap().insert(format!("help {}", name.as_str()));
    }
}

impl Recorder for Names {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.described(&name, &help);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.described(&name, &help);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.described(&name, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.note("counter", key);
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.note("gauge", key);
        Gauge::from_arc(Arc::new(Noted(self.clone(), key.clone())))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.note("histogram", key);
        Histogram::noop()
    }
}

/// L15: every measure has a description and a label for its namespace, and a member that stands and
/// does not lead is a 0, not nothing.
#[tokio::test]
async fn the_documented_names_and_labels_are_recorded() {
    let names = Names::default();
    metrics::set_global_recorder(names.clone()).unwrap();
    let recorder = Arc::new(MetricsRecorder::new());
    let stage = Stage::new();
    let metrics = recorder.clone();
    let tenure = stage.connect_with(|m| m.metrics(metrics)).await.unwrap();
    let leadership = within(tenure.election("e").campaign()).await.unwrap();
    let standby = stage.connect_with(|m| m.namespace("other").metrics(recorder.clone()));
    let standby = standby.await.unwrap();
    let holder = stage.connect_with(|m| m.namespace("other")).await.unwrap();
    let _held = within(holder.election("f").campaign()).await.unwrap();
    let _stands = tokio::spawn(async move { standby.election("f").campaign().await });
    stage.faults().script(StoreVerb::Heartbeat, [Fault::FailBefore]);
    stage.advance(secs(10)).await;
    within(leadership.resign()).await.unwrap();

    let wanted = [
        "gauge tenure_is_leader namespace=default election=e",
        "set 1 tenure_is_leader namespace=default election=e",
        "set 0 tenure_is_leader namespace=default election=e",
        "set 0 tenure_is_leader namespace=other election=f",
        "gauge tenure_term namespace=default election=e",
        "counter tenure_transitions_total namespace=default election=e reason=elected",
        "counter tenure_transitions_total namespace=default election=e reason=resigned",
        "histogram tenure_margin_left_seconds namespace=default",
        "histogram tenure_request_seconds namespace=default verb=heartbeat",
        "counter tenure_errors_total namespace=default verb=heartbeat",
        "help tenure_is_leader",
        "help tenure_term",
        "help tenure_transitions_total",
        "help tenure_margin_left_seconds",
        "help tenure_request_seconds",
        "help tenure_errors_total",
    ];
    // The hook has a thread of its own.
    until("all measures", || async {
        wanted.iter().all(|line| names.0.lock().unwrap().contains(*line))
    })
    .await;
    let set = names.0.lock().unwrap().clone();
    assert!(!set.contains("set 1 tenure_is_leader namespace=other election=f"), "{set:?}");
}
