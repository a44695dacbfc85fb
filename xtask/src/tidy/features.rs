//! The features that a crate's front page names are those that its manifest has (L7).

use std::collections::BTreeSet;

use super::Finding;
use super::files::Files;
use crate::metadata::Package;

/// The heading of the table.
const HEADING: &str = "## Features";

/// What users may turn on: the table has a row for each, and says which are on by default.
pub(crate) fn check(package: &Package, files: &Files) -> Vec<Finding> {
    let manifest = files.get(&package.manifest()).unwrap_or_default();
    let readme = format!("{}/README.md", package.dir());
    let page = files.get(&readme).unwrap_or_default();
    let features = features(manifest);
    let on = on_by_default(manifest);
    let rows = rows(page);
    let mut found = Vec::new();
    for feature in features.iter().filter(|feature| !is_hidden(feature)) {
        let is_on = on.contains(feature);
        let text = match rows.iter().find(|row| row.feature == *feature) {
            None => format!("its table under {HEADING:?} lacks the feature `{feature}`"),
            Some(row) if row.on != is_on => {
                format!("whether `{feature}` is on by default is not what Cargo.toml says")
            }
            Some(_) => continue,
        };
        found.push(Finding::of_file(&readme, text));
    }
    for row in rows.iter().filter(|row| !features.contains(row.feature)) {
        let text = format!("there is no feature `{}` in Cargo.toml", row.feature);
        found.push(Finding::of_file(&readme, text));
    }
    found
}

/// The versions of drivers that the page names are those of the workspace (L5).
pub(crate) fn drivers(page_path: &str, files: &Files) -> Vec<Finding> {
    let page = files.get(page_path).unwrap_or_default();
    let manifest = files.get("Cargo.toml").unwrap_or_default();
    let (_, table) = page.split_once("| driver | version |").unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
    let stale = rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let driver = cells.next()?.trim_matches('`');
        let named = cells.next()?.split(' ').next()?;
        let line = manifest.lines().find(|line| line.starts_with(&format!("{driver} = ")))?;
        let version = line.split('"').nth(1)?;
        (version != named).then(|| format!("{driver} is {version} in Cargo.toml, not {named}"))
    });
    stale.map(|text| Finding::of_file(page_path, text)).collect()
}

/// What is there for our own tests alone.
fn is_hidden(feature: &str) -> bool {
    feature == "fuzzing" || feature.starts_with("__")
}

/// The lines of the manifest's table of features, each with its name.
fn lines(manifest: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut inside = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            inside = line.trim() == "[features]";
        }
        let (name, value) = line.split_once('=').filter(|_| inside && !line.starts_with('#'))?;
        Some((name.trim(), value))
    })
}

fn features(manifest: &str) -> BTreeSet<&str> {
    lines(manifest).map(|(name, _)| name).filter(|name| *name != "default").collect()
}

fn on_by_default(manifest: &str) -> BTreeSet<&str> {
    let on = lines(manifest).filter(|(name, _)| *name == "default");
    on.flat_map(|(_, value)| value.split('"').skip(1).step_by(2)).collect()
}

struct Row<'a> {
    feature: &'a str,
    on: bool,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let after = page.lines().skip_while(|line| *line != HEADING).skip(1);
    let section = after.take_while(|line| !line.starts_with('#'));
    // The first table alone: others of the section are about something else.
    let table = section.skip_while(|line| !line.starts_with('|'));
    let table = table.take_while(|line| line.starts_with('|'));
    let cells = table.filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    cells.map(|(feature, rest)| Row { feature, on: rest.starts_with("yes") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[features]\ndefault = [\"a\"]\n# What a has.\na = [\"dep:a\"]\n\
                            b = []\nfuzzing = []\n\n[dependencies]\nc = \"1\"\n";

    fn found(page: &str) -> Vec<String> {
        let package = Package { name: "one".into(), ..Package::default() }.in_dir("crates/one");
        let files = Files::from_texts(&[
            ("crates/one/Cargo.toml", MANIFEST),
            ("crates/one/README.md", page),
        ]);
        check(&package, &files).iter().map(Finding::to_string).collect()
    }

    /// L7: the table is as the manifest has it, and each way in which it is not is found.
    #[test]
    fn a_table_of_features_that_is_not_the_manifests_is_found() {
        let page = |rows: &str| format!("# One\n\n{HEADING}\n\n| feature | default |\n{rows}\n");
        assert!(found(&page("| `a` | yes | what |\n| `b` | no | what |")).is_empty());
        let lacks = found(&page("| `a` | yes | what |"));
        assert_eq!(lacks.len(), 1, "{lacks:?}");
        assert!(lacks[0].contains("lacks the feature `b`"), "{lacks:?}");
        let off = found(&page("| `a` | no | what |\n| `b` | no | what |"));
        assert!(off[0].contains("on by default"), "{off:?}");
        let strange = found(&page("| `a` | yes | what |\n| `b` | no | what |\n| `c` | no | x |"));
        assert!(strange[0].contains("no feature `c`"), "{strange:?}");
        assert_eq!(found("# One\n").len(), 2);
    }

    /// L5: a version that the workspace does not have is found.
    #[test]
    fn a_table_of_drivers_that_is_not_the_manifests_is_found() {
        let found = |version: &str| {
            let page =
                format!("| driver | version | f |\n|---|---|---|\n| `x` | {version} | `x` |");
            let manifest = "y = \"1\"\nx = { version = \"0.8\", features = [\"a\"] }\n";
            let files = Files::from_texts(&[("Cargo.toml", manifest), ("a/README.md", &page)]);
            drivers("a/README.md", &files).len()
        };
        assert_eq!((found("0.8"), found("0.8 (not 0.9)"), found("0.9")), (0, 0, 1));
    }
}
