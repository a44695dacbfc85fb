//! A subscription to journal entries, which keeps its own place.
//!
//! It joins the feed first and compares places afterwards, so that whatever the feed tells
//! from then on follows the feed's place at that moment. Until it has reached that place
//! it reads by itself; what the feed tells of entries it has already is passed over, and
//! an entry that is not the next one sends it back to reading. So it gets each entry once
//! and in order (N2), however late it comes and however slow it is.

use std::collections::VecDeque;
use std::sync::Arc;

use tenure_core::{Entry, Hint, Mono, Query, Seq};
use tenure_store::{Backoff, Page, SharedStore};
use tokio::sync::broadcast::error::RecvError;

use super::follow::{News, PAUSES, Source, Subscription, sleep_until};
use super::hints::Hints;

/// What a subscriber is told.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// Entries, in order, none skipped since the last.
    Entries(Arc<[Entry]>),
    /// A store without a journal says that something may have changed.
    Hint(Hint),
    /// Entries up to and including this one are not to be had.
    Trimmed(Seq),
    /// The store does not answer. Said once for each interruption.
    Interrupted(String),
    /// The store answers again.
    Restored,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Entries {
    by: By,
    /// What is not told yet.
    ready: VecDeque<Told>,
    failing: bool,
}

#[derive(Debug)]
enum By {
    Journal(Box<Reader>),
    Hints(Hints),
}

impl Entries {
    pub(super) fn journal(source: Arc<Source>, store: SharedStore, after: Option<Seq>) -> Self {
        let reader = Reader { source, store, at: after, feed: None, pauses: PAUSES, rests: None };
        Self { by: By::Journal(Box::new(reader)), ready: VecDeque::new(), failing: false }
    }

    pub(super) fn hints(hints: Hints) -> Self {
        Self { by: By::Hints(hints), ready: VecDeque::new(), failing: false }
    }

    /// Waits for what comes next. Cancel-safe.
    pub(super) async fn next(&mut self) -> Told {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return told;
            }
            let heard = match &mut self.by {
                By::Journal(reader) => reader.next().await,
                By::Hints(hints) => hints.heard().await.map(|hint| Some(Told::Hint(hint))),
            };
            match heard {
                Ok(told) => {
                    if std::mem::take(&mut self.failing) {
                        self.ready.push_back(Told::Restored);
                    }
                    self.ready.extend(told);
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.failing, true) {
                        self.ready.push_back(Told::Interrupted(error));
                    }
                }
            }
        }
    }
}

#[derive(Debug)]
struct Reader {
    source: Arc<Source>,
    store: SharedStore,
    /// Up to where its owner was told; `None` before it is known where *now* is.
    at: Option<Seq>,
    /// The feed, and up to where this must have read by itself before it listens to it;
    /// `None` if it has to join first.
    feed: Option<(Subscription, Option<Seq>)>,
    pauses: Backoff,
    /// When to try again after a failure.
    rests: Option<Mono>,
}

impl Reader {
    /// What the owner is to be told, if anything; or why nothing is known at present.
    /// Nothing moves before an answer is there, so that a future dropped while waiting
    /// loses nothing.
    async fn next(&mut self) -> Result<Option<Told>, String> {
        loop {
            if let Some(heard) = self.step().await {
                return heard;
            }
        }
    }

    /// `None` if the store had no part in it.
    async fn step(&mut self) -> Option<Result<Option<Told>, String>> {
        if self.rests.is_some() {
            sleep_until(&self.source.time, self.rests).await;
            self.rests = None;
        }
        let Some(at) = self.at else {
            let nothing = Query::nothing();
            let read = self.store.read(&self.source.ns, &nothing);
            let snapshot = self.source.in_time(read).await;
            let snapshot = self.checked(snapshot);
            self.at = snapshot.as_ref().ok().map(|snapshot| snapshot.seq);
            return Some(snapshot.map(|_| None));
        };
        let Some((feed, until)) = &mut self.feed else {
            // An error says that the feed is closed, and this task is about to end.
            let Ok((feed, place)) = Source::join(&self.source, at) else {
                return std::future::pending().await;
            };
            // Joined before the pages are read: what comes meanwhile waits in the
            // subscription, and what both have is passed over in `take`.
            self.feed = Some((feed, (place != at).then_some(place)));
            return None;
        };
        if let Some(until) = *until {
            let page = self.source.in_time(self.store.journal(&self.source.ns, at)).await;
            let page = self.checked(page);
            return Some(page.map(|page| self.read(page, until)));
        }
        match feed.news.recv().await {
            Ok(news) => Some(self.take(at, news)),
            // What was skipped is in the journal: read from there, from its own place.
            Err(RecvError::Lagged(_)) => {
                self.feed = None;
                None
            }
            // The source, which this keeps, has the sender.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// A page that this has read by itself.
    fn read(&mut self, page: Page, until: Seq) -> Option<Told> {
        let (told, at) = match page {
            Page::Entries(entries) => {
                let last = entries.last().map(|entry| entry.seq);
                (last.map(|_| Told::Entries(entries.into())), last)
            }
            Page::Trimmed(place) => (Some(Told::Trimmed(place)), Some(place)),
        };
        self.at = at.or(self.at);
        // An empty page: the journal has nothing that the feed has not.
        let caught_up = at.is_none_or(|at| at >= until);
        if let Some((_, until)) = self.feed.as_mut().filter(|_| caught_up) {
            *until = None;
        }
        told
    }

    /// News of the feed to a subscriber at the place `at`.
    fn take(&mut self, at: Seq, news: News) -> Result<Option<Told>, String> {
        match news {
            News::Interrupted(error) => Err(error.to_string()),
            News::Hint(_) => Ok(None),
            News::Trimmed { from, to } => {
                // What was forgotten is behind this one's place; what was trimmed may be
                // before it.
                let missed = if to < from { to < at } else { to > at };
                if missed {
                    self.at = Some(to);
                }
                Ok(missed.then_some(Told::Trimmed(to)))
            }
            News::Entries(entries) => {
                let known = entries.iter().take_while(|entry| entry.seq <= at).count();
                let (Some(first), Some(last)) = (entries.get(known), entries.last()) else {
                    return Ok(None);
                };
                // A gap: the feed has moved on between the join and the pages.
                if first.seq != at.next() {
                    self.feed = None;
                    return Ok(None);
                }
                self.at = Some(last.seq);
                let fresh = if known == 0 { entries } else { entries[known..].into() };
                Ok(Some(Told::Entries(fresh)))
            }
        }
    }

    /// An answer of the store; after a failure, a pause.
    fn checked<T>(&mut self, answer: tenure_store::Result<T>) -> Result<T, String> {
        match answer {
            Ok(answer) => {
                self.pauses.reset();
                Ok(answer)
            }
            Err(error) => {
                self.rests = Some(self.source.time.now() + self.pauses.pause());
                Err(error.to_string())
            }
        }
    }
}
