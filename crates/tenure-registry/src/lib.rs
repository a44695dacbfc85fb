#![doc = include_str!("../README.md")]

mod copy;
mod error;
mod follow;
mod handles;
mod registry;
mod watch;

pub use error::RegisterError;
pub use handles::{Found, Got, Kept, Registered};
pub use registry::Registry;
pub use watch::{Change, Watch};
