//! The track record and the page about security name tests; a test that is renamed or
//! taken out must not live on there.

use std::collections::BTreeMap;

use super::Finding;
use super::files::Files;
use super::source::{code, has_word, is_word};

const RECORD: &str = "docs/track-record.md";
const SECURITY: &str = "docs/security.md";

/// Every test named in a table of these pages exists, every row of a scenario names at
/// least one, and the code of a row of the record stands in the comments of its tests: by
/// `git grep` a code leads to them.
pub(crate) fn check(files: &Files) -> Vec<Finding> {
    let known = functions(files);
    let pages = [RECORD, SECURITY];
    pages.iter().flat_map(|page| check_page(files, page, &known)).collect()
}

fn check_page(files: &Files, page: &str, known: &BTreeMap<String, String>) -> Vec<Finding> {
    let Some(text) = files.get(page) else { return Vec::new() };
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("| ")) {
        let named: Vec<&str> = tests_named(line).collect();
        if is_scenario(line) && named.is_empty() {
            found.push(Finding::at(page, number + 1, "the row names no test that shows it"));
        }
        let code = code_of(line).filter(|_| page == RECORD);
        for name in named {
            let text = match (known.get(name), code) {
                (None, _) => format!("there is no test `{name}`; name the one that shows this now"),
                (Some(said), Some(code)) if !has_word(said, code) && is_test(said) => {
                    format!("the comment of `{name}` does not name {code}")
                }
                _ => continue,
            };
            found.push(Finding::at(page, number + 1, text));
        }
    }
    found
}

/// The code that a row of a table begins with, such as `H7`.
fn code_of(line: &str) -> Option<&str> {
    let cell = line.trim_start_matches("| ").split(" |").next()?;
    let digits = cell.strip_prefix(|c: char| c.is_ascii_uppercase())?;
    let is_code = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    is_code.then_some(cell)
}

/// Whether a row is about a scenario: a hazard, a bug of others, or a behaviour.
fn is_scenario(line: &str) -> bool {
    code_of(line).is_some_and(|code| code.starts_with(['H', 'B', 'C']))
}

/// Whether what stands before a function makes it a test. Some rows name a function of
/// the library as well, which has no code.
fn is_test(before: &str) -> bool {
    ["test]", "test("].iter().any(|attribute| before.contains(attribute))
}

/// What stands between backquotes and reads like the name of a test.
fn tests_named(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|word| {
        word.contains('_')
            && word.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
    })
}

/// The names of all functions of the repository, each with the comments and attributes that
/// stand before it: those of all functions of that name together.
fn functions(files: &Files) -> BTreeMap<String, String> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (_, text) in files.ending(".rs") {
        let mut before = String::new();
        for (line, code) in text.lines().zip(code(text).lines()) {
            for rest in code.split("fn ").skip(1) {
                let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
                if !name.is_empty() {
                    names.entry(name).or_default().push_str(&before);
                }
            }
            if line.trim_start().starts_with(['/', '#']) {
                before.push_str(line);
                before.push('\n');
            } else {
                before.clear();
            }
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

    /// The code of a row leads to its tests: one that does not name it is found.
    #[test]
    fn a_test_without_the_code_of_its_row_is_found() {
        assert!(found("| H7 | what | `an_expired_member_is_ended` |").is_empty());
        let bare = found("| P15 | what | `an_expired_member_is_ended` |");
        assert_eq!(bare.len(), 1, "{bare:?}");
        assert!(bare[0].ends_with("does not name P15"), "{bare:?}");
    }

    /// A scenario without a test is found; a heading or another table is none.
    #[test]
    fn a_row_without_a_test_is_found() {
        assert_eq!(found("| B12 | what | soon |").len(), 1);
        assert!(found("| code | what | tests |\n|---|---|---|\n| late | 2 | `x` |").is_empty());
    }
}
