//! `tenure run`'s side of the guardian.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use super::clock::nanos;
use super::timings::{Deadlines, Timings};
use super::wire::{Order, Report, pair, receive, send};
use super::{group, guardian};

/// A command under guard.
#[derive(Debug)]
pub(crate) struct Ward {
    /// Any socket that keeps messages apart may be driven as this type.
    wire: UnixDatagram,
    guardian: Child,
    command: Option<Pid>,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Killed(i32),
    /// It could not be started.
    Failed(i32),
}

impl Ward {
    /// Starts a guardian with a command that waits for `Ward::go`. The lock is
    /// shared with the guardian and with nobody else.
    pub(crate) fn start(
        command: &[OsString],
        environment: impl IntoIterator<Item = (&'static str, OsString)>,
        lock: Option<OwnedFd>,
        deadlines: Deadlines,
        timings: &Timings,
    ) -> io::Result<Self> {
        let (ours, theirs) = pair()?;
        let guardian = Command::new("/proc/self/exe")
            .arg0("tenure")
            .arg(guardian::VERB)
            .args(command)
            .envs(environment)
            .stdin(Stdio::from(theirs))
            // What is sent to our group is ours to pass on.
            .process_group(0)
            .spawn()?;
        let mut fds: Vec<BorrowedFd<'_>> = vec![rustix::stdio::stdin()];
        fds.extend(lock.as_ref().map(AsFd::as_fd));
        let start = Order::Start { deadlines, grace_nanos: nanos(timings.grace()) };
        let wire = std::os::unix::net::UnixDatagram::from(ours);
        wire.set_nonblocking(true)?;
        let wire = UnixDatagram::from_std(wire)?;
        let ward = Self { wire, guardian, command: None };
        send(&ward.wire, &start, &fds)?;
        Ok(ward)
    }

    /// What the guardian says next; `None` once it is gone.
    pub(crate) async fn next(&mut self) -> Option<Report> {
        loop {
            self.wire.readable().await.ok()?;
            let look = || receive::<Report>(&self.wire, false);
            match self.wire.try_io(Interest::READABLE, look) {
                Ok(Some(received)) => {
                    if let Report::Started(pid) = received.message {
                        self.command = Pid::from_raw(pid);
                    }
                    return Some(received.message);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// The command's process and group.
    pub(crate) fn command(&self) -> Option<Pid> {
        self.command
    }

    /// Tells the guardian something. One that does not listen goes by its last
    /// deadline, or is gone, which [`Ward::next`] says.
    pub(crate) fn tell(&self, order: Order) {
        let _ = send(&self.wire, &order, &[]);
    }

    /// Ends everything by force: the guardian does not do its duty.
    pub(crate) fn force(&self) {
        if let Some(command) = self.command {
            let _ = kill_process_group(command, Signal::KILL);
        }
        if let Some(guardian) = i32::try_from(self.guardian.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(guardian, Signal::KILL);
        }
    }

    /// Waits until the guardian is gone too, and so is its share of the lock.
    /// One that was killed leaves its orphans to us.
    pub(crate) fn bury(mut self, told: Option<End>) -> Option<End> {
        let ended = self.guardian.wait().is_ok_and(|status| status.success());
        if told.is_none() || !ended {
            group::end_everybody();
        }
        told
    }
}
