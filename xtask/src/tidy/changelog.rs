//! A change lands with its line in the changelog, so there is a place for it.

use super::Finding;

const PATH: &str = "CHANGELOG.md";

pub(crate) fn check(text: Option<&str>) -> Option<Finding> {
    let Some(text) = text else { return Some(Finding::of_file(PATH, "it is not there")) };
    let first = text.lines().find(|line| line.starts_with("## ")).map(str::trim);
    (first != Some("## [Unreleased]")).then(|| {
        Finding::of_file(
            PATH,
            "its first section is not `## [Unreleased]`, where changes are noted",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The section must be there and come first.
    #[test]
    fn unreleased_comes_first() {
        assert_eq!(check(Some("# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n")), None);
        assert!(check(Some("# Changelog\n\n## [0.1.0]\n\n## [Unreleased]\n")).is_some());
        assert!(check(Some("# Changelog\n")).is_some());
        assert!(check(None).is_some());
    }
}
