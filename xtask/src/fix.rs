//! `cargo xtask fix`: what can be put right by machine.

use crate::failure::Outcome;
use crate::steps::{Steps, cargo};

/// Clippy first: what it rewrites is formatted afterwards.
pub(crate) fn run() -> Outcome {
    let mut steps = Steps::of("fix");
    // Work in progress is the very thing one wants to fix.
    let clippy = ["clippy", "--fix", "--allow-dirty", "--allow-staged"];
    let what = ["--workspace", "--all-targets", "--all-features"];
    steps.command("clippy", cargo(&clippy).args(what));
    steps.command("formatting", &mut cargo(&["fmt", "--all"]));
    steps.finish()
}
