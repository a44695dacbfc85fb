#![doc = include_str!("../README.md")]
// A test that cannot go on panics, and says why.
#![allow(clippy::expect_used, clippy::missing_panics_doc)]

mod authority;
mod dice;
pub mod fuzzing;
pub mod happenings;
pub mod history;
mod inputs;
mod own;
pub mod process;
pub mod proxy;
pub mod requests;
mod stamps;
mod wait;

pub use authority::Authority;
pub use dice::Dice;
pub use inputs::{damage, replay};
pub use own::{cannot_test_here, free_port, fresh_name, stamp};
pub use process::Process;
pub use proxy::Proxy;
pub use stamps::{Life, Stamps, lives};
pub use wait::{LIMIT, let_pass, let_pass_blocking, until, wait_for, within};
