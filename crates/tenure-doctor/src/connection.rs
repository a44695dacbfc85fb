//! How far away the store is, and what this member may do there.

use std::time::{Duration, Instant};

use tenure::Tenure;
use tenure::store::{Capabilities, Finding};
use tenure_api::span;

/// How long reads take.
pub(crate) struct RoundTrip {
    median: Duration,
    pub(crate) worst: Duration,
}

impl RoundTrip {
    pub(crate) fn finding(&self) -> Finding {
        let median = span::show(self.median);
        let worst = span::show(self.worst);
        Finding::fine("round-trip", "round trip", format!("{median} (worst of 9: {worst})"))
    }
}

/// The median and the worst of several reads.
pub(crate) async fn round_trips(tenure: &Tenure) -> Result<RoundTrip, Finding> {
    let mut took = Vec::new();
    for _ in 0..9 {
        let asked = Instant::now();
        if let Err(error) = tenure.members().await {
            let remedy = error.to_string();
            return Err(Finding::wrong("round-trip", "round trip", "a read failed", remedy));
        }
        took.push(asked.elapsed());
    }
    took.sort();
    Ok(RoundTrip { median: took[took.len() / 2], worst: took[took.len() - 1] })
}

/// Whether requests leave room for failed ones.
pub(crate) fn timings(tenure: &Tenure, round_trip: Duration) -> Finding {
    let settings = tenure.settings();
    let timeout = settings.request_timeout();
    let found = format!(
        "ttl {}, heartbeat {}, request timeout {}",
        span::show(settings.ttl()),
        span::show(settings.heartbeat()),
        span::show(timeout)
    );
    if round_trip * 4 <= timeout {
        return Finding::fine("timings", "timings", found);
    }
    let remedy = format!(
        "a request may take {} and took {}: use a longer preset, or bring the store nearer",
        span::show(timeout),
        span::show(round_trip)
    );
    Finding::wrong("timings", "timings", found, remedy)
}

/// Joins, stands, leads, resigns: everything a member needs to be allowed.
pub(crate) async fn permissions(tenure: &Tenure) -> Finding {
    let asked = Instant::now();
    let tried = async {
        let limit = tenure.settings().ttl();
        let leadership = tenure.election("doctor").campaign_timeout(limit).await?;
        let elected = asked.elapsed();
        leadership.resign().await?;
        Ok::<_, tenure::Error>(elected)
    };
    match tried.await {
        Ok(took) => {
            let found = format!("joined, led and resigned; elected in {}", span::show(took));
            Finding::fine("permissions", "permissions", found)
        }
        Err(error) => Finding::wrong(
            "permissions",
            "permissions",
            "an election could not be won in the doctor's own namespace",
            error.to_string(),
        ),
    }
}

/// What the store cannot do, and what to do instead.
pub(crate) fn capabilities(capabilities: &Capabilities) -> Vec<Finding> {
    let mut findings = Vec::new();
    if capabilities.proof_of_death {
        let found = "a dead process of this host is noticed at once";
        findings.push(Finding::fine("crashes", "crashes", found));
    }
    if !capabilities.transactional_fence {
        let found = "the token cannot be checked inside your own transaction on this store";
        let remedy = "let whatever you write to refuse older tokens";
        findings.push(Finding::note("fence", "fence", found, remedy));
    }
    findings
}
