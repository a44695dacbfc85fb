#![doc = include_str!("../README.md")]

mod amend;
mod anchor;
mod bid;
mod claim;
mod election;
mod format;
mod handle;
mod judging;
mod keys;
mod life;
mod looking;
mod member;
mod members;
mod memory;
mod mutation;
mod options;
mod past;
mod read;
mod record;
mod register;
mod release;
pub mod retrying;
mod seen;
mod standing;
mod store;
mod watch;

pub use member::MAX_CANDIDACIES;
pub use memory::MemoryRegister;
#[cfg(feature = "mutations")]
#[doc(hidden)]
pub use mutation::CasRule;
pub use options::CasOptions;
pub use record::MAX_RECORD;
pub use register::{Expect, Listed, Loaded, Register, Removed, Swapped, Version};
pub use retrying::{Repeats, Retrying};
pub use store::CasStore;

#[cfg(test)]
mod tests;
