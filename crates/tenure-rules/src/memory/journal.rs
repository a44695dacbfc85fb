//! The journal of one namespace: ordered, gap-free, and bounded.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use tenure_core::{Entry, Happening, MemberRef, Seq};

/// The newest entries, each one place after the one before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    /// The place of the end of each life whose end is among the entries.
    ends: BTreeMap<MemberRef, Seq>,
    last: Seq,
    bound: usize,
}

impl Journal {
    pub(super) fn bounded(bound: usize) -> Self {
        Self { entries: VecDeque::new(), ends: BTreeMap::new(), last: Seq::START, bound }
    }

    /// Appends an entry, and drops the oldest if there are too many (H27).
    pub(super) fn append(&mut self, entry: Entry) {
        self.last = entry.seq;
        if let Some(life) = ending(&entry.what) {
            self.ends.insert(life.clone(), entry.seq);
        }
        self.entries.push_back(entry);
        while self.entries.len() > self.bound {
            let gone = self.entries.pop_front();
            if let Some(life) = gone.as_ref().and_then(|entry| ending(&entry.what)) {
                self.ends.remove(life);
            }
        }
    }

    /// Goes on after this place: what was written up to it was forgotten, and is
    /// told as entries that are no longer kept.
    pub(super) fn go_on_after(&mut self, place: Seq) {
        self.entries.clear();
        self.ends.clear();
        self.last = place;
    }

    /// The entry that tells how a life ended, if it is still kept.
    pub(super) fn end_of(&self, life: &MemberRef) -> Option<&Entry> {
        let place = self.ends.get(life)?;
        let index = place.get().checked_sub(self.trimmed().get())?.checked_sub(1)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// The place of the newest entry ever written.
    pub(super) fn last(&self) -> Seq {
        self.last
    }

    /// The newest place that is no longer kept.
    pub(super) fn trimmed(&self) -> Seq {
        let kept = u64::try_from(self.entries.len()).unwrap_or(u64::MAX);
        Seq::new(self.last.get().saturating_sub(kept))
    }

    /// Everything kept, oldest first.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Every entry after `position`; an error with the place to go on from, if some of
    /// them are gone or the journal ends before it.
    pub(super) fn after(&self, position: Seq) -> Result<Vec<Entry>, Seq> {
        if position > self.last {
            return Err(self.last);
        }
        if position < self.trimmed() {
            return Err(self.trimmed());
        }
        let skip = position.get() - self.trimmed().get();
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok(self.entries.iter().skip(skip).cloned().collect())
    }
}

/// The life that this is the end of.
fn ending(what: &Happening) -> Option<&MemberRef> {
    match what {
        Happening::Left { member } | Happening::Ended { member, .. } => Some(member),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::{Incarnation, MemberId, Timestamp};

    fn written(bound: usize, count: u128) -> Journal {
        let mut journal = Journal::bounded(bound);
        for life in 1..=count {
            let id = MemberId::new("a").unwrap();
            let member = MemberRef::new(id, Incarnation::from_u128(life));
            let seq = journal.last().next();
            let at = Timestamp::default();
            journal.append(Entry { seq, at, what: Happening::Left { member } });
        }
        journal
    }

    fn places(entries: &[Entry]) -> Vec<u64> {
        entries.iter().map(|e| e.seq.get()).collect()
    }

    #[test]
    fn entries_after_a_position_are_all_that_follow_it() {
        let journal = written(10, 4);
        assert_eq!(places(&journal.after(Seq::START).unwrap()), [1, 2, 3, 4]);
        assert_eq!(places(&journal.after(Seq::new(3)).unwrap()), [4]);
        assert_eq!(places(&journal.after(Seq::new(4)).unwrap()), [0u64; 0]);
        assert_eq!(journal.after(Seq::new(9)), Err(Seq::new(4)), "there is no such place");
    }

    /// H27.
    #[test]
    fn the_oldest_entries_go_and_who_missed_them_is_told() {
        let journal = written(3, 10);
        assert_eq!(journal.last(), Seq::new(10));
        assert_eq!(journal.after(Seq::new(6)), Err(Seq::new(7)));
        assert_eq!(places(&journal.after(Seq::new(7)).unwrap()), [8, 9, 10]);
    }
}
