//! The guardian: a small process between the supervising program and the command.
//!
//! It holds the command's process group and two deadlines, TERM and KILL. It is
//! told new deadlines as the term is renewed; if they are not renewed in time,
//! or the program is gone, it ends the whole group by itself. So neither a
//! killed nor a stopped program, nor a machine that slept, leaves a command
//! running past its term.
//!
//! It ends only when nothing of the command is left. Until then it keeps the lock
//! of the member's work, where the store goes by one, and so does every process of
//! the command, which inherits it: a successor cannot begin before the last of
//! them is gone, whichever of them is killed, and in whatever order.
//!
//! What must stay true: it does no I/O but on its wire, `/proc` and the command's
//! control group, waits for nothing but its three descriptors, and takes no signal
//! but KILL. What was killed and is still there is never taken for dead.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, getpid};
use tenure_core::Mono;

use crate::auxiliary::AuxiliaryEnd;
use crate::cgroup;
use crate::clock::{Alarm, now};
use crate::deadlines::Deadlines;
use crate::group::{self, ChildState, Reaped};
use crate::stage;
use crate::wire::{Order, Report, pair, receive, send};

/// The hidden verb that starts it.
pub(crate) const VERB: &str = "__guardian";

/// What it is called, also in its arguments: whatever ends `tenure` by that name
/// does not mean it.
pub(crate) const NAME: &str = "guardian";

/// How long to wait before killing again what is not gone yet.
const AGAIN: Duration = Duration::from_millis(3);
/// How long a killed process may take before it is told of.
const STUCK: Duration = Duration::from_secs(1);

/// `__guardian CMD…`, with the wire as stdin.
pub(crate) fn main(command: impl Iterator<Item = OsString>) -> AuxiliaryEnd {
    let _ = rustix::thread::set_name(c"guardian");
    let cgroup = cgroup::told();
    match Guardian::start(cgroup.clone(), command.collect()).and_then(Guardian::run) {
        Ok(()) => AuxiliaryEnd::Done,
        Err(error) => {
            // Whatever is wrong, nothing of the command may be left.
            if let Some(cgroup) = &cgroup {
                let _ = cgroup::kill(cgroup);
            }
            group::end_all_children(|| true);
            let _ = send(wire(), &Report::Failed(error.raw_os_error().unwrap_or(0)), &[]);
            AuxiliaryEnd::Failed
        }
    }
}

fn wire() -> BorrowedFd<'static> {
    rustix::stdio::stdin()
}

struct Guardian {
    deaths: SignalFd,
    alarm: Alarm,
    /// Keeps the others from leading; closed when this process ends.
    lock: Option<OwnedFd>,
    /// The watchman acts when this is closed, which is when this process ends.
    _watchman: Option<OwnedFd>,
    cgroup: Option<PathBuf>,
    /// What the command reads; handed on when it may begin.
    stdin: Option<OwnedFd>,
    /// The way to the process that becomes the command.
    stage: OwnedFd,
    command: Pid,
    grace: Duration,
    trusted: Deadlines,
    /// Set once the command is told to stop: when it is killed.
    stop_by: Option<Mono>,
    /// Since when everything is killed.
    killing: Option<Mono>,
    said_stuck: bool,
    state: Option<ChildState>,
}

