//! What the tests of the clients in other languages need: the compiler of TypeScript, and drivers
//! of PostgreSQL for Node and Python, each at a pinned version.

use std::process::{Command, Stdio};

use super::cache::{Published, Registry};
use super::{Running, Scratch, Server};
use crate::failure::{Doing, Failure, Outcome};
use crate::steps::root;

/// Where the tests find them: what goes into `NODE_PATH` and `PYTHONPATH`.
const NODE: &str = "TENURE_TEST_NODE_PATH";
const PYTHON: &str = "TENURE_TEST_PYTHON_PATH";
/// The oldest Node that the package is for.
const NODE_VERSION: u32 = 20;

const fn node(name: &'static str, version: &'static str, program: &'static str) -> Published {
    Published { registry: Registry::Node, name, extra: "", version, program }
}

const fn python(
    name: &'static str,
    extra: &'static str,
    version: &'static str,
    program: &'static str,
) -> Published {
    Published { registry: Registry::Python, name, extra, version, program }
}

const OF_NODE: [Published; 4] = [
    node("typescript", "5.9.3", "node_modules/typescript/bin/tsc"),
    node("@types/node", "20.19.43", "node_modules/@types/node/package.json"),
    node("pg", "8.23.1", "node_modules/pg/package.json"),
    node("postgres", "3.4.9", "node_modules/postgres/package.json"),
];
const OF_PYTHON: [Published; 3] = [
    python("psycopg", "[binary]", "3.3.9", "psycopg/__init__.py"),
    python("asyncpg", "", "0.32.0", "asyncpg/__init__.py"),
    python("mypy", "", "2.4.1", "mypy/__main__.py"),
];

/// Packages, which need no process: what stands in for one only waits to be stopped.
pub(crate) struct Languages;

impl Server for Languages {
    fn name(&self) -> &'static str {
        "languages"
    }

    fn variable(&self) -> &'static str {
        NODE
    }

    fn may_lack(&self) -> bool {
        true
    }

    fn provide(&self) -> Outcome {
        let version = said("node", "--version");
        let major = version.trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok());
        if major.is_none_or(|major: u32| major < NODE_VERSION) {
            let what = format!(
                "the clients need Node {NODE_VERSION} or newer, and `node --version` says \
                 {version:?}: install it the way this system does, with npm, then run this again"
            );
            return Err(Failure::new(what));
        }
        OF_NODE.iter().chain(&OF_PYTHON).try_for_each(Published::provide)
    }

    fn start(&self, scratch: &Scratch) -> Outcome<Running> {
        let mut waits = Command::new("sleep");
        waits.arg("infinity");
        let running = Running::spawn(waits, &scratch.path().join("log"))?;
        Ok(running
            .with_environment(NODE, &paths(&OF_NODE, "node_modules"))
            .with_environment(PYTHON, &paths(&OF_PYTHON, "")))
    }
}

fn paths(all: &[Published], below: &str) -> String {
    let all = all.iter().map(|one| one.folder().join(below).display().to_string());
    all.collect::<Vec<_>>().join(":")
}

/// What `isLeader()` costs, in each language.
pub(crate) fn bench() -> Outcome {
    Languages.provide()?;
    let typescript = root().join("clients/typescript");
    let python = root().join("clients/python");
    for script in ["build.mjs", "bench.mjs"] {
        let mut node = Command::new("node");
        node.arg(script).env("NODE_PATH", paths(&OF_NODE, "node_modules"));
        succeed(node.current_dir(&typescript))?;
    }
    let mut bench = Command::new("python3");
    bench.arg("bench.py").env("PYTHONPATH", python.join("src"));
    succeed(bench.current_dir(&python))
}

fn succeed(command: &mut Command) -> Outcome {
    let status = command.status().doing(|| format!("run {command:?}"))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{command:?}: {status}; what went wrong is shown above")))
}

fn said(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).stdin(Stdio::null()).output();
    output.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The versions are those that the packages name for those who develop them.
    #[test]
    fn the_package_is_built_with_what_it_names() {
        let package = include_str!("../../../clients/typescript/package.json");
        for Published { name, version, .. } in OF_NODE {
            assert!(package.contains(&format!("\"{name}\": \"{version}\"")), "{name} {version}");
        }
    }
}
