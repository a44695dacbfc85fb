#![doc = include_str!("../README.md")]

mod books;
pub mod checker;
mod clock;
mod crew;
mod failure;
mod guarded;
mod holder;
mod keeper;
mod nemesis;
mod options;
mod record;
mod report;
mod rng;
mod rollback;
mod run;
mod schedule;
mod succession;
mod timeline;
mod worker;

pub use clock::Nanos;
pub use failure::{Failure, Outcome};
pub use guarded::{CommandOrders, Told, become_program, run_command};
pub use holder::{HolderOrders, hold};
pub use keeper::keep;
pub use nemesis::Mark;
pub use options::{Options, Sabotage, StoreKind, USAGE};
pub use record::Line;
pub use report::Report;
pub use run::run;
pub use worker::{Orders, work};
