#![doc = include_str!("../README.md")]

mod address;
mod beat;
mod binding;
mod error;
mod examine;
mod fence;
mod follow;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod keeper;
mod link;
mod names;
mod options;
mod owners;
mod passfile;
mod password;
mod purge;
mod rows;
mod schema;
mod session;
mod spare;
mod store;
mod texts;
mod tls;
mod verbs;
mod watch;
mod words;

pub use fence::Postgres;
pub use options::{PostgresOptions, SslMode};
pub use schema::VERSION as SCHEMA_VERSION;
pub use store::PostgresStore;

/// What this kind of store is called, as in its URL.
const KIND: &str = "postgres";
