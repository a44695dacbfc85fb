//! Scripts of (time, input → outputs), one file per group of rules; and random
//! lives, in a small world.

mod basics;
mod bids;
mod failures;
mod handover;
mod hints;
mod many;
mod membership;
mod names;
mod names_doubt;
mod names_random;
mod random;
mod release;
mod rollback;
mod script;
mod shutdown;
mod stepdown;
mod trust;
mod world;
