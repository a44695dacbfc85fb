//! `cargo xtask tidy`: the repository's own rules, those that no compiler knows.
//!
//! Each check is a function over what was read, returns what it found wrong,
//! and has a test with a sample that breaks it. Reading the disk is done here
//! and in `files` alone.

mod banned;
mod blocks;
mod changelog;
mod decisions;
mod features;
mod files;
mod glossary;
mod graph;
mod length;
mod links;
mod manifest;
mod record;
mod source;
mod suite;
mod words;

use std::fmt;

use crate::failure::{Failure, Outcome};
use crate::metadata::{self, Package};
use crate::steps::root;
use files::Files;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Which file, relative to the root of the repository.
    path: String,
    /// Which line, from 1; 0 when it is about the file.
    line: usize,
    /// What is wrong and what to do.
    text: String,
}

impl Finding {
    fn of_file(path: &str, text: impl Into<String>) -> Self {
        Self::at(path, 0, text)
    }

    fn at(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

/// The crates that implement `Store` for something: all of ours but those of
/// known other purpose. A new crate is held to the strictest rule until
/// `graph` says what else it is.
fn backends(packages: &[Package]) -> impl Iterator<Item = &Package> {
    packages.iter().filter(|p| graph::layer(&p.name) == Some(graph::Layer::Backend))
}

/// What others may depend on by itself: the protocol, its stores and the facade.
pub(crate) fn libraries(packages: &[Package]) -> impl Iterator<Item = &Package> {
    use graph::Layer::{Backend, Core, Facade, Family, Rules, Store};
    packages.iter().filter(|package| {
        let layer = graph::layer(&package.name);
        matches!(layer, Some(Core | Rules | Store | Family | Backend | Facade))
    })
}

/// All checks, over the whole repository.
pub(crate) fn check() -> Outcome {
    let packages = metadata::packages()?;
    let files = Files::read(&root())?;
    let found = findings(&packages, &files);
    if found.is_empty() {
        println!("    {} files, {} crates: nothing found", files.len(), packages.len());
        return Ok(());
    }
    let list: Vec<String> = found.iter().map(Finding::to_string).collect();
    Err(Failure::new(format!("{}\n{} to put right", list.join("\n"), list.len())))
}

fn findings(packages: &[Package], files: &Files) -> Vec<Finding> {
    let mut found = graph::check(packages);
    found.extend(suite::check(packages, files));
    found.extend(changelog::check(files.get("CHANGELOG.md")));
    found.extend(blocks::check(files));
    found.extend(decisions::check(files));
    found.extend(record::check(files));
    found.extend(glossary::check(files));
    found.extend(features::drivers("crates/tenure/README.md", files));
    for package in packages {
        found.extend(manifest::check(package, files));
        found.extend(features::check(package, files));
    }
    let codes: Vec<_> =
        files.ending(".rs").map(|(path, text)| (path, text, source::code(text))).collect();
    found.extend(length::types(codes.iter().map(|(path, _, code)| (*path, code.as_str()))));
    for (path, text, code) in &codes {
        found.extend(length::file(path, text));
        found.extend(length::functions(path, code));
        found.extend(banned::everywhere(path, code));
        found.extend(banned::in_pure(path, code));
        found.extend(banned::in_tests(path, code));
        found.extend(graph::names_backends(path, code, packages));
    }
    for (path, text) in files.ending(".sql") {
        found.extend(length::file(path, text));
        found.extend(length::sql(path, text));
    }
    found.extend(banned::pure_is_no_std(|path| files.get(path)));
    for (path, text) in files.ending(".md") {
        found.extend(links::check(path, text, |target| files.exists(target)));
    }
    for (path, text) in files.all() {
        found.extend(words::check(path, text));
    }
    found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store that is added is checked by itself without a line here; what is made for
    /// this repository alone is not.
    #[test]
    fn a_new_store_is_a_library() {
        let package = |name: &str| Package { name: name.into(), ..Package::default() };
        let packages = ["tenure", "tenure-core", "tenure-newest", "tenure-sim", "tenure-cli"];
        let packages = packages.map(package);
        let found: Vec<_> = libraries(&packages).map(|package| package.name.as_str()).collect();
        assert_eq!(found, ["tenure", "tenure-core", "tenure-newest"]);
    }

    /// Every check is called: a repository with one fault of each kind shows
    /// them all. A check that is written but not wired in would be missed.
    #[test]
    fn every_check_takes_part() {
        let core = Package { name: "tenure-core".into(), ..Package::default() }
            .in_dir("crates/tenure-core")
            .depending_on("serde");
        let paper = Package { name: "tenure-paper".into(), ..Package::default() }
            .in_dir("crates/tenure-paper");
        let long = "\n".repeat(length::FILE + 1);
        let long_function = format!("fn f() {{{long}}}");
        let wide_type = format!("impl Wide {{{}}}", "fn f() {}\n".repeat(length::FILE));
        let files = Files::from_texts(&[
            ("CHANGELOG.md", "# Changelog\n"),
            ("README.md", "[gone](nowhere.md)\n"),
            ("crates/tenure-core/src/lib.rs", "use std::time::Instant;\n"),
            ("crates/tenure-core/src/rest.rs", "fn f() { todo!() }\n"),
            ("crates/tenure-store/src/lib.rs", "use tenure_paper::Paper;\n"),
            ("crates/tenure/tests/sleepy.rs", "std::thread::sleep(x)\n"),
            ("crates/tenure/src/long.rs", &long),
            ("crates/tenure/src/long.sql", &long),
            ("crates/tenure/src/function.rs", &long_function),
            ("crates/tenure/src/wide.rs", &wide_type),
            ("crates/tenure/src/wide.sql", &"x".repeat(length::FILE)),
            ("docs/block.md", "```rust\nfn f() {}\n```\n"),
            ("docs/decisions/0001-one.md", "# 0001: One\n"),
            ("docs/track-record.md", "| H1 | what | `no_such_test` |\n"),
            ("docs/notes.md", concat!("see ", "/wo", "rk/notes\n")),
        ]);
        let found = findings(&[core, paper], &files);
        let text: Vec<String> = found.iter().map(Finding::to_string).collect();
        let text = text.join("\n");
        for part in [
            "CHANGELOG.md: ",
            "README.md:1: ",
            "crates/tenure-core/Cargo.toml: it depends on serde",
            "crates/tenure-core/README.md: ",
            "crates/tenure-core/src/lib.rs: it lacks `#![no_std]`",
            "crates/tenure-core/src/lib.rs:1: ",
            "crates/tenure-core/src/rest.rs:1: ",
            "crates/tenure-paper/tests/conformance.rs: ",
            "crates/tenure-store/src/lib.rs:1: ",
            "crates/tenure/tests/sleepy.rs:1: ",
            "crates/tenure/src/long.rs: ",
            "crates/tenure/src/long.sql: ",
            "crates/tenure/src/function.rs:1: ",
            "crates/tenure/src/wide.rs: Wide has 500 methods",
            "crates/tenure/src/wide.sql:1: ",
            "docs/block.md:1: ",
            "docs/decisions/README.md: ",
            "docs/notes.md:1: ",
            "docs/track-record.md:1: ",
        ] {
            assert!(text.contains(part), "{part:?} is not among:\n{text}");
        }
    }
}
