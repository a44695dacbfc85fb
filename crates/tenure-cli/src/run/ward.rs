//! `tenure run`'s side of the guardian.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use super::cgroup::{Cgroup, VARIABLE};
use super::clock::{nanos, now};
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
    cgroup: Option<Cgroup>,
}

/// How long killed processes may take after their term is over.
const PATIENCE: Duration = Duration::from_secs(2);

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Killed(i32),
    /// It could not be started.
    Failed(i32),
    /// This process was killed and still runs.
    Stuck(i32),
}

impl Ward {
    /// Starts a guardian with a command that waits for `Ward::go`. The lock goes
    /// to the guardian and to the command, and is closed here.
    pub(crate) fn start(
        command: &[OsString],
        environment: impl IntoIterator<Item = (&'static str, OsString)>,
        lock: Option<OwnedFd>,
        deadlines: Deadlines,
        timings: &Timings,
    ) -> io::Result<Self> {
        let (ours, theirs) = pair()?;
        let (cgroup, leash) = Cgroup::make().unzip();
        let guardian = Command::new("/proc/self/exe")
            .arg0(guardian::NAME)
            .arg(guardian::VERB)
            .args(command)
            .envs(environment)
            .env(VARIABLE, cgroup.as_ref().map_or("".as_ref(), Cgroup::path))
            .stdin(Stdio::from(theirs))
            // What is sent to our group is ours to pass on.
            .process_group(0)
            .spawn()?;
        let mut fds: Vec<BorrowedFd<'_>> = vec![rustix::stdio::stdin()];
        fds.extend(lock.as_ref().map(AsFd::as_fd));
        fds.extend(leash.as_ref().map(AsFd::as_fd));
        let grace_nanos = nanos(timings.grace());
        let start = Order::Start { deadlines, grace_nanos, has_lock: lock.is_some() };
        let wire = std::os::unix::net::UnixDatagram::from(ours);
        wire.set_nonblocking(true)?;
        let wire = UnixDatagram::from_std(wire)?;
        let ward = Self { wire, guardian, command: None, cgroup };
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

    /// Ends everything by force: the guardian does not do its duty. Without it the
    /// kernel kills the command, and what is left becomes ours (see `bury`).
    pub(crate) fn force(&mut self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        let _ = self.guardian.kill();
    }

    /// Waits until the guardian is gone too, and so is its share of the lock. One
    /// that was killed leaves its orphans to us. Whatever does not end is waited
    /// for as long as the term is held, and then told of.
    pub(crate) fn bury(mut self, told: Option<End>, is_held: impl Fn() -> bool) -> Option<End> {
        let ended = self.guardian.wait().is_ok_and(|status| status.success());
        if told.is_some() && ended {
            return told;
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        let began = now();
        let patient = || is_held() || now().since(began) < PATIENCE;
        group::end_everybody(patient).map(|left| End::Stuck(left.as_raw_pid())).or(told)
    }
}
