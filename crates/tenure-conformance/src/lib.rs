#![doc = include_str!("../README.md")]

mod actor;
mod case;
mod cases;
mod harness;
mod registry;
mod world;

pub use case::{Case, CaseFailure, Outcome};
pub use harness::{Harness, ManualHarness, RealTimeHarness};
pub use registry::{CASES, run};
