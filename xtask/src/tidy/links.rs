//! Links in prose lead somewhere.

use super::Finding;

/// Checks every link of a Markdown file that leads to another file of the
/// repository; `exists` is asked with a path relative to the root.
pub(crate) fn check(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        for target in targets(&without_code(line)) {
            let leads = file_of(target).map(|file| resolve(path, file));
            match leads {
                None => {}
                Some(Some(file)) if exists(&file) => {}
                Some(_) => {
                    let text = format!("the link to `{target}` leads nowhere");
                    found.push(Finding::at(path, number + 1, text));
                }
            }
        }
    }
    found
}

/// A line without what stands between backquotes.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    // An odd backquote opens nothing.
    let closed = parts.len() - (parts.len() + 1) % 2;
    let kept = parts.iter().enumerate().filter(|(n, _)| n % 2 == 0 || *n >= closed);
    kept.map(|(_, part)| *part).collect()
}

/// The targets of `[text](target)` and `[name]: target`.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        rest = &rest[at + 2..];
        if let Some(end) = rest.find(')') {
            found.push(&rest[..end]);
        }
    }
    let definition = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    found.extend(definition.map(|(_, target)| target));
    // A title may follow the target.
    found.iter().filter_map(|target| target.split_whitespace().next()).collect()
}

/// The file that a target means, or `None` when it means something else: another
/// site, a place on the same page, an item of the documentation.
fn file_of(target: &str) -> Option<&str> {
    let target = target.trim_start_matches('<').trim_end_matches('>');
    let elsewhere = target.contains("://") || target.starts_with("mailto:");
    let file = target.split('#').next().unwrap_or_default();
    let is_path_of_items = file.chars().all(|c| c.is_alphanumeric() || "_:!()".contains(c));
    (!elsewhere && !is_path_of_items).then_some(file)
}

/// The path relative to the root, or `None` if it leads out of the repository.
pub(super) fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> usize {
        let there = ["README.md", "LICENSE-MIT", "docs", "docs/guarantees.md"];
        check("docs/guarantees.md", text, |path| there.contains(&path)).len()
    }

    /// A link that leads nowhere, or out of the repository, is found.
    #[test]
    fn a_link_to_nowhere_is_found() {
        for text in [
            "[x](gone.md)",
            "[x](../gone.md#there)",
            "a [x](guarantees.md) and [y](gone.md)",
            "[x](../../README.md)",
            "[x](gone.md \"title\")",
            "[x]: gone.md",
            "![x](image.png)",
        ] {
            assert_eq!(broken(text), 1, "{text}");
        }
    }

    /// A link that leads somewhere, or is none of ours, is fine.
    #[test]
    fn good_links_and_other_things_pass() {
        for text in [
            "[x](guarantees.md) [y](../README.md#top) [z](./guarantees.md)",
            "[x](../LICENSE-MIT)",
            "[x](/docs/guarantees.md)",
            "[x](../docs/)",
            "[x](https://example.org/gone.md) [y](mailto:a@example.org)",
            "[x](#here)",
            "[x](crate::Store) [y](Settings) [z](Store::claim())",
            "```text\n[x](gone.md)\n```",
            "`[x](gone.md)` and [y](guarantees.md)",
            "[x]: https://example.org",
        ] {
            assert_eq!(broken(text), 0, "{text}");
        }
    }

    /// An odd backquote does not hide the rest of the line.
    #[test]
    fn an_odd_backquote_hides_nothing() {
        assert_eq!(broken("a ` and [x](gone.md)"), 1);
        assert_eq!(broken("`a` b ` and [x](gone.md)"), 1);
    }
}
