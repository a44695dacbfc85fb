//! What a server knows of who leads, for those that it refuses.
//!
//! A server that leads is never asked. The task that observes begins with the first request that
//! is refused, ends with the layer, and keeps nothing: a layer that is dropped ends it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderValue};
use tenure::views::Profile;
use tenure::{Election, Leadership, Observed};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::header::{ENDPOINT, LEADER, TERM};

/// The least time between two looks that requests cause.
const PACE: Duration = Duration::from_millis(100);

pub(super) struct Known {
    election: Election,
    /// Whether it was begun: the first refusal begins it.
    begun: AtomicBool,
    observing: OnceLock<AbortHandle>,
    seen: Arc<ArcSwap<Seen>>,
    look: Arc<Notify>,
}

/// What was observed last.
#[derive(Debug, Default)]
struct Seen {
    number: u64,
    leader: Option<(String, Profile)>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("election", &self.name()).finish_non_exhaustive()
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        if let Some(observing) = self.observing.get() {
            observing.abort();
        }
    }
}

impl Known {
    pub(super) fn new(election: Election) -> Self {
        let begun = AtomicBool::new(false);
        let observing = OnceLock::new();
        Self { election, begun, observing, seen: Arc::default(), look: Arc::default() }
    }

    pub(super) fn name(&self) -> String {
        self.election.name().map_or_else(|error| error.to_string(), |name| name.as_str().to_owned())
    }

    /// The leadership of this process for one request, if it leads and goes on to.
    pub(super) fn hold(&self) -> Option<Leadership> {
        self.election.hold()
    }

    /// The newest term that is known here, and who leads it, as headers.
    pub(super) fn who_leads(&self, look: bool) -> HeaderMap {
        self.begin();
        if look {
            self.look.notify_one();
        }
        let seen = self.seen.load();
        let mut headers = HeaderMap::new();
        if seen.number > 0 {
            headers.insert(TERM, HeaderValue::from(seen.number));
        }
        if let Some((id, profile)) = &seen.leader {
            // Names may have letters that a header cannot.
            if let Ok(id) = HeaderValue::from_str(id) {
                headers.insert(LEADER, id);
            }
            let endpoint = profile.endpoints().first();
            if let Some(Ok(endpoint)) = endpoint.map(|endpoint| HeaderValue::from_str(endpoint)) {
                headers.insert(ENDPOINT, endpoint);
            }
        }
        headers
    }

    fn begin(&self) {
        if self.begun.swap(true, Ordering::AcqRel) {
            return;
        }
        let task = observe(self.election.clone(), self.seen.clone(), self.look.clone());
        match tokio::runtime::Handle::try_current() {
            // Only the one that has begun it comes here.
            Ok(runtime) => drop(self.observing.set(runtime.spawn(task).abort_handle())),
            Err(_) => self.begun.store(false, Ordering::Release),
        }
    }
}

async fn observe(election: Election, seen: Arc<ArcSwap<Seen>>, look: Arc<Notify>) {
    let Ok(mut observer) = election.observe() else { return };
    loop {
        tokio::select! {
            next = observer.next() => match next.map(|next| next.observed) {
                Some(Observed::Leads { term, profile }) => {
                    let leader = Some((term.member.id.as_str().to_owned(), profile));
                    take(&seen, Seen { number: term.number.get(), leader });
                }
                Some(Observed::Vacant { number }) => {
                    take(&seen, Seen { number: number.get(), leader: None });
                }
                Some(_) => {}
                None => return,
            },
            () = look.notified() => {
                if let Ok(view) = election.view().await {
                    let id = |id: &tenure::MemberId| id.as_str().to_owned();
                    let leader = view.holder.map(|holder| (id(&holder.member.id), holder.profile));
                    take(&seen, Seen { number: view.number.get(), leader });
                }
                tokio::time::sleep(PACE).await;
            }
        }
    }
}

/// What is older than what is known is dropped.
fn take(seen: &ArcSwap<Seen>, new: Seen) {
    if new.number >= seen.load().number {
        seen.store(Arc::new(new));
    }
}
