//! The repository speaks of the product, not of the machine it was written on.

use super::Finding;

/// Beginnings of paths that mean nothing to anybody else. Each is put together
/// from parts, so that this file does not find itself.
const PATHS: [&str; 7] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tmp/", "brief"),
    concat!("/tmp/", "bash_jobs"),
    concat!("../", "shared/"),
    // That these are missing is nothing to rely on (L24): a test has a folder of its own.
    concat!("/non", "existent"),
    concat!("/no/", "such"),
];

pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for what in PATHS.iter().filter(|what| begins_a_path(line, what)) {
            let text = format!("`{what}` is a path of one machine; say it without");
            found.push(Finding::at(path, number + 1, text));
        }
    }
    found
}

/// `/a/` inside `https://example.org/a/b` or `x/a/b` is another thing.
fn begins_a_path(line: &str, what: &str) -> bool {
    line.match_indices(what).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-./}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L24: each path is found where it begins, and a longer path that only contains
    /// it is not.
    #[test]
    fn paths_of_one_machine_are_found() {
        for what in PATHS {
            let found = check("a.md", &format!("first\nsee {what}x"));
            assert_eq!(found.len(), 1, "{what}");
            assert_eq!(found[0].line, 2, "{what}");
            assert_eq!(check("a.md", &format!("(`{what}`)")).len(), 1, "{what}");
            assert!(check("a.md", &format!("see x{what}y")).is_empty(), "{what}");
        }
        assert!(check("a.md", "the work/life balance").is_empty());
    }
}
