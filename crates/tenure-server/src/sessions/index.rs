//! Where sessions are found: by their key, and by their election.
//!
//! A session that has ended can be asked for its last state for a while. How many of those are
//! kept has the same bound as how many go on: the oldest make room.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tenure::{ElectionName, MemberId, Mono};

use super::entry::Entry;

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct Index {
    keys: HashMap<String, Arc<Entry>>,
    /// Those that have not ended.
    elections: HashMap<ElectionName, Vec<Arc<Entry>>>,
    /// Those that have, the oldest first, and until when they are kept.
    ended: VecDeque<(Mono, String)>,
}

impl Index {
    pub(super) fn insert(&mut self, entry: Arc<Entry>) {
        self.elections.entry(entry.election.clone()).or_default().push(entry.clone());
        self.keys.insert(entry.key.clone(), entry);
    }

    pub(super) fn find(&self, key: &str) -> Option<Arc<Entry>> {
        self.keys.get(key).cloned()
    }

    /// Those of an election that have not ended.
    pub(super) fn of(&self, election: &ElectionName) -> &[Arc<Entry>] {
        self.elections.get(election).map_or(&[], Vec::as_slice)
    }

    /// All that have not ended.
    pub(super) fn live(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.elections.values().flatten()
    }

    /// How many have not ended.
    pub(super) fn count(&self) -> usize {
        self.keys.len() - self.ended.len()
    }

    /// The session of a client for an election.
    pub(super) fn of_client(&self, election: &ElectionName, id: &MemberId) -> Option<&Arc<Entry>> {
        self.of(election).iter().find(|entry| entry.member.id() == id)
    }

    /// A session has ended; it is kept until then, and no more than `most` such.
    pub(super) fn end(&mut self, entry: &Entry, until: Mono, most: usize) {
        if let Some(all) = self.elections.get_mut(&entry.election) {
            all.retain(|other| other.key != entry.key);
            if all.is_empty() {
                self.elections.remove(&entry.election);
            }
        }
        self.ended.push_back((until, entry.key.clone()));
        while self.ended.len() > most {
            self.drop_oldest();
        }
    }

    /// Forgets those that have ended and were kept for long enough.
    pub(super) fn forget(&mut self, now: Mono) {
        while self.ended.front().is_some_and(|(until, _)| now >= *until) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((_, key)) = self.ended.pop_front() {
            self.keys.remove(&key);
        }
    }
}
