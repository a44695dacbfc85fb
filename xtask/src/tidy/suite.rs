//! No backend goes without the conformance suite.

use super::files::Files;
use super::source::code;
use super::{Finding, backends};
use crate::metadata::Package;

/// How the suite is called.
const CALL: &str = "tenure_conformance::suite!";

pub(crate) fn check(packages: &[Package], files: &Files) -> Vec<Finding> {
    backends(packages)
        .filter_map(|backend| {
            let path = format!("{}/tests/conformance.rs", backend.dir());
            let text = match files.get(&path) {
                None => format!("it is missing: every backend runs `{CALL}` there"),
                Some(text) if !code(text).contains(CALL) => {
                    format!("it does not call `{CALL}`: every backend runs the whole suite")
                }
                Some(_) => return None,
            };
            Some(Finding::of_file(&path, text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[(&str, &str)]) -> Vec<String> {
        let package = |name: &str| {
            Package { name: name.into(), ..Package::default() }.in_dir(&format!("crates/{name}"))
        };
        let packages = [package("tenure-sqlite"), package("tenure-core"), package("tenure")];
        let found = check(&packages, &Files::from_texts(texts));
        found.iter().map(Finding::to_string).collect()
    }

    /// A backend without the file, or with a file that runs nothing, is found;
    /// crates that are no backends need none.
    #[test]
    fn a_backend_without_the_suite_is_found() {
        let path = "crates/tenure-sqlite/tests/conformance.rs";
        let missing = found(&[]);
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0].contains("conformance.rs: it is missing"), "{missing:?}");
        let silent = found(&[(path, "// tenure_conformance::suite!(Harness);")]);
        assert!(silent[0].contains("does not call"), "{silent:?}");
        assert!(found(&[(path, "tenure_conformance::suite!(Harness);")]).is_empty());
    }
}
