#![doc = include_str!("../README.md")]

mod clock;
mod connection;
mod era;
mod names;
mod notifications;

use std::time::{Duration, Instant};

use tenure::store::{Examined, Finding};
use tenure::{Builder, Tenure};
use tenure_api::span;

/// Where the doctor tries things out.
const NAMESPACE: &str = "tenure-doctor";

/// What the doctor goes by.
#[derive(Clone, Debug)]
pub struct Doctor {
    /// The store's URL without its secrets.
    pub shown_store: String,
    /// The namespace whose names are counted.
    pub namespace: String,
    /// How long the store's clock is watched.
    pub clock_for: Duration,
}

impl Doctor {
    /// Connects as `builder` says, but in a namespace of the doctor's own, and looks at
    /// everything. In the namespace that it was asked about it only reads. A store that cannot be opened is a finding like any other.
    pub async fn examine(&self, builder: Builder) -> Vec<Finding> {
        let began = Instant::now();
        let store = &self.shown_store;
        match builder.namespace(NAMESPACE).connect().await {
            Ok(tenure) => {
                let took = span::show(began.elapsed());
                let opened = format!("{store} opened in {took}");
                let mut findings = vec![Finding::fine("connection", "connection", opened)];
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

    /// What the store says of itself, and of the namespace that the doctor was asked about.
    async fn ask(&self, tenure: &Tenure) -> tenure::Result<Examined> {
        let there = tenure.member_in(&self.namespace).connect().await?;
        let examined = there.examine().await;
        // It has joined nothing.
        let _ = there.shutdown().await;
        examined
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
        // Before anything is written: a store may put right by itself what it says now.
        let examined = self.ask(tenure).await;
        let late_because = examined.as_ref().ok().and_then(|examined| examined.late_because);
        findings.push(notifications::look(tenure, late_because).await);
        findings.extend(names::look(tenure, late_because).await);
        findings.push(connection::permissions(tenure).await);
        findings.push(clock::look(tenure, self.clock_for).await);
        match examined {
            Ok(examined) => {
                let codes = examined.findings.iter().map(|finding| finding.code);
                let is_known = codes.into_iter().any(|code| code == Finding::ROLLED_BACK);
                let era = examined.era.as_ref().map(|view| era::look(view, is_known));
                findings.extend(era.into_iter().flatten());
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A store without tables is told nothing of tables.
    #[tokio::test]
    async fn nothing_is_said_of_what_a_store_does_not_have() {
        let doctor = Doctor {
            shown_store: "memory:".into(),
            namespace: "default".into(),
            clock_for: Duration::from_millis(10),
        };
        let findings = doctor.examine(Tenure::builder("memory:")).await;
        let codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
        for code in ["era", "permissions", "replica-lag"] {
            assert!(codes.contains(&code), "{codes:?}");
        }
        let lag = findings.iter().find(|finding| finding.code == "replica-lag");
        assert!(lag.is_some_and(|lag| lag.found.contains("was in a copy after")), "{lag:?}");
        assert!(!codes.contains(&"schema"), "{codes:?}");
    }
}
