//! The last step before the command: a process that becomes it.
//!
//! It is in the command's group already. It asks the kernel to die with the
//! guardian, enters the command's control group, gives the command its signal mask
//! and its stdin back and the lock of its work, waits until the terminal is its
//! own, and executes the command in its place. All of this could be done between
//! fork and exec, but not in safe code.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::auxiliary::AuxiliaryEnd;
use crate::cgroup;
use crate::wire::{Order, receive};

/// The hidden verb that starts it.
pub(crate) const VERB: &str = "__stage";

/// From here on a descriptor is out of the way of what scripts open by number.
const HIGH: i32 = 900;

/// `__stage GUARDIAN SIGNALS CMD…`: does not return if all goes well.
pub(crate) fn main(mut args: impl Iterator<Item = OsString>) -> AuxiliaryEnd {
    let guardian: Option<i32> = text(args.next()).and_then(|pid| pid.parse().ok());
    let blocked = text(args.next()).unwrap_or_default();
    let Some(program) = args.next() else { return AuxiliaryEnd::Failed };
    // Where it is not to be had the guardian's own watch must do.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().map(rustix::process::Pid::as_raw_pid) != guardian {
        // It died before we asked.
        return AuxiliaryEnd::Failed;
    }
    if let Some(group) = cgroup::told() {
        // Without it the guardian's own watch must do.
        let _ = cgroup::enter(&group);
    }
    let wire = rustix::stdio::stdin();
    let Ok(Some(start)) = receive::<Order>(wire, true) else { return AuxiliaryEnd::Failed };
    let mut fds = start.fds.into_iter();
    let Some(stdin) = fds.next() else { return AuxiliaryEnd::Failed };
    let mut command = Command::new(&program);
    command.env_remove(cgroup::VARIABLE);
    let lock = fds.next().map(bequeathed);
    if let Some(lock) = &lock {
        command.env("TENURE_LOCK_FD", lock.as_raw_fd().to_string());
    }
    unblock(&blocked);
    let error = command.args(args).stdin(Stdio::from(stdin)).exec();
    AuxiliaryEnd::NotExecuted { program, error }
}

/// The lock as the command and all its descendants keep it, unless they close it.
fn bequeathed(lock: OwnedFd) -> OwnedFd {
    let lock = fcntl_dupfd_cloexec(&lock, HIGH).unwrap_or(lock);
    let _ = fcntl_setfd(&lock, FdFlags::empty());
    lock
}

/// Lets through again what the guardian had blocked for itself, and only that.
fn unblock(numbers: &str) {
    let signals =
        numbers.split(',').filter_map(|n| NixSignal::try_from(n.parse::<i32>().ok()?).ok());
    let set: SigSet = signals.collect();
    let _ = set.thread_unblock();
}

fn text(arg: Option<OsString>) -> Option<String> {
    arg?.into_string().ok()
}
