//! `cargo xtask platforms`: the library compiles for the platforms that its page names.

use std::process::Command;

use crate::failure::{Doing, Failure, Outcome};
use crate::steps::{Steps, cargo};

/// The platforms of which the page says that the library compiles there. What needs a C compiler
/// for the platform (the TLS of `postgres` and `object`) is left out.
const TARGETS: [&str; 2] = ["x86_64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The library without stores, and the registry on it.
const PACKAGES: [&str; 4] = ["-p", "tenure", "-p", "tenure-registry"];

/// Fetches the standard library of each platform with rustup, and checks the library for it.
pub(crate) fn run() -> Outcome {
    let mut steps = Steps::of("platforms");
    for target in TARGETS {
        let mut is_there = false;
        steps.step(&format!("{target}: the standard library"), || {
            add(target)?;
            is_there = true;
            Ok(())
        });
        if is_there {
            let line = ["check", "--quiet", "--no-default-features", "--target", target];
            steps.command(target, cargo(&line).args(PACKAGES));
        }
    }
    steps.finish()
}

fn add(target: &str) -> Outcome {
    let mut rustup = Command::new("rustup");
    let added = rustup.args(["target", "add", target]).status().doing(|| "run rustup".into())?;
    if added.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "rustup could not add {target}; install the standard library of that platform by hand"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page says of each platform that this checks, and of no other, that it compiles there.
    #[test]
    fn the_page_names_the_platforms_that_are_checked() {
        let page = include_str!("../../crates/tenure/README.md");
        for target in TARGETS {
            assert!(page.contains(&format!("`{target}`")), "{target}");
        }
        let named = page.split('`').filter(|word| word.starts_with("x86_64-"));
        assert_eq!(named.count(), TARGETS.len());
    }
}
