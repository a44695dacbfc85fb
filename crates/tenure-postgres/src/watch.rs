//! Learning of changes: notifications where they arrive, looks where they do not.
//! [`keeper`](crate::keeper) finds out which it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::{ElectionName, Hint, MemberId, Namespace};
use tokio::sync::{Notify, broadcast, watch};
use tokio_postgres::Notification;

/// How many events a slow follower may be behind before it just looks.
const EVENTS: usize = 1_024;
/// The most hints that a payload of ours has. One with more was forged.
const LINES: usize = 17;

/// How changes are followed at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// Notifications arrive.
    Native,
    /// They are not wanted.
    Off,
    /// They were sent and did not arrive.
    Unheard,
    /// The server's queue of them is filling, so none are sent.
    Filling,
}

impl Hearing {
    /// Why the store is looked at, and what to do about it.
    pub(crate) fn why(self) -> Option<&'static str> {
        match self {
            Self::Native => None,
            Self::Off => Some("notifications are turned off (listen=0)"),
            Self::Unheard => Some(
                "notifications do not arrive: a pooler in transaction mode, or a slow connection; \
                 connect directly. They are tested again from time to time",
            ),
            Self::Filling => Some(
                "the server's queue of notifications is half full, so none are sent: look in \
                 pg_stat_activity for a session that listens and is idle in transaction. They \
                 come back by themselves",
            ),
        }
    }
}

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

/// Where the journal and the names of a namespace stand.
pub(crate) struct Place {
    pub(crate) ns: String,
    pub(crate) seq: u64,
    pub(crate) rev: u64,
    /// Whether no notification is sent of what is written to it.
    pub(crate) quiet: bool,
}

/// Those who follow a namespace.
#[derive(Debug, Default)]
struct Followers {
    /// How many there are.
    count: usize,
    /// Where its journal stood last.
    seq: Option<u64>,
    /// Where its names stood when they were last looked at.
    rev: Option<u64>,
}

/// Where notifications arrive and followers wait.
#[derive(Debug)]
pub(crate) struct Notifications {
    channel: String,
    events: broadcast::Sender<Event>,
    hearing: watch::Sender<Hearing>,
    /// Rung when a connection ends or begins, for the keeper.
    stirred: Notify,
    /// The payload of our own that we wait for.
    probe: Mutex<Option<String>>,
    probed: Notify,
    /// The namespaces that are followed, by how many, and where they stood.
    followed: Mutex<HashMap<Arc<str>, Followers>>,
}

impl Notifications {
    pub(crate) fn new(channel: &str) -> Self {
        Self {
            channel: channel.to_owned(),
            events: broadcast::Sender::new(EVENTS),
            hearing: watch::Sender::new(Hearing::Unheard),
            stirred: Notify::new(),
            probe: Mutex::new(None),
            probed: Notify::new(),
            followed: Mutex::default(),
        }
    }

    /// Whether notifications arrive.
    pub(crate) fn is_native(&self) -> bool {
        self.hearing() == Hearing::Native
    }

    pub(crate) fn hearing(&self) -> Hearing {
        *self.hearing.borrow()
    }

    /// It is so from now on; says how it was.
    pub(crate) fn set_hearing(&self, hearing: Hearing) -> Hearing {
        self.hearing.send_replace(hearing)
    }

    /// A notification said that it is the last for now. The keeper finds out.
    pub(crate) fn hushed(&self) {
        if self.is_native() {
            self.stirred.notify_one();
        }
    }

    /// Waits until a connection ends or begins, or something else is to be looked into.
    pub(crate) async fn stirred(&self) {
        self.stirred.notified().await;
    }

    /// What the next notification of our own says; `None` if none is waited for.
    pub(crate) fn expect(&self, payload: Option<String>) {
        *self.probe.lock().unwrap_or_else(PoisonError::into_inner) = payload;
    }

    /// Waits for that notification.
    pub(crate) async fn probed(&self) {
        self.probed.notified().await;
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
        // There need not be a follower.
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
        // It is not followed: not worth a copy of what a stranger may have sent (P12).
        let ns = note.payload().split('\n').next().unwrap_or_default();
        if !self.is_followed(ns) {
            return;
        }
        if let Some((event, quiet)) = understand(note.payload()) {
            if let Event::News { ns, seq, .. } = &event {
                self.noticed(ns, *seq);
            }
            self.tell(event);
            if quiet {
                self.hushed();
            }
        }
    }

