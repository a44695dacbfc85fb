//! A part of the names, with what finds them by the pairs of their values.
//!
//! A change copies one shard, so that a shard has its own part of the index: with one index
//! for all names, a pair that every name has would be copied whole with every registration.
//! A query asks each shard, and costs a step for each of them and for each name that has the
//! rarest pair there; it does not look at other names.

use std::collections::HashMap;
use std::sync::Arc;

use tenure::{Name, Value};

use super::Entry;

/// The key and the text of a pair. Neither can contain a line break.
pub(crate) fn pair(key: &str, text: &str) -> String {
    format!("{key}\n{text}")
}

#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    names: HashMap<Name, Arc<Entry>>,
    index: HashMap<Arc<str>, Vec<Arc<Entry>>>,
}

impl Shard {
    pub(super) fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.names.get(name)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.names.values()
    }

    pub(super) fn put(&mut self, entry: Arc<Entry>) {
        if let Some(old) = self.names.insert(entry.name.clone(), entry.clone()) {
            self.leave_index(&old);
        }
        for pair in pairs(&entry.value) {
            match self.index.get_mut(&*pair) {
                Some(list) => list.push(entry.clone()),
                None => drop(self.index.insert(pair.into(), vec![entry.clone()])),
            }
        }
    }

    pub(super) fn remove(&mut self, name: &Name) -> Option<Arc<Entry>> {
        let old = self.names.remove(name)?;
        self.leave_index(&old);
        Some(old)
    }

    /// The entries that have the rarest of these pairs: no other has them all.
    pub(super) fn with_rarest(&self, pairs: &[String]) -> &[Arc<Entry>] {
        let list = |pair: &String| self.index.get(&**pair).map_or(&[][..], Vec::as_slice);
        pairs.iter().map(list).min_by_key(|list| list.len()).unwrap_or(&[])
    }

    fn leave_index(&mut self, old: &Arc<Entry>) {
        for pair in pairs(&old.value) {
            let Some(list) = self.index.get_mut(&*pair) else { continue };
            list.retain(|entry| !Arc::ptr_eq(entry, old));
            if list.is_empty() {
                self.index.remove(&*pair);
            }
        }
    }
}

fn pairs(value: &Value) -> impl Iterator<Item = String> {
    value.index().iter().map(|(key, text)| pair(key, text))
}
