//! A cron-like job on many machines that runs on one: every process ticks, only
//! the leader's tick does something. A job that runs when the process is asked to
//! stop is finished before another process can run one.
//!
//! ```sh
//! cargo run --example cron -- sqlite:cron.db     # in two terminals; stop one with Ctrl-C
//! cargo run --example cron -- sqlite:cron.db 5   # five ticks, then stop
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use tenure::{Leadership, Tenure};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| "memory:".into());
    let ticks = args.next().map_or(Ok(u64::MAX), |n| n.parse())?;
    let tenure = Tenure::connect(&url).await?;
    cron(&tenure, Duration::from_secs(1), ticks, rotate_logs).await
}

/// Ticks until it has ticked so often, or is told to end, and runs the job with each
/// tick of the process that leads.
pub(crate) async fn cron<F, Fut>(
    tenure: &Tenure,
    every: Duration,
    ticks: u64,
    job: F,
) -> Result<(), Box<dyn Error>>
where
    F: Fn(Leadership) -> Fut,
    Fut: Future<Output = ()>,
{
    let election = tenure.election("cron");
    // Stand in the background, for as long as this process lives.
    let standing = election
        .on_elected(|leadership| async move { println!("leads: term {}", leadership.token()) })
        .on_lost(|term, why| println!("no longer leads: term {} ({why:?})", term.number));
    let standing = tokio::spawn(standing.stand());

    let mut terminate = signal(SignalKind::terminate())?;
    let mut tick = tokio::time::interval(every);
    for _ in 0..ticks {
        tokio::select! {
            biased; // no further job once it is told to end
            _ = terminate.recv() => break,
            _ = tokio::signal::ctrl_c() => break,
            _ = tick.tick() => {}
        }
        // Keeps the term until the job has ended, within the drain. The job is told
        // to stop when the leader is, and cancelled if the leadership is lost.
        if election.run_if_leader(&job).await.is_none() {
            println!("another process runs the job");
        }
    }
    tenure.shutdown().await?;
    standing.await??;
    Ok(())
}

/// Writes what it does under the token, so that a late write of a deposed leader can
/// be told from its successor's.
async fn rotate_logs(leadership: Leadership) {
    for log in ["access", "error"] {
        if leadership.is_stopping() {
            return; // between two items: nothing is left half done
        }
        println!("rotating the {log} log under token {}", leadership.token());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
