//! What may not stand in code: anywhere, in what is pure, and in tests.

use super::Finding;
use super::source::{code, has_word};

/// Leftovers. Lints catch some of these, but not in every kind of target.
const EVERYWHERE: [(&str, &str); 5] = [
    ("todo!", "finish it, or refuse with an error"),
    ("unimplemented!", "finish it, or refuse with an error"),
    ("dbg!", "take it out"),
    ("#[ignore", "a test that does not run shows nothing: fix it or take it out"),
    ("#![allow(warnings", "allow what is meant, where it is meant, with the reason"),
];

/// Core and the rules are fed time, randomness and answers; they fetch nothing.
const PURE: [&str; 7] =
    ["std::time", "std::thread", "std::fs", "std::net", "std::env", "std::process", "tokio"];

const PURE_DIRS: [&str; 2] = ["crates/tenure-core/", "crates/tenure-rules/"];

const SUITE: &str = "crates/tenure-conformance/src/";

/// `code` is source without comments and literals.
pub(crate) fn everywhere(path: &str, code: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        for (what, instead) in EVERYWHERE {
            let dense = line.replace(' ', "");
            if has_word(line, what) || (what.starts_with('#') && dense.contains(what)) {
                let text = format!("`{what}` must not stay: {instead}");
                found.push(Finding::at(path, number + 1, text));
            }
        }
    }
    found
}

/// `code` is source without comments and literals.
pub(crate) fn in_pure(path: &str, code: &str) -> Vec<Finding> {
    if !PURE_DIRS.iter().any(|folder| path.starts_with(folder)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut before = "";
    for (number, line) in code.lines().enumerate() {
        for what in PURE.iter().filter(|what| has_word(line, what)) {
            let text = format!("`{what}` in what is pure: time and answers are arguments");
            found.push(Finding::at(path, number + 1, text));
        }
        if has_word(line, "extern crate std") && before.trim() != "#[cfg(test)]" {
            let text =
                "std in what is pure: only tests may have it, by `#[cfg(test)]` on the line above";
            found.push(Finding::at(path, number + 1, text));
        }
        if !line.trim().is_empty() {
            before = line;
        }
    }
    found
}

/// A test that sleeps and hopes is slow on a good day and fails on a bad one. `code` is
/// source without comments and literals.
pub(crate) fn in_tests(path: &str, code: &str) -> Vec<Finding> {
    // The suite is tests, although it is a library; its harness is what lets time pass.
    let suite = path.starts_with(SUITE) && !path.ends_with("/harness.rs");
    let whole = suite
        || path.starts_with("crates/") && (path.contains("/tests/") || path.ends_with("/tests.rs"));
    // On a clock that tokio moves by itself nothing really waits.
    if code.contains("start_paused") {
        return Vec::new();
    }
    let inline = code.lines().position(|line| line.trim() == "mod tests {");
    let first = if whole { Some(0) } else { inline };
    let lines = code.lines().enumerate().skip(first.unwrap_or(usize::MAX));
    lines
        .filter(|(_, line)| has_word(line, "sleep("))
        .map(|(number, _)| {
            let text = "a test sleeps: wait for what happens (`until`, `wait_for` of \
                        tenure-testkit), or say by `let_pass` why time has to pass";
            Finding::at(path, number + 1, text)
        })
        .collect()
}

/// Without `no_std` the list above could be walked around. `lib` gives the text of a file.
pub(crate) fn pure_is_no_std<'a>(lib: impl Fn(&str) -> Option<&'a str>) -> Vec<Finding> {
    let roots = PURE_DIRS.iter().map(|folder| format!("{folder}src/lib.rs"));
    roots.filter_map(|path| is_no_std(&path, lib(&path))).collect()
}

