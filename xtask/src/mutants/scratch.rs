//! A copy of the repository whose statements can be broken after it was built.
//!
//! A statement stands in a test program as it stands in its file. In the copy each file
//! is followed by spaces, so that there is room to overwrite the text in the program by
//! another: a mutant costs no build. The sources of the crate are as they are published.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::failure::{Doing, Failure, Outcome};
use crate::steps::cargo;

/// How many spaces follow a text: what is put in its place may be longer by so much.
pub(super) const ROOM: usize = 96;

/// The programs of the random histories, by their crates.
const SCOUTS: [(&str, &str); 2] =
    [("tenure-postgres", "histories"), ("tenure-sqlite", "specific_histories")];

/// A text as the copy has it.
pub(super) fn padded(text: &str) -> String {
    format!("{text}{}", " ".repeat(ROOM))
}

/// Another text, exactly as long as the padded one.
pub(super) fn in_place_of(text: &str, broken: &str) -> Outcome<String> {
    let length = padded(text).len();
    if broken.len() > length {
        return Err(Failure::new("a mutant is longer than there is room for; raise ROOM"));
    }
    Ok(format!("{broken:length$}"))
}

/// A test program of the copy.
#[derive(Clone, Debug)]
pub(super) struct Built {
    /// What its tests are named after.
    pub(super) target: String,
    pub(super) path: PathBuf,
    /// The folder that its tests are run in.
    pub(super) folder: PathBuf,
}

/// The copy.
#[derive(Debug)]
pub(super) struct Scratch {
    tree: PathBuf,
}

impl Scratch {
    /// Copies what git knows of, as it is in the working tree. What is there already and
    /// the same is left, so that it need not be built again.
    pub(super) fn copy(from: &Path, tree: &Path, statements: &[&Path]) -> Outcome<Self> {
        let known = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = Command::new("git").args(known).current_dir(from).output();
        let listed = listed.doing(|| "ask git for the files of this repository".into())?;
        if !listed.status.success() {
            return Err(Failure::new("git does not know this folder: mutants need a clone"));
        }
        let listed = String::from_utf8_lossy(&listed.stdout);
        let names: BTreeSet<_> = listed.split('\0').filter(|name| !name.is_empty()).collect();
        // Cargo takes whatever lies in `tests` for a test.
        let is_gone = |name: &Path| !name.to_str().is_some_and(|name| names.contains(name));
        remove(tree, tree, &is_gone)?;
        for name in names {
            let source = from.join(name);
            let copy = tree.join(name);
            let Ok(mut text) = fs::read(&source) else {
                // It was removed, and the removal is not committed yet.
                drop(fs::remove_file(&copy));
                continue;
            };
            let is_statement = statements.iter().any(|folder| Path::new(name).starts_with(folder));
            if is_statement && source.extension().is_some_and(|end| end == "sql") {
                text = padded(&String::from_utf8_lossy(&text)).into_bytes();
            }
            if fs::read(&copy).is_ok_and(|there| there == text) {
                continue;
            }
            if let Some(folder) = copy.parent() {
                fs::create_dir_all(folder).doing(|| format!("make {}", folder.display()))?;
            }
            fs::write(&copy, text).doing(|| format!("write {}", copy.display()))?;
        }
        Ok(Self { tree: tree.to_owned() })
    }

    /// A program to run in the copy. What cargo builds there goes to a folder of its own:
    /// cargo takes two copies of a workspace for one, so that what is broken here would be
    /// run there.
    pub(super) fn command(&self, mut command: Command) -> Command {
        let mut build = self.tree.clone().into_os_string();
        build.push("-build");
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", build);
        command
    }

    /// The test programs that are needed, by their names: that of the scouts alone, or those
    /// that are named by what tests are called; all, if there are none such.
    pub(super) fn needed(&self, package: &str, scout: bool, by: &[String]) -> Vec<String> {
        if scout {
            let scouts = SCOUTS.iter().filter(|(of, _)| *of == package);
            return scouts.map(|(_, scout)| (*scout).to_owned()).collect();
        }
        let tests = self.tree.join("crates").join(package).join("tests");
        let entries = fs::read_dir(tests).into_iter().flatten().flatten().map(|e| e.path());
        let stems = entries.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
        let all: Vec<_> = stems.collect();
        let of = |text: &String| all.iter().filter(|stem| text.starts_with(*stem)).max();
        let named: Vec<_> = by.iter().map(of).collect();
        named.into_iter().collect::<Option<BTreeSet<_>>>().into_iter().flatten().cloned().collect()
    }

