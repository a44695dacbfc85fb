//! A greeter of which one process answers at a time. Stop it, and another goes on.
//!
//! ```sh
//! cargo run --example greeter -- sqlite:greet.db 127.0.0.1:50051   # and 50052 in another terminal
//! cargo run --example greeting -- sqlite:greet.db                  # in a third
//! ```

#![allow(clippy::print_stdout)]

#[path = "greet/mod.rs"]
#[allow(dead_code)] // The client uses the rest.
mod greet;

use std::error::Error;

use greet::GreeterServer;
use tenure::{Leadership, Tenure};
use tenure_grpc::LeaderOnly;
use tonic::transport::Server;
use tonic::{Request, Status};
use tower_layer::Layer;

fn greet(request: Request<String>) -> Result<String, Status> {
    // `LeaderOnly` has put it there; the term stands until this returns.
    let leadership: Leadership =
        request.extensions().get().cloned().ok_or(Status::internal("?"))?;
    Ok(format!("hello {} from {}", request.get_ref(), leadership.term().member.id))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let store = args.next().unwrap_or_else(|| "memory:".into());
    let address = args.next().unwrap_or_else(|| "127.0.0.1:50051".into());
    let tenure = Tenure::builder(&store).endpoint(&address).connect().await?;
    let election = tenure.election("greeter");

    // It stands for as long as it runs. The server asks with each call whether it leads.
    let standing = election.on_elected(|leadership| async move {
        println!("leads: term {}", leadership.token());
    });
    tokio::spawn(standing.stand());
    let greeter = LeaderOnly::new(election).layer(GreeterServer(greet));
    let server = Server::builder().add_service(greeter);
    println!("listens on {address}");
    tokio::select! {
        served = server.serve(address.parse()?) => served?,
        _ = tokio::signal::ctrl_c() => {}
    }
    tenure.shutdown().await?;
    Ok(())
}