fn is_no_std(path: &str, lib: Option<&str>) -> Option<Finding> {
    let Some(text) = lib else { return Some(Finding::of_file(path, "it is not there")) };
    let said = code(text).lines().any(|line| line.trim() == "#![no_std]");
    (!said).then(|| Finding::of_file(path, "it lacks `#![no_std]`, which keeps clocks and I/O out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(found: &[Finding]) -> Vec<usize> {
        found.iter().map(|finding| finding.line).collect()
    }

    /// Each leftover is found, on its line; a name that only looks alike is not.
    #[test]
    fn leftovers_are_found() {
        for sample in [
            "todo!()",
            "unimplemented!()",
            "dbg!(x)",
            "#[ignore]",
            "#[ ignore = \"\"]",
            "#![allow(warnings)]",
        ] {
            let found = everywhere("a.rs", &format!("fn f() {{\n{sample}\n}}"));
            assert_eq!(lines(&found), [2], "{sample}");
        }
        assert!(everywhere("a.rs", "my_todo!(); #[test] fn ignored() {}").is_empty());
    }

    /// Core and the rules neither read a clock nor do I/O; other crates may.
    #[test]
    fn what_is_pure_may_not_name_clocks_or_io() {
        for sample in ["use std::time::Instant;", "std::fs::read(x)", "use tokio::sync::Notify;"] {
            let code = format!("\n{sample}");
            for folder in PURE_DIRS {
                let path = format!("{folder}src/a.rs");
                assert_eq!(lines(&in_pure(&path, &code)), [2], "{path}: {sample}");
            }
            assert!(in_pure("crates/tenure-store/src/a.rs", &code).is_empty());
        }
        assert!(in_pure("crates/tenure-core/src/a.rs", "use core::time::Duration;").is_empty());
    }

    /// In every file of tests, and in the tests at the end of a file.
    #[test]
    fn tests_may_not_sleep() {
        let sleeps = "fn f() {\ntokio::time::sleep(x).await;\n}";
        let inline = format!("{sleeps}\nmod tests {{\n{sleeps}\n}}");
        assert_eq!(lines(&in_tests("crates/a/tests/b.rs", sleeps)), [2]);
        assert_eq!(lines(&in_tests("crates/a/tests/common/b.rs", "thread::sleep(x)")), [1]);
        assert_eq!(lines(&in_tests("crates/a/src/b/tests.rs", sleeps)), [2]);
        assert_eq!(lines(&in_tests("crates/a/src/b.rs", &inline)), [6]);
        assert_eq!(lines(&in_tests(&format!("{SUITE}cases/b.rs"), sleeps)), [2]);
        assert!(in_tests(&format!("{SUITE}harness.rs"), sleeps).is_empty());
        assert!(in_tests("crates/a/src/b.rs", sleeps).is_empty());
        assert!(
            in_tests("crates/a/tests/b.rs", "let_pass(x, y); let asleep = sleeping();").is_empty()
        );
        let paused = format!("#[tokio::test(start_paused = true)]\n{sleeps}");
        assert!(in_tests("crates/a/tests/b.rs", &paused).is_empty());
    }

    /// `no_std` with std brought back is not `no_std`; tests may have it.
    #[test]
    fn what_is_pure_may_have_std_in_tests_only() {
        let path = "crates/tenure-core/src/lib.rs";
        assert_eq!(lines(&in_pure(path, "extern crate alloc;\nextern crate std;")), [2]);
        assert!(in_pure(path, "#[cfg(test)]\nextern crate std;").is_empty());
    }

    /// A comment that says `no_std` is not `no_std`.
    #[test]
    fn what_is_pure_must_be_no_std() {
        let found = |text: Option<&str>| is_no_std("lib.rs", text);
        assert_eq!(found(Some("#![no_std]\nextern crate alloc;")), None);
        assert!(found(Some("// #![no_std]")).is_some());
        assert!(found(Some("/*\n#![no_std]\n*/")).is_some());
        assert!(found(None).is_some());
        assert_eq!(pure_is_no_std(|_| None).len(), 2);
    }
}
