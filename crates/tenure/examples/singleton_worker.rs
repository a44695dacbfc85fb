//! A worker of which only one may run: start it twice, stop one, watch the
//! other take over.
//!
//! ```sh
//! cargo run --example singleton_worker                      # in two terminals
//! cargo run --example singleton_worker -- sqlite:jobs.db 3  # three items, then stop
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::ops::ControlFlow;
use std::time::Duration;

use tenure::{Stopping, Tenure};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let default = format!("sqlite:{}", std::env::temp_dir().join("tenure-example.db").display());
    let url = args.next().unwrap_or(default);
    let mut items: u64 = args.next().map_or(Ok(u64::MAX), |n| n.parse())?;

    let tenure = Tenure::connect(&url).await?;
    println!("{} stands for \"singleton-worker\" on {url}", tenure.id());

    let election = tenure.election("singleton-worker");
    election
        .lead_always(|leadership| {
            println!("elected: term {} is the fencing token", leadership.token());
            let mut left = items;
            items = 0;
            async move {
                let mut tick = tokio::time::interval(Duration::from_millis(500));
                while left > 0 {
                    tokio::select! {
                        _ = tick.tick() => {}
                        why = leadership.stopping() => {
                            println!("asked to stop: {why:?}");
                            let Stopping::Asked { .. } = why else { break };
                            return Ok(ControlFlow::Continue(())); // drained: stand again later
                        }
                    }
                    // Before each side effect: a clock read, no I/O.
                    if !leadership.is_current() {
                        break;
                    }
                    println!("working under term {}", leadership.token());
                    left -= 1;
                }
                Ok::<_, std::io::Error>(ControlFlow::Break(()))
            }
        })
        .await?;

    println!("done, resigned");
    tenure.shutdown().await?;
    Ok(())
}