    fn is_followed(&self, ns: &str) -> bool {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).contains_key(ns)
    }

    /// A notification says that the journal is here. It may be forged: then a look finds
    /// another place, and that is news.
    fn noticed(&self, ns: &str, seq: u64) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(followers) = followed.get_mut(ns) {
            followers.seq = Some(seq);
        }
    }

    /// A follower that begins found the journal and the names here.
    pub(crate) fn begun_at(&self, ns: &Namespace, seq: u64, rev: u64) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(followers) = followed.get_mut(ns.as_str()) {
            followers.seq.get_or_insert(seq);
            followers.rev.get_or_insert(rev);
        }
    }

    /// Counts one more who follows `ns`.
    pub(crate) fn follow(self: &Arc<Self>, ns: &Namespace) -> Interest {
        let name: Arc<str> = ns.as_str().into();
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.entry(Arc::clone(&name)).or_default().count += 1;
        drop(followed);
        Interest { notifications: Arc::clone(self), name }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.keys().map(|name| name.to_string()).collect()
    }

    /// A look found the journal and the names here; says so if they moved. Names that a
    /// notification told of are told once more: it does not say which change it is about.
    pub(crate) fn seen(&self, name: &str, seq: u64, rev: u64) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ns) = followed.get_key_value(name).map(|(ns, _)| Arc::clone(ns)) else { return };
        let Some(followers) = followed.get_mut(name) else { return };
        let grown = followers.seq.replace(seq) != Some(seq);
        let renamed = followers.rev.replace(rev) != Some(rev);
        drop(followed);
        if grown {
            self.tell(Event::News { ns: Arc::clone(&ns), seq, hints: None });
        }
        if renamed {
            self.tell(Event::News { ns, seq, hints: Some([Hint::Names].into()) });
        }
    }
}

/// A following of a namespace, which lasts until this is dropped.
#[derive(Debug)]
pub(crate) struct Interest {
    notifications: Arc<Notifications>,
    name: Arc<str>,
}

impl Interest {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        let mut followed =
            self.notifications.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(followers) = followed.get_mut(&self.name) {
            followers.count -= 1;
            if followers.count == 0 {
                followed.remove(&self.name);
            }
        }
    }
}

/// A payload: the namespace, the journal's place, and a hint on each line; and whether
/// it is the last one for now.
pub(crate) fn understand(payload: &str) -> Option<(Event, bool)> {
    let mut lines = payload.split('\n');
    let ns = lines.next().filter(|ns| !ns.is_empty())?;
    let seq = lines.next().and_then(|seq| seq.parse().ok());
    let lines: Vec<_> = lines.take(LINES + 1).collect();
    // A forged or newer payload is a reason to look like any other.
    let Some(seq) = seq.filter(|_| lines.len() <= LINES) else {
        let hints = Some([Hint::Anything].into());
        return Some((Event::News { ns: ns.into(), seq: 0, hints }, false));
    };
    let quiet = lines.contains(&"q");
    let hints = lines.into_iter().filter(|line| *line != "q");
    let hints = hints.map(|line| hint(line).unwrap_or(Hint::Anything)).collect();
    Some((Event::News { ns: ns.into(), seq, hints: Some(hints) }, quiet))
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
        ("n", None, None) => Hint::Names,
        ("g", Some(life), None) => Hint::Gone(life.replace('-', "").parse().ok()?),
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(payload: &str) -> Vec<Hint> {
        match understand(payload) {
            Some((Event::News { hints: Some(hints), .. }, _)) => hints.to_vec(),
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
        assert_eq!(hints("ns\n7\nn"), [Hint::Names]);
        assert_eq!(hints("ns\n7"), []);
        for forged in
            ["ns", "ns\nseven", "ns\n7\na", "ns\n7\nz\tx", "ns\nseven\ne\t", "ns\n7\ng\tnolife"]
        {
            assert_eq!(hints(forged), [Hint::Anything], "{forged:?}");
        }
        assert!(understand("").is_none() && understand("\nprobe").is_none());
    }

    /// P3: the last notification for now says so, and hints as any other does.
    #[test]
    fn the_last_notification_says_that_it_is_the_last() {
        let quiet = |payload: &str| understand(payload).unwrap().1;
        assert!(quiet("ns\n7\ne\tx\nq") && !quiet("ns\n7\ne\tq"));
        assert_eq!(hints("ns\n7\ne\tx\nq"), [Hint::Election(ElectionName::new("x").unwrap())]);
    }

    /// P12: a forged payload of thousands of lines is one reason to look.
    #[test]
    fn a_payload_with_too_many_lines_is_one_hint() {
        let forged = format!("ns\n7{}", "\ne\tx".repeat(2_000));
        assert_eq!(hints(&forged), [Hint::Anything]);
        let ours = format!("ns\n7{}", "\ne\tx".repeat(16));
        assert_eq!(hints(&ours).len(), 16);
    }
}
