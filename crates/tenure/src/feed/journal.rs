//! Following the whole journal of a namespace.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tenure_core::{Entry, Seq};
use tokio::sync::mpsc;

use super::entries::{Entries, Told};
use crate::Result;
use crate::client::Client;

/// How many pieces of news may wait for a slow reader. Past that the journal is
/// simply read later: nothing is lost that the store still has.
const AHEAD: usize = 64;

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
/// use tenure::Tenure;
/// use tenure::journal::{Journalled, Seq};
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
#[must_use = "a stream does nothing unless it is polled"]
pub struct JournalStream {
    news: mpsc::Receiver<Journalled>,
    /// Keeps an operator's store open.
    _client: Arc<Client>,
}

impl JournalStream {
    pub(crate) fn new(client: &Arc<Client>, after: Option<Seq>) -> Result<Self> {
        let (give, news) = mpsc::channel(AHEAD);
        client.run_in_background(read_ahead(client.feed()?.entries(after)?, give));
        Ok(Self { news, _client: client.clone() })
    }

    /// What comes next; `None` at the [end](crate#streams): once the member is shut down.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Journalled> {
        self.news.recv().await
    }
}

impl Stream for JournalStream {
    type Item = Journalled;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Journalled>> {
        self.get_mut().news.poll_recv(context)
    }
}

/// The task on the store's runtime that reads ahead of the stream, until the stream is dropped.
async fn read_ahead(mut entries: Entries, give: mpsc::Sender<Journalled>) {
    loop {
        let told = tokio::select! {
            biased;
            () = give.closed() => return,
            told = entries.next() => told,
        };
        let news = match told {
            Told::Entries(entries) => Journalled::Entries(entries.to_vec()),
            Told::Hint(_) => Journalled::Hint,
            Told::Trimmed(up_to) => Journalled::Trimmed(up_to),
            Told::Interrupted(error) => Journalled::Interrupted(error),
            Told::Restored => Journalled::Restored,
        };
        if give.send(news).await.is_err() {
            return;
        }
    }
}
