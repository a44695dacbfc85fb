//! A client that greets ten times a second, and does not notice when another greeter leads. It is
//! no member: it only follows the election. See `greeter.rs`.
//!
//! ```sh
//! cargo run --example greeting -- sqlite:greet.db
//! ```

#![allow(clippy::print_stdout)]

#[path = "greet/mod.rs"]
#[allow(dead_code)] // The server uses the rest.
mod greet;

use std::error::Error;
use std::time::Duration;

use greet::{GREET, Texts};
use tenure::Tenure;
use tenure_grpc::LeaderChannel;
use tonic::Request;
use tonic::client::Grpc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let operator = Tenure::operate(&store).await?;
    let channel = LeaderChannel::builder(operator.election("greeter"))
        .wait_for_leader(Duration::from_secs(30))
        .build()?;
    // With tonic-build: `let mut client = GreeterClient::new(channel);`
    let mut client = Grpc::new(channel);
    for number in 1.. {
        client.ready().await?;
        let request = Request::new(format!("no. {number}"));
        match client.unary(request, GREET.parse()?, Texts).await {
            Ok(answer) => println!("{}", answer.get_ref()),
            Err(status) => println!("FAILED: {status}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
