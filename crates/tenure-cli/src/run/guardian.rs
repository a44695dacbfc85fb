//! The guardian: a small process between `tenure run` and the command.
//!
//! It holds the command's process group and two deadlines, TERM and KILL. It is
//! told new deadlines as the term is renewed; if they are not renewed in time,
//! or `tenure run` is gone, it ends the whole group by itself. So neither a
//! killed nor a stopped `tenure run`, nor a machine that slept, leaves a command
//! running past its term.
//!
//! It ends only when nothing of the command is left. Until then it keeps the
//! lock that proves its member's life, where the store goes by one: a successor
//! cannot begin before the last process of the group is gone.
//!
//! What must stay true: it does no I/O but on its wire, waits for nothing but
//! its three descriptors, and takes no signal but KILL.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, getpid};
use tenure::Mono;

use super::clock::{Alarm, now};
use super::group::{self, Fate, Reaped};
use super::stage;
use super::timings::Deadlines;
use super::wire::{Order, Report, pair, receive, send};
use crate::exit::Exit;

/// The hidden verb that starts it.
pub(crate) const VERB: &str = "__guardian";

/// How long to wait before killing again what is not gone yet.
const AGAIN: Duration = Duration::from_millis(3);

/// `__guardian CMD…`, with the wire as stdin.
pub(crate) fn main(command: impl Iterator<Item = OsString>) -> Exit {
    // `pkill -9 tenure` is meant for tenure.
    let _ = rustix::thread::set_name(c"guardian");
    match Guardian::start(command.collect()).and_then(Guardian::run) {
        Ok(()) => Exit::Ok,
        Err(error) => {
            // Whatever is wrong, nothing of the command may be left.
            group::end_everybody();
            let _ = send(wire(), &Report::Failed(error.raw_os_error().unwrap_or(0)), &[]);
            Exit::System
        }
    }
}

fn wire() -> BorrowedFd<'static> {
    rustix::stdio::stdin()
}

struct Guardian {
    deaths: SignalFd,
    alarm: Alarm,
    /// Shares the member's life; closed when this process ends.
    _lock: Option<OwnedFd>,
    /// What the command reads; handed on when it may begin.
    stdin: Option<OwnedFd>,
    /// The way to the process that becomes the command.
    stage: OwnedFd,
    command: Pid,
    grace: Duration,
    trusted: Deadlines,
    /// Set once the command is told to stop: when it is killed.
    stop_by: Option<Mono>,
    killing: bool,
    fate: Option<Fate>,
}

impl Guardian {
    fn start(command: Vec<OsString>) -> io::Result<Self> {
        let (deaths, blocked) = block_signals()?;
        group::adopt_orphans()?;
        let Some(first) = receive::<Order>(wire(), true)? else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        };
        let Order::Start { deadlines, grace_nanos } = first.message else {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        };
        let mut fds = first.fds.into_iter();
        let (stdin, lock) = (fds.next(), fds.next());
        let (ours, theirs) = pair()?;
        let spawned = Command::new("/proc/self/exe")
            .arg0("tenure")
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
            _lock: lock,
            stdin,
            stage: ours,
            command,
            grace: Duration::from_nanos(grace_nanos),
            trusted: deadlines,
            stop_by: None,
            killing: false,
            fate: None,
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
            if ready.deaths && self.bury()? {
                break;
            }
            if ready.wire {
                open = self.obey()?;
            }
        }
        let report = match self.fate {
            Some(Fate::Exited(code)) => Report::Exited(code),
            Some(Fate::Killed(signal) | Fate::Suspended(signal)) => Report::Killed(signal),
            None => Report::Killed(Signal::KILL.as_raw()),
        };
        // If nobody listens any more, nobody needs to know.
        let _ = send(wire(), &report, &[]);
        Ok(())
    }

    /// When something must be done if nothing happens.
    fn next_deadline(&self) -> Mono {
        match self.stop_by {
            _ if self.killing => now() + AGAIN,
            Some(stop_by) => stop_by.min(self.trusted.kill_at),
            None => self.trusted.term_at.min(self.trusted.kill_at),
        }
    }

    fn keep_deadlines(&mut self) -> io::Result<()> {
        let now = now();
        if self.killing || now >= self.trusted.kill_at || self.stop_by.is_some_and(|at| now >= at) {
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

    /// Follows what `tenure run` says; `false` once it is gone.
    fn obey(&mut self) -> io::Result<bool> {
        loop {
            let order = match receive::<Order>(wire(), false) {
                Ok(Some(received)) => received.message,
                Ok(None) => {
                    // It died without a word: nobody renews the term.
                    self.kill();
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            };
            match order {
                Order::Go => {
                    if let Some(stdin) = self.stdin.take() {
                        // If the stage is gone, its death says so.
                        let _ = send(self.stage.as_fd(), &Order::Go, &[stdin.as_fd()]);
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
            && self.fate.is_none()
        {
            // Not reaped yet, so the number is still the command's.
            let _ = rustix::process::kill_process_group(self.command, signal);
        }
    }

    /// Tells everybody to stop, and remembers by when.
    fn stop(&mut self, signal: Signal, by: Mono) {
        self.stop_by = Some(self.stop_by.map_or(by, |earlier| earlier.min(by)));
        group::signal_all(self.command, signal);
        // Whoever is stopped cannot stop by itself.
        group::signal_all(self.command, Signal::CONT);
    }

    fn kill(&mut self) {
        self.killing = true;
        group::signal_all(self.command, Signal::KILL);
    }

    /// Takes note of children that changed; `true` when none is left.
    fn bury(&mut self) -> io::Result<bool> {
        while self.deaths.read_signal()?.is_some() {}
        loop {
            match group::reap() {
                Reaped::Child(pid, Fate::Suspended(signal)) if pid == self.command => {
                    let _ = send(wire(), &Report::Suspended(signal), &[]);
                }
                Reaped::Child(pid, fate) if pid == self.command => self.fate = Some(fate),
                Reaped::Child(..) => {}
                Reaped::Childless => return Ok(true),
                Reaped::Nothing => break,
            }
        }
        if self.fate.is_some() && self.stop_by.is_none() && !self.killing {
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

/// Blocks whatever can be blocked: a signal meant for the group of `tenure run`
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
