//! Terminal control passes through: the command's group is in the foreground
//! while it runs, so that it may read the terminal and gets its Ctrl-C, and
//! Ctrl-Z suspends the whole job.

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::stdio::stdin;
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

use crate::group;
use crate::guarded::Guarded;

/// The terminal on stdin, if this process is in its foreground.
#[derive(Debug)]
pub struct Terminal {
    ours: Pid,
}

impl Terminal {
    /// Gives the terminal, unless there is none or another job is in its foreground.
    #[must_use]
    pub fn in_foreground() -> Option<Self> {
        let ours = group::own_group()?;
        (isatty(stdin()) && tcgetpgrp(stdin()) == Ok(ours)).then_some(Self { ours })
    }

    /// Puts the command's group into the foreground.
    pub fn give(&self, command: &Guarded) {
        if let Some(group) = command.group() {
            set_foreground(group);
        }
    }

    /// Puts ours back.
    pub fn take_back(&self) {
        set_foreground(self.ours);
    }

    /// Stops this job as the terminal stopped the command, so that the shell
    /// notices; returns when it goes on. Nothing renews the term meanwhile: if
    /// that takes too long the guardian ends the command.
    pub fn suspend(&self) {
        self.take_back();
        let _ = kill_process_group(self.ours, Signal::STOP);
    }
}

/// A process in the background that does this is stopped for it, unless it
/// blocks the signal. Only one thread does, for this one call: nothing that is
/// started later inherits it.
fn set_foreground(group: Pid) {
    let switch = move || {
        let mut set = SigSet::empty();
        set.add(NixSignal::SIGTTOU);
        if set.thread_block().is_ok() {
            // A group that is gone, or a terminal that hung up, needs nothing.
            let _ = tcsetpgrp(stdin(), group);
        }
    };
    if let Ok(thread) = std::thread::Builder::new().spawn(switch) {
        let _ = thread.join();
    }
}
