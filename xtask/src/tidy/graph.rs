//! Arrows point one way: who may depend on whom.

use super::source::has_word;
use super::{Finding, backends};
use crate::metadata::Package;

/// What a crate is for, which decides what it may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// The protocol; knows no other layer.
    Core,
    /// What a store does; knows the protocol's words alone.
    Rules,
    /// The contract.
    Store,
    /// What a family of stores has in common.
    Family,
    /// A store; knows no policy.
    Backend,
    /// The suite, the simulator and what tests share: tools over the contract.
    Proof,
    /// What users add.
    Facade,
    /// What programs share: the guardian, the shapes of answers. Knows the words alone. The
    /// facade has the shapes behind a feature.
    Shared,
    /// Programs and services over the public API.
    Above,
    /// A program that is a test: over the public API, with what tests share.
    Trial,
}

/// The one folder in the facade that names backends.
const CONNECT: &str = "crates/tenure/src/connect";

/// The layer of a crate of ours; `None` for all others, and for `xtask`.
pub(crate) fn layer(name: &str) -> Option<Layer> {
    Some(match name {
        "tenure" => Layer::Facade,
        "tenure-core" => Layer::Core,
        "tenure-rules" => Layer::Rules,
        "tenure-store" => Layer::Store,
        "tenure-cas" => Layer::Family,
        "tenure-conformance" | "tenure-model" | "tenure-sim" | "tenure-testkit" => Layer::Proof,
        "tenure-api" | "tenure-guard" => Layer::Shared,
        "tenure-cli" | "tenure-doctor" | "tenure-registry" | "tenure-server" | "tenure-grpc" => {
            Layer::Above
        }
        "tenure-chaos" => Layer::Trial,
        other if other.starts_with("tenure-") => Layer::Backend,
        _ => return None,
    })
}

/// The layers that a crate of this layer may depend on.
fn below(layer: Layer) -> &'static [Layer] {
    match layer {
        Layer::Core => &[],
        Layer::Rules | Layer::Shared => &[Layer::Core],
        Layer::Store => &[Layer::Core, Layer::Rules],
        Layer::Family => &[Layer::Core, Layer::Rules, Layer::Store],
        Layer::Backend | Layer::Proof => &[Layer::Core, Layer::Rules, Layer::Store, Layer::Family],
        Layer::Facade => &[Layer::Core, Layer::Store, Layer::Backend, Layer::Shared],
        Layer::Above => &[Layer::Facade, Layer::Shared, Layer::Above],
        Layer::Trial => &[Layer::Facade, Layer::Shared, Layer::Above, Layer::Proof],
    }
}

/// Dependencies for tests are free: the suite is one.
pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in packages {
        let Some(own) = layer(&package.name) else { continue };
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.dev) {
            let name = &dependency.name;
            let text = match layer(name) {
                Some(other) if !below(own).contains(&other) => {
                    format!("it depends on {name}: {own:?} may know only {:?}", below(own))
                }
                None if own == Layer::Core => {
                    format!("it depends on {name}: core has no dependencies at all")
                }
                None if own == Layer::Rules => {
                    format!("it depends on {name}: the rules depend on core alone")
                }
                _ => continue,
            };
            found.push(Finding::of_file(&package.manifest(), text));
        }
    }
    found
}

/// Only `connect` turns a URL into a backend: everything else sees a `Store`.
/// `code` is source without comments and literals.
pub(crate) fn names_backends(path: &str, code: &str, packages: &[Package]) -> Vec<Finding> {
    if !in_a_src_folder(path) || within(path, CONNECT) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for backend in backends(packages).filter(|backend| !within(path, &backend.dir())) {
        let name = backend.name.replace('-', "_");
        for (number, line) in code.lines().enumerate() {
            if has_word(line, &name) {
                let text = format!("it names {name}; only {CONNECT}/ names backends");
                found.push(Finding::at(path, number + 1, text));
            }
        }
    }
    found
}

