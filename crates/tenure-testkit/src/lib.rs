#![doc = include_str!("../README.md")]

pub mod fuzzing;
mod inputs;

pub use inputs::{damage, replay};
