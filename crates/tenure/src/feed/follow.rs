//! The one following of a namespace by a connection.
//!
//! A hint goes to its subscribers in the step in which it arrives; it never waits for a
//! query. Entries are read by a request beside it, a page at a time, from one place on,
//! and only while there is a subscriber to them. Each of these interleavings has one
//! outcome:
//!
//! - **Something is written between a subscriber's snapshot and its subscription.** The
//!   subscriber names the place of its snapshot. If the feed reads no entries yet, it
//!   begins at that place, with a read that waits for nothing. If the feed is further, the
//!   subscriber reads what lies between by itself. If the feed is not as far, what the
//!   subscriber knows is passed over.
//! - **Something is written while a page is on its way.** The store tells that the journal
//!   has grown, that is noted, and another page follows. A page that does not end at the
//!   place told last is followed by another, until one is empty.
//! - **The following fails, or the page.** Subscribers are told. A new following begins
//!   with a hint to look at everything (H13), and entries go on from the same place: a
//!   page counts only when it has arrived. A page that fails costs no hint, since the
//!   following stays.
//! - **The last subscriber of entries leaves, and another comes with a page on its way.**
//!   The page is of another place than the feed's, and is dropped.
//! - **A new subscriber of hints joins a following that has begun.** It missed the first
//!   hint, and gets one of its own.
//! - **The journal was trimmed, or forgotten.** The place is told, with the one before, so
//!   that each subscriber can tell what it missed by its own place.
//! - **A subscriber is slow.** The channels are bounded and no other waits for it. It is told
//!   that it fell behind: a subscriber to hints looks at everything, one to entries
//!   reads them by itself until it has caught up.
//! - **The last subscriber leaves while another comes.** Both take the same lock: either
//!   the task is kept, or a new one is started.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{Entry, Hint, Mono, Namespace, Seq};
use tenure_store::{Backoff, Followed, Page, SharedStore};
use tokio::runtime::Handle;
use tokio::sync::{Notify, broadcast};
use tokio::task::AbortHandle;

use super::entries::Entries;
use super::hints::Hints;
use crate::client::Party;
use crate::time::Time;
use crate::{Error, Result};

/// The pauses after failures.
pub(super) const PAUSES: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
/// How many hints a subscriber may be behind.
const HINTS_KEPT: usize = 256;
/// How many pages of entries a subscriber may be behind.
const PAGES_KEPT: usize = 64;

/// The feeds of one connection, each for a namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Feeds(Arc<Mutex<HashMap<Namespace, Weak<Feed>>>>);

impl Feeds {
    /// The feed of the party's namespace. Must be called inside the runtime that carries
    /// the store's connections.
    pub(crate) fn feed(&self, store: &SharedStore, party: &Party) -> Arc<Feed> {
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        if let Some(feed) = feeds.get(&party.ns).and_then(Weak::upgrade) {
            return feed;
        }
        let feed = Arc::new(Feed(Arc::new(Source::new(store.clone(), party))));
        feeds.insert(party.ns.clone(), Arc::downgrade(&feed));
        feed
    }
}

/// What clients hold; the following ends with the last of them.
#[derive(Debug)]
pub(crate) struct Feed(Arc<Source>);

impl Feed {
    /// Subscribes to hints.
    pub(crate) fn hints(&self) -> Result<Hints> {
        Source::hints(&self.0)
    }

    /// Subscribes to every entry after a place, or from now on. Where the store keeps no
    /// journal it is the hints.
    pub(crate) fn entries(&self, after: Option<Seq>) -> Result<Entries> {
        Source::entries(&self.0, after)
    }

    /// What others subscribe by later, without keeping the feed.
    pub(super) fn source(&self) -> Arc<Source> {
        self.0.clone()
    }

    /// Why changes are not followed at present, if so.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.0.state().trouble.as_deref().map(String::from)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Some(task) = state.task.take() {
            task.abort();
        }
        let store = state.store.take();
        drop(state);
        // Without a lock held: it may close connections.
        drop(store);
    }
}

/// What subscribers are told.
#[derive(Clone, Debug)]
pub(super) enum News {
    Hint(Hint),
    /// Entries, one place after the other. None: the store answers again.
    Entries(Arc<[Entry]>),
    /// The feed was at `from` and goes on from `to`.
    Trimmed {
        from: Seq,
        to: Seq,
    },
    Interrupted(Arc<str>),
}

