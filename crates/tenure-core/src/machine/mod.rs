//! The machine.

mod io;

pub use io::{Event, Input, LostReason, Outgoing, Output, RequestId, StopReason, StoreTraits};

/// The machine.
#[derive(Debug)]
pub struct Machine;
