//! The numbers of names: where the next one begins, and the removal of records that no
//! number depends on any more.
//!
//! A name that was dropped stays as a small record, and so does one whose owner is over and
//! that no other took. Such a record may go once the floor is at or above its number: from then
//! on the floor says what the record said. The floor is raised once for many of them.

use tenure_core::{Incarnation, Namespace, Rev};
use tenure_store::{Error, ErrorKind, Result};

use crate::cells::{ATTEMPTS, Cells, too_busy};
use crate::judge::{Hold, Judge};
use crate::record::name::{FloorRecord, NameRecord};
use crate::register::Removed;
use crate::seen::Seen;

/// How many records are left over before a request removes any, and how many it removes.
const AT_ONCE: usize = 64;

/// The floor of one namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Floor<'a> {
    cells: &'a Cells,
    ns: &'a Namespace,
    judge: Judge<'a>,
}

impl<'a> Floor<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self { cells, ns, judge: Judge::new(cells, ns) }
    }
}

impl Floor<'_> {
    /// The floor as it is now.
    pub(crate) async fn load(&self) -> Result<u64> {
        let seen = self.cells.load::<FloorRecord>(&self.cells.keys.floor(self.ns)).await?;
        Ok(seen.map_or(0, |seen| seen.record.floor))
    }

    /// Makes sure that some floor is known, so that the first number is not far below it.
    pub(crate) async fn load_once(&self) -> Result<()> {
        if self.known().is_none() {
            self.load().await?;
        }
        Ok(())
    }

    fn known(&self) -> Option<u64> {
        let seen = self.cells.known::<FloorRecord>(&self.cells.keys.floor(self.ns));
        seen.map(|seen| seen.record.floor)
    }

    /// The number that follows every one that this observer knows of, and what its caller
    /// has seen.
    pub(crate) fn next_number(&self, key: &str, last: u64, seen: Rev) -> Result<u64> {
        let newest = self.cells.memory().binding.newest(key);
        let last = last.max(newest).max(seen.get()).max(self.known().unwrap_or(0));
        last.checked_add(1).ok_or_else(|| {
            let what = format!("the record {key} has used up the last number, {last}");
            Error::new(ErrorKind::Foreign, what).remedy("use another namespace")
        })
    }

    /// Raises the floor to a number, unless it is there already.
    pub(crate) async fn raise(&self, to: u64) -> Result<()> {
        let key = self.cells.keys.floor(self.ns);
        for _ in 0..ATTEMPTS {
            let seen = self.cells.load::<FloorRecord>(&key).await?;
            if seen.as_ref().is_some_and(|seen| seen.record.floor >= to) {
                return Ok(());
            }
            let mut record =
                seen.as_ref().map_or_else(FloorRecord::new, |seen| (*seen.record).clone());
            record.floor = to;
            let now = self.cells.now();
            if self.cells.swap(&key, seen.as_ref(), record, now, None).await?.is_some() {
                return Ok(());
            }
        }
        Err(too_busy(&key))
    }

    /// Removes some of the records that are left over, if there are many. It is done in
    /// passing and decides nothing.
    pub(crate) async fn collect(&self) {
        let prefix = self.cells.keys.names(self.ns);
        let keys = self.cells.memory().binding.take_left_over(&prefix, AT_ONCE, AT_ONCE);
        self.remove_all(keys).await;
    }

    /// Removes what a life of this observer's own leaves behind, if that is not much. Says
    /// whether all of it is gone.
    pub(crate) async fn collect_of(&self, life: &(String, Incarnation)) -> bool {
        let prefix = self.cells.keys.names(self.ns);
        let (owned, mut keys) = {
            let mut memory = self.cells.memory();
            let owned = memory.binding.owned(life);
            (owned, memory.binding.take_left_over(&prefix, 1, AT_ONCE))
        };
        let few = owned.filter(|owned| owned.len() <= 2 * AT_ONCE);
        let knows_all = few.is_some();
        keys.extend(few.unwrap_or_default());
        self.remove_all(keys).await && knows_all
    }

    /// Removes records that are left over; says whether all are gone.
    async fn remove_all(&self, keys: Vec<String>) -> bool {
        let all = keys.len();
        let known = keys.into_iter().filter_map(|key| {
            let seen = self.cells.known::<NameRecord>(&key)?;
            self.is_left_over(&seen).then_some((key, seen))
        });
        let known: Vec<_> = known.collect();
        let Some(highest) = known.iter().map(|(_, seen)| seen.record.rev).max() else {
            return all == 0;
        };
        // Before any of them is removed: a taker that makes the record anew looks at the floor.
        if self.raise(highest).await.is_err() {
            return false;
        }
        let removals = known.iter().map(|(key, seen)| self.remove(key, seen)).collect();
        let removed = self.cells.all(removals).await;
        removed.len() == all && removed.into_iter().all(|gone| gone)
    }

    /// Removes a record, if it is still the very one that is left over.
    async fn remove(&self, key: &str, seen: &Seen<NameRecord>) -> bool {
        let gone =
            matches!(self.cells.register.remove(key, &seen.version).await, Ok(Removed::Gone));
        if gone {
            self.cells.memory().names.forget(key);
        }
        gone
    }

    /// Whether nothing but a number depends on the record: it was dropped, or its owner's
    /// life is proven over.
    pub(crate) fn is_left_over(&self, seen: &Seen<NameRecord>) -> bool {
        match seen.record.hangs_on() {
            Some(on) => matches!(self.judge.hold_on(&on), Hold::Over(_)),
            None => seen.record.bound.is_none(),
        }
    }
}
