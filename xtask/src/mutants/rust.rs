//! The Rust half, by cargo-mutants, as `.cargo/mutants.toml` sets it up.

use std::fs;
use std::path::Path;

use super::Options;
use super::scratch::Scratch;
use crate::failure::{Doing, Outcome};
use crate::servers::Servers;
use crate::steps::{cargo, has_cargo_command, root};

/// What to do for those who want this half too.
const INSTALL: &str = "cargo-mutants is not installed, so the Rust code was left alone; to \
                       install it:\n    cargo install --locked cargo-mutants";

/// Breaks the code of each of these crates. Only what was not caught before, or was not
/// there, is run, unless the verdicts are to be forgotten.
pub(super) fn run(kept: &Path, packages: &[&str], options: &Options, servers: &Servers) -> Outcome {
    if !has_cargo_command("mutants") {
        println!("{INSTALL}");
        return Ok(());
    }
    let tree = Scratch::copy(&root(), &kept.join("rust"), &[])?;
    for package in packages {
        let out = kept.join(format!("rust-{package}"));
        fs::create_dir_all(&out).doing(|| format!("make {}", out.display()))?;
        // In place is in the copy: it is not copied once more, and built in one folder.
        let mut line = tree.command(cargo(&["mutants", "--in-place", "--package", package]));
        line.arg("--output").arg(&out);
        if !options.again {
            line.arg("--iterate");
        }
        for text in &options.only {
            line.args(["--re", text]);
        }
        if has_cargo_command("nextest") {
            line.arg("--test-tool=nextest");
        }
        // Survivors make it fail: they are the result, not a failure of this command.
        let status = line.envs(servers.environment()).status();
        let status = status.doing(|| "run cargo-mutants".into())?;
        println!("{package}: cargo-mutants ended with {status}; see {}", out.display());
    }
    Ok(())
}
