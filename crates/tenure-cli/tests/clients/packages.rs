//! What the packages need of this machine, and how they are built.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use crate::{clients, passed};

/// Node, Python, and what was installed for them.
pub(crate) struct Packages {
    node: String,
    python: String,
}

impl Packages {
    /// `None` where they cannot be had; with `CI` set that is a failure.
    pub(crate) fn find() -> Option<Self> {
        let node = std::env::var("TENURE_TEST_NODE_PATH");
        let python = std::env::var("TENURE_TEST_PYTHON_PATH");
        if let (Ok(node), Ok(python)) = (node, python) {
            return Some(Self { node, python });
        }
        tenure_testkit::cannot_test_here(
            "TENURE_TEST_NODE_PATH is not set (`cargo xtask test` sets it, and says what is \
             missing: Node 20 with npm, Python 3.10 with pip)",
        );
        None
    }

    pub(crate) fn node(&self) -> Command {
        let mut node = Command::new("node");
        node.env("NODE_PATH", &self.node).env("TENURE_BIN", env!("CARGO_BIN_EXE_tenure"));
        // It would take the child for one of its own, and print nothing.
        node.env_remove("NODE_TEST_CONTEXT");
        node
    }

    pub(crate) fn python(&self) -> Command {
        let mut python = Command::new("python3");
        let own = clients().join("python/src");
        python.env("PYTHONPATH", format!("{}:{}", own.display(), self.python));
        python.env("TENURE_BIN", env!("CARGO_BIN_EXE_tenure"));
        python.env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }

    /// Compiles the package, unless that was done since its sources changed; one process at a time.
    pub(crate) fn build(&self) {
        let folder = clients().join("typescript");
        let lock = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript.lock");
        let lock = File::create(lock).unwrap();
        lock.lock().unwrap();
        let mut sources = vec![folder.join("build.mjs"), folder.join("tsconfig.json")];
        sources.extend(fs::read_dir(folder.join("src")).unwrap().map(|one| one.unwrap().path()));
        let changed = sources.iter().map(|path| modified(path).unwrap()).max();
        if modified(&folder.join("dist/cjs/index.js")).is_some_and(|built| Some(built) > changed) {
            return;
        }
        let mut node = self.node();
        passed("build.mjs", &node.arg("build.mjs").current_dir(&folder).output().unwrap());
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}
