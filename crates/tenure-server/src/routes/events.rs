//! What happens, as it happens: server-sent events.
//!
//! Each client has a journal stream of its own, which reads on from where the client is: a slow
//! one delays no other and skips nothing that the store still has. The id of an event is its
//! place in the journal, so that a browser that comes back says where it was.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_core::Stream;
use futures_util::StreamExt as _;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use tenure::journal::{Happening, JournalStream, Journalled, Seq};
use tenure_api::{Election, Entry};

use super::input::Asked;
use crate::App;
use crate::listen::stopped;
use crate::measured::Client;
use crate::problem::{Answer, Problem};

/// How often something is sent to a client to whom nothing is to be told.
const ALIVE: Duration = Duration::from_secs(10);

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
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last = last.filter(|id| !id.is_empty());
    let last = last.map(|id| {
        let bad = |_| Problem::bad_request("Last-Event-ID is no number of an event");
        id.parse().map_err(bad)
    });
    let after = last.transpose()?.or(wanted.after);
    let at = match after {
        Some(after) => Seq::new(after),
        None => app.tenure.operator().journal(1).await?.0,
    };
    let journal = app.tenure.follow(Some(at))?;
    let feed = Feed {
        election: wanted.election,
        journal,
        client: app.measured.event_client(),
        app: app.clone(),
    };
    let hello = Event::default().event("hello").id(at.get().to_string());
    let hello = hello.data(json!({ "seq": at.get() }).to_string());
    let first = futures_util::stream::iter([hello]);
    let news = futures_util::stream::unfold(feed, Feed::next).flat_map(futures_util::stream::iter);
    let mut stop = app.close.subscribe();
    let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
    let all = first.chain(news).map(Ok).take_until(Box::pin(stopped));
    Ok(Sse::new(all).keep_alive(KeepAlive::new().interval(ALIVE)))
}

/// One client's news.
struct Feed {
    election: Option<String>,
    journal: JournalStream,
    /// Counts the client for as long as it is there.
    client: Client,
    app: Arc<App>,
}

impl Feed {
    async fn next(mut self) -> Option<(Vec<Event>, Self)> {
        let events = match self.journal.next().await? {
            Journalled::Entries(entries) => {
                self.client.told(entries.len());
                let wanted = entries.iter().filter(|entry| self.wants(&entry.what));
                wanted.map(|entry| told(&Entry::from(entry))).collect()
            }
            Journalled::Trimmed(seq) => vec![self.snapshot(Some(seq)).await],
            Journalled::Hint => vec![self.snapshot(None).await],
            Journalled::Interrupted(error) => {
                let data = json!({ "because": error }).to_string();
                vec![Event::default().event("interrupted").data(data)]
            }
            Journalled::Restored => vec![Event::default().event("restored").data("{}")],
            _ => Vec::new(),
        };
        Some((events, self))
    }

    /// The end of a member may be the end of any leader.
    fn wants(&self, what: &Happening) -> bool {
        let Some(wanted) = &self.election else { return true };
        what.election().is_none_or(|election| election.as_str() == wanted)
    }

    /// Everything as it stands, in place of entries that the store no longer has.
    async fn snapshot(&self, up_to: Option<Seq>) -> Event {
        let event = Event::default().event("snapshot");
        let Ok(seen) = self.app.board.look(true).await else {
            return event.data("{\"elections\":null}");
        };
        let namespace = self.app.tenure.namespace().as_str();
        let views = seen.snapshot.elections.iter();
        let wanted = views.filter(|view| {
            self.election.as_ref().is_none_or(|name| view.election.as_str() == name)
        });
        let elections: Vec<_> = wanted.map(|view| Election::new(namespace, view)).collect();
        let seq = up_to.unwrap_or(seen.snapshot.seq).get();
        let data = json!({ "seq": seq, "elections": elections }).to_string();
        event.id(seq.to_string()).data(data)
    }
}

fn told(entry: &Entry) -> Event {
    // Our own shapes: they have no key that is no string.
    let data = serde_json::to_string(entry).unwrap_or_default();
    Event::default().id(entry.seq.to_string()).data(data)
}

/// Marks what the server has read as old when something happens.
pub(crate) async fn stir(app: Arc<App>) {
    let mut stop = app.close.subscribe();
    loop {
        let Ok(mut journal) = app.tenure.follow(None) else { return };
        loop {
            tokio::select! {
                () = stopped(&mut stop) => return,
                news = journal.next() => match news {
                    Some(_) => app.board.stir(),
                    None => break,
                }
            }
        }
        if app.tenure.join().is_err() {
            return;
        }
    }
}
