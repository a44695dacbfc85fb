#![doc = include_str!("../README.md")]

mod address;
mod body;
mod channel;
mod config;
mod connection;
mod error;
mod fault;
mod follow;
mod header;
mod repeat;
mod route;
mod routing;
mod server;
mod source;

pub use channel::{Builder, LeaderChannel, Prewarm, ResponseFuture};
pub use config::{BadServiceConfig, service_config};
pub use error::BuildError;
pub use header::{ENDED, ENDPOINT, LEADER, REFUSED, TERM, VACANT};
pub use server::{LeaderOnly, LeaderOnlyBody, LeaderOnlyFuture, LeaderOnlyService};
pub use source::Watched;
