//! Three namespaces on one connection: one thread, one connection to the store and one
//! runtime, however many there are. Each has members, elections and a heartbeat of its own,
//! so that one can be lost without the others.
//!
//! ```sh
//! cargo run --example three_namespaces -- sqlite:app.db
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use tenure::{Tenure, WorkError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let billing = Tenure::builder(&url).namespace("billing").connect().await?;
    let members = [
        billing.member_in("search").connect().await?,
        billing.member_in("mail").connect().await?,
        billing,
    ];

    let mut work = tokio::task::JoinSet::new();
    for member in members.clone() {
        work.spawn(async move {
            let nightly = member.election("nightly");
            nightly
                .lead(|leadership| async move {
                    let token = leadership.token();
                    println!("{}: leads under token {token}", member.namespace());
                    leadership.stopping().await;
                    Ok::<_, WorkError>(())
                })
                .await
        });
    }

    tokio::signal::ctrl_c().await?;
    for member in members {
        member.shutdown().await?;
    }
    work.join_all().await;
    Ok(())
}
