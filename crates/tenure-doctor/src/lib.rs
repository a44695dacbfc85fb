#![doc = include_str!("../README.md")]

mod clock;
mod connection;
mod era;
mod notifications;

use std::time::{Duration, Instant};

use tenure::{Builder, Finding, Tenure};
use tenure_api::span;

/// Where the doctor tries things out.
const NAMESPACE: &str = "tenure-doctor";

/// What the doctor goes by.
#[derive(Clone, Debug)]
pub struct Doctor {
    /// The store's URL without its secrets.
    pub shown_store: String,
    /// How long the store's clock is watched.
    pub clock_for: Duration,
}

impl Doctor {
    /// Connects as `builder` says, but in a namespace of the doctor's own, and looks at
    /// everything. A store that cannot be opened is a finding like any other.
    pub async fn examine(&self, builder: Builder) -> Vec<Finding> {
        let began = Instant::now();
        let store = &self.shown_store;
        match builder.namespace(NAMESPACE).connect().await {
            Ok(tenure) => {
                let took = span::show(began.elapsed());
                let mut findings = vec![
                    Finding::fine("connection", "connection", format!("{store} opened in {took}")),
                    Finding::fine(
                        "schema",
                        "schema",
                        "the tables are of the version this program knows",
                    ),
                ];
                self.look_at(&tenure, &mut findings).await;
                // If it cannot be confirmed, the ttl ends the doctor's membership.
                let _ = tenure.shutdown().await;
                findings
            }
            Err(error) => {
                let found = format!("{store} cannot be used");
                vec![Finding::wrong("connection", "connection", found, error.to_string())]
            }
        }
    }

    async fn look_at(&self, tenure: &Tenure, findings: &mut Vec<Finding>) {
        let round_trip = match connection::round_trips(tenure).await {
            Ok(round_trip) => round_trip,
            Err(failed) => {
                findings.push(failed);
                return;
            }
        };
        findings.push(round_trip.finding());
        findings.push(connection::timings(tenure, round_trip.worst));
        let examined = tenure.examine().await;
        let late_because = examined.as_ref().ok().and_then(|examined| examined.late_because);
        findings.push(notifications::look(tenure, late_because).await);
        findings.push(connection::permissions(tenure).await);
        findings.push(clock::look(tenure, self.clock_for).await);
        match examined {
            Ok(examined) => {
                findings.extend(examined.era.as_ref().map(era::look).into_iter().flatten());
                findings.extend(examined.findings);
            }
            Err(error) => {
                let found = "the store was asked about itself, and did not answer";
                findings.push(Finding::wrong("examination", "store", found, error.to_string()));
            }
        }
        findings.extend(connection::capabilities(&tenure.capabilities()));
    }
}
