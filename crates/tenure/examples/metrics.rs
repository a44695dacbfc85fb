//! Measurements by a hook of one's own: what to watch before a leadership is lost is how
//! little of the trust was left when it was renewed. The feature `metrics` has an adapter to
//! the crate of that name.
//!
//! ```sh
//! cargo run --example metrics -- sqlite:app.db
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure::measures::{Metric, Metrics};
use tenure::{Namespace, Tenure, WorkError};

#[derive(Debug, Default)]
struct Gauges {
    leads: AtomicU64,
    failed_requests: AtomicU64,
}

impl Metrics for Gauges {
    // On a thread of its own: it may take a while, and delays no heartbeat.
    fn record(&self, _: &Namespace, metric: &Metric) {
        match metric {
            Metric::Elected { election, number } => {
                let leads = self.leads.fetch_add(1, Ordering::Relaxed) + 1;
                println!("leads {election} under token {number}: {leads} in all");
            }
            Metric::Lost { election, reason, .. } => {
                let leads = self.leads.fetch_sub(1, Ordering::Relaxed) - 1;
                println!("leads {election} no more ({reason}): {leads} in all");
            }
            Metric::Renewed { margin_left } => println!("renewed with {margin_left:.1?} left"),
            Metric::Request { verb, latency, failed: true } => {
                let failed = self.failed_requests.fetch_add(1, Ordering::Relaxed) + 1;
                println!("a {} failed after {latency:.1?}: {failed} in all", verb.name());
            }
            _ => {}
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let gauges = Arc::new(Gauges::default());
    let tenure = Tenure::builder(&url).metrics(gauges).connect().await?;
    let election = tenure.election("measured");
    let work = election.lead(|_| async { tokio::signal::ctrl_c().await.map_err(WorkError::from) });
    work.await?;
    tenure.shutdown().await?;
    Ok(())
}
