#![doc = include_str!("../README.md")]

mod action;
mod app;
mod check;
mod config;
mod game;
mod marks;
mod naming;
mod outlives;
mod properties;
mod world;

pub use action::Action;
pub use check::{Verdict, check, first_violation};
pub use config::{Budget, Config, StoreRule, full, short};
pub use game::Game;
pub use marks::Mark;
pub use naming::Owned;
pub use world::{Broken, Leadership, Letter, Process, World};
