//! The adapter to the `metrics` crate.

use std::sync::Once;

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use tenure_core::{ElectionName, LostReason, Namespace};

use super::{Metric, Metrics};

/// Hands measurements to the recorder of the `metrics` crate, with a description of each,
/// which Prometheus shows as HELP. Every one has a label `namespace`:
///
/// | name | kind | further labels |
/// |---|---|---|
/// | `tenure_is_leader` | gauge, 1 while this member leads, 0 while it stands | `election` |
/// | `tenure_term` | gauge, the number of the last term led here | `election` |
/// | `tenure_transitions_total` | counter | `election`, `reason` |
/// | `tenure_margin_left_seconds` | histogram | |
/// | `tenure_request_seconds` | histogram | `verb` |
/// | `tenure_errors_total` | counter | `verb` |
///
/// A standby has a `tenure_is_leader` of 0 from its first candidacy on, so that
/// `sum by (election) (tenure_is_leader) == 0` finds an election without a leader.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use std::sync::Arc;
/// use tenure::Tenure;
/// use tenure::measures::MetricsRecorder;
///
/// // Install a recorder first, for example metrics-exporter-prometheus.
/// let recorder = Arc::new(MetricsRecorder::new());
/// let tenure = Tenure::builder("memory:").metrics(recorder.clone()).connect().await?;
/// let billing = tenure.member_in("billing").metrics(recorder).connect().await?;
/// # drop(billing); Ok(()) })
/// # }
/// ```
#[derive(Debug)]
pub struct MetricsRecorder {
    described: Once,
}

impl Default for MetricsRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl MetricsRecorder {
    /// An adapter to the recorder that the program installs.
    #[must_use]
    pub fn new() -> Self {
        Self { described: Once::new() }
    }
}

fn describe() {
    describe_gauge!(
        "tenure_is_leader",
        "1 while this member leads the election, 0 while it stands for it"
    );
    describe_gauge!(
        "tenure_term",
        "The number of the last term of the election that this member led"
    );
    describe_counter!(
        "tenure_transitions_total",
        "How often this member was elected, and lost or gave up a term, by reason"
    );
    describe_histogram!(
        "tenure_margin_left_seconds",
        Unit::Seconds,
        "What was left of the trust when it was renewed; near zero, terms are about to be lost"
    );
    describe_histogram!(
        "tenure_request_seconds",
        Unit::Seconds,
        "How long requests to the store took, by kind"
    );
    describe_counter!("tenure_errors_total", "Requests to the store that failed, by kind");
}

impl Metrics for MetricsRecorder {
    fn record(&self, namespace: &Namespace, metric: &Metric) {
        self.described.call_once(describe);
        let ns = namespace.to_string();
        match metric {
            Metric::Standing { election } => leads(&ns, election, false),
            Metric::Elected { election, number } => {
                leads(&ns, election, true);
                let of = election.to_string();
                // Exact up to 2^53; later numbers are off by less than one in 2^52.
                #[allow(clippy::cast_precision_loss)]
                let term = number.get() as f64;
                gauge!("tenure_term", "namespace" => ns.clone(), "election" => of).set(term);
                transition(&ns, election, "elected");
            }
            Metric::Lost { election, reason, .. } => {
                leads(&ns, election, false);
                transition(&ns, election, word(*reason));
            }
            Metric::Renewed { margin_left } => {
                let left = margin_left.as_secs_f64();
                histogram!("tenure_margin_left_seconds", "namespace" => ns).record(left);
            }
            Metric::Request { verb, latency, failed } => {
                let verb = verb.name();
                let took = latency.as_secs_f64();
                histogram!("tenure_request_seconds", "namespace" => ns.clone(), "verb" => verb)
                    .record(took);
                // A counter that is there from the beginning, so that its first rise is seen.
                counter!("tenure_errors_total", "namespace" => ns, "verb" => verb)
                    .increment(u64::from(*failed));
            }
        }
    }
}

fn leads(ns: &str, election: &ElectionName, leads: bool) {
    let labels = [("namespace", ns.to_owned()), ("election", election.to_string())];
    gauge!("tenure_is_leader", &labels).set(if leads { 1.0 } else { 0.0 });
}

fn transition(ns: &str, election: &ElectionName, reason: &'static str) {
    let labels = [
        ("namespace", ns.to_owned()),
        ("election", election.to_string()),
        ("reason", reason.to_owned()),
    ];
    counter!("tenure_transitions_total", &labels).increment(1);
}

fn word(reason: LostReason) -> &'static str {
    match reason {
        LostReason::Resigned => "resigned",
        LostReason::SteppedDown => "stepped_down",
        LostReason::DrainTimeout => "drain_timeout",
        LostReason::TrustEnded => "trust_ended",
        LostReason::Superseded => "superseded",
        LostReason::RolledBack => "rolled_back",
        _ => "other",
    }
}
