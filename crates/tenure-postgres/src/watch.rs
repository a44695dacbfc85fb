//! Hearing of changes: notifications where they arrive, looks where they do not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{ElectionName, Hint, MemberId, Namespace};
use tokio::sync::{Notify, broadcast};
use tokio_postgres::Notification;

use crate::store::Inner;

/// How many events a slow follower may be behind before it just looks.
const EVENTS: usize = 1_024;
/// How long a notification of our own may take.
const PROBE: Duration = Duration::from_secs(1);

/// Something that those who follow should know.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Anything may have been missed.
    Reconnected,
    /// Something was written to this namespace's journal, up to this place.
    News {
        ns: Arc<str>,
        seq: u64,
        /// What it amounts to; `None` if that has to be looked up.
        hints: Option<Arc<[Hint]>>,
    },
}

/// How many follow a namespace, and where a look last found its journal.
type Followers = (usize, Option<u64>);

/// Where notifications arrive and followers wait.
#[derive(Debug)]
pub(crate) struct Hub {
    channel: String,
    events: broadcast::Sender<Event>,
    native: AtomicBool,
    /// Rung when a connection ends or begins, for the keeper.
    stirred: Notify,
    /// The payload of our own that we wait for.
    probe: Mutex<Option<String>>,
    probed: Notify,
    /// The namespaces that are followed, by how many, and where they stood.
    followed: Mutex<HashMap<Arc<str>, Followers>>,
}

impl Hub {
    pub(crate) fn new(channel: &str) -> Self {
        Self {
            channel: channel.to_owned(),
            events: broadcast::Sender::new(EVENTS),
            native: AtomicBool::new(false),
            stirred: Notify::new(),
            probe: Mutex::new(None),
            probed: Notify::new(),
            followed: Mutex::default(),
        }
    }

    /// Whether notifications arrive.
    pub(crate) fn is_native(&self) -> bool {
        self.native.load(Ordering::Acquire)
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// A connection ended.
    pub(crate) fn parted(&self) {
        self.stirred.notify_one();
    }

    /// The connection that listens was made: what came before may be missed, so
    /// this is itself a hint (H13).
    pub(crate) fn reconnected(&self) {
        self.tell(Event::Reconnected);
        self.stirred.notify_one();
    }

    fn tell(&self, event: Event) {
        // Nobody following is fine.
        drop(self.events.send(event));
    }

    /// A notification arrived. Whatever it says only causes a look (rule N1).
    pub(crate) fn heard(&self, note: &Notification) {
        if note.channel() != self.channel {
            return;
        }
        let mut probe = self.probe.lock().unwrap_or_else(PoisonError::into_inner);
        if probe.as_deref() == Some(note.payload()) {
            *probe = None;
            self.probed.notify_one();
            return;
        }
        drop(probe);
        if let Some(event) = understand(note.payload()) {
            self.tell(event);
        }
    }

    /// Counts one more who follows `ns`.
    pub(crate) fn follow(self: &Arc<Self>, ns: &Namespace) -> Interest {
        let name: Arc<str> = ns.as_str().into();
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.entry(Arc::clone(&name)).or_insert((0, None)).0 += 1;
        drop(followed);
        Interest { hub: Arc::clone(self), name }
    }

    fn names(&self) -> Vec<String> {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.keys().map(|name| name.to_string()).collect()
    }

    /// A look found the journal here; says so if it moved.
    fn seen(&self, name: &str, seq: u64) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((name, (_, place))) = followed.get_key_value(name).map(|(k, v)| (k.clone(), *v))
        else {
            return;
        };
        if place != Some(seq) {
            if let Some(entry) = followed.get_mut(&name) {
                entry.1 = Some(seq);
            }
            drop(followed);
            self.tell(Event::News { ns: name, seq, hints: None });
        }
    }
}

/// That somebody follows a namespace.
#[derive(Debug)]
pub(crate) struct Interest {
    hub: Arc<Hub>,
    name: Arc<str>,
}

impl Interest {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        let mut followed = self.hub.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((count, _)) = followed.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                followed.remove(&self.name);
            }
        }
    }
}

/// A payload: the namespace, the journal's place, and a hint on each line.
pub(crate) fn understand(payload: &str) -> Option<Event> {
    let mut lines = payload.split('\n');
    let ns = lines.next().filter(|ns| !ns.is_empty())?;
    let seq = lines.next().and_then(|seq| seq.parse().ok());
    // A forged or newer payload is a reason to look like any other.
    let Some(seq) = seq else {
        return Some(Event::News { ns: ns.into(), seq: 0, hints: Some([Hint::Anything].into()) });
    };
    let hints = lines.map(|line| hint(line).unwrap_or(Hint::Anything)).collect();
    Some(Event::News { ns: ns.into(), seq, hints: Some(hints) })
}

