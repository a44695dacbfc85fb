//! Following an election without standing for it (rule N3).

mod track;
mod watch;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tenure_core::{ElectionName, MemberId, Note, Pause, Profile, Seq, Term, TermNumber};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

pub(crate) use watch::Observations;

use self::track::Track;
use crate::Result;
use crate::client::Client;
use crate::member::Shared;
use crate::stream::{Stepping, Steps};

/// Something observed, with its place in the journal (zero where the store
/// keeps none): give that to
/// [`observe_from`](crate::Election::observe_from) to go on later.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observation {
    /// Up to where this knows the journal.
    pub seq: Seq,
    /// What was observed.
    pub observed: Observed,
}

/// What an observer sees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observed {
    /// This member leads.
    Leads {
        /// The term.
        term: Term,
        /// Where the leader can be reached and what else it publishes, byte
        /// for byte. Empty for a leader that is gone already when an observer
        /// catches up.
        profile: Profile,
    },
    /// The election has no leader.
    Vacant {
        /// The newest term there was.
        number: TermNumber,
    },
    /// The leader was asked to step down.
    StepDownAsked {
        /// The term it is meant for.
        number: TermNumber,
        /// Why.
        reason: Note,
        /// Who asked.
        by: Note,
        /// The candidate to hand over to.
        to: Option<MemberId>,
    },
    /// No member is newly elected for now.
    Paused(Pause),
    /// The pause was lifted.
    Resumed,
    /// The leader's trust was renewed: told to those who asked for it
    /// ([`observe_renewals`](crate::Election::observe_renewals)).
    Renewed {
        /// The term.
        number: TermNumber,
        /// What is left of the leader's ttl from now on.
        remaining: Duration,
    },
    /// The leader was not renewed within its ttl, and its term is over: told to those who
    /// asked for it, before [`Vacant`](Observed::Vacant).
    Expired {
        /// The term.
        number: TermNumber,
    },
    /// Some of what happened is not told: the journal no longer has it, or this
    /// observer was too slow. The present state follows.
    Skipped,
}

/// A stream of [`Observation`]s: the present state first, then every change.
/// All observers of a process share one watch on the store.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::{Observed, Tenure};
///
/// let tenure = Tenure::builder("memory:").endpoint("10.0.0.7:80").connect().await?;
/// let election = tenure.election("nightly");
/// let mut observer = election.observe()?;
/// let first = observer.next().await.unwrap();
/// assert!(matches!(first.observed, Observed::Vacant { .. }));
/// let _leadership = election.campaign().await?;
/// let Some(Observed::Leads { profile, .. }) = observer.next().await.map(|o| o.observed) else {
///     panic!("a member leads")
/// };
/// assert_eq!(profile.endpoints(), ["10.0.0.7:80"]);
/// # Ok(()) })
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is polled"]
pub struct Observer {
    steps: Stepping<Inner>,
    /// A member's observer keeps the member.
    _member: Option<Arc<Shared>>,
}

/// What an observer wants to be told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Everything after this place, not only the present state.
    pub(crate) after: Option<Seq>,
    /// Renewals and expiry too.
    pub(crate) renewals: bool,
}

struct Inner {
    /// Keeps the watch alive.
    _client: Arc<Client>,
    track: Arc<Track>,
    ready: VecDeque<Observation>,
    news: broadcast::Receiver<Arc<Observation>>,
}

impl Observer {
    pub(crate) fn new(
        client: &Arc<Client>,
        election: ElectionName,
        wanted: Wanted,
    ) -> Result<Self> {
        let (track, (ready, news)) = client.observations().watch(client, election, wanted)?;
        let inner = Inner { _client: client.clone(), track, ready, news };
        Ok(Self { steps: Stepping::new(inner), _member: None })
    }

    pub(crate) fn keeping(self, member: Arc<Shared>) -> Self {
        Self { _member: Some(member), ..self }
    }

    /// The next observation; `None` at the [end](crate#streams): once the member is shut
    /// down. Cancel-safe.
    pub async fn next(&mut self) -> Option<Observation> {
        self.steps.next().await
    }
}

impl Steps for Inner {
    type Item = Observation;

    async fn step(&mut self) -> Option<Observation> {
        if let Some(observation) = self.ready.pop_front() {
            return Some(observation);
        }
        match self.news.recv().await {
            Ok(observation) => Some((*observation).clone()),
            Err(RecvError::Lagged(_)) => {
                let (ready, news) = self.track.subscribe();
                self.news = news;
                self.ready = ready;
                let seq = self.ready.front().map_or(Seq::START, |o| o.seq);
                Some(Observation { seq, observed: Observed::Skipped })
            }
            Err(RecvError::Closed) => None,
        }
    }
}

impl Stream for Observer {
    type Item = Observation;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Observation>> {
        self.get_mut().steps.poll(context)
    }
}
