//! Scripts of (time, input → outputs), one file per group of rules.

mod basics;
mod script;
