//! Following the whole journal of a namespace.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Entry, Namespace, Query, Seq};
use tenure_store::{Backoff, Followed, From, SharedStore};
use tokio::sync::mpsc;

use crate::Result;
use crate::client::Client;
use crate::time::Time;

/// How many pieces of news may wait for a slow reader. Past that the journal is
/// simply read later: nothing is lost that the store still has.
const AHEAD: usize = 64;
/// The pauses after failed requests.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));

/// What a follower of the journal is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Journalled {
    /// Entries, in order, none skipped since the last.
    Entries(Vec<Entry>),
    /// Something may have changed; the store keeps no journal to say what.
    Hint,
    /// Entries up to and including this one are no longer kept.
    Trimmed(Seq),
    /// The store does not answer; it is asked again. Said once for each
    /// interruption.
    Interrupted(String),
    /// The store answers again, and what happened meanwhile follows.
    Restored,
}

/// The journal of a namespace as it grows, made by
/// [`Tenure::follow`](crate::Tenure::follow).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::{Journalled, Seq, Tenure};
///
/// let tenure = Tenure::connect("memory:").await?;
/// let _leadership = tenure.election("nightly").campaign().await?;
/// let mut journal = tenure.follow(Some(Seq::START))?;
/// while let Some(news) = journal.next().await {
///     let Journalled::Entries(entries) = news else { continue };
///     assert_eq!(entries[0].seq.get(), 1);
///     break;
/// }
/// # Ok(()) })
/// # }
/// ```
#[derive(Debug)]
pub struct JournalStream {
    news: mpsc::Receiver<Journalled>,
    /// Keeps an operator's store open.
    _client: Arc<Client>,
}

impl JournalStream {
    pub(crate) fn new(client: &Arc<Client>, after: Option<Seq>) -> Result<Self> {
        let (give, news) = mpsc::channel(AHEAD);
        let ns = client.namespace().clone();
        let time = client.time().clone();
        let follow = Follow { store: client.store()?, ns, time, after, give, failing: false };
        client.run_in_background(follow.run());
        Ok(Self { news, _client: client.clone() })
    }

    /// What comes next; `None` once the member is shut down.
    pub async fn next(&mut self) -> Option<Journalled> {
        self.news.recv().await
    }
}

/// The task on the driver's runtime that reads ahead of the stream.
struct Follow {
    store: SharedStore,
    ns: Namespace,
    time: Time,
    after: Option<Seq>,
    give: mpsc::Sender<Journalled>,
    failing: bool,
}

/// Nobody reads the stream any more.
struct Unread;

impl Follow {
    /// Until nobody reads any more; an error is retried.
    async fn run(mut self) {
        let mut pauses = PAUSES;
        loop {
            let give = self.give.clone();
            let failed = tokio::select! {
                () = give.closed() => return,
                failed = self.drain(&mut pauses) => failed,
            };
            let Ok(error) = failed else { return };
            if !self.failing {
                self.failing = true;
                if self.give.send(Journalled::Interrupted(error.to_string())).await.is_err() {
                    return;
                }
            }
            self.time.sleep(pauses.pause()).await;
        }
    }

    /// Passes news on until the store fails, and gives the failure.
    async fn drain(&mut self, pauses: &mut Backoff) -> Result<tenure_store::Error, Unread> {
        let after = match self.after {
            Some(after) => after,
            None => match self.store.read(&self.ns, &Query::nothing()).await {
                Ok(snapshot) => snapshot.seq,
                Err(error) => return Ok(error),
            },
        };
        self.after = Some(after);
        let mut following = match self.store.follow(&self.ns, From::After(after)).await {
            Ok(following) => following,
            Err(error) => return Ok(error),
        };
        loop {
            let news = match following.next().await {
                Ok(Followed::Entries(entries)) => {
                    self.after = entries.last().map(|entry| entry.seq).or(self.after);
                    Journalled::Entries(entries)
                }
                Ok(Followed::Trimmed(up_to)) => {
                    self.after = Some(up_to);
                    Journalled::Trimmed(up_to)
                }
                Ok(Followed::Hint(_)) => Journalled::Hint,
                Err(error) => return Ok(error),
            };
            pauses.reset();
            if std::mem::take(&mut self.failing) {
                self.send(Journalled::Restored).await?;
            }
            self.send(news).await?;
        }
    }

    async fn send(&self, news: Journalled) -> Result<(), Unread> {
        self.give.send(news).await.map_err(|_| Unread)
    }
}
