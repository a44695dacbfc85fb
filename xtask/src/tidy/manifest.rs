//! What every crate of the workspace states and has.

use super::Finding;
use super::files::Files;
use crate::metadata::Package;

/// The one licence expression of the project.
const LICENSE: &str = "MIT OR Apache-2.0";

pub(crate) fn check(package: &Package, files: &Files) -> Vec<Finding> {
    let path = package.manifest();
    let mut found = Vec::new();
    let mut say = |text: &str| found.push(Finding::of_file(&path, text));
    if !inherits_lints(files.get(&path).unwrap_or_default()) {
        say("it does not inherit the workspace's lints; add `[lints]` with `workspace = true`");
    }
    if package.license.as_deref() != Some(LICENSE) {
        say("its licence is not the project's; write `license.workspace = true`");
    }
    if package.description.is_none() {
        say("it has no description; say in one line what it is");
    }
    if package.rust_version.is_none() {
        say("it states no Rust version; write `rust-version.workspace = true`");
    }
    let readme = format!("{}/README.md", package.dir());
    if files.get(&readme).is_none_or(|text| text.trim().is_empty()) {
        found.push(Finding::of_file(&readme, "it is missing or empty: a crate says what it is"));
    }
    found
}

fn inherits_lints(manifest: &str) -> bool {
    let mut section = "";
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        let dense = line.replace(' ', "");
        (section == "[lints]" && dense == "workspace=true") || dense == "lints.workspace=true"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"one\"\n\n[lints]\nworkspace = true\n";

    fn good() -> Package {
        Package {
            name: "one".into(),
            license: Some(LICENSE.into()),
            description: Some("One.".into()),
            rust_version: Some("1.89".into()),
            ..Package::default()
        }
        .in_dir("crates/one")
    }

    fn found(package: &Package, manifest: &str, readme: &str) -> Vec<String> {
        let files = [("crates/one/Cargo.toml", manifest), ("crates/one/README.md", readme)];
        let found = check(package, &Files::from_texts(&files));
        found.iter().map(Finding::to_string).collect()
    }

    /// A crate with all of it is fine; each thing that is missing is found.
    #[test]
    fn each_missing_statement_is_found() {
        assert!(found(&good(), GOOD, "# one").is_empty());
        for (package, part) in [
            (Package { license: None, ..good() }, "licence"),
            (Package { license: Some("MIT".into()), ..good() }, "licence"),
            (Package { description: None, ..good() }, "description"),
            (Package { rust_version: None, ..good() }, "Rust version"),
        ] {
            let found = found(&package, GOOD, "# one");
            assert!(found.len() == 1 && found[0].contains(part), "{part}: {found:?}");
        }
        let bare = found(&good(), GOOD, " \n");
        assert!(bare.len() == 1 && bare[0].contains("README.md: it is missing"), "{bare:?}");
    }

    /// `workspace = true` counts only where it is about lints.
    #[test]
    fn lints_must_be_inherited() {
        assert!(inherits_lints(GOOD));
        assert!(inherits_lints("[package]\nlints.workspace = true"));
        assert!(!inherits_lints("[package]\nname = \"one\""));
        assert!(!inherits_lints("[lints]\n[dependencies.x]\nworkspace = true"));
        assert!(!inherits_lints("[lints]\n# workspace = true"));
    }
}
