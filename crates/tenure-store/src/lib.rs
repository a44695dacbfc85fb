#![doc = include_str!("../README.md")]

mod backoff;
mod capabilities;
mod clock;
mod error;
mod fence;
mod identity;
mod memory;
mod nearest;
mod store;
#[cfg(feature = "tls")]
pub mod tls;
mod told;
mod turns;
pub mod url;

pub use backoff::{Backoff, jittered};
pub use capabilities::{Capabilities, Judge, NameTraits, Watch};
pub use clock::{BootClock, Clock, ManualClock};
pub use error::{Error, ErrorKind, Result};
pub use fence::{FenceBlocking, FenceError, FenceIn, Fenced, FencedName, FencedTerm};
pub use identity::{BadStoreId, Identity, StoreId};
pub use memory::MemoryStore;
pub use nearest::nearest;
pub use store::{Followed, Following, Page, SharedStore, Store, perform, to_machine};
pub use tenure_rules::MemoryState;
pub use told::Told;
pub use turns::{MemoryRows, Rows, TurnStore, Turned};
