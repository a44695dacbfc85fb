//! `cargo xtask chaos`: real processes under real faults, built for release.

use std::path::Path;

use crate::failure::{Failure, Outcome};
use crate::servers;
use crate::steps::cargo;

/// Hands every argument on to the program, which explains its own, and sees to it
/// that what it needs is on this machine.
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut command = cargo(&["run", "--quiet", "--release", "-p", "tenure-chaos", "--"]);
    command.args(args);
    let asks = args.iter().any(|arg| arg == "--help" || arg == "-h");
    if wants_postgres(args) && !asks {
        command.envs(servers::postgres_programs()?);
    }
    if !asks && !has_faketime() {
        // Without it wall clocks are not jumped, and the report says so.
        if let Err(failure) = servers::install(&["faketime"]) {
            println!("    wall clocks will not be jumped: {failure}");
        }
    }
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::new("chaos: FAILED; what went wrong is shown above")),
        Err(error) => Err(Failure::new(format!("cargo could not be started: {error}"))),
    }
}

fn wants_postgres(args: &[String]) -> bool {
    args.windows(2).any(|pair| pair[0] == "--store" && pair[1] == "postgres")
}

fn has_faketime() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join("faketime").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server is provided for the run that needs it, and for no other.
    #[test]
    fn only_a_run_on_postgres_wants_its_programs() {
        let wants = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(String::from).collect();
            wants_postgres(&args)
        };
        assert!(wants("--minutes 1 --store postgres"));
        assert!(!wants("--store sqlite --seed 1"));
        assert!(!wants(""));
    }
}
