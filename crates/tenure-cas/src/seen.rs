//! A record as it was seen, and when: all that the observer's rule goes by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::Mono;

use crate::record::Record;
use crate::register::Version;

/// A record, the version it has, and since when its stamp is known.
#[derive(Debug)]
pub(crate) struct Seen<R> {
    pub(crate) version: Version,
    pub(crate) record: Arc<R>,
    /// By this observer's own clock, a moment that is not before that in which
    /// what the record's [`stamp`](Record::stamp) stands for began.
    pub(crate) since: Mono,
    /// About the earliest moment it can have begun, and how far beats are apart:
    /// for choosing when to look next and for nothing else.
    pub(crate) rhythm: Option<Rhythm>,
    /// The last signs of life seen: when, and what their clock counted.
    pub(crate) sights: Vec<(Mono, Duration)>,
    /// When the last look that found it so was sent.
    pub(crate) looked: Mono,
    /// The [step](crate::cells::Cells::step) after that look was answered.
    pub(crate) step: u64,
    /// The step after the last news of it, whether that was a look or a change that the
    /// register told.
    pub(crate) heard: u64,
}

impl<R> Clone for Seen<R> {
    fn clone(&self) -> Self {
        Self {
            version: self.version.clone(),
            record: self.record.clone(),
            sights: self.sights.clone(),
            ..*self
        }
    }
}

/// See [`Seen::rhythm`].
pub(crate) type Rhythm = (Mono, Duration);

/// One look: when it was sent, when it was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) sent: Mono,
    pub(crate) answered: Mono,
    /// The step after the answer.
    pub(crate) step: u64,
    pub(crate) drift_ppm: u32,
}

/// The records of one kind, by key.
#[derive(Debug)]
pub(crate) struct Table<R> {
    records: BTreeMap<String, Seen<R>>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { records: BTreeMap::new() }
    }
}

impl<R: Record> Table<R> {
    pub(crate) fn get(&self, key: &str) -> Option<Seen<R>> {
        self.records.get(key).cloned()
    }

    /// Notes what was found. A stamp that is known already keeps its moment,
    /// whatever else of the record changed; a new one began when it was first
    /// seen, or earlier if what was seen before tells so.
    pub(crate) fn found(
        &mut self,
        key: &str,
        version: Version,
        record: R,
        at: Exchange,
    ) -> Seen<R> {
        let looked = at.sent;
        let step = at.step;
        let known = self.records.get(key);
        let (since, rhythm, sights) = match known {
            Some(known) if known.record.stamp() == record.stamp() => {
                (known.since, known.rhythm, known.sights.clone())
            }
            _ => {
                let sights = record.sights(known, at.answered);
                let bound = record.begun_by(&sights, at.drift_ppm);
                let rhythm = known.and_then(|known| record.rhythm(known, at.sent, at.drift_ppm));
                (bound.map_or(at.answered, |bound| bound.min(at.answered)), rhythm, sights)
            }
        };
        let record = Arc::new(record);
        self.put(key, Seen { version, record, since, rhythm, sights, looked, step, heard: step })
    }

    /// Notes what the register told by itself at `at`. That is no look: the record may have
    /// been replaced since. Its arrival is an upper bound of when a beat began and never a
    /// lower one, so that no silence is concluded from it.
    pub(crate) fn told(&mut self, key: &str, version: Version, record: R, at: Exchange) -> Seen<R> {
        let known = self.records.get(key);
        let (looked, step) = known.map_or((Mono::ZERO, 0), |known| (known.looked, known.step));
        let found = self.found(key, version, record, at);
        // A beat that is new has no lower bound; one that was known keeps its own.
        self.put(key, Seen { looked, step, heard: at.step, ..found })
    }

    /// Whether a record is older than what is known of its cell and life.
    pub(crate) fn goes_back(&self, key: &str, record: &R) -> bool {
        let (life, count) = record.age();
        self.records.get(key).is_some_and(|known| {
            let (known_life, known_count) = known.record.age();
            life == known_life && count < known_count
        })
    }

    /// Notes that what is known was found unchanged.
    pub(crate) fn confirmed(&mut self, key: &str, at: Exchange) -> Option<Seen<R>> {
        let known = self.records.get_mut(key)?;
        known.looked = known.looked.max(at.sent);
        known.step = known.step.max(at.step);
        known.heard = known.heard.max(at.step);
        Some(known.clone())
    }

    pub(crate) fn put(&mut self, key: &str, seen: Seen<R>) -> Seen<R> {
        self.records.insert(key.to_owned(), seen.clone());
        seen
    }

    pub(crate) fn forget(&mut self, key: &str) {
        self.records.remove(key);
    }

    /// Everything known below `prefix`.
    pub(crate) fn below<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a Seen<R>)> {
        let from = self.records.range(prefix.to_owned()..);
        from.take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Forgets what is below `prefix` and not among these.
    pub(crate) fn keep(&mut self, prefix: &str, keys: &BTreeSet<String>) {
        self.records.retain(|key, _| !key.starts_with(prefix) || keys.contains(key));
    }
}