    /// Builds test programs of one crate: all, if none is named.
    pub(super) fn build(&self, package: &str, programs: &[String]) -> Outcome<Vec<Built>> {
        let named = programs.iter().flat_map(|name| ["--test", name]);
        let chosen = if programs.is_empty() { vec!["--tests"] } else { named.collect() };
        let output = self
            .command(cargo(&["test", "--no-run", "--all-features"]))
            .args(chosen)
            .args(["--message-format", "json-render-diagnostics", "--package", package])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .doing(|| "start cargo".into())?;
        if !output.status.success() {
            return Err(Failure::new(format!("the tests of {package} could not be built")));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        Ok(said
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter_map(built)
            .collect())
    }
}

/// Removes the files below a folder of a tree that are gone.
fn remove(tree: &Path, folder: &Path, is_gone: &dyn Fn(&Path) -> bool) -> Outcome {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            remove(tree, &path, is_gone)?;
        } else if path.strip_prefix(tree).is_ok_and(is_gone) {
            fs::remove_file(&path).doing(|| format!("remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// The test program that one message of cargo tells of.
fn built(message: Value) -> Option<Built> {
    let is_test = message["profile"]["test"].as_bool() == Some(true);
    let path = PathBuf::from(message["executable"].as_str().filter(|_| is_test)?);
    let target = message["target"]["name"].as_str()?.to_owned();
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(Built { target, path, folder })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::root;

    /// Whatever is put in its place, a text stays as long as it was.
    #[test]
    fn a_text_is_replaced_by_one_of_the_same_length() {
        let text = "SELECT 1 WHERE a";
        let broken = in_place_of(text, "SELECT 1 WHERE NOT (a)").unwrap();
        assert_eq!(broken.len(), padded(text).len());
        assert_eq!(broken.trim(), "SELECT 1 WHERE NOT (a)");
        assert_eq!(in_place_of(text, text).unwrap(), padded(text));
        assert!(in_place_of(text, &"x".repeat(200)).is_err());
    }

    #[test]
    fn a_test_program_is_known_by_what_cargo_says() {
        let message = r#"{"profile": {"test": true}, "executable": "/b/deps/suite-1",
            "target": {"name": "suite"}, "manifest_path": "/r/crates/one/Cargo.toml"}"#;
        let found = built(serde_json::from_str(message).unwrap()).unwrap();
        assert_eq!(
            (found.target.as_str(), found.folder.as_path()),
            ("suite", Path::new("/r/crates/one"))
        );
        let library = message.replace("true", "false");
        assert!(built(serde_json::from_str(&library).unwrap()).is_none());
    }

    /// Only what is asked for is built.
    #[test]
    fn a_test_program_is_needed_if_its_tests_are_named() {
        let tree = Scratch { tree: root() };
        let needed = |by: &[&str]| {
            let by: Vec<_> = by.iter().map(|text| (*text).to_owned()).collect();
            tree.needed("tenure-sqlite", false, &by)
        };
        assert_eq!(
            needed(&["specific_fence", "specific_boot a_"]),
            ["specific_boot", "specific_fence"]
        );
        assert_eq!(needed(&["specific_fence", "amend::"]), [""; 0], "any may have such a test");
        assert_eq!(needed(&[]), [""; 0]);
        assert_eq!(tree.needed("tenure-postgres", true, &[]), ["histories"]);
    }

    /// The copy is of the working tree, and what did not change is not written again.
    #[test]
    fn a_copy_is_made_of_what_git_knows() {
        let dir = std::env::temp_dir().join(format!("tenure-scratch-{}", std::process::id()));
        let from = root().join("xtask");
        Scratch::copy(&from, &dir, &[]).unwrap();
        let copied = dir.join("Cargo.toml");
        let made = fs::metadata(&copied).unwrap().modified().unwrap();
        Scratch::copy(&from, &dir, &[]).unwrap();
        assert_eq!(fs::metadata(&copied).unwrap().modified().unwrap(), made);
        let gone = dir.join("src/gone.rs");
        fs::write(&gone, "").unwrap();
        Scratch::copy(&from, &dir, &[]).unwrap();
        assert!(!gone.exists() && dir.join("src/main.rs").exists());
        fs::remove_dir_all(&dir).unwrap();
    }
}
