//! A part of the names, with what finds them by the pairs of their values.
//!
//! A change copies one shard, so that a shard has its own part of the index: with one index
//! for all names, a pair that every name has would be copied whole with every registration.
//! A query asks each shard, and costs a step for each of them and for each name that has the
//! rarest pair there; it does not look at other names.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tenure::naming::{Name, Value};
use tenure::views::Incarnation;

use super::Entry;

/// The key and the text of a pair. Neither can contain a line break.
pub(crate) fn pair(key: &str, text: &str) -> String {
    format!("{key}\n{text}")
}

/// An entry that is found by its name, which is in memory once.
#[derive(Clone, Debug)]
struct Named(Arc<Entry>);

impl Borrow<str> for Named {
    fn borrow(&self) -> &str {
        self.0.name.as_str()
    }
}

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.as_str().hash(state);
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Named {}

#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    names: HashSet<Named>,
    index: HashMap<Arc<str>, Vec<Arc<Entry>>>,
    /// How many of the names each life owns: the end of one that owns few looks at few shards.
    lives: HashMap<Incarnation, usize>,
}

impl Shard {
    pub(super) fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.names.get(name).map(|Named(entry)| entry)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.names.iter().map(|Named(entry)| entry)
    }

    /// Whether a name here belongs to one of these lives.
    pub(super) fn has_any(&self, lives: &HashSet<Incarnation>) -> bool {
        lives.iter().any(|life| self.lives.contains_key(life))
    }

    pub(super) fn put(&mut self, entry: Arc<Entry>) {
        if let Some(Named(old)) = self.names.replace(Named(entry.clone())) {
            self.forget(&old);
        }
        if let Some(owner) = &entry.owner {
            *self.lives.entry(owner.member.incarnation).or_default() += 1;
        }
        for pair in pairs(&entry.value) {
            match self.index.get_mut(&*pair) {
                Some(list) => list.push(entry.clone()),
                None => drop(self.index.insert(pair.into(), vec![entry.clone()])),
            }
        }
    }

    pub(super) fn remove(&mut self, name: &Name) -> Option<Arc<Entry>> {
        let Named(old) = self.names.take(name.as_str())?;
        self.forget(&old);
        Some(old)
    }

    /// The entries that have the rarest of these pairs: no other has them all.
    pub(super) fn with_rarest(&self, pairs: &[String]) -> &[Arc<Entry>] {
        let list = |pair: &String| self.index.get(&**pair).map_or(&[][..], Vec::as_slice);
        pairs.iter().map(list).min_by_key(|list| list.len()).unwrap_or(&[])
    }

    /// Leaves out of the index, and of the counts, what is not among the names any more.
    fn forget(&mut self, old: &Arc<Entry>) {
        if let Some(life) = old.owner.as_ref().map(|owner| owner.member.incarnation)
            && let Some(count) = self.lives.get_mut(&life)
        {
            *count -= 1;
            if *count == 0 {
                self.lives.remove(&life);
            }
        }
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
