//! What this handle has seen, and when: all that the observer's rule goes by.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tenure_core::{ElectionName, Incarnation, Mono, TermNumber};

use super::record::{ElectionRecord, MemberRecord, Record};
use super::register::Version;

/// How many lives that are over a handle remembers.
const REMEMBERED: usize = 1_024;

/// A record, the version it has, and since when its sign of life is known.
#[derive(Debug)]
pub(super) struct Seen<R> {
    pub(super) version: Version,
    pub(super) record: Arc<R>,
    /// When this handle first saw the record's [`stamp`](Record::stamp), by its
    /// own clock: never before the stamp was written.
    pub(super) since: Mono,
}

impl<R> Clone for Seen<R> {
    fn clone(&self) -> Self {
        Self { version: self.version.clone(), record: self.record.clone(), since: self.since }
    }
}

/// The records of one kind, by key.
#[derive(Debug)]
pub(super) struct Table<R> {
    records: BTreeMap<String, Seen<R>>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { records: BTreeMap::new() }
    }
}

impl<R: Record> Table<R> {
    pub(super) fn get(&self, key: &str) -> Option<Seen<R>> {
        self.records.get(key).cloned()
    }

    /// Notes what was found at `now`. A sign of life that is known already
    /// keeps the moment it was first seen, whatever else of the record changed.
    pub(super) fn found(&mut self, key: &str, version: Version, record: R, now: Mono) -> Seen<R> {
        let known = self.records.get(key).filter(|k| k.record.stamp() == record.stamp());
        let since = known.map_or(now, |k| k.since);
        self.put(key, Seen { version, record: Arc::new(record), since })
    }

    pub(super) fn put(&mut self, key: &str, seen: Seen<R>) -> Seen<R> {
        self.records.insert(key.to_owned(), seen.clone());
        seen
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.records.remove(key);
    }

    /// Everything known below `prefix`.
    pub(super) fn below(&self, prefix: &str) -> Vec<(String, Seen<R>)> {
        let from = self.records.range(prefix.to_owned()..);
        let below = from.take_while(|(key, _)| key.starts_with(prefix));
        below.map(|(key, seen)| (key.clone(), seen.clone())).collect()
    }
}

/// All that a handle remembers.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) elections: Table<ElectionRecord>,
    pub(super) members: Table<MemberRecord>,
    /// When the write that last renewed a record for a life of this handle's
    /// own was begun.
    written: BTreeMap<String, BTreeMap<Incarnation, Mono>>,
    /// The newest number seen of each election.
    numbers: BTreeMap<String, TermNumber>,
    /// When the members below a prefix were last listed.
    listed: BTreeMap<String, Mono>,
    /// Lives of this handle's own that are over, by their members' keys.
    over: VecDeque<(String, Incarnation)>,
    /// Since when the candidacies of a member are known.
    stood: BTreeMap<String, Stood>,
}

/// Since when this life is known to stand for each election.
type Stood = (Incarnation, BTreeMap<ElectionName, Mono>);

impl Memory {
    pub(super) fn wrote(&mut self, key: &str, life: Incarnation, started: Mono) {
        self.written.entry(key.to_owned()).or_default().insert(life, started);
    }

    /// Notes that such a write begins, if none is known; says whether it was.
    pub(super) fn attempts(&mut self, key: &str, life: Incarnation, started: Mono) -> bool {
        let first = self.written(key, life).is_none();
        if first {
            self.wrote(key, life, started);
        }
        first
    }

    /// When this handle began to write the last sign of life of its own.
    pub(super) fn written(&self, key: &str, life: Incarnation) -> Option<Mono> {
        self.written.get(key)?.get(&life).copied()
    }

    /// Forgets what was written for a life under one key, when it holds it no
    /// more.
    pub(super) fn gave_up(&mut self, key: &str, life: Incarnation) {
        if let Some(lives) = self.written.get_mut(key) {
            lives.remove(&life);
            if lives.is_empty() {
                self.written.remove(key);
            }
        }
    }

    /// Notes that a life of this handle's own is over. A life it never wrote
    /// for is not its business: it may be about to join.
    pub(super) fn ended(&mut self, member_key: &str, life: Incarnation) {
        if self.written(member_key, life).is_none() {
            return;
        }
        self.written.retain(|_, lives| {
            lives.remove(&life);
            !lives.is_empty()
        });
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back((member_key.to_owned(), life));
    }

    pub(super) fn is_over(&self, member_key: &str, life: Incarnation) -> bool {
        self.over.iter().any(|(key, over)| key == member_key && *over == life)
    }

    /// Raises the newest number seen.
    pub(super) fn saw_number(&mut self, key: &str, number: TermNumber) {
        let newest = self.numbers.entry(key.to_owned()).or_default();
        *newest = number.max(*newest);
    }

    pub(super) fn newest_number(&self, key: &str) -> TermNumber {
        self.numbers.get(key).copied().unwrap_or_default()
    }

    pub(super) fn listed(&self, prefix: &str) -> Option<Mono> {
        self.listed.get(prefix).copied()
    }

    /// Notes a listing of the members below `prefix`: those not in it are gone.
    pub(super) fn note_listing(&mut self, prefix: &str, keys: &BTreeSet<String>, now: Mono) {
        for (key, _) in self.members.below(prefix) {
            if !keys.contains(&key) {
                self.forget_member(&key);
            }
        }
        self.listed.insert(prefix.to_owned(), now);
    }

    pub(super) fn forget_member(&mut self, key: &str) {
        self.members.forget(key);
        self.stood.remove(key);
    }

    /// Notes the candidacies of a member; those known already keep their time.
    pub(super) fn saw_candidacies(&mut self, key: &str, record: &MemberRecord, now: Mono) {
        let (_, known) = self
            .stood
            .remove(key)
            .filter(|(life, _)| *life == record.incarnation)
            .unwrap_or((record.incarnation, BTreeMap::new()));
        let names = record.candidacies.iter().map(|c| &c.election);
        let stood =
            names.map(|name| (name.clone(), known.get(name).copied().unwrap_or(now))).collect();
        self.stood.insert(key.to_owned(), (record.incarnation, stood));
    }

    /// Since when the member of this key is known to stand for the election.
    pub(super) fn stood(&self, key: &str, election: &ElectionName) -> Option<Mono> {
        self.stood.get(key)?.1.get(election).copied()
    }
}
