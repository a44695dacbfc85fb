//! What the program, its guardian and the stage say to each other: short texts
//! over a socket that keeps them apart, with file descriptors beside them.
//!
//! Descriptors travel by message rather than by inheritance, so that each
//! process has exactly those that are meant for it. The command has its streams,
//! and the lock of its work where the store has one.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use tenure_core::Mono;

use crate::deadlines::Deadlines;
use crate::guarded::CommandEnd;

/// The longest message.
const LONGEST: usize = 512;

/// From the program to the guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Start the command; the descriptors are its stdin, perhaps a lock, and
    /// perhaps the input of a watchman.
    Start { deadlines: Deadlines, grace_nanos: u64, has_lock: bool },
    /// The command may begin.
    Go,
    /// New deadlines.
    Renew(Deadlines),
    /// Pass a signal on to the group.
    Signal(i32),
    /// Send this signal, and KILL after the grace.
    Stop(i32),
    /// KILL now.
    Kill,
}

/// What the guardian of a command reports. Processes and signals are numbers, as the
/// system has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The process exists, in a group of its own, and waits for
    /// [`Guarded::begin`](crate::Guarded::begin).
    Started(i32),
    /// A deadline has come: the command is being stopped.
    Deadline,
    /// The last deadline has passed before the guardian could act, because it or the
    /// machine was stopped: the command is killed.
    TooLate,
    /// A process was killed and is still there.
    Stuck(i32),
    /// The command was stopped by job control.
    Suspended(i32),
    /// The command has ended with this code, and nothing of it is left.
    Exited(i32),
    /// The command was ended by this signal, and nothing of it is left.
    Killed(i32),
    /// The command could not be started at all; the number is the system's error.
    Failed(i32),
}

impl Report {
    /// How the command ended, if this report says so.
    #[must_use]
    pub fn end(self) -> Option<CommandEnd> {
        match self {
            Report::Exited(code) => Some(CommandEnd::Exited(code)),
            Report::Killed(signal) => Some(CommandEnd::Killed(signal)),
            Report::Failed(error) => Some(CommandEnd::Failed(error)),
            _ => None,
        }
    }
}

/// Something that goes over the wire as text.
pub(crate) trait Wire: Sized {
    fn write(&self) -> String;
    fn read(text: &str) -> Option<Self>;
}

