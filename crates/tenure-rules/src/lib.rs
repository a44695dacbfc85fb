#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;

#[cfg(test)]
extern crate std;

mod amend;
pub mod bidding;
mod bind;
mod claim;
mod life;
mod memory;
mod named;
pub mod op;
mod partial;
mod purge;
pub mod rank;
mod read;
mod release;
mod rows;
mod step;
mod view;

pub use amend::amend;
pub use bind::bind;
pub use claim::claim;
pub use life::{heartbeat, join, leave};
pub use memory::MemoryState;
pub use named::names;
pub use partial::{Looked, Missing, Partial, Turn, Want};
pub use read::read;
pub use release::release;
pub use rows::{
    CandidacyRow, ElectionRow, EraCause, ForgottenRow, Held, MemberRow, Moment, NameRow, NamesRow,
    ReadRows, Reserved, WriteRows,
};
