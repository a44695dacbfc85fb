//! What one observer remembers of names, besides the records it has seen.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Incarnation, Token};

/// How many records to be removed an observer remembers.
const LEFT_OVER: usize = 4_096;

/// A life, with the key of its member's record.
type Life = (String, Incarnation);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct BindingMemory {
    /// What lives of this observer's own took and have not dropped, by the names' keys. The
    /// number of each was found above the floor.
    owned: BTreeMap<Life, BTreeMap<String, Token>>,
    /// The same of what was bound without an owner.
    posted: BTreeMap<String, Token>,
    /// The highest number seen of any name, by what the keys of a namespace's names begin
    /// with.
    newest: BTreeMap<String, u64>,
    /// Records that are not needed, once the floor has passed them.
    left_over: BTreeSet<String>,
}

impl BindingMemory {
    fn of(&mut self, life: Option<&Life>) -> &mut BTreeMap<String, Token> {
        match life {
            Some(life) => self.owned.entry(life.clone()).or_default(),
            None => &mut self.posted,
        }
    }

    /// Notes that the number of a name is above the floor.
    pub(crate) fn is_above(&mut self, life: Option<&Life>, key: &str, token: Token) {
        self.of(life).insert(key.to_owned(), token);
    }

    /// Whether that is known already.
    pub(crate) fn was_above(&self, life: Option<&Life>, key: &str, token: Token) -> bool {
        let known = match life {
            Some(life) => self.owned.get(life).and_then(|owned| owned.get(key)),
            None => self.posted.get(key),
        };
        known == Some(&token)
    }

    /// Notes that exactly this binding is no longer there.
    pub(crate) fn is_gone(&mut self, life: Option<&Life>, key: &str, token: Token) {
        let owned = match life {
            Some(life) => self.owned.get_mut(life),
            None => Some(&mut self.posted),
        };
        if let Some(owned) = owned.filter(|owned| owned.get(key) == Some(&token)) {
            owned.remove(key);
        }
    }

    /// Whether a life dropped all that it took; `None` if it took nothing.
    pub(crate) fn gave_all_back(&self, life: &Life) -> Option<bool> {
        self.owned.get(life).map(BTreeMap::is_empty)
    }

    /// The keys of what a life took and has not dropped; `None` if that is not known.
    pub(crate) fn owned(&self, life: &Life) -> Option<Vec<String>> {
        self.owned.get(life).map(|owned| owned.keys().cloned().collect())
    }

    /// Forgets what a life owned that is over.
    pub(crate) fn ended(&mut self, life: &Life) {
        self.owned.remove(life);
    }

    /// Raises the highest number seen.
    pub(crate) fn saw_number(&mut self, key: &str, number: u64) {
        let Some((names, _)) = key.rsplit_once('/') else { return };
        match self.newest.get_mut(names) {
            Some(newest) => *newest = number.max(*newest),
            None => drop(self.newest.insert(names.to_owned(), number)),
        }
    }

    /// The highest number seen of any name of the namespace that this key is of.
    pub(crate) fn newest(&self, key: &str) -> u64 {
        let names = key.rsplit_once('/').map(|(names, _)| names);
        names.and_then(|names| self.newest.get(names)).copied().unwrap_or(0)
    }

    /// Notes that a record is not needed any more.
    pub(crate) fn is_left_over(&mut self, key: &str) {
        if self.left_over.len() < LEFT_OVER {
            self.left_over.insert(key.to_owned());
        }
    }

    /// Takes out up to `most` of those below `prefix`, if there are at least `least`.
    pub(crate) fn take_left_over(
        &mut self,
        prefix: &str,
        least: usize,
        most: usize,
    ) -> Vec<String> {
        let from = self.left_over.range(prefix.to_owned()..);
        let below = from.take_while(|key| key.starts_with(prefix)).take(most);
        let keys: Vec<String> = below.cloned().collect();
        if keys.len() < least {
            return Vec::new();
        }
        for key in &keys {
            self.left_over.remove(key);
        }
        keys
    }
}
