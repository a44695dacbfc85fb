//! Two-phase shutdown on SIGTERM: the work is told to stop, finishes its item
//! while the term is still renewed, and only then is the term released.
//!
//! ```sh
//! cargo run --example graceful_shutdown -- sqlite:app.db &
//! kill %1
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::time::Duration;

use tenure::{Left, Tenure};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let tenure = Tenure::builder(&url).drain(Duration::from_secs(5)).connect().await?;

    let working = tenure.clone();
    let work = tokio::spawn(async move {
        let election = working.election("importer");
        let done = election.lead(|leadership| async move {
            println!("leading under term {}", leadership.token());
            // Between two items: nothing is left half done.
            while !leadership.is_stopping() {
                one_item().await;
            }
            println!("told to stop; the last item is finished");
            Ok::<_, std::io::Error>(())
        });
        done.await
    });

    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => println!("SIGTERM"),
        _ = tokio::signal::ctrl_c() => println!("interrupted"),
    }
    // Asks the work to stop, waits for it to drain, releases, leaves.
    match tenure.shutdown().await? {
        Left::Unconfirmed => println!("left, and the store has not confirmed it"),
        _ => println!("left the store"),
    }
    work.await??;
    Ok(())
}

async fn one_item() {
    tokio::time::sleep(Duration::from_millis(200)).await;
    println!("an item");
}
