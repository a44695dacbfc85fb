//! The program's side of the guardian.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::cgroup::{Cgroup, VARIABLE};
use crate::clock::{nanos, now};
use crate::deadlines::Deadlines;
use crate::wire::{Order, Report, pair, receive, send};
use crate::{group, guardian};

/// How long killed processes may take after their term is over.
const PATIENCE: Duration = Duration::from_secs(2);

/// What to run, and for how long.
#[derive(Debug)]
pub struct CommandSpec<'a> {
    /// The program, found as a shell would find it, and its arguments.
    pub command: &'a [OsString],
    /// Added to the environment of this process.
    pub environment: Vec<(&'static str, OsString)>,
    /// A file lock that stands for the work, where the store has one
    /// (`Leadership::liveness_lock`). The guardian keeps it, and the command and its
    /// descendants inherit it under the number in `TENURE_LOCK_FD`; it is closed here.
    pub lock: Option<OwnedFd>,
    /// When to stop the command if the term is not renewed.
    pub deadlines: Deadlines,
    /// How long the command may take to end after a signal that asks it to.
    pub grace: Duration,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It could not be started; the number is the system's error.
    Failed(i32),
    /// This process of it was killed and still runs.
    Stuck(i32),
}

/// A command under guard.
///
/// Dropping it makes the guardian kill the command.
#[derive(Debug)]
pub struct Guarded {
    /// Any socket that keeps messages apart may be driven as this type.
    wire: UnixDatagram,
    guardian: Child,
    group: Option<Pid>,
    cgroup: Option<Cgroup>,
}

impl Guarded {
    /// Starts a guardian, and with it a command that waits for [`Guarded::begin`]. Its
    /// standard streams are those of this process.
    ///
    /// # Errors
    ///
    /// The system refuses a process or a socket, or this is not inside a tokio runtime
    /// with I/O enabled.
    pub fn start(spec: CommandSpec<'_>) -> io::Result<Self> {
        let CommandSpec { command, environment, lock, deadlines, grace } = spec;
        let (ours, theirs) = pair()?;
        let (cgroup, watchman) = Cgroup::make().unzip();
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
        fds.extend(watchman.as_ref().map(AsFd::as_fd));
        let grace_nanos = nanos(grace);
        let start = Order::Start { deadlines, grace_nanos, has_lock: lock.is_some() };
        let wire = std::os::unix::net::UnixDatagram::from(ours);
        wire.set_nonblocking(true)?;
        let wire = UnixDatagram::from_std(wire)?;
        let guarded = Self { wire, guardian, group: None, cgroup };
        send(&guarded.wire, &start, &fds)?;
        Ok(guarded)
    }

    /// What the guardian reports next; `None` once it is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<Report> {
        loop {
            self.wire.readable().await.ok()?;
            let look = || receive::<Report>(&self.wire, false);
            match self.wire.try_io(Interest::READABLE, look) {
                Ok(Some(received)) => {
                    if let Report::Started(pid) = received.message {
                        self.group = Pid::from_raw(pid);
                    }
                    return Some(received.message);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// The command's process group, once it is there.
    pub(crate) fn group(&self) -> Option<Pid> {
        self.group
    }

    /// Lets the command begin.
    pub fn begin(&self) {
        self.tell(Order::Go);
    }

    /// Moves the deadlines: the term was renewed.
    pub fn renew(&self, deadlines: Deadlines) {
        self.tell(Order::Renew(deadlines));
    }

    /// Passes a signal on to the command's group.
    pub fn signal(&self, number: i32) {
        self.tell(Order::Signal(number));
    }

    /// Sends this signal to everything of the command, and KILL after the grace.
    pub fn stop(&self, number: i32) {
        self.tell(Order::Stop(number));
    }

    /// Kills everything of the command.
    pub fn kill(&self) {
        self.tell(Order::Kill);
    }

    /// A guardian that no order reaches acts at the deadlines that it was told last. If it is
    /// gone, [`Guarded::next`] says so.
    fn tell(&self, order: Order) {
        let _ = send(&self.wire, &order, &[]);
    }

    /// Kills the guardian too, because it does not do what it is told: it may have been
    /// stopped. The kernel then kills the command, and [`Guarded::finish`] the rest.
    pub fn force(&mut self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        let _ = self.guardian.kill();
    }

    /// Waits, blocking, until the guardian is gone too, and so is its share of the lock.
    /// A guardian that was killed leaves its orphans to this process, which kills them.
    /// What does not end is waited for as long as the term `is_held`, and then given as
    /// [`CommandEnd::Stuck`]. `reported` is the end that the guardian reported, if it
    /// did; without one, `None` is for a command that was killed with its guardian.
    pub fn finish(
        mut self,
        reported: Option<CommandEnd>,
        is_held: impl Fn() -> bool,
    ) -> Option<CommandEnd> {
        let ended = self.guardian.wait().is_ok_and(|status| status.success());
        if reported.is_some() && ended {
            return reported;
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        let began = now();
        let patient = || is_held() || now().since(began) < PATIENCE;
        let stuck = group::end_all_children(patient);
        stuck.map(|left| CommandEnd::Stuck(left.as_raw_pid())).or(reported)
    }
}