/// What the task and the subscribers share.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) ns: Namespace,
    pub(super) time: Time,
    /// How long a request may take.
    limit: Duration,
    journal: bool,
    runtime: Handle,
    state: Mutex<State>,
    /// A subscriber came or went.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// `None` once the feed is closed.
    store: Option<SharedStore>,
    /// The task, while there are subscribers.
    task: Option<AbortHandle>,
    hints: broadcast::Sender<News>,
    entries: broadcast::Sender<News>,
    /// Whether the first hint of a following was passed on.
    begun: bool,
    /// Up to where entries were passed on; `None` while no subscriber wants them.
    position: Option<Seq>,
    /// Whether there may be entries after it.
    behind: bool,
    /// Up to where the store has said that there are entries.
    grown: Option<Seq>,
    trouble: Option<Arc<str>>,
}

impl State {
    /// Notes who is left; says whether any subscriber is.
    fn is_wanted(&mut self) -> bool {
        // The place goes with its last reader: entries are read only for readers, and the
        // next one brings a place of its own.
        if self.entries.receiver_count() == 0 {
            self.position = None;
        }
        self.hints.receiver_count() + self.entries.receiver_count() > 0
    }

    fn followed(&mut self, followed: Followed) {
        match followed {
            Followed::Grown(seq) => {
                self.grown = Some(seq);
                self.behind |= self.position != Some(seq);
            }
            Followed::Hint(hint) => {
                // What a following begins with: anything may have changed before it, and how
                // far the journal is has not been said yet.
                if hint == Hint::Anything {
                    self.begun = true;
                    self.grown = None;
                    self.behind = true;
                }
                // An error only says that there is no subscriber.
                let _ = self.hints.send(News::Hint(hint));
            }
            // A kind of news that this version does not know.
            _ => {}
        }
    }

    /// Passes a page on, if it is what follows the feed's place.
    fn read(&mut self, after: Seq, page: Page) {
        // It was asked for before the last reader left and a new first one came: passed on, it
        // would be a gap or a repetition to that one.
        if self.position != Some(after) {
            self.behind = true;
            return;
        }
        // After trouble even a page without entries is news: it says that reading goes on.
        let restored = self.trouble.take().is_some();
        let news = match page {
            Page::Entries(entries) => {
                let last = entries.last().map(|entry| entry.seq);
                self.position = last.or(self.position);
                self.behind |= last.is_some() && last != self.grown;
                (restored || last.is_some()).then(|| News::Entries(entries.into()))
            }
            Page::Trimmed(to) => {
                self.position = Some(to);
                self.behind = true;
                Some(News::Trimmed { from: after, to })
            }
        };
        news.into_iter().for_each(|news| drop(self.entries.send(news)));
    }

    /// The following has failed: all subscribers are told.
    fn interrupted(&mut self, error: &tenure_store::Error) {
        self.begun = false;
        self.unread(error);
        let news = self.trouble.clone().map(News::Interrupted);
        news.into_iter().for_each(|news| drop(self.hints.send(news)));
    }

    /// A page could not be read: those who read entries are told.
    fn unread(&mut self, error: &tenure_store::Error) {
        let error: Arc<str> = error.to_string().into();
        self.trouble = Some(error.clone());
        self.behind = true;
        let _ = self.entries.send(News::Interrupted(error));
    }
}

