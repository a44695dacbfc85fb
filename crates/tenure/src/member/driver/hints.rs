//! Hints from the store, on their way to the machine. They are only hints: a
//! flood of them is cut short, and what was cut is replaced by one "look at
//! everything".

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::{Hint, Namespace};
use tenure_store::{Backoff, Followed, Following, From, SharedStore};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Board;
use crate::time::Time;

/// Stands for all hints that were dropped.
const CATCH_ALL: Hint = Hint::Anything;
/// How many hints may wait for the loop.
const KEPT: usize = 256;
/// The pauses before the store is asked again for hints.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));

#[derive(Debug)]
pub(super) struct Hints {
    give: mpsc::Sender<Hint>,
    take: mpsc::Receiver<Hint>,
    cut: Arc<AtomicBool>,
    following: Option<JoinHandle<()>>,
}

impl Hints {
    pub(super) fn new() -> Self {
        let (give, take) = mpsc::channel(KEPT);
        Self { give, take, cut: Arc::default(), following: None }
    }

    /// Waits for a hint.
    pub(super) async fn next(&mut self) -> Hint {
        match self.take.recv().await {
            Some(_) if self.cut.swap(false, Ordering::AcqRel) => {
                while self.take.try_recv().is_ok() {}
                CATCH_ALL
            }
            Some(hint) => hint,
            None => std::future::pending().await,
        }
    }

    /// Begins to follow the store's hints, if that has not begun.
    pub(super) fn open(
        &mut self,
        store: &SharedStore,
        ns: &Namespace,
        time: &Time,
        board: &Arc<Board>,
    ) {
        if self.following.is_some() {
            return;
        }
        let follow = Follow {
            store: store.clone(),
            ns: ns.clone(),
            time: time.clone(),
            board: board.clone(),
            give: self.give.clone(),
            cut: self.cut.clone(),
        };
        self.following = Some(tokio::spawn(follow.run()));
    }
}

struct Follow {
    store: SharedStore,
    ns: Namespace,
    time: Time,
    board: Arc<Board>,
    give: mpsc::Sender<Hint>,
    cut: Arc<AtomicBool>,
}

impl Follow {
    /// For ever: an error is retried, and what may have been missed is looked
    /// for (H13, H15).
    async fn run(self) {
        let mut pauses = PAUSES;
        loop {
            match self.store.follow(&self.ns, From::Hints).await {
                Ok(mut following) => {
                    self.offer(CATCH_ALL);
                    self.drain(&mut *following, &mut pauses).await;
                }
                Err(error) => self.trouble(&error),
            }
            self.time.sleep(pauses.pause()).await;
        }
    }

    /// Passes hints on until the stream fails.
    async fn drain(&self, following: &mut dyn Following, pauses: &mut Backoff) {
        loop {
            match following.next().await {
                Ok(Followed::Hint(hint)) => self.offer(hint),
                Ok(Followed::Entries(entries)) => {
                    tenure_core::Entry::hints(&entries).for_each(|h| self.offer(h));
                }
                Ok(Followed::Trimmed(_)) => self.offer(CATCH_ALL),
                Err(error) => return self.trouble(&error),
            }
            pauses.reset();
            self.board.health().watch_error = None;
        }
    }

    fn offer(&self, hint: Hint) {
        if self.give.try_send(hint).is_err() {
            self.cut.store(true, Ordering::Release);
        }
    }

    fn trouble(&self, error: &tenure_store::Error) {
        tracing::warn!(target: "tenure", %error, "the store's hints are interrupted");
        self.board.health().watch_error = Some(error.to_string());
    }
}