impl Wire for Order {
    fn write(&self) -> String {
        match self {
            Order::Start { deadlines: d, grace_nanos, has_lock } => {
                let term_at = d.term_at.as_nanos();
                let kill_at = d.kill_at.as_nanos();
                format!("start {term_at} {kill_at} {grace_nanos} {}", u8::from(*has_lock))
            }
            Order::Go => "go".into(),
            Order::Renew(d) => format!("renew {} {}", d.term_at.as_nanos(), d.kill_at.as_nanos()),
            Order::Signal(number) => format!("signal {number}"),
            Order::Stop(number) => format!("stop {number}"),
            Order::Kill => "kill".into(),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let word = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        Some(match word {
            "start" => {
                let term_at = Mono::from_nanos(number()?);
                let kill_at = Mono::from_nanos(number()?);
                let deadlines = Deadlines { term_at, kill_at };
                Order::Start { deadlines, grace_nanos: number()?, has_lock: number()? == 1 }
            }
            "go" => Order::Go,
            "renew" => {
                let term_at = Mono::from_nanos(number()?);
                let kill_at = Mono::from_nanos(number()?);
                Order::Renew(Deadlines { term_at, kill_at })
            }
            "signal" => Order::Signal(i32::try_from(number()?).ok()?),
            "stop" => Order::Stop(i32::try_from(number()?).ok()?),
            "kill" => Order::Kill,
            _ => return None,
        })
    }
}

impl Wire for Report {
    fn write(&self) -> String {
        match self {
            Report::Started(pid) => format!("started {pid}"),
            Report::Deadline => "deadline 0".into(),
            Report::TooLate => "too-late 0".into(),
            Report::Stuck(pid) => format!("stuck {pid}"),
            Report::Suspended(signal) => format!("suspended {signal}"),
            Report::Exited(code) => format!("exited {code}"),
            Report::Killed(signal) => format!("killed {signal}"),
            Report::Failed(errno) => format!("failed {errno}"),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (word, number) = text.split_once(' ')?;
        let number = number.parse().ok()?;
        Some(match word {
            "started" => Report::Started(number),
            "deadline" => Report::Deadline,
            "too-late" => Report::TooLate,
            "stuck" => Report::Stuck(number),
            "suspended" => Report::Suspended(number),
            "exited" => Report::Exited(number),
            "killed" => Report::Killed(number),
            "failed" => Report::Failed(number),
            _ => return None,
        })
    }
}

/// Two ends, each closed on exec unless it is handed on by name.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let unix = AddressFamily::UNIX;
    let packets = SocketType::SEQPACKET;
    Ok(socketpair(unix, packets, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message. A peer that is gone is an error, not a signal.
pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Wire,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let text = message.write();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many file descriptors for one message"));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match sendmsg(&socket, &[IoSlice::new(text.as_bytes())], &mut beside, flags) {
            Err(Errno::INTR) => {}
            done => return Ok(done.map(drop)?),
        }
    }
}

/// A message, with what came beside it.
#[derive(Debug)]
pub(crate) struct Received<T> {
    pub(crate) message: T,
    pub(crate) fds: Vec<OwnedFd>,
}

/// Takes one message; `None` at the end of the wire. `WouldBlock` if there is
/// none and `wait` is not set.
pub(crate) fn receive<T: Wire>(socket: impl AsFd, wait: bool) -> io::Result<Option<Received<T>>> {
    let mut bytes = [0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut flags = RecvFlags::CMSG_CLOEXEC;
    if !wait {
        flags |= RecvFlags::DONTWAIT;
    }
    let length = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, flags) {
            Err(Errno::INTR) => {}
            // The other end is gone with something of ours unread.
            Err(Errno::CONNRESET) => break 0,
            done => break done?.bytes,
        }
    };
    if length == 0 {
        return Ok(None);
    }
    let fds = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fds = fds.flatten().collect();
    let text = std::str::from_utf8(&bytes[..length]).ok();
    let message = text.and_then(T::read).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "a message that is not one of ours")
    })?;
    Ok(Some(Received { message, fds }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_arrives_as_it_was_sent() {
        let (a, b) = pair().unwrap();
        let term_at = Mono::from_nanos(7);
        let kill_at = Mono::from_nanos(u64::MAX);
        let deadlines = Deadlines { term_at, kill_at };
        let orders = [
            Order::Start { deadlines, grace_nanos: 5, has_lock: false },
            Order::Start { deadlines, grace_nanos: 0, has_lock: true },
            Order::Go,
            Order::Renew(deadlines),
            Order::Signal(15),
            Order::Stop(2),
            Order::Kill,
        ];
        for order in orders {
            send(&a, &order, &[]).unwrap();
            assert_eq!(receive::<Order>(&b, true).unwrap().unwrap().message, order);
        }
        let reports = [
            Report::Started(12),
            Report::Deadline,
            Report::TooLate,
            Report::Stuck(7),
            Report::Suspended(20),
            Report::Exited(3),
            Report::Killed(9),
            Report::Failed(12),
        ];
        for report in reports {
            send(&b, &report, &[]).unwrap();
            assert_eq!(receive::<Report>(&a, true).unwrap().unwrap().message, report);
        }
        send(&a, &Report::Started(1), &[]).unwrap();
        assert!(receive::<Order>(&b, true).is_err(), "a foreign message is refused");
        drop(a);
        assert!(receive::<Order>(&b, true).unwrap().is_none(), "the end is not an error");
    }

    #[test]
    fn descriptors_arrive_beside_the_message_and_are_closed_on_exec() {
        use std::io::{Read, Write};
        let (a, b) = pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"here").unwrap();
        send(&a, &Order::Go, &[file.as_fd(), a.as_fd()]).unwrap();
        let mut got = receive::<Order>(&b, true).unwrap().unwrap().fds;
        assert_eq!(got.len(), 2);
        let flags = rustix::io::fcntl_getfd(&got[0]).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        let mut same = std::fs::File::from(got.remove(0));
        std::io::Seek::rewind(&mut same).unwrap();
        let mut text = String::new();
        same.read_to_string(&mut text).unwrap();
        assert_eq!(text, "here");
    }
}
