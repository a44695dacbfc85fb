//! The keeper of the session that listens: makes it again when it broke, finds out whether
//! notifications arrive, and looks at the journal for as long as they do not.
//!
//! Whether they arrive is tried out: one session notifies, the other must hear it. One slow
//! second is no reason to look for ever (P7), so that the test is repeated at a pace that slows
//! down, and a queue that was full is looked at again with every look (P3).

use std::sync::{Arc, Weak};
use std::time::Duration;

use tenure_store::{Backoff, jittered};
use tokio::time::Instant;

use crate::store::Inner;
use crate::watch::{Hearing, Notifications};

/// How long a notification of our own may take.
const PROBE: Duration = Duration::from_secs(1);
/// How soon after the first failure it is repeated, and how rarely at last. Behind a
/// pooler each attempt leaves a LISTEN on a session of others, so that it slows down.
const AGAIN: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));
/// Looks are this much rarer while notifications arrive: only one that was lost, or that
/// could not be sent, is found by them.
const RARELY: u32 = 10;
/// The pauses before the listening connection is made again.
const RECONNECT: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));

/// Finds out how changes can be followed, and tells if that is news.
pub(crate) async fn probe(inner: &Inner) -> Hearing {
    let hearing = match () {
        () if !inner.options.listen => Hearing::Off,
        () if inner.queue_usage().await.is_ok_and(|usage| usage >= 0.5) => Hearing::Filling,
        () if notification_arrives(inner).await => Hearing::Native,
        () => Hearing::Unheard,
    };
    if hearing == Hearing::Unheard {
        inner.unlisten().await;
    }
    turn(inner, hearing);
    hearing
}

/// From now on it is so.
fn turn(inner: &Inner, hearing: Hearing) {
    let was = inner.notifications.set_hearing(hearing);
    if was == hearing {
        return;
    }
    match hearing.why() {
        None => tracing::info!("notifications of PostgreSQL arrive"),
        Some(why) if hearing == Hearing::Off => tracing::debug!("{why}"),
        Some(why) => {
            tracing::warn!(poll = ?inner.options.poll, "looking at the journal instead: {why}");
        }
    }
}

async fn notification_arrives(inner: &Inner) -> bool {
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() || inner.listen().await.is_err() {
        return false;
    }
    // An empty first line is no namespace: no session takes it for news.
    let payload = format!("\n{:032x}", u128::from_ne_bytes(random));
    inner.notifications.expect(Some(payload.clone()));
    let arrives = inner.notify(&payload).await.is_ok()
        && tokio::time::timeout(PROBE, inner.notifications.probed()).await.is_ok();
    inner.notifications.expect(None);
    arrives
}

/// When to try next whether notifications arrive.
struct Again {
    pauses: Backoff,
    at: Instant,
}

impl Again {
    fn new() -> Self {
        let mut pauses = AGAIN;
        Self { at: Instant::now() + pauses.pause(), pauses }
    }

    fn slower(&mut self) {
        self.at = Instant::now() + self.pauses.pause();
    }
}

/// Keeps the listening connection up, and looks where it does not help. Ends with the store.
pub(crate) async fn keep(inner: Weak<Inner>, notifications: Arc<Notifications>) {
    let mut reconnect = RECONNECT;
    let mut probed = true;
    let mut again = Again::new();
    loop {
        let Some(store) = inner.upgrade() else { return };
        if !store.requests.is_up() {
            probed = false;
            if let Err(error) = store.requests.session().await {
                tracing::debug!(%error, "the listening connection is down");
            }
        }
        let poll = store.options.poll;
        let wait = if store.requests.is_up() {
            reconnect.reset();
            let due = match notifications.hearing() {
                Hearing::Native | Hearing::Off => false,
                Hearing::Filling => true,
                Hearing::Unheard => Instant::now() >= again.at,
            };
            if !probed {
                again = Again::new();
            }
            if !probed || due {
                if probe(&store).await == Hearing::Unheard && due {
                    again.slower();
                }
                store.own_sessions().await;
                probed = true;
            }
            if look(&store).await && notifications.is_native() {
                turn(&store, Hearing::Filling);
            }
            jittered(if notifications.is_native() { poll * RARELY } else { poll })
        } else {
            reconnect.pause()
        };
        let up = store.requests.is_up();
        drop(store);
        let least = Instant::now() + poll / RARELY;
        drop(tokio::time::timeout(wait, notifications.stirred()).await);
        // Whatever rings, perhaps a stranger's notification: looks are paced (P12).
        if up && inner.upgrade().is_some_and(|store| store.requests.is_up()) {
            tokio::time::sleep_until(least).await;
        }
    }
}

/// Looks where the journals and the names of the namespaces stand that are followed; says whether
/// one of them is without notifications.
async fn look(store: &Inner) -> bool {
    let names = store.notifications.names();
    if names.is_empty() {
        return false;
    }
    match store.positions(&names).await {
        Ok(found) => {
            found
                .iter()
                .for_each(|place| store.notifications.seen(&place.ns, place.seq, place.rev));
            found.iter().any(|place| place.quiet)
        }
        Err(error) => {
            tracing::debug!(%error, "looking for news failed");
            false
        }
    }
}