impl Guardian {
    fn start(cgroup: Option<PathBuf>, command: Vec<OsString>) -> io::Result<Self> {
        let (deaths, blocked) = block_signals()?;
        group::adopt_orphans()?;
        let Some(first) = receive::<Order>(wire(), true)? else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        };
        let Order::Start { deadlines, grace_nanos, has_lock } = first.message else {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        };
        let mut fds = first.fds.into_iter();
        let stdin = fds.next();
        let lock = if has_lock { fds.next() } else { None };
        let watchman = fds.next();
        let (ours, theirs) = pair()?;
        let spawned = Command::new("/proc/self/exe")
            .arg0(NAME)
            .arg(stage::VERB)
            .arg(getpid().as_raw_pid().to_string())
            .arg(blocked)
            .args(command)
            .stdin(Stdio::from(theirs))
            .process_group(0)
            .spawn()?;
        let command = i32::try_from(spawned.id()).ok().and_then(Pid::from_raw);
        let command = command.ok_or_else(|| io::Error::other("the command has no process id"))?;
        send(wire(), &Report::Started(command.as_raw_pid()), &[])?;
        Ok(Self {
            deaths,
            alarm: Alarm::new()?,
            lock,
            _watchman: watchman,
            cgroup,
            stdin,
            stage: ours,
            command,
            grace: Duration::from_nanos(grace_nanos),
            trusted: deadlines,
            stop_by: None,
            killing: None,
            said_stuck: false,
            state: None,
        })
    }

    /// Until nothing of the command is left.
    fn run(mut self) -> io::Result<()> {
        let mut open = true;
        loop {
            self.keep_deadlines()?;
            let ready = self.wait(open)?;
            // Deadlines before orders: a renewal that comes too late is late.
            self.keep_deadlines()?;
            if ready.deaths && self.reap()? {
                break;
            }
            if ready.wire {
                open = self.obey()?;
            }
        }
        let report = match self.state {
            Some(ChildState::Exited(code)) => Report::Exited(code),
            Some(ChildState::Killed(signal) | ChildState::Suspended(signal)) => {
                Report::Killed(signal)
            }
            None => Report::Killed(Signal::KILL.as_raw()),
        };
        // If `tenure` does not listen any more, it does not need to know.
        let _ = send(wire(), &report, &[]);
        Ok(())
    }

    /// When something must be done if nothing happens.
    fn next_deadline(&self) -> Mono {
        match self.stop_by {
            _ if self.killing.is_some() => now() + AGAIN,
            Some(stop_by) => stop_by.min(self.trusted.kill_at),
            None => self.trusted.term_at.min(self.trusted.kill_at),
        }
    }

    fn keep_deadlines(&mut self) -> io::Result<()> {
        let now = now();
        let late = now >= self.trusted.kill_at;
        if late && self.stop_by.is_none() && self.killing.is_none() {
            let _ = send(wire(), &Report::TooLate, &[]);
        }
        if late || self.killing.is_some() || self.stop_by.is_some_and(|at| now >= at) {
            self.kill();
        } else if self.stop_by.is_none() && now >= self.trusted.term_at {
            // It may stop in peace for as long as the term is trusted.
            self.stop(Signal::TERM, self.trusted.kill_at);
            let _ = send(wire(), &Report::Deadline, &[]);
        }
        Ok(self.alarm.set(self.next_deadline())?)
    }

    fn wait(&self, open: bool) -> io::Result<Ready> {
        let wire = wire();
        let mut fds = vec![
            PollFd::new(&self.deaths, PollFlags::IN),
            PollFd::new(&self.alarm.fd, PollFlags::IN),
        ];
        if open {
            fds.push(PollFd::new(&wire, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Ready { deaths: is_ready(0), wire: is_ready(2) })
    }

    /// Follows what the program says; `false` once it is gone.
    fn obey(&mut self) -> io::Result<bool> {
        loop {
            let order = match receive::<Order>(wire(), false) {
                Ok(Some(received)) => received.message,
                Ok(None) => {
                    // The program died: the term is renewed no more.
                    self.kill();
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            };
            match order {
                Order::Go => {
                    if let Some(stdin) = self.stdin.take() {
                        let mut fds = vec![stdin.as_fd()];
                        fds.extend(self.lock.as_ref().map(AsFd::as_fd));
                        // If the stage is gone, its death says so.
                        let _ = send(self.stage.as_fd(), &Order::Go, &fds);
                    }
                }
                Order::Renew(deadlines) => self.trusted = deadlines,
                Order::Signal(number) => self.pass_on(number),
                Order::Stop(number) => {
                    let by = now() + self.grace;
                    self.stop(Signal::from_named_raw(number).unwrap_or(Signal::TERM), by);
                }
                Order::Kill => self.kill(),
                Order::Start { .. } => {}
            }
        }
    }

    fn pass_on(&self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number)
            && self.state.is_none()
        {
            // Not reaped yet, so the number is still the command's.
            let _ = rustix::process::kill_process_group(self.command, signal);
        }
    }

    /// Tells every process of the command to stop, and remembers by when.
    fn stop(&mut self, signal: Signal, by: Mono) {
        self.stop_by = Some(self.stop_by.map_or(by, |earlier| earlier.min(by)));
        let whole = self.state.is_none();
        group::signal_all(self.command, whole, signal);
        // A process that is stopped cannot end by itself.
        group::signal_all(self.command, whole, Signal::CONT);
    }

    fn kill(&mut self) {
        let since = *self.killing.get_or_insert_with(now);
        group::signal_all(self.command, self.state.is_none(), Signal::KILL);
        if let Some(cgroup) = &self.cgroup {
            let _ = cgroup::kill(cgroup);
        }
        if !self.said_stuck && now().since(since) > STUCK {
            self.said_stuck = true;
            if let Some(left) = group::living_child() {
                let _ = send(wire(), &Report::Stuck(left.as_raw_pid()), &[]);
            }
        }
    }

    /// Takes note of children that changed; `true` when none is left.
    fn reap(&mut self) -> io::Result<bool> {
        while self.deaths.read_signal()?.is_some() {}
        loop {
            match group::reap() {
                Reaped::Child(pid, ChildState::Suspended(signal)) if pid == self.command => {
                    let _ = send(wire(), &Report::Suspended(signal), &[]);
                }
                Reaped::Child(pid, state) if pid == self.command => self.state = Some(state),
                Reaped::Child(..) => {}
                Reaped::Childless => return Ok(true),
                Reaped::Nothing => break,
            }
        }
        if self.state.is_some() && self.stop_by.is_none() && self.killing.is_none() {
            // The command is done; what it left behind has no term either.
            self.stop(Signal::TERM, now() + self.grace);
        }
        Ok(false)
    }
}

/// What there is to do.
struct Ready {
    deaths: bool,
    wire: bool,
}

/// Blocks whatever can be blocked: a signal meant for the group of the program
/// or for a whole control group must not end the guardian before the command.
/// Gives a descriptor that tells of deaths, and the numbers of what was blocked
/// here, for the stage to let through again.
fn block_signals() -> io::Result<(SignalFd, String)> {
    let wanted = [
        NixSignal::SIGHUP,
        NixSignal::SIGINT,
        NixSignal::SIGQUIT,
        NixSignal::SIGTERM,
        NixSignal::SIGUSR1,
        NixSignal::SIGUSR2,
        NixSignal::SIGALRM,
        NixSignal::SIGTSTP,
        NixSignal::SIGTTIN,
        NixSignal::SIGTTOU,
        NixSignal::SIGCHLD,
    ];
    let set: SigSet = wanted.into_iter().collect();
    let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let ours = wanted.into_iter().filter(|signal| !before.contains(*signal));
    let ours: Vec<String> = ours.map(|signal| (signal as i32).to_string()).collect();
    let mut deaths = SigSet::empty();
    deaths.add(NixSignal::SIGCHLD);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    Ok((SignalFd::with_flags(&deaths, flags)?, ours.join(",")))
}
