//! `cargo xtask chaos`: real processes under real faults, built for release.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Outcome};
use crate::servers;
use crate::steps::{cargo, root};

/// How many faults `--clients` has, if none are named.
const CLIENT_FAULTS: &str = "200";

/// Hands every argument on to the program, which explains its own, and sees to it
/// that what it needs is on this machine. `--clients [faults]` hurts clients in three languages
/// instead, on one PostgreSQL.
pub(crate) fn run(args: &[String]) -> Outcome {
    if let [first, faults @ ..] = args
        && first == "--clients"
    {
        return clients(faults.first().map_or(CLIENT_FAULTS, String::as_str));
    }
    // Together, so that what both need is built once. The trial finds `tenure` beside itself.
    let build =
        ["build", "--quiet", "--release", "--bins", "-p", "tenure-chaos", "-p", "tenure-cli"];
    succeed(&mut cargo(&build), "chaos: it could not be built; see above")?;
    let mut command = Command::new(program()?);
    command.args(args).current_dir(root());
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
    succeed(&mut command, "chaos: FAILED; what went wrong is shown above")
}

/// The test that `cargo xtask test` runs with few faults, with many.
fn clients(faults: &str) -> Outcome {
    let needed = [servers::find("postgres")?, servers::find("languages")?];
    let running = servers::start(&needed)?;
    let test = ["test", "--quiet", "--all-features", "-p", "tenure-cli", "--test", "clients"];
    let mut command = cargo(&test);
    command.args(["--", "members_in_three_languages", "--nocapture"]);
    command.envs(running.environment()).env("TENURE_CLIENT_FAULTS", faults).env("CI", "true");
    succeed(&mut command, "chaos: FAILED; what went wrong is shown above")
}

fn succeed(command: &mut Command, otherwise: &str) -> Outcome {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::new(otherwise)),
        Err(error) => {
            let program = Path::new(command.get_program()).display();
            Err(Failure::new(format!("{program} could not be started: {error}")))
        }
    }
}

/// Where cargo has put it: this program lies in the folder of another profile.
fn program() -> Outcome<PathBuf> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(format!("xtask does not find its own file: {error}")))?;
    let target = own.parent().and_then(Path::parent);
    let target = target.ok_or_else(|| Failure::new("xtask lies in no target folder"))?;
    Ok(target.join("release").join("tenure-chaos"))
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
