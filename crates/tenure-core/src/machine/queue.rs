//! A queue of names from which any one can be removed.

use alloc::collections::BTreeMap;

use crate::Name;

/// Names in order, each at most once. Every operation costs the logarithm of the length:
/// a caller that withdraws 100,000 operations removes them one by one.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Queue {
    by_turn: BTreeMap<i64, Name>,
    turns: BTreeMap<Name, i64>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.by_turn.is_empty()
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.turns.contains_key(name)
    }

    pub(super) fn front(&self) -> Option<&Name> {
        self.by_turn.values().next()
    }

    pub(super) fn pop_front(&mut self) -> Option<Name> {
        let (_, name) = self.by_turn.pop_first()?;
        self.turns.remove(&name);
        Some(name)
    }

    /// Behind all others. A name that waits already keeps its turn.
    pub(super) fn push_back(&mut self, name: Name) {
        let turn = self.by_turn.last_key_value().map_or(0, |(last, _)| last + 1);
        self.insert(turn, name);
    }

    /// Before all others. A name that waits already keeps its turn.
    pub(super) fn push_front(&mut self, name: Name) {
        let turn = self.by_turn.first_key_value().map_or(0, |(first, _)| first - 1);
        self.insert(turn, name);
    }

    fn insert(&mut self, turn: i64, name: Name) {
        if !self.turns.contains_key(&name) {
            self.turns.insert(name.clone(), turn);
            self.by_turn.insert(turn, name);
        }
    }

    pub(super) fn remove(&mut self, name: &Name) {
        if let Some(turn) = self.turns.remove(name) {
            self.by_turn.remove(&turn);
        }
    }
}

impl FromIterator<Name> for Queue {
    fn from_iter<I: IntoIterator<Item = Name>>(names: I) -> Self {
        let mut queue = Self::default();
        names.into_iter().for_each(|name| queue.push_back(name));
        queue
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::string::String;

    use super::*;

    fn named(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn drained(mut queue: Queue) -> String {
        core::iter::from_fn(|| queue.pop_front()).map(|name| name.as_str().to_owned()).collect()
    }

    #[test]
    fn names_come_in_the_order_of_their_turns() {
        let mut queue: Queue = ["a", "b", "c", "d"].map(named).into_iter().collect();
        queue.remove(&named("b"));
        queue.remove(&named("x"));
        queue.push_front(named("e"));
        queue.push_back(named("b"));
        assert_eq!(queue.front(), Some(&named("e")));
        assert_eq!(drained(queue), "eacdb");
    }

    #[test]
    fn a_name_that_waits_keeps_its_turn() {
        let mut queue: Queue = ["a", "b"].map(named).into_iter().collect();
        queue.push_back(named("a"));
        queue.push_front(named("b"));
        assert_eq!(drained(queue.clone()), "ab");
        queue.remove(&named("a"));
        queue.remove(&named("b"));
        assert!(queue.is_empty());
    }
}
