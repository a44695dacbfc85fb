//! `cargo xtask model`: searches small worlds of the machine to their end.

use crate::failure::Outcome;
use crate::steps::{Steps, cargo};

/// Runs the model checker in release. Arguments go to it: `--short`, or the
/// name of one world.
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut steps = Steps::of("model");
    let line = ["run", "--release", "--quiet", "--package", "tenure-model", "--"];
    steps.command("small worlds, searched to their end", cargo(&line).args(args));
    steps.finish()
}
