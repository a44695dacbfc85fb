//! Noticing changes made by other processes, without busy polling.
//!
//! One thread of each store handle waits on the kernel (inotify) for two things
//! in the directory beside the database: the bell being rung, which means that
//! the journal has grown, and a member's lock file being closed by the last
//! process that had it open, which means that the member has died. A slow look
//! backs it up, since notifications are only hints (rule N1); where the kernel
//! gives none at all, the same look at a brisker pace replaces it.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tenure_core::Incarnation;
use tenure_store::{Error, ErrorKind, Result};

use crate::lives::{BELL, Probe, life_of, work_of};
use crate::shared::Shared;

/// Ends the watching thread when it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    native: bool,
    _stop: OwnedFd,
}

impl Watcher {
    pub(crate) fn start(shared: Arc<Shared>) -> Result<Self> {
        let internal = |error: std::io::Error| {
            Error::new(ErrorKind::Internal, "starting to watch for changes failed")
                .caused_by(error)
                .remedy("raise the limits on open files and threads")
        };
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| internal(error.into()))?;
        let events = if shared.options.native_watch { listen(&shared) } else { None };
        let native = events.is_some();
        let mut watch = Watch { shared, events, stopped, announced: HashSet::new() };
        std::thread::Builder::new()
            .name("tenure-watch".into())
            .spawn(move || watch.run())
            .map_err(internal)?;
        Ok(Self { native, _stop: stop })
    }

    /// Whether the kernel tells of changes.
    pub(crate) fn is_native(&self) -> bool {
        self.native
    }
}

/// Asks the kernel for notifications; `None` if it gives none.
fn listen(shared: &Shared) -> Option<OwnedFd> {
    let directory = shared.lives.directory();
    let try_listen = || {
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let wanted = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
        inotify::add_watch(&events, directory, wanted)?;
        Ok::<_, Errno>(events)
    };
    match try_listen() {
        Ok(events) => Some(events),
        Err(error) => {
            tracing::warn!(
                %error,
                directory = %directory.display(),
                "the kernel gives no notifications, falling back to polling; \
                 raise fs.inotify.max_user_instances"
            );
            None
        }
    }
}

struct Watch {
    shared: Arc<Shared>,
    events: Option<OwnedFd>,
    stopped: OwnedFd,
    /// Deaths found by scanning that were told already.
    announced: HashSet<Incarnation>,
}

/// What a batch of the kernel's events amounts to.
#[derive(Debug, Default, PartialEq, Eq)]
struct News {
    /// The bell was rung.
    rung: bool,
    /// These lock files were closed.
    closed: Vec<Incarnation>,
    /// Those who worked under these have closed their lock.
    rested: Vec<Incarnation>,
    /// Events were dropped: anything may have happened.
    missed: bool,
    /// There will be no more: the directory was removed.
    over: bool,
}

impl Watch {
    fn run(&mut self) {
        loop {
            match self.wait() {
                Waited::Stopped => return,
                Waited::Events => self.take_news(),
                Waited::Nothing => {
                    if self.events.is_none() {
                        self.scan();
                    }
                    self.shared.stir();
                }
            }
        }
    }

    /// Waits until something happens, or until it is time for the slow look.
    fn wait(&self) -> Waited {
        let pace = self.shared.options.poll;
        let pace = if self.events.is_some() { pace.saturating_mul(4) } else { pace };
        let timeout = timespec(pace);
        let mut watched = vec![PollFd::new(&self.stopped, PollFlags::IN)];
        watched.extend(self.events.iter().map(|events| PollFd::new(events, PollFlags::IN)));
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            // Without a way to wait, at least do not spin.
            Err(_) => std::thread::sleep(pace),
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        if ready(&watched[0]) {
            Waited::Stopped
        } else if watched.get(1).is_some_and(ready) {
            Waited::Events
        } else {
            Waited::Nothing
        }
    }

    fn take_news(&mut self) {
        let Some(events) = &self.events else { return };
        let news = read_news(events);
        // Work that ends under a living member is no news: its own process tells.
        let rested = news.rested.iter().filter(|life| !self.shared.lives.is_held(**life));
        for life in news.closed.iter().chain(rested) {
            self.look_at(*life);
        }
        if news.over {
            self.events = None;
        }
        if news.missed || news.over {
            self.scan();
        }
        if news.rung || news.missed || news.over {
            self.shared.stir();
        }
    }

    /// The kernel tells of the closing just before it drops the lock: looks
    /// again for some tens of milliseconds before it concludes that another
    /// process holds it.
    fn look_at(&self, life: Incarnation) {
        for wait in [0, 1, 2, 4, 8, 16, 32] {
            std::thread::sleep(Duration::from_millis(wait));
            match self.shared.lives.probe(life) {
                Probe::Free => return self.announce(life),
                // It was let go in good order; the journal tells of that.
                Probe::Missing | Probe::Closed => return,
                Probe::Held => {}
            }
        }
    }

    /// Looks at every lock file. Only where there are no notifications, or when
    /// some were lost.
    fn scan(&mut self) {
        let all = self.shared.lives.all();
        self.announced.retain(|life| all.contains(life));
        for life in all {
            if self.shared.lives.probe(life) == Probe::Free && self.announced.insert(life) {
                self.announce(life);
            }
        }
    }

    fn announce(&self, life: Incarnation) {
        self.shared.gone.push(life);
        self.shared.stir();
    }
}

enum Waited {
    Stopped,
    Events,
    Nothing,
}

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(span.subsec_nanos()),
    }
}

/// Reads all events there are, without waiting for more.
fn read_news(events: impl AsFd) -> News {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(events, &mut buffer);
    let mut news = News::default();
    loop {
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => return news,
            Err(_) => {
                news.over = true;
                return news;
            }
        };
        let flags = event.events();
        news.missed |= flags.contains(ReadFlags::QUEUE_OVERFLOW);
        news.over |= flags.contains(ReadFlags::IGNORED);
        let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) else { continue };
        if name == BELL {
            news.rung |= flags.contains(ReadFlags::MODIFY);
        } else if flags.contains(ReadFlags::CLOSE_WRITE) {
            news.closed.extend(life_of(name));
            news.rested.extend(work_of(name));
        }
    }
}
