//! `cargo xtask test`: the one test command.

use std::time::SystemTime;

use crate::failure::Outcome;
use crate::metadata::Package;
use crate::servers::Servers;
use crate::steps::{Steps, cargo, has_cargo_command};
use crate::{metadata, servers, times};

/// Starts the servers that the chosen crates are tested against, runs every test and
/// every documentation example, stops the servers, and says where the time went.
///
/// The features are those that clippy is run with, so that dependencies are
/// built once.
pub(crate) fn run(args: &[String]) -> Outcome {
    let packages = metadata::packages()?;
    let tested = tested(args, &packages);
    let since = SystemTime::now();
    let mut steps = Steps::of("test");
    let mut running = Servers::none();
    steps.step("servers", || {
        running = servers::start(&servers::needed(&tested))?;
        println!("    {}", running.described());
        Ok(())
    });
    if let Some(line) = programs(&tested) {
        steps.command("programs", &mut cargo(&line));
    }
    // Without its server every test of a store would fail again, at length.
    if running.complete() {
        let nextest = has_cargo_command("nextest");
        for (name, line) in plan(args, nextest, &packages) {
            steps.command(name, cargo(&[]).args(line).envs(running.environment()));
        }
    }
    drop(running);
    if let Some(table) = times::table(since) {
        println!("\n--- where the time goes\n{table}");
    }
    steps.finish()
}

/// The crates whose tests are run: those that were named, or all.
fn tested(args: &[String], packages: &[Package]) -> Vec<Package> {
    let named = named(args);
    let chosen = packages.iter().filter(|p| named.is_empty() || named.contains(&p.name.as_str()));
    chosen.cloned().collect()
}

/// Builds the program that the tests of another crate start, where they are run without
/// those of its own crate, with which it is built anyway.
fn programs(tested: &[Package]) -> Option<[&'static str; 6]> {
    let has = |name: &str| tested.iter().any(|package| package.name == name);
    let line = ["build", "--all-features", "-p", "tenure-cli", "--bin", "tenure"];
    (has("tenure-chaos") && !has("tenure-cli")).then_some(line)
}

/// The cargo lines to run, each with what it is called in the summary.
fn plan(args: &[String], nextest: bool, packages: &[Package]) -> Vec<(&'static str, Vec<String>)> {
    let named = named(args);
    let mut common = vec!["--all-features".to_owned()];
    // It would win over a package that was named.
    if named.is_empty() {
        common.push("--workspace".to_owned());
    }
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
    let expression = args.iter().any(|arg| arg == "-E" || arg.starts_with("--filter"));
    if !expression && has_examples(&named, packages) {
        plan.push(("documentation examples", line(&["test", "--doc", "--no-fail-fast"], &[])));
    }
    plan
}

/// The packages that the user named.
fn named(args: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut args = args.iter().map(String::as_str).take_while(|arg| *arg != "--");
    while let Some(arg) = args.next() {
        match arg {
            "-p" | "--package" => found.extend(args.next()),
            _ => found.extend(arg.strip_prefix("--package=").or_else(|| arg.strip_prefix("-p"))),
        }
    }
    found
}

/// Cargo refuses to look for examples where there are only programs.
fn has_examples(named: &[&str], packages: &[Package]) -> bool {
    let is_program = |name: &&str| packages.iter().any(|p| p.name == **name && !p.library);
    named.is_empty() || !named.iter().all(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(args: &[&str], nextest: bool) -> Vec<String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let package =
            |name: &str, library| Package { name: name.into(), library, ..Package::default() };
        let packages =
            [package("tenure-core", true), package("tool", false), package("xtask", false)];
        plan(&args, nextest, &packages).into_iter().map(|(_, line)| line.join(" ")).collect()
    }

    /// nextest runs no documentation examples: they get a run of their own.
    #[test]
    fn tests_and_examples_both_run() {
        assert_eq!(
            lines(&[], true),
            [
                "nextest run --all-features --workspace --no-tests=fail",
                "test --doc --no-fail-fast --all-features --workspace",
            ]
        );
    }

    /// Without nextest the same tests run under plain cargo.
    #[test]
    fn plain_cargo_runs_the_same() {
        assert_eq!(
            lines(&[], false),
            [
                "test --no-fail-fast --all-targets --all-features --workspace",
                "test --doc --no-fail-fast --all-features --workspace",
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

    /// However the package is named.
    #[test]
    fn naming_a_package_runs_that_package_only() {
        for args in [&["-p", "tenure-core"][..], &["-ptenure-core"], &["--package=tenure-core"]] {
            let lines = lines(args, false);
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines.iter().all(|line| !line.contains("--workspace")), "{lines:?}");
        }
        // After `--` it is the test's own argument.
        assert!(lines(&["--", "-p"], false)[0].contains("--workspace"));
    }

    /// The chaos tests start `tenure`, and what they start is not left from another day.
    #[test]
    fn what_a_test_starts_is_built() {
        let crates = |names: &[&str]| -> Vec<Package> {
            names
                .iter()
                .map(|name| Package { name: (*name).into(), ..Package::default() })
                .collect()
        };
        assert!(programs(&crates(&["tenure-chaos"])).is_some());
        assert!(programs(&crates(&["tenure-chaos", "tenure-cli"])).is_none());
        assert!(programs(&crates(&["tenure-core"])).is_none());
    }

    /// Servers are started for the crates that were named, or for all.
    #[test]
    fn what_was_named_is_tested() {
        let names = ["tenure-core", "tenure-postgres"];
        let packages = names.map(|name| Package { name: name.into(), ..Package::default() });
        let tested = |args: &[&str]| -> Vec<String> {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            tested(&args, &packages).into_iter().map(|package| package.name).collect()
        };
        assert_eq!(tested(&["-p", "tenure-core", "expired"]), ["tenure-core"]);
        assert_eq!(tested(&["expired"]), names);
    }

    /// Asking cargo for the examples of a mere program is an error.
    #[test]
    fn a_program_has_no_examples_to_run() {
        assert_eq!(lines(&["-p", "xtask"], true).len(), 1);
        assert_eq!(lines(&["-p", "xtask", "-p", "tool"], true).len(), 1);
        assert_eq!(lines(&["-p", "xtask", "-p", "tenure-core"], true).len(), 2);
    }

    /// A nextest expression would be an error to the documentation run.
    #[test]
    fn a_nextest_expression_skips_the_examples() {
        assert_eq!(lines(&["-E", "test(expired)"], true).len(), 1);
    }
}
