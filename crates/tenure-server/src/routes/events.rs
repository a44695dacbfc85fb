//! What happens, as it happens: server-sent events.
//!
//! A client that is up to date is told what the server has written once for all (`hub.rs`). One
//! that comes back, or is slow, reads the journal by itself from where it is, until it has caught
//! up: it delays no other and skips nothing that the store still has. The id of an event is its
//! place in the journal, so that a browser that comes back says where it was.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::json;
use tenure::journal::{JournalStream, Journalled, Seq};
use tenure_api::Election;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::input::Asked;
use crate::App;
use crate::hub::{self, Batch, News, said};
use crate::measured::Client;
use crate::problem::{Answer, Problem};

/// How often something is sent to a client to whom nothing is to be told.
const ALIVE: Duration = Duration::from_secs(10);
/// A comment, which clients pass over.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// What is to be told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    #[serde(default)]
    election: Option<String>,
    /// For those who cannot send `Last-Event-ID`.
    #[serde(default)]
    after: Option<u64>,
}

/// Entries of the journal from now on, or after the event that was received last.
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Response> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last = last.filter(|id| !id.is_empty());
    let last = last.map(|id| {
        let bad = |_| Problem::bad_request("Last-Event-ID is no number of an event");
        id.parse().map_err(bad)
    });
    let at: u64 = match last.transpose()?.or(wanted.after) {
        Some(after) => after,
        None => app.tenure.operator().journal(1).await?.0.get(),
    };
    let hello = format!("event: hello\nid: {at}\ndata: {}\n\n", json!({ "seq": at }));
    let feed = Feed::new(&app, wanted.election, at)?;
    let first = futures_util::stream::iter([Bytes::from(hello)]);
    let news = futures_util::stream::unfold(feed, async |mut feed| {
        let next = feed.next().await?;
        Some((next, feed))
    });
    let mut stop = app.close.subscribe();
    let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
    let all = first.chain(news).map(Ok::<_, Infallible>).take_until(Box::pin(stopped));
    // The second is for proxies that would collect events until they fill a buffer.
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(all)).into_response())
}

/// One client's news.
struct Feed {
    election: Option<Box<str>>,
    /// Up to where it was told.
    at: u64,
    by: By,
    /// Counts the client for as long as it is there.
    client: Client,
    app: Arc<App>,
}

enum By {
    /// What is told to all.
    All(Receiver<News>),
    /// By itself, until it has reached the place from which the subscription has everything.
    /// Without one, for good.
    Itself { journal: JournalStream, until: Option<(u64, Receiver<News>)> },
}

impl Feed {
    fn new(app: &Arc<App>, election: Option<String>, at: u64) -> Answer<Self> {
        let by = By::from(app, at)?;
        let client = app.measured.event_client();
        Ok(Self { election: election.map(Into::into), at, by, client, app: app.clone() })
    }

    /// What is sent next; `None` when the member is shut down.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let heard = match &mut self.by {
                By::All(news) => match timeout(ALIVE, news.recv()).await {
                    Ok(heard) => self.heard(heard),
                    Err(_) => Some(COMMENT),
                },
                By::Itself { journal, .. } => match timeout(ALIVE, journal.next()).await {
                    Ok(news) => self.read(news?).await,
                    Err(_) => Some(COMMENT),
                },
            };
            match heard {
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) => return Some(bytes),
                // It is behind.
                None => self.by = By::from(&self.app, self.at).ok()?,
            }
        }
    }

    /// What was told to all; `None` if it is not what comes next here.
    fn heard(&mut self, news: Result<News, RecvError>) -> Option<Bytes> {
        match news {
            Ok(News::Entries(batch)) => self.pass(&batch),
            Ok(News::Said(event)) => Some(event),
            Ok(News::Gap) | Err(_) => None,
        }
    }

    fn pass(&mut self, batch: &Batch) -> Option<Bytes> {
        let last = batch.last().filter(|last| *last > self.at);
        let Some(last) = last else { return Some(Bytes::new()) };
        if !batch.follows(self.at) {
            return None;
        }
        let events = batch.after(self.at, self.election.as_deref());
        self.at = last;
        self.client.told(batch.len());
        Some(events)
    }

    /// What it has read by itself.
    async fn read(&mut self, news: Journalled) -> Option<Bytes> {
        let events = match news {
            Journalled::Entries(entries) => {
                let batch = Batch::new(&entries);
                self.at = batch.last().unwrap_or(self.at);
                self.client.told(batch.len());
                batch.after(0, self.election.as_deref())
            }
            Journalled::Trimmed(seq) => {
                self.at = seq.get();
                self.snapshot(Some(seq)).await
            }
            Journalled::Hint => self.snapshot(None).await,
            Journalled::Interrupted(error) => said("interrupted", &json!({ "because": error })),
            Journalled::Restored => said("restored", &json!({})),
            _ => Bytes::new(),
        };
        if let By::Itself { until, .. } = &mut self.by
            && let Some((_, all)) = until.take_if(|(place, _)| self.at >= *place)
        {
            self.by = By::All(all);
        }
        Some(events)
    }

    /// Everything as it stands, in place of entries that the store no longer has.
    async fn snapshot(&self, up_to: Option<Seq>) -> Bytes {
        let Ok(seen) = self.app.board.look(true).await else {
            return said("snapshot", &json!({ "elections": null }));
        };
        let namespace = self.app.tenure.namespace().as_str();
        let views = seen.snapshot.elections.iter();
        let wanted = views.filter(|view| {
            self.election.as_ref().is_none_or(|name| view.election.as_str() == &**name)
        });
        let elections: Vec<_> = wanted.map(|view| Election::new(namespace, view)).collect();
        let seq = up_to.unwrap_or(seen.snapshot.seq).get();
        let data = json!({ "seq": seq, "elections": elections });
        format!("event: snapshot\nid: {seq}\ndata: {data}\n\n").into()
    }
}

impl By {
    /// From a place on: by what all are told if that is where they are.
    fn from(app: &App, at: u64) -> Answer<Self> {
        // First this, and then the place: see `hub.rs`.
        let all = app.hub.subscribe();
        match app.hub.place() {
            Some(place) if place == at => Ok(Self::All(all)),
            place => {
                let journal = hub::read(app, at)?;
                Ok(Self::Itself { journal, until: place.map(|place| (place, all)) })
            }
        }
    }
}
