#![doc = include_str!("../README.md")]

mod clock;
mod config;
mod coverage;
mod fact;
mod invariants;
mod mutation;
mod rng;
mod scenario;
mod shrink;
mod store;
mod suite;
mod trace;
mod world;

pub use clock::{Clock, Nanos, SECOND};
pub use config::{Config, Feature, Features, StoreKind};
pub use coverage::{Coverage, Situation};
pub use fact::{Fact, Surveyed, SurveyedName, Who};
pub use invariants::Violation;
pub use mutation::{Mutation, SessionRule, StoreRule, TurnRule};
pub use rng::{Rng, TraceHash};
pub use scenario::Scenario;
pub use shrink::shrink;
pub use store::Step;
pub use suite::{Failure, Report, Suite, run_twice};
pub use trace::Trace;
pub use world::{Ran, run};
