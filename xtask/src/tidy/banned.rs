//! What may not stand in code: anywhere, and in core.

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

/// Core is fed time, randomness and answers; it fetches nothing.
const CORE: [&str; 7] =
    ["std::time", "std::thread", "std::fs", "std::net", "std::env", "std::process", "tokio"];

const CORE_DIR: &str = "crates/tenure-core/";

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
pub(crate) fn in_core(path: &str, code: &str) -> Vec<Finding> {
    if !path.starts_with(CORE_DIR) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut before = "";
    for (number, line) in code.lines().enumerate() {
        for what in CORE.iter().filter(|what| has_word(line, what)) {
            let text = format!("`{what}` in core: time and answers are arguments");
            found.push(Finding::at(path, number + 1, text));
        }
        if has_word(line, "extern crate std") && before.trim() != "#[cfg(test)]" {
            let text = "std in core: only tests may have it, by `#[cfg(test)]` on the line above";
            found.push(Finding::at(path, number + 1, text));
        }
        if !line.trim().is_empty() {
            before = line;
        }
    }
    found
}

/// Without `no_std` the list above could be walked around.
pub(crate) fn core_is_no_std(lib: Option<&str>) -> Option<Finding> {
    let path = "crates/tenure-core/src/lib.rs";
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

    /// Core neither reads a clock nor does I/O; other crates may.
    #[test]
    fn core_may_not_name_clocks_or_io() {
        for sample in ["use std::time::Instant;", "std::fs::read(x)", "use tokio::sync::Notify;"] {
            let code = format!("\n{sample}");
            assert_eq!(lines(&in_core("crates/tenure-core/src/a.rs", &code)), [2], "{sample}");
            assert!(in_core("crates/tenure-store/src/a.rs", &code).is_empty());
        }
        assert!(in_core("crates/tenure-core/src/a.rs", "use core::time::Duration;").is_empty());
    }

    /// `no_std` with std brought back is not `no_std`; tests may have it.
    #[test]
    fn core_may_have_std_in_tests_only() {
        let path = "crates/tenure-core/src/lib.rs";
        assert_eq!(lines(&in_core(path, "extern crate alloc;\nextern crate std;")), [2]);
        assert!(in_core(path, "#[cfg(test)]\nextern crate std;").is_empty());
    }

    /// A comment that says `no_std` is not `no_std`.
    #[test]
    fn core_must_be_no_std() {
        assert_eq!(core_is_no_std(Some("#![no_std]\nextern crate alloc;")), None);
        assert!(core_is_no_std(Some("// #![no_std]")).is_some());
        assert!(core_is_no_std(Some("/*\n#![no_std]\n*/")).is_some());
        assert!(core_is_no_std(None).is_some());
    }
}
