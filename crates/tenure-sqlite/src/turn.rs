//! Waiting in line for the write lock.
//!
//! SQLite has no queue: a process that happens to try while the lock is free gets it,
//! and those who wait find out by trying again and again. Of a hundred who write
//! at once, most are busy with trying, and one may lose until its patience is
//! over. So the stores of all processes line up before they try: for a kernel
//! lock (flock) on the file `line` beside the database. Those who wait for it
//! sleep, the kernel wakes them in the order in which they came, and takes the
//! lock back when a process dies. It is not handed over, though: on a busy
//! machine a writer that is awake may take it before the one that was woken. What keeps
//! a long wait from becoming an error is [`Patience`].
//!
//! No pause here grows with the number of tries, as those of a
//! [`Backoff`](tenure_store::Backoff) do: the one at the head of the line waits for
//! one transaction of another process, and those behind it wait for the kernel.
//!
//! The line is a courtesy, not what keeps writers apart: that is SQLite's lock.
//! A process in it still tries now and then out of turn, so that one
//! that is stopped while it is its turn does not stop all others with it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tenure_core::Mono;
use tenure_store::BootClock;

/// Between two tries for SQLite's lock while it is one's turn. Only those who
/// do not stand in line are in the way then: the application's own
/// transactions.
const IN_TURN: Duration = Duration::from_millis(1);
/// Between two tries out of turn, at the least; at the most twice that.
const OUT_OF_TURN: Duration = Duration::from_millis(200);
/// Between two tries where there is no line.
const WITHOUT_LINE: Duration = Duration::from_millis(10);
/// A thread that only waits needs little.
const STACK: usize = 64 * 1024;

/// The end of the line, for one worker.
#[derive(Debug)]
pub(crate) struct Line {
    file: PathBuf,
    /// Whether a thread of this worker still stands in line.
    sent: Arc<AtomicBool>,
}

/// A place in the line; dropped, it is given up, and the next one's turn comes.
#[derive(Debug)]
pub(crate) enum Place {
    /// At its head, for as long as the file is open.
    First { _lock: File },
    /// Behind others. The lock comes when they are done.
    Behind(Receiver<File>),
    /// In none: it cannot be made or waited for.
    Nowhere,
}

impl Line {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, sent: Arc::default() }
    }

    /// Takes the next place.
    pub(crate) fn stand(&self) -> Place {
        let Ok(lock) = open(&self.file) else { return Place::Nowhere };
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Place::First { _lock: lock },
            Err(Errno::WOULDBLOCK) => self.send_ahead(lock),
            Err(_) => Place::Nowhere,
        }
    }

    /// The kernel's wait has no limit of time, and the worker's has: so another
    /// thread waits, one at a time however often the worker gives up.
    fn send_ahead(&self, lock: File) -> Place {
        if self.sent.swap(true, Ordering::AcqRel) {
            return Place::Nowhere;
        }
        let (give, take) = channel();
        let sent = Arc::clone(&self.sent);
        let wait = move || {
            while let Err(Errno::INTR) = flock(&lock, FlockOperation::LockExclusive) {}
            sent.store(false, Ordering::Release);
            // If the worker no longer waits for it, it is closed here.
            drop(give.send(lock));
        };
        let thread = std::thread::Builder::new().name("tenure-line".into()).stack_size(STACK);
        if thread.spawn(wait).is_ok() {
            return Place::Behind(take);
        }
        self.sent.store(false, Ordering::Release);
        Place::Nowhere
    }
}

impl Place {
    /// Waits until a try for SQLite's lock is due: the first one (`tries` is 0)
    /// as soon as it is this one's turn. No longer than `most`.
    pub(crate) fn wait(&mut self, tries: u32, most: Duration) {
        match self {
            Self::First { .. } | Self::Nowhere if tries == 0 => {}
            Self::First { .. } => std::thread::sleep(spread(IN_TURN).min(most)),
            Self::Nowhere => std::thread::sleep(spread(WITHOUT_LINE).min(most)),
            Self::Behind(turn) => match turn.recv_timeout(spread(OUT_OF_TURN).min(most)) {
                Ok(lock) => *self = Self::First { _lock: lock },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => *self = Self::Nowhere,
            },
        }
    }
}

