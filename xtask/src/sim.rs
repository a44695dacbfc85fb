//! `cargo xtask sim`: the simulator, built for release.

use crate::failure::{Failure, Outcome};
use crate::steps::cargo;

/// Hands every argument on to the simulator, which explains its own.
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut command = cargo(&["run", "--quiet", "--release", "-p", "tenure-sim", "--"]);
    match command.args(args).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::new("sim: FAILED; what went wrong is shown above")),
        Err(error) => Err(Failure::new(format!("cargo could not be started: {error}"))),
    }
}
