//! `cargo xtask test`: the one test command.

use crate::failure::Outcome;
use crate::servers::Servers;
use crate::steps::{Steps, cargo, has_cargo_command};
use crate::{metadata, servers};

/// Starts the servers that the crates of this workspace are tested against, runs
/// every test and every documentation example, and stops the servers.
///
/// The features are those that clippy is run with, so that dependencies are
/// built once.
pub(crate) fn run(args: &[String]) -> Outcome {
    let packages = metadata::packages()?;
    let mut steps = Steps::of("test");
    let mut running = Servers::none();
    steps.step("servers", || {
        running = servers::start(&servers::needed(&packages))?;
        println!("    {}", running.described());
        Ok(())
    });
    // Without its server every test of a store would fail again, at length.
    if running.complete() {
        let nextest = has_cargo_command("nextest");
        for (name, line) in plan(args, nextest) {
            steps.command(name, cargo(&[]).args(line).envs(running.environment()));
        }
    }
    drop(running);
    steps.finish()
}

/// The cargo lines to run, each with what it is called in the summary.
fn plan(args: &[String], nextest: bool) -> Vec<(&'static str, Vec<String>)> {
    let mut common = Vec::new();
    if !names_packages(args) {
        common.push("--workspace".to_owned());
    }
    common.push("--all-features".to_owned());
    let line = |head: &[&str], tail: &[&str]| -> Vec<String> {
        let head = head.iter().map(|word| (*word).to_owned());
        let tail = tail.iter().map(|word| (*word).to_owned());
        head.chain(common.iter().cloned()).chain(tail).chain(args.iter().cloned()).collect()
    };

    let mut plan = Vec::new();
    if nextest {
        // A filter may well match documentation examples only.
        let none = if args.is_empty() { "--no-tests=fail" } else { "--no-tests=warn" };
        plan.push(("tests (nextest)", line(&["nextest", "run"], &[none])));
    } else {
        plan.push(("tests (cargo test)", line(&["test", "--no-fail-fast", "--all-targets"], &[])));
    }
    // A filter expression is nextest's own; the other runner has no such thing.
    if !args.iter().any(|arg| arg == "-E" || arg.starts_with("--filter")) {
        plan.push(("documentation examples", line(&["test", "--doc", "--no-fail-fast"], &[])));
    }
    plan
}

fn names_packages(args: &[String]) -> bool {
    args.iter().any(|arg| arg.starts_with("-p") || arg.starts_with("--package"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(args: &[&str], nextest: bool) -> Vec<String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        plan(&args, nextest).into_iter().map(|(_, line)| line.join(" ")).collect()
    }

    /// nextest runs no documentation examples: they get a run of their own.
    #[test]
    fn tests_and_examples_both_run() {
        assert_eq!(
            lines(&[], true),
            [
                "nextest run --workspace --all-features --no-tests=fail",
                "test --doc --no-fail-fast --workspace --all-features",
            ]
        );
    }

    /// Without nextest the same tests run under plain cargo.
    #[test]
    fn plain_cargo_runs_the_same() {
        assert_eq!(
            lines(&[], false),
            [
                "test --no-fail-fast --all-targets --workspace --all-features",
                "test --doc --no-fail-fast --workspace --all-features",
            ]
        );
    }

    /// What the user adds goes to both runs, after our own arguments.
    #[test]
    fn filters_are_passed_through() {
        for line in lines(&["expired"], true) {
            assert!(line.ends_with(" expired"), "{line}");
        }
    }

    /// `--workspace` would win over a package that was named.
    #[test]
    fn naming_a_package_runs_that_package_only() {
        for line in lines(&["-p", "tenure-core"], false) {
            assert!(!line.contains("--workspace"), "{line}");
        }
    }

    /// A nextest expression would be an error to the documentation run.
    #[test]
    fn a_nextest_expression_skips_the_examples() {
        assert_eq!(lines(&["-E", "test(expired)"], true).len(), 1);
    }
}