/// Tests, examples and benches may name what they like.
fn in_a_src_folder(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.nth(1) == Some("src")
}

fn within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str) -> Package {
        Package { name: name.into(), ..Package::default() }.in_dir(&format!("crates/{name}"))
    }

    fn refused(from: &str, to: &str) -> bool {
        !check(&[package(from).depending_on(to)]).is_empty()
    }

    /// The arrows of the architecture, and those that would turn it around.
    #[test]
    fn arrows_point_one_way() {
        for (from, to) in [
            ("tenure-store", "tenure-core"),
            ("tenure-rules", "tenure-core"),
            ("tenure-store", "tenure-rules"),
            ("tenure-store", "rustix"),
            ("tenure-sqlite", "tenure-rules"),
            ("tenure-sqlite", "tenure-store"),
            ("tenure-cas", "tenure-store"),
            ("tenure-object", "tenure-cas"),
            ("tenure-sim", "tenure-cas"),
            ("tenure-conformance", "tenure-store"),
            ("tenure", "tenure-sqlite"),
            ("tenure", "tenure-api"),
            ("tenure-cli", "tenure"),
            ("tenure-cli", "tenure-guard"),
            ("tenure-guard", "tenure-core"),
            ("tenure-chaos", "tenure"),
            ("tenure-chaos", "tenure-testkit"),
            ("xtask", "tenure-sqlite"),
        ] {
            assert!(!refused(from, to), "{from} may depend on {to}");
        }
        for (from, to) in [
            ("tenure-core", "serde"),
            ("tenure-core", "tenure-store"),
            ("tenure-rules", "serde"),
            ("tenure-rules", "tenure-store"),
            ("tenure", "tenure-rules"),
            ("tenure-store", "tenure-sqlite"),
            ("tenure-store", "tenure-cas"),
            ("tenure-store", "tenure-conformance"),
            ("tenure-cas", "tenure-object"),
            ("tenure", "tenure-cas"),
            ("tenure-object", "tenure-testkit"),
            ("tenure-sqlite", "tenure-postgres"),
            ("tenure-sqlite", "tenure"),
            ("tenure-sqlite", "tenure-conformance"),
            ("tenure-conformance", "tenure-sqlite"),
            ("tenure", "tenure-conformance"),
            ("tenure-api", "tenure"),
            ("tenure-guard", "tenure-store"),
            ("tenure-cli", "tenure-sqlite"),
            ("tenure-cli", "tenure-testkit"),
            ("tenure-chaos", "tenure-sqlite"),
            ("tenure-cli", "tenure-core"),
        ] {
            assert!(refused(from, to), "{from} may not depend on {to}");
        }
    }

    /// Every store runs the suite in its tests.
    #[test]
    fn dependencies_for_tests_are_free() {
        let mut sqlite = package("tenure-sqlite").depending_on("tenure-conformance");
        sqlite.dependencies[0].dev = true;
        assert!(check(&[sqlite]).is_empty());
    }

    /// The facade knows backends in one folder only; a backend may name itself.
    #[test]
    fn only_connect_names_backends() {
        let all = [package("tenure"), package("tenure-sqlite")];
        let code = "\nuse tenure_sqlite::SqliteStore;";
        let lines = |path: &str| names_backends(path, code, &all).len();
        assert_eq!(lines("crates/tenure/src/member/election.rs"), 1);
        assert_eq!(lines("crates/tenure/src/connection.rs"), 1);
        assert_eq!(lines("crates/tenure-cli/src/main.rs"), 1);
        assert_eq!(lines("crates/tenure/src/connect/url.rs"), 0);
        assert_eq!(lines("crates/tenure-sqlite/src/lib.rs"), 0);
        assert_eq!(lines("crates/tenure/tests/failover.rs"), 0);
        assert_eq!(lines("crates/tenure/examples/worker.rs"), 0);
    }
}
