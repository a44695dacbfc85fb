//! A control group (cgroup v2) of the command's own, where one may be made.
//!
//! The kernel keeps everything that the command starts in it, and ends all of it
//! in one step, processes of other users too. Beside it stands a watchman, a small shell:
//! if the guardian is killed it ends the group, also when the program is
//! gone too. Where no group may be made, this is no error.
//!
//! The watchman is a shell so that it has neither the name nor the executable of
//! `tenure`: what kills every process that is called so does not mean it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure_core::Mono;

use crate::clock::now;
use crate::wire::pair;

/// Waits for the end of its input, which the guardian alone has the other end of.
const WATCHMAN: &str = "trap '' HUP INT QUIT TERM; read _; \
     while [ -d \"$GROUP\" ] && ! rmdir \"$GROUP\"; do \
     echo 1 >\"$GROUP/cgroup.kill\"; sleep 1; done";
/// How guardian and stage are told of the group. Not by their arguments: whatever
/// ends each process with `tenure` in its command line does not mean them.
pub(crate) const VARIABLE: &str = "TENURE_RUN_CGROUP";
/// How the name of every group of ours begins; its process and the time follow.
const PREFIX: &str = "tenure-";
/// After this long a group without a process in it is taken for left over.
const STALE: Duration = Duration::from_secs(60);
/// How long an empty group may take to be gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// A group and its watchman.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    watchman: Option<Child>,
}

impl Cgroup {
    /// Makes a group below the one that this process is in, and gives what the
    /// guardian has to hold. `None` where there is no cgroup v2, no right to make
    /// a group, or a kernel that cannot end one (before 5.14).
    pub(crate) fn make() -> Option<(Self, OwnedFd)> {
        let above = own()?;
        sweep(&above);
        let name = format!("{PREFIX}{}-{:x}", std::process::id(), now().as_nanos());
        let path = above.join(name);
        std::fs::create_dir(&path).ok()?;
        let mut group = Self { path, watchman: None };
        if !group.path.join("cgroup.kill").exists() {
            return None;
        }
        let (held, input) = pair().ok()?;
        let mut watchman = Command::new("/bin/sh");
        watchman
            .process_group(0)
            .args(["-c", WATCHMAN, "watchman"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("GROUP", &group.path)
            .stdin(Stdio::from(input))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        group.watchman = watchman.spawn().ok();
        Some((group, held))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends all that is in it.
    pub(crate) fn kill(&self) {
        let _ = kill(&self.path);
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let began = now();
        while std::fs::remove_dir(&self.path).is_err() && self.path.exists() {
            if now().since(began) > PATIENCE {
                // Something in it does not end: that is the watchman's to see to.
                return;
            }
            self.kill();
            std::thread::sleep(Duration::from_millis(2));
        }
        if let Some(watchman) = &mut self.watchman {
            let _ = watchman.kill();
            let _ = watchman.wait();
        }
    }
}

/// The group that the guardian or the stage was told of.
pub(crate) fn told() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Ends all that is in a group.
pub(crate) fn kill(group: &Path) -> io::Result<()> {
    std::fs::write(group.join("cgroup.kill"), "1")
}

/// Puts this process into a group.
pub(crate) fn enter(group: &Path) -> io::Result<()> {
    std::fs::write(group.join("cgroup.procs"), "0")
}

/// Removes what is left of runs that were killed with their watchman. The kernel
/// refuses to remove a group that anything is in.
fn sweep(above: &Path) {
    let Ok(entries) = std::fs::read_dir(above) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| is_stale(name, now())) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

fn is_stale(name: &str, now: Mono) -> bool {
    let made = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    let made = made.and_then(|(_, nanos)| u64::from_str_radix(nanos, 16).ok());
    made.is_some_and(|made| now.since(Mono::from_nanos(made)) > STALE)
}

/// Where the group that this process is in lies in the file system.
fn own() -> Option<PathBuf> {
    let read = |path| std::fs::read_to_string(path).ok();
    located(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?)
}

fn located(mounts: &str, groups: &str) -> Option<PathBuf> {
    let group = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut words = place.split(' ').skip(3);
        let root = words.next().filter(|_| kind.starts_with("cgroup2 "))?;
        // A space in the path is written as a number there: not worth the trouble.
        let point = words.next().filter(|point| !point.contains('\\'))?;
        let below = group.strip_prefix(root).ok()?;
        let inside = below.components().all(|c| matches!(c, std::path::Component::Normal(_)));
        inside.then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_groups_of_ours_are_swept() {
        let now = Mono::from_millis(3_600_000);
        let name = |at: Mono| format!("{PREFIX}7-{:x}", at.as_nanos());
        assert!(is_stale(&name(now - STALE - Duration::from_secs(1)), now));
        assert!(!is_stale(&name(now), now));
        assert!(!is_stale(&name(now + STALE + STALE), now), "made on another clock");
        for other in ["tenure-7", "tenure-7-zz", "system.slice", "tenure-"] {
            assert!(!is_stale(other, now), "{other}");
        }
    }

    #[test]
    fn the_own_group_is_found_below_its_mount() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw\n\
                      40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:3 - cgroup2 c rw\n";
        let at = |groups| located(mounts, groups);
        let unified = PathBuf::from("/sys/fs/cgroup/unified");
        assert_eq!(at("9:name=systemd:/x\n0::/\n"), Some(unified.clone()));
        assert_eq!(at("0::/a.slice/b\n"), Some(unified.join("a.slice/b")));
        assert_eq!(at("0::/../other\n"), None, "outside of what is mounted");
        assert_eq!(at("9:name=systemd:/x\n"), None, "no cgroup v2");
        let part = "41 31 0:38 /a /mnt rw - cgroup2 cgroup2 rw\n";
        assert_eq!(located(part, "0::/a/b\n"), Some("/mnt/b".into()));
        assert_eq!(located(part, "0::/elsewhere\n"), None);
    }
}
