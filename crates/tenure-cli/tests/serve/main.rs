//! `tenure serve` as a process: what its supervisor is told, what strangers and faults do to it,
//! and what is deployed with it.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod deploy;
mod faults;
mod fuzzed;
mod strangers;
mod supervised;
mod web;
