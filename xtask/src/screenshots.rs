//! The pictures of the dashboard in the documentation, made from a real run.

use std::fs;

use crate::failure::{Doing, Outcome};
use crate::servers;
use crate::steps::{Steps, cargo, root};

/// Where the documents find them.
const FOLDER: &str = "docs/images";

/// Starts a browser, and runs the example that has a server, members and hand-overs of its own.
pub(crate) fn run() -> Outcome {
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).doing(|| format!("create {}", folder.display()))?;
    let browser = servers::start(&[servers::find("chromium")?])?;
    let mut steps = Steps::of("screenshots");
    let line = ["run", "-p", "tenure-server", "--all-features", "--example", "screenshots", "--"];
    steps.command("pictures", cargo(&line).arg(&folder).envs(browser.environment()));
    drop(browser);
    steps.finish()
}
