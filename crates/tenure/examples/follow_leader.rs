//! A client that follows the leader's address without standing itself.
//!
//! ```sh
//! cargo run --example follow_leader -- sqlite:app.db
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use tenure::{Observed, Tenure};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(url) = std::env::args().nth(1) else { return show_both().await };
    let tenure = Tenure::connect(&url).await?;
    follow(&tenure, usize::MAX).await
}

async fn follow(tenure: &Tenure, most: usize) -> Result<(), Box<dyn std::error::Error>> {
    let mut observer = tenure.election("api").observe()?;
    for _ in 0..most {
        let Some(seen) = observer.next().await else { break };
        match seen.observed {
            Observed::Leads { term, profile } => {
                let address = profile.endpoints().first().map_or("nowhere", String::as_str);
                println!("send requests to {address} ({}, term {})", term.member.id, term.number);
            }
            Observed::Vacant { number } => println!("the leader of term {number} is gone: hold on"),
            other => println!("{other:?}"),
        }
    }
    Ok(())
}

/// Without a store: a leader and a follower in one process.
async fn show_both() -> Result<(), Box<dyn std::error::Error>> {
    let follower = Tenure::connect("memory:shown").await?;
    let leader =
        Tenure::builder("memory:shown").id("api-1").endpoint("10.0.0.7:8080").connect().await?;
    let following = tokio::spawn(async move {
        let shown = follow(&follower, 3).await.map_err(|error| error.to_string());
        follower.shutdown().await.map_err(|error| error.to_string())?;
        shown
    });
    let leadership = leader.election("api").campaign().await?;
    tokio::task::yield_now().await;
    leadership.resign().await?;
    leader.election("api").campaign().await?.resign().await?;
    following.await??;
    leader.shutdown().await?;
    Ok(())
}
