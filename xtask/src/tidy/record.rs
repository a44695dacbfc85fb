//! The track record and the page about security name tests; a test that is renamed or
//! taken out must not live on there.

use std::collections::BTreeSet;

use super::Finding;
use super::files::Files;
use super::source::{code, is_word};

const RECORD: &str = "docs/track-record.md";
const SECURITY: &str = "docs/security.md";

/// Every test named in a table of these pages exists, and every row of a scenario
/// names at least one.
pub(crate) fn check(files: &Files) -> Vec<Finding> {
    let known = functions(files);
    let pages = [RECORD, SECURITY];
    pages.iter().flat_map(|page| check_page(files, page, &known)).collect()
}

fn check_page(files: &Files, page: &str, known: &BTreeSet<String>) -> Vec<Finding> {
    let Some(text) = files.get(page) else { return Vec::new() };
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("| ")) {
        let named: Vec<&str> = tests_named(line).collect();
        if is_scenario(line) && named.is_empty() {
            found.push(Finding::at(page, number + 1, "the row names no test that shows it"));
        }
        for name in named.into_iter().filter(|name| !known.contains(*name)) {
            let text = format!("there is no test `{name}`; name the one that shows this now");
            found.push(Finding::at(page, number + 1, text));
        }
    }
    found
}

/// Whether a row of a table begins with a code such as `H7`.
fn is_scenario(line: &str) -> bool {
    let cell = line.trim_start_matches("| ").split(" |").next().unwrap_or_default();
    let digits = cell.strip_prefix(['H', 'B', 'C']).unwrap_or_default();
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

/// What stands between backquotes and reads like the name of a test.
fn tests_named(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|word| {
        word.contains('_')
            && word.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
    })
}

/// The names of all functions of the repository.
fn functions(files: &Files) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, text) in files.ending(".rs") {
        for line in code(text).lines() {
            let after = line.split("fn ").skip(1);
            let name =
                after.map(|rest| rest.chars().take_while(|c| is_word(*c)).collect::<String>());
            names.extend(name.filter(|name| !name.is_empty()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(record: &str) -> Vec<String> {
        let source = "/// H7.\n#[test]\nfn an_expired_member_is_ended() {}\n// fn only_said() {}";
        let files = Files::from_texts(&[(RECORD, record), ("crates/a/src/b.rs", source)]);
        check(&files).iter().map(Finding::to_string).collect()
    }

    /// A test that exists passes; one that does not, or is only spoken of in a
    /// comment, is found on its line.
    #[test]
    fn a_test_that_is_not_there_is_found() {
        assert!(found("| H7 | what | `an_expired_member_is_ended` |").is_empty());
        let gone = found("\n| H7 | what | `an_expired_member_is_revived` |");
        assert_eq!(gone.len(), 1, "{gone:?}");
        assert!(gone[0].starts_with("docs/track-record.md:2: there is no test"), "{gone:?}");
        assert_eq!(found("| H7 | what | `only_said` |").len(), 1);
    }

    /// A scenario without a test is found; a heading or another table is none.
    #[test]
    fn a_row_without_a_test_is_found() {
        assert_eq!(found("| B12 | what | soon |").len(), 1);
        assert!(found("| code | what | tests |\n|---|---|---|\n| late | 2 | `x` |").is_empty());
    }
}
