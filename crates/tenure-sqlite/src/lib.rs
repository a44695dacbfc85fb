#![doc = include_str!("../README.md")]

mod boot;
mod desk;
mod error;
mod fence;
mod filesystem;
mod follow;
mod journal;
mod judge;
mod lives;
mod options;
mod rows;
mod schema;
mod shared;
mod store;
mod txn;
mod verbs;
mod watch;

pub use boot::BootKey;
pub use fence::{FenceError, fence};
pub use options::SqliteOptions;
pub use schema::SCHEMA;
pub use store::SqliteStore;
