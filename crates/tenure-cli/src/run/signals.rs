//! Signals that `tenure run` takes, most of them to pass on.

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::home;
use crate::failure::{Failure, Outcome};

/// Signals as they come. One that was ignored when this process was started, as
/// `nohup` and a shell's background jobs have it, stays ignored: by this process
/// and, since nothing changes that, by the command.
#[derive(Debug)]
pub(crate) struct Signals {
    streams: Vec<(i32, Stream)>,
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

/// Whether this one means that the whole thing should end.
pub(crate) fn ends(number: i32) -> bool {
    number == Signal::TERM.as_raw() || number == Signal::INT.as_raw()
}

impl Signals {
    pub(crate) fn new() -> Outcome<Self> {
        let stream = |taken: Signal| {
            let number = taken.as_raw();
            Ok((number, signal(SignalKind::from_raw(number))?))
        };
        let ignored = home::ignored_signals();
        let is_taken = |taken: &Signal| ignored & (1 << (taken.as_raw() - 1)) == 0;
        let streams: std::io::Result<Vec<_>> =
            TAKEN.into_iter().filter(is_taken).map(stream).collect();
        let streams = streams.map_err(|error| Failure::system("taking signals", error))?;
        Ok(Self { streams })
    }

    /// The next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> i32 {
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
    pub(crate) async fn ending(&mut self) -> i32 {
        loop {
            let number = self.next().await;
            if number != Signal::WINCH.as_raw() {
                return number;
            }
        }
    }
}
