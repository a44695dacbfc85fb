//! Scripts of (time, input → outputs), one file per group of rules.

mod basics;
mod bids;
mod hints;
mod many;
mod membership;
mod release;
mod script;
mod shutdown;
mod single;
mod stepdown;
mod trust;
