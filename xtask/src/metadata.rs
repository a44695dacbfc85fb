//! The workspace, as cargo describes it.

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::{Doing, Failure, Outcome};
use crate::steps::{cargo, root};

/// One crate of the workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The folder its manifest is in, relative to the root of the repository.
    pub(crate) dir: PathBuf,
    pub(crate) license: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) rust_version: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    /// Whether it has a library, and so may have documentation examples.
    pub(crate) library: bool,
}

/// One line of a crate's manifest.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Only for tests, examples and benches.
    pub(crate) dev: bool,
}

impl Package {
    /// Its folder as text, with `/` between folders.
    pub(crate) fn dir(&self) -> String {
        self.dir.to_string_lossy().replace('\\', "/")
    }

    /// Its manifest, relative to the root of the repository.
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.dir())
    }
}

#[cfg(test)]
impl Package {
    pub(crate) fn in_dir(mut self, dir: &str) -> Self {
        self.dir = dir.into();
        self
    }

    pub(crate) fn depending_on(mut self, name: &str) -> Self {
        self.dependencies.push(Dependency { name: name.into(), dev: false });
        self
    }
}

/// Every crate of the workspace.
pub(crate) fn packages() -> Outcome<Vec<Package>> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .doing(|| "run cargo metadata".into())?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("cargo metadata refused the workspace:\n{why}")));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let value: Value = serde_json::from_str(&text).doing(|| "read cargo metadata".into())?;
    let mut packages = parse(&value)?;
    let root = root();
    // Cargo gives real paths; the root may have been reached over a link.
    let real = root.canonicalize().unwrap_or(root);
    for package in &mut packages {
        if let Ok(relative) = package.dir.strip_prefix(&real) {
            package.dir = relative.to_path_buf();
        }
    }
    Ok(packages)
}

fn parse(value: &Value) -> Outcome<Vec<Package>> {
    let packages = value["packages"]
        .as_array()
        .ok_or_else(|| Failure::new("cargo metadata lists no packages; is this its format 1?"))?;
    Ok(packages.iter().map(package).collect())
}

fn package(value: &Value) -> Package {
    let text = |key: &str| value[key].as_str().map(String::from);
    let manifest = PathBuf::from(text("manifest_path").unwrap_or_default());
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let dependencies = list(&value["dependencies"]);
    let mut kinds = list(&value["targets"]).into_iter().flat_map(|target| list(&target["kind"]));
    let libraries = ["lib", "rlib", "proc-macro"];
    Package {
        name: text("name").unwrap_or_default(),
        dir: manifest.parent().map(PathBuf::from).unwrap_or_default(),
        license: text("license"),
        description: text("description"),
        rust_version: text("rust_version"),
        dependencies: dependencies
            .iter()
            .map(|value| Dependency {
                name: value["name"].as_str().unwrap_or_default().to_owned(),
                dev: value["kind"].as_str() == Some("dev"),
            })
            .collect(),
        library: kinds.any(|kind| kind.as_str().is_some_and(|kind| libraries.contains(&kind))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the checks go by is read from cargo's own form.
    #[test]
    fn a_package_is_read_with_its_dependencies_by_kind() {
        let value = serde_json::from_str(
            r#"{"packages": [{
                "name": "one", "manifest_path": "/r/crates/one/Cargo.toml",
                "license": "MIT", "description": null, "rust_version": "1.89",
                "dependencies": [
                    {"name": "a", "kind": null},
                    {"name": "b", "kind": "dev"},
                    {"name": "c", "kind": "build"}
                ],
                "targets": [{"kind": ["lib"]}, {"kind": ["test"]}]
            }, {
                "name": "tool", "targets": [{"kind": ["bin"]}]
            }]}"#,
        )
        .unwrap();
        let packages = parse(&value).unwrap();
        let one = &packages[0];
        assert_eq!((one.name.as_str(), packages.len()), ("one", 2));
        assert_eq!(one.dir, PathBuf::from("/r/crates/one"));
        assert_eq!((one.license.as_deref(), one.description.as_deref()), (Some("MIT"), None));
        let dev: Vec<bool> = one.dependencies.iter().map(|d| d.dev).collect();
        assert_eq!(dev, [false, true, false]);
        assert!(one.library && !packages[1].library);
    }

    /// Something that is not cargo metadata is refused, not taken for empty.
    #[test]
    fn a_foreign_form_is_refused() {
        assert!(parse(&Value::Null).is_err());
    }
}
