#![doc = include_str!("../README.md")]

mod anchor;
mod bids;
mod candidates;
mod cells;
mod decisions;
mod eras;
mod judge;
mod keys;
mod lives;
mod members;
mod memory;
mod memory_register;
#[cfg(feature = "__lab")]
mod mutation;
mod names;
mod operators;
mod options;
mod outcomes;
mod parts;
mod poller;
mod reader;
mod record;
mod register;
mod releases;
pub mod retrying;
mod seen;
mod store;
mod told;
mod views;

pub use keys::term_key;
pub use memory_register::MemoryRegister;
#[cfg(feature = "__lab")]
#[doc(hidden)]
pub use mutation::CasRule;
pub use options::CasOptions;
pub use record::MAX_RECORD;
pub use record::candidacies::MAX_CANDIDACIES;
pub use register::{
    AllSwapped, Batches, Change, Expect, Listed, Loaded, Register, Removed, Swapped, Version,
    Watching, Write,
};
pub use retrying::{Repeats, Retrying};
pub use store::CasStore;

#[cfg(test)]
mod tests;
