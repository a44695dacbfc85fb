#![doc = include_str!("../README.md")]

mod backoff;
mod capabilities;
pub mod cas;
mod clock;
mod error;
mod faults;
mod fence;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod memory;
mod store;
pub mod url;

pub use backoff::{Backoff, jittered};
pub use capabilities::{Capabilities, Judge, Watch};
pub use cas::{
    CasOptions, CasStore, Expect, Listed, Loaded, MemoryRegister, Register, Removed, Swapped,
    Version,
};
pub use clock::{BootClock, Clock, ManualClock};
pub use error::{Error, ErrorKind, Result};
pub use faults::{Counts, Fault, FaultyStore, HintFault, Verb};
pub use fence::{FenceBlocking, FenceError, FenceIn, FencedTerm};
pub use identity::{BadStoreId, Identity, StoreId};
pub use memory::{MemoryState, MemoryStore};
pub use store::{Followed, Following, From, SharedStore, Store, perform, to_machine};
