//! The processes that a process answers for: its children and whatever they
//! left behind. Both the guardian and `tenure run` are subreapers, so that an
//! orphan of the command becomes their child and cannot get away.

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgid, getpid, kill_process, kill_process_group,
    set_child_subreaper, wait,
};

/// Becomes the parent of every orphan below.
pub(crate) fn adopt_orphans() -> rustix::io::Result<()> {
    set_child_subreaper(Some(getpid()))
}

/// Every child of this process, zombies too.
pub(crate) fn children() -> Vec<Pid> {
    let me = getpid().as_raw_pid();
    let listed = listed_children();
    // A kernel without such lists: look at everybody's parent.
    let pids =
        listed.unwrap_or_else(|| everybody().filter(|pid| parent_of(*pid) == Some(me)).collect());
    pids.into_iter().filter_map(Pid::from_raw).collect()
}

/// The kernel keeps a list for each thread.
fn listed_children() -> Option<Vec<i32>> {
    let mut pids = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        pids.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(pids)
}

fn everybody() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The fourth word of `/proc/PID/stat`, counted from behind the name, which may
/// hold anything.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// Sends a signal to all of a process group that is ours, and to every other
/// child. Only a group that a child of ours is in can be meant: its number
/// cannot have gone to somebody else.
pub(crate) fn signal_all(group: Pid, signal: Signal) {
    let children = children();
    if children.iter().any(|child| getpgid(Some(*child)) == Ok(group)) {
        // Gone meanwhile is what is wanted.
        let _ = kill_process_group(group, signal);
    }
    for child in children {
        if getpgid(Some(child)) != Ok(group) {
            let _ = kill_process(child, signal);
        }
    }
}

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Exited(i32),
    Killed(i32),
    Suspended(i32),
}

/// One change of a child, or that there is none now, or no child at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaped {
    Child(Pid, Fate),
    Nothing,
    Childless,
}

/// Takes one change of any child.
pub(crate) fn reap() -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some((pid, status))) => {
                if let Some(fate) = fate(status) {
                    return Reaped::Child(pid, fate);
                }
            }
            Ok(None) => return Reaped::Nothing,
            Err(Errno::INTR) => {}
            Err(_) => return Reaped::Childless,
        }
    }
}

fn fate(status: WaitStatus) -> Option<Fate> {
    status
        .exit_status()
        .map(Fate::Exited)
        .or_else(|| status.terminating_signal().map(Fate::Killed))
        .or_else(|| status.stopping_signal().map(Fate::Suspended))
}

/// Kills every child until none is left. For when the guardian itself is gone;
/// blocks for as long as the kernel takes.
pub(crate) fn end_everybody() {
    loop {
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        loop {
            match reap() {
                Reaped::Child(..) => {}
                Reaped::Nothing => break,
                Reaped::Childless => return,
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_is_found_by_its_parent() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert_eq!(parent_of(pid), Some(getpid().as_raw_pid()));
        assert!(everybody().any(|other| other == pid));
        assert!(children().iter().any(|other| other.as_raw_pid() == pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(parent_of(pid), None);
    }
}
