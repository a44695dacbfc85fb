//! Signals that the supervising program takes, most of them to pass on.

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::processes;

/// Signals as they come. One that was ignored when this process was started, as
/// `nohup` and a shell's background jobs have it, stays ignored: by this process
/// and, since nothing changes that, by the command.
#[derive(Debug)]
pub struct Signals {
    streams: Vec<(i32, Stream)>,
    /// By default a write beyond the limit on the size of files kills the process without a
    /// word. Taken, and never asked for, it leaves the write with an error that can be told.
    _outgrown: Option<Stream>,
}

const TAKEN: [Signal; 7] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
];

/// Whether this signal asks the whole program to end: TERM or INT.
///
/// ```
/// assert!(tenure_guard::is_ending(15) && !tenure_guard::is_ending(1));
/// ```
#[must_use]
pub fn is_ending(number: i32) -> bool {
    number == Signal::TERM.as_raw() || number == Signal::INT.as_raw()
}

impl Signals {
    /// Takes TERM, INT, HUP, QUIT, USR1, USR2 and WINCH from now on. XFSZ is no longer
    /// deadly.
    ///
    /// # Errors
    ///
    /// The system refuses, or this is not inside a tokio runtime with I/O enabled.
    pub fn new() -> std::io::Result<Self> {
        let stream = |taken: Signal| {
            let number = taken.as_raw();
            Ok((number, signal(SignalKind::from_raw(number))?))
        };
        let ignored = processes::ignored_signals();
        let is_taken = |taken: &Signal| ignored & (1 << (taken.as_raw() - 1)) == 0;
        let streams: std::io::Result<Vec<_>> =
            TAKEN.into_iter().filter(is_taken).map(stream).collect();
        let outgrown = Some(Signal::XFSZ).filter(is_taken).map(stream).transpose()?;
        Ok(Self { streams: streams?, _outgrown: outgrown.map(|(_, stream)| stream) })
    }

    /// The number of the next signal. Cancel-safe.
    pub async fn next(&mut self) -> i32 {
        std::future::poll_fn(|cx| {
            for (number, stream) in &mut self.streams {
                if stream.poll_recv(cx).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// The next signal that ends a process which has nothing to pass it on to.
    pub async fn ending(&mut self) -> i32 {
        loop {
            let number = self.next().await;
            if number != Signal::WINCH.as_raw() {
                return number;
            }
        }
    }
}