impl Source {
    fn new(store: SharedStore, party: &Party) -> Self {
        let state = State {
            task: None,
            hints: broadcast::Sender::new(HINTS_KEPT),
            entries: broadcast::Sender::new(PAGES_KEPT),
            begun: false,
            position: None,
            behind: false,
            grown: None,
            trouble: None,
            store: None,
        };
        Self {
            ns: party.ns.clone(),
            time: party.time.clone(),
            limit: party.settings.request_timeout(),
            journal: store.capabilities().journal,
            runtime: Handle::current(),
            state: Mutex::new(State { store: Some(store), ..state }),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hints(source: &Arc<Self>) -> Result<Hints> {
        let mut state = source.state();
        let news = state.hints.subscribe();
        source.start(&mut state)?;
        let missed = state.begun.then_some(Hint::Anything);
        Ok(Hints::new(Subscription { source: source.clone(), news }, missed))
    }

    pub(super) fn entries(source: &Arc<Self>, after: Option<Seq>) -> Result<Entries> {
        let store = source.state().store.clone().ok_or(Error::ShutDown)?;
        Ok(match source.journal {
            true => Entries::journal(source.clone(), store, after),
            false => Entries::hints(Self::hints(source)?),
        })
    }

    /// Subscribes to entries at a place; says up to where the subscriber has to read by
    /// itself. The feed takes over the place if it has none.
    pub(super) fn join(source: &Arc<Self>, at: Seq) -> Result<(Subscription, Seq)> {
        let mut state = source.state();
        // A subscriber that leaves at this moment has not been noticed yet.
        state.is_wanted();
        // Subscribed before the place is read, and both under one lock: no page falls between.
        let news = state.entries.subscribe();
        if state.position.is_none() {
            state.position = Some(at);
            state.behind = true;
        }
        source.start(&mut state)?;
        let place = state.position.unwrap_or(at);
        source.changed.notify_one();
        Ok((Subscription { source: source.clone(), news }, place))
    }

    fn start(self: &Arc<Self>, state: &mut State) -> Result<()> {
        let store = state.store.clone().ok_or(Error::ShutDown)?;
        if state.task.is_none() {
            let follow = Follow { source: self.clone(), store };
            state.task = Some(self.runtime.spawn(follow.run()).abort_handle());
        }
        Ok(())
    }

    /// A request that is given up when it takes too long: a store that hangs must not
    /// end the feed (H15).
    pub(super) async fn in_time<T>(
        &self,
        request: impl Future<Output = tenure_store::Result<T>>,
    ) -> tenure_store::Result<T> {
        self.time.within(self.limit, request).await.unwrap_or_else(|| {
            let message = format!("the store did not answer within {:?}", self.limit);
            Err(tenure_store::Error::new(tenure_store::ErrorKind::Timeout, message))
        })
    }
}

/// A subscription, which lasts until this is dropped.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) source: Arc<Source>,
    pub(super) news: broadcast::Receiver<News>,
}

impl Subscription {
    /// Passes over all that was told so far.
    pub(super) fn skip(&mut self) {
        self.news = self.news.resubscribe();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // The task looks once the receiver is gone, too.
        let (_, gone) = broadcast::channel(1);
        drop(std::mem::replace(&mut self.news, gone));
        self.source.changed.notify_one();
    }
}

/// The task.
struct Follow {
    source: Arc<Source>,
    store: SharedStore,
}

/// A page on its way, and the place it was asked for.
type Reading<'a> = Pin<Box<dyn Future<Output = (Seq, tenure_store::Result<Page>)> + Send + 'a>>;

impl Follow {
    /// Until there is no subscriber left.
    async fn run(self) {
        let mut pauses = PAUSES;
        while let Err(error) = self.follow(&mut pauses).await {
            tracing::warn!(target: "tenure", %error, "following the store is interrupted");
            self.source.state().interrupted(&error);
            self.source.time.sleep(pauses.pause()).await;
        }
    }

    /// Whether there is no subscriber left; then this task is over.
    fn is_over(&self) -> bool {
        // Under the lock that `start` takes: a subscriber that comes now either is counted
        // here, or finds no task and starts another.
        let mut state = self.source.state();
        let over = !state.is_wanted();
        if over {
            state.task = None;
            state.begun = false;
        }
        over
    }

    /// Until there is no subscriber left, or the following fails.
    async fn follow(&self, pauses: &mut Backoff) -> tenure_store::Result<()> {
        let source = &*self.source;
        if self.is_over() {
            return Ok(());
        }
        let mut following = source.in_time(self.store.follow(&source.ns)).await?;
        let mut reading: Option<Reading<'_>> = None;
        // When a page that failed is asked for again.
        let mut rests_until: Option<Mono> = None;
        loop {
            if reading.is_none() && rests_until.is_none() {
                reading = self.next_page();
            }
            tokio::select! {
                // A hint goes first: it waits for no page.
                biased;
                followed = following.next() => {
                    let followed = followed?;
                    let mut state = source.state();
                    state.followed(followed);
                    if rests_until.is_none() && state.position.is_none() {
                        state.trouble = None;
                    }
                    if rests_until.is_none() {
                        pauses.reset();
                    }
                }
                (after, page) = arrived(&mut reading) => {
                    reading = None;
                    match page {
                        Ok(page) => {
                            pauses.reset();
                            source.state().read(after, page);
                        }
                        Err(error) => {
                            tracing::warn!(target: "tenure", %error, "reading the journal failed");
                            rests_until = Some(source.time.now() + pauses.pause());
                            source.state().unread(&error);
                        }
                    }
                }
                () = sleep_until(&source.time, rests_until) => rests_until = None,
                () = source.changed.notified() => if self.is_over() {
                    return Ok(());
                },
            }
        }
    }

    /// The next page, if there may be one and a subscriber wants it.
    fn next_page(&self) -> Option<Reading<'_>> {
        let mut state = self.source.state();
        let after = state.position?;
        if !std::mem::take(&mut state.behind) {
            return None;
        }
        let page = self.store.journal(&self.source.ns, after);
        Some(Box::pin(async move { (after, self.source.in_time(page).await) }))
    }
}

async fn arrived(reading: &mut Option<Reading<'_>>) -> (Seq, tenure_store::Result<Page>) {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

/// Never, for `None`.
pub(super) async fn sleep_until(time: &Time, at: Option<Mono>) {
    match at {
        Some(at) => time.sleep(at.since(time.now()).max(Duration::from_millis(1))).await,
        None => std::future::pending().await,
    }
}
