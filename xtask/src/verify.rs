//! `cargo xtask verify`: everything but the tests. It changes no file outside
//! the target folder.

use crate::failure::Outcome;
use crate::steps::{Steps, cargo, has_cargo_command};
use crate::{metadata, tidy};

/// Cheap checks first, so that a slip is told early; all of them in any case.
pub(crate) fn run() -> Outcome {
    let packages = metadata::packages()?;
    let mut steps = Steps::of("verify");
    steps.command("formatting", &mut cargo(&["fmt", "--all", "--", "--check"]));
    steps.step("tidy", tidy::check);
    // Warnings are denied after the `--`, not by RUSTFLAGS: other flags would
    // make cargo build every dependency a second time.
    let all = ["--workspace", "--all-targets", "--all-features"];
    steps.command("clippy", cargo(&["clippy"]).args(all).args(["--", "-D", "warnings"]));
    // Together they lend each other the features of what they depend on.
    for library in tidy::libraries(&packages) {
        let alone = format!("{} by itself", library.name);
        steps.command(&alone, &mut cargo(&["check", "--lib", "--package", &library.name]));
    }
    let doc = ["doc", "--workspace", "--all-features", "--no-deps"];
    steps.command("documentation", cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"));
    if has_cargo_command("deny") {
        let deny = ["deny", "--all-features", "check", "licenses", "bans", "sources"];
        steps.command("dependencies", &mut cargo(&deny));
    } else {
        println!("\n--- dependencies: not checked, cargo-deny is not installed");
    }
    steps.finish()
}
