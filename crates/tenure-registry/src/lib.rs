#![doc = include_str!("../README.md")]

/// The repository's front page: what it shows compiles (L3).
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct FrontPage;

/// The page about names: the same.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/registry.md")]
pub struct RegistryPage;

mod copy;
mod error;
mod follow;
mod handles;
mod keep;
mod leader;
mod looks;
mod read;
mod registry;
mod waiters;
mod watch;

pub use error::RegisterError;
pub use handles::{Found, Got, Registered};
pub use keep::Kept;
pub use leader::Standing;
pub use looks::NameLooks;
pub use registry::Registry;
pub use watch::{Change, Watch};
