//! What happens, written as events once, for all clients that follow.
//!
//! One task follows the journal for the whole server, and writes each entry as an event. A client
//! that is up to date sends those bytes on. One that is behind, because it comes back or reads
//! slowly, reads the journal by itself until it has caught up (`routes/events.rs`).
//!
//! # Interleavings
//!
//! - **An entry comes while a client joins.** The client subscribes, and asks afterwards up to
//!   which place the task has told; the task notes the place before it tells. So what is told
//!   later than that place is in the subscription, and what is told twice is passed over by its
//!   place.
//! - **A client that reads too slowly** loses its place in the subscription, and not in the
//!   journal: it reads on alone.
//! - **A gap**, also one of a store that was rolled back: the same.
//! - **A store without a journal** has no places: each client follows it alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use serde_json::json;
use tenure::ElectionName;
use tenure::journal::{Entry, JournalStream, Journalled, Seq};
use tokio::sync::broadcast;

use crate::App;
use crate::listen::stopped;

/// How many pieces of news a client may be behind before it reads the journal by itself.
const AHEAD: usize = 256;
/// Before the store is asked again where its journal ends.
const PAUSE: Duration = Duration::from_secs(1);
/// The place before the task knows one.
const UNKNOWN: u64 = u64::MAX;

/// What clients are told.
#[derive(Clone, Debug)]
pub(crate) enum News {
    Entries(Arc<Batch>),
    /// An event that is no entry.
    Said(Bytes),
    /// What follows is not the next: each client is to read by itself.
    Gap,
}

/// Entries, in order, none skipped.
#[derive(Debug)]
pub(crate) struct Batch {
    events: Vec<Told>,
    /// All of them in one piece.
    all: Bytes,
}

/// One entry as an event.
#[derive(Debug)]
struct Told {
    seq: u64,
    /// `None` if it may concern any.
    election: Option<ElectionName>,
    /// Where in the whole it ends.
    end: usize,
}

impl Batch {
    pub(crate) fn new(entries: &[Entry]) -> Self {
        let mut all = String::new();
        let write = |entry: &Entry| {
            // Our own shapes: they have no key that is no string.
            let data = serde_json::to_string(&tenure_api::Entry::from(entry)).unwrap_or_default();
            all.push_str(&format!("id: {}\ndata: {data}\n\n", entry.seq));
            let election = entry.what.election().cloned();
            Told { seq: entry.seq.get(), election, end: all.len() }
        };
        let events = entries.iter().map(write).collect();
        Self { events, all: all.into() }
    }

    /// How many entries it has.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The place of the last entry.
    pub(crate) fn last(&self) -> Option<u64> {
        self.events.last().map(|told| told.seq)
    }

    /// Whether one who was told up to `at` is told the next by this.
    pub(crate) fn follows(&self, at: u64) -> bool {
        self.events.first().is_some_and(|told| told.seq <= at.saturating_add(1))
    }

    /// The events after a place, of one election or of all. The end of a member may be the end
    /// of any leader.
    pub(crate) fn after(&self, at: u64, election: Option<&str>) -> Bytes {
        if election.is_none() && self.events.first().is_some_and(|told| told.seq > at) {
            return self.all.clone();
        }
        let mut begin = 0;
        let mut wanted = Vec::new();
        for told in &self.events {
            let of_other = |wanted| told.election.as_ref().is_some_and(|e| e.as_str() != wanted);
            if told.seq > at && !election.is_some_and(of_other) {
                wanted.extend_from_slice(&self.all[begin..told.end]);
            }
            begin = told.end;
        }
        wanted.into()
    }
}

