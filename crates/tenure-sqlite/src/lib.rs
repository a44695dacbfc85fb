#![doc = include_str!("../README.md")]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "tenure-sqlite needs Linux: its clock, its locks and its wake-ups are the kernel's. \
     Turn the feature off, or use a store with a server."
);

mod access;
mod boot;
mod era;
mod error;
mod examine;
mod fence;
mod filesystem;
mod follow;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod holder;
mod identity;
mod journal;
mod judge;
mod limits;
mod lives;
mod names;
mod options;
mod rows;
mod schema;
mod shared;
mod store;
mod turn;
mod txn;
mod url;
mod verbs;
mod watch;
mod worker;

pub use boot::BootKey;
pub use fence::{Sqlite, fence};
pub use options::SqliteOptions;
pub use schema::SCHEMA;
pub use store::SqliteStore;
pub use url::sqlite_url;

/// What this kind of store is called, as in its URL.
const KIND: &str = "sqlite";