/// How long to wait for the holder of the lock. It is not a matter of how many
/// wait: whenever a process commits, the line has moved, and it begins anew. A
/// caller with less patience gives up on its own.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    until: Mono,
    /// What the file was like at the last look.
    version: i64,
}

impl Patience {
    pub(crate) fn new(now: Mono, limit: Duration, version: i64) -> Self {
        Self { limit, until: now + limit, version }
    }

    pub(crate) fn left(&self, now: Mono) -> Duration {
        self.until.since(now)
    }

    /// Whether it is over, for a writer that finds the lock taken and the file at
    /// this version.
    pub(crate) fn is_over(&mut self, now: Mono, version: i64) -> bool {
        if self.version != version {
            *self = Self::new(now, self.limit, version);
        }
        now >= self.until
    }
}

/// Once to twice `around`, so that those who wait do not march in step.
fn spread(around: Duration) -> Duration {
    let nanos = u64::try_from(around.as_nanos()).unwrap_or(u64::MAX).max(1);
    around + Duration::from_nanos(BootClock::read().as_nanos() / 64 % nanos)
}

/// Opened for reading where it exists, which wakes no watcher of the
/// directory.
fn open(file: &Path) -> std::io::Result<File> {
    File::open(file)
        .or_else(|_| File::options().read(true).write(true).create(true).truncate(false).open(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(dir: &tempfile::TempDir) -> Line {
        Line::new(dir.path().join("line"))
    }

    fn is_first(place: &Place) -> bool {
        matches!(place, Place::First { .. })
    }

    /// Waits for the turn itself, however many tries out of turn pass.
    fn until_first(place: &mut Place) {
        while !is_first(place) {
            assert!(!matches!(place, Place::Nowhere), "it stands in line");
            place.wait(0, Duration::MAX);
        }
    }

    #[test]
    fn the_next_ones_turn_comes_when_the_first_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let a = line(&dir);
        let b = line(&dir);
        let first = a.stand();
        assert!(is_first(&first));
        let mut second = b.stand();
        assert!(matches!(second, Place::Behind(_)));
        second.wait(0, Duration::MAX);
        assert!(!is_first(&second), "a try out of turn is not a turn");
        drop(first);
        until_first(&mut second);
        assert!(!is_first(&a.stand()), "now the other one waits");
    }

    #[test]
    fn a_writer_that_gives_up_delays_no_other_and_leaves_one_thread_at_most() {
        let dir = tempfile::tempdir().unwrap();
        let a = line(&dir);
        let b = line(&dir);
        let first = a.stand();
        drop(b.stand());
        assert!(matches!(b.stand(), Place::Nowhere), "one of its own still stands there");
        drop(first);
        until_first(&mut a.stand());
    }

    /// C1: of a hundred who write at once the last waits long, and for no
    /// writer in particular.
    #[test]
    fn patience_ends_without_a_commit_and_begins_anew_with_each() {
        let at = Mono::from_millis;
        let limit = Duration::from_millis(100);
        let mut patience = Patience::new(at(0), limit, 7);
        assert!(!patience.is_over(at(99), 7));
        assert!(!patience.is_over(at(99), 8), "another committed");
        assert_eq!(patience.left(at(99)), limit);
        assert!(!patience.is_over(at(198), 8));
        assert!(patience.is_over(at(199), 8), "no other did for so long");
        assert!(!patience.is_over(at(500), 9), "late, but the line has moved");
    }

    /// L24: the folder that is missing is one of the test's own.
    #[test]
    fn without_a_line_each_process_tries_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let nowhere = Line::new(dir.path().join("missing/line"));
        assert!(matches!(nowhere.stand(), Place::Nowhere));
    }
}
