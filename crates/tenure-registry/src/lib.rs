#![doc = include_str!("../README.md")]

mod copy;
mod error;
mod follow;
mod handles;
mod keep;
mod leader;
mod registry;
mod watch;

pub use error::RegisterError;
pub use handles::{Found, Got, Registered};
pub use keep::Kept;
pub use leader::Standing;
pub use registry::Registry;
pub use watch::{Change, Watch};
