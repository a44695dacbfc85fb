//! The parsers of the `tenure` program, which is no library: they are compiled
//! from its own files.
#![allow(dead_code)]

#[path = "../../crates/tenure-cli/src/config.rs"]
mod config;
#[path = "../../crates/tenure-cli/src/exit.rs"]
mod exit;
#[path = "../../crates/tenure-cli/src/failure.rs"]
mod failure;
#[path = "../../crates/tenure-cli/src/fuzzing.rs"]
pub mod fuzzing;
#[path = "../../crates/tenure-cli/src/redact.rs"]
mod redact;