/// An event that is no entry.
pub(crate) fn said(name: &str, data: &serde_json::Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// The one who tells.
#[derive(Debug)]
pub(crate) struct Hub {
    news: broadcast::Sender<News>,
    /// Up to where it has told.
    place: AtomicU64,
}

impl Default for Hub {
    fn default() -> Self {
        let (news, _) = broadcast::channel(AHEAD);
        Self { news, place: AtomicU64::new(UNKNOWN) }
    }
}

impl Hub {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// Up to where it has told; `None` if it tells nothing.
    pub(crate) fn place(&self) -> Option<u64> {
        Some(self.place.load(Ordering::Acquire)).filter(|place| *place != UNKNOWN)
    }

    /// The place before the news: see the module.
    fn tell(&self, place: Option<u64>, news: News) {
        if let Some(place) = place {
            self.place.store(place, Ordering::Release);
        }
        // An error says that no client follows.
        let _ = self.news.send(news);
    }
}

/// Follows the journal until the server closes: marks what was read as old, and tells clients.
pub(crate) async fn follow(app: Arc<App>) {
    let mut stop = app.close.subscribe();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => return,
            () = follow_once(&app) => {}
        }
        app.hub.tell(Some(UNKNOWN), News::Gap);
        if app.tenure.join().is_err() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow_once(app: &App) {
    let at = match app.tenure.capabilities().journal {
        true => match app.tenure.operator().journal(1).await {
            Ok((at, _)) => Some(at),
            Err(_) => return,
        },
        false => None,
    };
    let Ok(mut journal) = app.tenure.follow(at) else { return };
    if let Some(at) = at {
        app.hub.tell(Some(at.get()), News::Gap);
    }
    while let Some(news) = journal.next().await {
        app.board.stir();
        if at.is_some() {
            tell(&app.hub, news);
        }
    }
}

fn tell(hub: &Hub, news: Journalled) {
    match news {
        Journalled::Entries(entries) => {
            let batch = Batch::new(&entries);
            hub.tell(batch.last(), News::Entries(Arc::new(batch)));
        }
        Journalled::Trimmed(place) => hub.tell(Some(place.get()), News::Gap),
        Journalled::Interrupted(error) => {
            hub.tell(None, News::Said(said("interrupted", &json!({ "because": error }))));
        }
        Journalled::Restored => hub.tell(None, News::Said(said("restored", &json!({})))),
        _ => hub.tell(None, News::Gap),
    }
}

/// A client's own reading of the journal, from a place on.
pub(crate) fn read(app: &App, after: u64) -> Result<JournalStream, tenure::Error> {
    app.tenure.follow(Some(Seq::new(after)))
}

#[cfg(test)]
mod tests {
    use tenure::Timestamp;
    use tenure_testkit::happenings;

    use super::*;

    fn batch(from: u64) -> Batch {
        let at = Timestamp::from_unix_millis(0);
        let all = happenings::each(at).into_iter().zip(from..);
        let entries = all.map(|(what, seq)| Entry { seq: Seq::new(seq), at, what });
        Batch::new(&entries.collect::<Vec<_>>())
    }

    fn ids(bytes: &Bytes) -> Vec<u64> {
        let text = std::str::from_utf8(bytes).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
    }

    /// What a client has is passed over, and a gap is seen.
    #[test]
    fn a_client_is_told_what_comes_next_and_nothing_twice() {
        let batch = batch(5);
        let last = batch.last().unwrap();
        assert_eq!(ids(&batch.after(4, None)), (5..=last).collect::<Vec<_>>());
        assert_eq!(ids(&batch.after(6, None)), (7..=last).collect::<Vec<_>>());
        assert!(batch.after(last, None).is_empty());
        assert!(batch.follows(4) && batch.follows(9) && !batch.follows(3));
        // What is about a member alone may be the end of any leader.
        let of_other = ids(&batch.after(0, Some("an election that is not there")));
        assert!(!of_other.is_empty() && of_other.len() < batch.len());
    }

    /// One who is told of a place finds that the hub has told up to there at least: a client that
    /// joins in between would miss it otherwise.
    #[test]
    fn the_place_is_known_before_the_news() {
        let hub = Hub::default();
        let mut news = hub.subscribe();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for from in 1..=20_000 {
                    let batch = Batch { events: Vec::new(), all: from.to_string().into() };
                    hub.tell(Some(from), News::Entries(Arc::new(batch)));
                }
                hub.tell(None, News::Gap);
            });
            loop {
                match news.blocking_recv() {
                    Ok(News::Entries(batch)) => {
                        let told: u64 = std::str::from_utf8(&batch.all).unwrap().parse().unwrap();
                        assert!(hub.place().unwrap() >= told);
                    }
                    Ok(News::Gap) => break,
                    Ok(News::Said(_)) | Err(_) => {}
                }
            }
        });
    }
}
