//! Namespaces and control groups of a test's own, where they can be had.

use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_testkit::cannot_test_here;

use super::World;

/// A control group of the test's own, where one may be made.
pub fn own_cgroup(name: &str) -> Option<Own> {
    let own = made_cgroup(name);
    if own.is_none() {
        cannot_test_here(NO_CGROUP);
    }
    own
}

/// What a machine lacks that has no control groups of version 2, or gives none away.
pub const NO_CGROUP: &str = "this machine lets this process make no control groups";

fn made_cgroup(name: &str) -> Option<Own> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let path = Path::new(line.split(' ').nth(4)?).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir(&path).ok()?;
    let own = Own(path);
    own.0.join("cgroup.kill").exists().then_some(own)
}

/// A control group that ends with the test.
pub struct Own(pub PathBuf);

impl Own {
    pub fn write(&self, file: &str, value: &str) {
        std::fs::write(self.0.join(file), value).unwrap();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A second panic would end the run, and hide the first.
            let _ = std::fs::write(self.0.join("cgroup.kill"), "1");
            return;
        }
        super::wait_for("the group to be gone", || {
            let gone = std::fs::remove_dir(&self.0).ok();
            let _ = std::fs::write(self.0.join("cgroup.kill"), "1");
            gone
        });
    }
}

/// Whether a namespace can be made here; the flags that make one.
pub fn unshare(flags: &[&str]) -> Option<Command> {
    for as_root in [&[][..], &["--user", "--map-root-user"]] {
        let all = || as_root.iter().chain(flags).copied();
        if Command::new("unshare").args(all()).arg("true").output().ok()?.status.success() {
            let mut command = Command::new("unshare");
            command.args(all());
            return Some(command);
        }
    }
    cannot_test_here("this machine lets this process make no namespaces");
    None
}

pub fn inside(mut command: Command, world: &World) -> Command {
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", world.dir());
    command.env("TENURE_STORE", world.store());
    command
}
