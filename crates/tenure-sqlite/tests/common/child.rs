//! Real processes: this test program, started once more in a role.

use std::path::{Path, PathBuf};
use std::process::Command;

pub use tenure_testkit::Process;
use tenure_testkit::cannot_test_here;
pub use tenure_testkit::process::{hear, say, signal};

const ROLE: &str = "TENURE_TEST_ROLE";
const FILE: &str = "TENURE_TEST_FILE";

/// What this process is to do, if it was started by a test to do something.
pub fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(FILE)?.into()))
}

/// Starts this test program again, to run the test `entry` in a role.
pub fn start(entry: &str, role: &str, file: &Path) -> Process {
    Process::start(Process::again(entry).env(ROLE, role).env(FILE, file))
}

/// The same, in a mount namespace of its own after `script` has run in it.
pub fn start_within(script: &str, entry: &str, role: &str, file: &Path) -> Process {
    let mut command = Command::new("unshare");
    let script = format!("{script} && exec \"$0\" \"$@\"");
    command.args(["-rm", "sh", "-c", &script]).arg(Process::program());
    command.args(Process::arguments(entry));
    Process::start(command.env(ROLE, role).env(FILE, file))
}

/// Whether this system lets a script run in a mount namespace of its own.
pub fn can_unshare(script: &str) -> bool {
    let status = Command::new("unshare").args(["-rm", "sh", "-c", script]).status();
    let can = status.is_ok_and(|status| status.success());
    if !can {
        cannot_test_here("this system lets this process make no mount namespace");
    }
    can
}