fn hint(line: &str) -> Option<Hint> {
    let mut words = line.split('\t');
    let hint = match (words.next()?, words.next(), words.next()) {
        ("e", Some(name), None) => Hint::Election(ElectionName::new(name).ok()?),
        ("v", Some(name), heir) => Hint::Vacant {
            election: ElectionName::new(name).ok()?,
            heir: heir.map(MemberId::new).transpose().ok()?,
        },
        ("h", Some(name), Some(to)) => {
            Hint::Handed { election: ElectionName::new(name).ok()?, to: MemberId::new(to).ok()? }
        }
        ("g", Some(life), None) => Hint::Gone(life.replace('-', "").parse().ok()?),
        _ => return None,
    };
    Some(hint)
}

/// Finds out whether a notification from one session reaches the other. Behind
/// a pooler in transaction mode it does not: then the store looks every so
/// often, and says so in its capabilities.
pub(crate) async fn probe(inner: &Inner) {
    let native = inner.options.listen && notification_arrives(inner).await;
    let was = inner.hub.native.swap(native, Ordering::AcqRel);
    if !native {
        if inner.options.listen {
            inner.unlisten().await;
        }
        tracing::info!(
            poll = ?inner.options.poll,
            "notifications do not arrive (a pooler in transaction mode?); looking instead"
        );
    } else if !was {
        tracing::debug!("notifications arrive");
    }
}

async fn notification_arrives(inner: &Inner) -> bool {
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() {
        return false;
    }
    // An empty first line is no namespace: nobody takes it for news.
    let payload = format!("\n{:032x}", u128::from_ne_bytes(random));
    let hub = &inner.hub;
    *hub.probe.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload.clone());
    let arrives = inner.notify(&payload).await.is_ok()
        && tokio::time::timeout(PROBE, hub.probed.notified()).await.is_ok();
    *hub.probe.lock().unwrap_or_else(PoisonError::into_inner) = None;
    arrives
}

/// Keeps the listening connection up, and looks where it does not help. Ends
/// with the store.
pub(crate) async fn keep(inner: Weak<Inner>, hub: Arc<Hub>) {
    let mut wait = Duration::ZERO;
    let mut probed = true;
    loop {
        let Some(store) = inner.upgrade() else { return };
        let (poll, most) = (store.options.poll, Duration::from_secs(2));
        if !store.requests.is_up() {
            probed = false;
            wait = if wait == Duration::MAX { Duration::ZERO } else { wait };
            if let Err(error) = store.requests.session().await {
                wait = wait.saturating_mul(2).clamp(Duration::from_millis(50), most);
                tracing::debug!(%error, ?wait, "the listening connection is down");
            }
        }
        if store.requests.is_up() {
            if !probed {
                probe(&store).await;
                store.own_sessions().await;
                probed = true;
            }
            if !hub.is_native() {
                look(&store).await;
            }
            wait = if hub.is_native() { Duration::MAX } else { poll };
        }
        drop(store);
        let stirred = hub.stirred.notified();
        if wait == Duration::MAX {
            stirred.await;
        } else {
            drop(tokio::time::timeout(jittered(wait), stirred).await);
        }
    }
}

/// Between three quarters of `span` and all of it, so that a herd spreads.
fn jittered(span: Duration) -> Duration {
    let mut byte = [0];
    let _ = getrandom::fill(&mut byte);
    span.mul_f64(0.75 + f64::from(byte[0]) / 1_024.0)
}

async fn look(store: &Inner) {
    let names = store.hub.names();
    if names.is_empty() {
        return;
    }
    match store.positions(&names).await {
        Ok(found) => found.iter().for_each(|(name, seq)| store.hub.seen(name, *seq)),
        Err(error) => tracing::debug!(%error, "looking for news failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(payload: &str) -> Vec<Hint> {
        match understand(payload) {
            Some(Event::News { hints: Some(hints), .. }) => hints.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    /// N1: forged or damaged payloads only cause a look.
    #[test]
    fn payloads_are_understood_and_forged_ones_only_cause_a_look() {
        let election = ElectionName::new("a b").unwrap();
        let heir = Some(MemberId::new("web-1").unwrap());
        assert_eq!(hints("ns\n7\ne\ta b"), [Hint::Election(election.clone())]);
        let vacant = Hint::Vacant { election: election.clone(), heir };
        assert_eq!(hints("ns\n7\nv\ta b\tweb-1"), [vacant]);
        assert_eq!(hints("ns\n7\nv\ta b"), [Hint::Vacant { election, heir: None }]);
        let life = tenure_core::Incarnation::from_u128(0x2a);
        let gone = "ns\n7\ng\t00000000-0000-0000-0000-00000000002a";
        assert_eq!(hints(gone), [Hint::Gone(life)]);
        assert_eq!(hints("ns\n7"), []);
        for forged in
            ["ns", "ns\nseven", "ns\n7\na", "ns\n7\nz\tx", "ns\nseven\ne\t", "ns\n7\ng\tnobody"]
        {
            assert_eq!(hints(forged), [Hint::Anything], "{forged:?}");
        }
        assert!(understand("").is_none() && understand("\nprobe").is_none());
    }
}
