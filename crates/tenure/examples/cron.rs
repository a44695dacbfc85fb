//! A cron-like job on many machines that runs on one: every process ticks, only
//! the leader's tick does something.
//!
//! ```sh
//! cargo run --example cron -- sqlite:cron.db
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::time::Duration;

use tenure::{LeadError, Tenure};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let tenure = Tenure::connect(&url).await?;
    let election = tenure.election("cron");

    // Stand in the background, for as long as this process lives.
    let standing = election.clone();
    tokio::spawn(async move {
        let held = standing
            .lead_always(|leadership| async move {
                leadership.stopping().await;
                Ok::<_, std::io::Error>(std::ops::ControlFlow::<()>::Continue(()))
            })
            .await;
        if let Err(LeadError::Campaign(error)) = held {
            eprintln!("no longer standing: {error}");
        }
    });

    let mut tick = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..5 {
        tick.tick().await;
        // Cancelled in the middle if the leadership is lost.
        let ran = election.run_if_leader(|token| async move { run_jobs(token).await }).await;
        match ran {
            Some(jobs) => println!("ran {jobs} jobs"),
            None => println!("somebody else runs the jobs"),
        }
    }
    tenure.shutdown().await?;
    Ok(())
}

/// Writes what it does under `token`, so that a late write of a deposed leader
/// can be told from its successor's.
async fn run_jobs(token: u64) -> u64 {
    println!("rotating logs under token {token}");
    tokio::time::sleep(Duration::from_millis(10)).await;
    1
}
