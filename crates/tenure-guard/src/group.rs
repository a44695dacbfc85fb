//! The processes that a process answers for: its children and whatever they
//! left behind. Both the guardian and the program are subreapers, so that an
//! orphan of the command becomes their child and cannot get away.

use rustix::io::Errno;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpgid, getpid,
    kill_process, kill_process_group, pidfd_open, pidfd_send_signal, set_child_subreaper, wait,
    waitid,
};

/// Becomes the parent of every orphan below, so that what a killed guardian leaves
/// behind can be found and ended. Call it before the first command is started.
///
/// # Errors
///
/// The kernel refuses.
pub fn adopt_orphans() -> std::io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Every child of this process, zombies too.
fn children() -> Vec<Pid> {
    let me = getpid().as_raw_pid();
    let listed = listed_children();
    // A kernel without such lists: look at the parent of every process.
    let pids = listed
        .unwrap_or_else(|| all_processes().filter(|pid| parent_of(*pid) == Some(me)).collect());
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

fn all_processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent_of(pid: i32) -> Option<i32> {
    word_of(&pid.to_string(), 1)
}

/// The process group of this process; `None` if it is one of another PID namespace.
pub(crate) fn own_group() -> Option<Pid> {
    word_of("self", 2).filter(|group| *group > 0).and_then(Pid::from_raw)
}

/// A number in `/proc/PID/stat`, counted from behind the name, which may hold
/// anything.
fn word_of(process: &str, at: usize) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(at)?.parse().ok()
}

/// Sends a signal to all of a process group that is ours, and to every other
/// child. The group is ours for certain as long as its first process is not
/// reaped (`whole`) or another child of ours is in it: its number cannot have gone
/// to another process.
pub(crate) fn signal_all(group: Pid, whole: bool, signal: Signal) {
    let children = children();
    if whole || children.iter().any(|child| getpgid(Some(*child)) == Ok(group)) {
        // Gone meanwhile is what is wanted.
        let _ = kill_process_group(group, signal);
    }
    for child in children {
        if getpgid(Some(child)) != Ok(group) {
            let _ = signal_child(child, signal);
        }
    }
}

/// Sends a signal to a child. The kernel is asked whether it is one, by a
/// descriptor that means this process and no later one of the same number.
fn signal_child(child: Pid, signal: Signal) -> rustix::io::Result<()> {
    match pidfd_open(child, PidfdFlags::empty()) {
        Ok(fd) => {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            waitid(WaitId::PidFd(fd.as_fd()), look)?;
            pidfd_send_signal(&fd, signal)
        }
        // A kernel before 5.4.
        Err(Errno::NOSYS) => kill_process(child, signal),
        Err(error) => Err(error),
    }
}

/// A child that is not dead, if there is one.
pub(crate) fn living_child() -> Option<Pid> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    children().into_iter().find(|child| matches!(waitid(WaitId::Pid(*child), look), Ok(None)))
}

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildState {
    Exited(i32),
    Killed(i32),
    Suspended(i32),
}

/// One change of a child, or that there is none now, or no child at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaped {
    Child(Pid, ChildState),
    Nothing,
    Childless,
}

/// Takes one change of any child.
pub(crate) fn reap() -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some((pid, status))) => {
                if let Some(state) = state(status) {
                    return Reaped::Child(pid, state);
                }
            }
            Ok(None) => return Reaped::Nothing,
            Err(Errno::INTR) => {}
            Err(_) => return Reaped::Childless,
        }
    }
}

fn state(status: WaitStatus) -> Option<ChildState> {
    status
        .exit_status()
        .map(ChildState::Exited)
        .or_else(|| status.terminating_signal().map(ChildState::Killed))
        .or_else(|| status.stopping_signal().map(ChildState::Suspended))
}

/// Kills every child until none is left. For when the guardian itself is gone;
/// blocks for as long as `patient` says. Gives one that could not be ended.
pub(crate) fn end_all_children(patient: impl Fn() -> bool) -> Option<Pid> {
    loop {
        for child in children() {
            let _ = signal_child(child, Signal::KILL);
        }
        loop {
            match reap() {
                Reaped::Child(..) => {}
                Reaped::Nothing => break,
                Reaped::Childless => return None,
            }
        }
        if let Some(left) = living_child().filter(|_| !patient()) {
            return Some(left);
        }
        std::thread::sleep(Duration::from_millis(2));
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
        assert_eq!(own_group(), Some(rustix::process::getpgrp()));
        assert!(all_processes().any(|other| other == pid));
        assert!(children().iter().any(|other| other.as_raw_pid() == pid));
        assert_eq!(living_child().map(Pid::as_raw_pid), Some(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(parent_of(pid), None);
    }

    /// R1: a number that is not a child's is left alone, whatever `/proc` says.
    #[test]
    fn a_stranger_is_not_signalled() {
        let init = Pid::from_raw(1).unwrap();
        assert_eq!(signal_child(init, Signal::WINCH), Err(Errno::CHILD));
        assert_eq!(signal_child(getpid(), Signal::KILL), Err(Errno::CHILD));
    }
}
