//! A copy of the repository to break things in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::ledger::Fate;
use crate::failure::{Doing, Failure, Outcome};
use crate::steps::{cargo, has_cargo_command};

/// The copy.
#[derive(Debug)]
pub(super) struct Scratch {
    tree: PathBuf,
}

impl Scratch {
    /// Copies what git knows of, as it is in the working tree. What is there already and
    /// the same is left, so that it need not be built again.
    pub(super) fn copy(from: &Path, tree: &Path) -> Outcome<Self> {
        let known = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = Command::new("git").args(known).current_dir(from).output();
        let listed = listed.doing(|| "ask git for the files of this repository".into())?;
        if !listed.status.success() {
            return Err(Failure::new("git does not know this folder: mutants need a clone"));
        }
        for name in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|n| !n.is_empty()) {
            let (source, copy) = (from.join(name), tree.join(name));
            // Removed, and git has not heard of it yet.
            let Ok(text) = fs::read(&source) else { continue };
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

    /// A file of the copy.
    pub(super) fn path(&self, file: &Path) -> PathBuf {
        self.tree.join(file)
    }

    /// Runs the tests of one crate until the first fails, and says which that was. What is
    /// built goes to a folder of its own: cargo takes two copies of a workspace for one, so
    /// that what is broken here would be run there.
    pub(super) fn test(
        &self,
        package: &str,
        environment: &[(String, String)],
        patience: Duration,
    ) -> Outcome<(Fate, String)> {
        let line: &[&str] = match has_cargo_command("nextest") {
            true => &["nextest", "run", "--color=never"],
            false => &["test", "--tests"],
        };
        let log = self.tree.join("mutant.log");
        let out = fs::File::create(&log).doing(|| format!("write {}", log.display()))?;
        let err = out.try_clone().doing(|| format!("write {}", log.display()))?;
        let mut tests = cargo(line)
            .args(["--all-features", "--package", package])
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", self.tree.with_file_name("build"))
            .envs(environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .doing(|| "start cargo".into())?;
        let from = Instant::now();
        let status = loop {
            if let Some(status) = tests.try_wait().doing(|| "wait for the tests".into())? {
                break status;
            }
            if from.elapsed() > patience {
                tests.kill().doing(|| "end the tests".into())?;
                tests.wait().doing(|| "wait for the tests".into())?;
                return Ok((Fate::Hung, format!("no end after {patience:?}")));
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let said = fs::read(&log).doing(|| format!("read {}", log.display()))?;
        Ok(judge(status.success(), &String::from_utf8_lossy(&said)))
    }
}

/// What the output of a test run tells of the mutant.
fn judge(passed: bool, said: &str) -> (Fate, String) {
    if passed {
        return (Fate::Survived, String::new());
    }
    let refused = ["while installing the schema", "refused installing the schema", "near \""];
    if refused.iter().any(|text| said.contains(text)) {
        return (Fate::Unviable, String::new());
    }
    let failed = said.lines().map(str::trim).find(|line| line.starts_with("FAIL"));
    let failed = failed.or(said.lines().find(|line| line.ends_with("FAILED")));
    // The name stands last, after times and counts.
    let words: Vec<_> = failed.unwrap_or("cargo failed").split_whitespace().collect();
    (Fate::Caught, words[words.len().saturating_sub(2)..].join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::root;

    #[test]
    fn the_first_test_that_fails_is_named() {
        let said = "  PASS [ 1 s] (1/2) a::b c\n  FAIL [ 1.7s] (2/2) pg::suite heartbeat::dead\n";
        assert_eq!(judge(false, said), (Fate::Caught, "pg::suite heartbeat::dead".into()));
        assert_eq!(judge(true, said).0, Fate::Survived);
        let refused = "PostgreSQL refused installing the schema: syntax error";
        assert_eq!(judge(false, refused).0, Fate::Unviable);
    }

    /// The copy is of the working tree, and what did not change is not written again.
    #[test]
    fn a_copy_is_made_of_what_git_knows() {
        let dir = std::env::temp_dir().join(format!("tenure-scratch-{}", std::process::id()));
        let from = root().join("xtask");
        let tree = Scratch::copy(&from, &dir).unwrap();
        let copied = tree.path(Path::new("Cargo.toml"));
        let made = fs::metadata(&copied).unwrap().modified().unwrap();
        Scratch::copy(&from, &dir).unwrap();
        assert_eq!(fs::metadata(&copied).unwrap().modified().unwrap(), made);
        fs::remove_dir_all(&dir).unwrap();
    }
}
