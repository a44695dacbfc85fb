//! Names in maps, with the indexes that the rules ask by.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;

use tenure_core::{MemberRef, Name, Rev, WhichNames};

use crate::rows::{NameRow, NamesRow};

/// The names of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Names {
    pub(crate) stands: NamesRow,
    rows: BTreeMap<Name, NameRow>,
    by_rev: BTreeMap<Rev, Name>,
    by_owner: BTreeMap<MemberRef, BTreeSet<Name>>,
    gone: BTreeMap<Rev, Name>,
}

impl Names {
    pub(super) fn get(&self, name: &Name) -> Option<&NameRow> {
        self.rows.get(name)
    }

    pub(super) fn of(&self, life: &MemberRef) -> impl Iterator<Item = &Name> {
        self.by_owner.get(life).into_iter().flatten()
    }

    pub(super) fn asked(&self, which: &WhichNames) -> Vec<NameRow> {
        let row = |name: &Name| self.rows.get(name).cloned();
        match which {
            WhichNames::Named(names) => {
                let names: BTreeSet<&Name> = names.iter().collect();
                names.into_iter().filter_map(row).collect()
            }
            WhichNames::Prefix(prefix) => {
                let matches = |name: &&Name| name.as_str().starts_with(prefix.as_str());
                let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
                let names = self.rows.range::<str, _>(from).map(|(name, _)| name);
                names.take_while(matches).filter_map(row).collect()
            }
            WhichNames::OwnedBy(life) => self.of(life).filter_map(row).collect(),
            WhichNames::Since(rev) => {
                let mut changed: Vec<_> = after(&self.by_rev, *rev).filter_map(row).collect();
                changed.sort_by(|a, b| a.name.cmp(&b.name));
                changed
            }
        }
    }

    pub(super) fn some_after(&self, after: Option<&Name>, most: usize) -> Vec<NameRow> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.rows.range::<Name, _>((from, Bound::Unbounded));
        rows.take(most).map(|(_, row)| row.clone()).collect()
    }

    /// Names that were dropped, with the revision of each.
    pub(crate) fn gone_after(&self, rev: Rev) -> Vec<(Rev, Name)> {
        let after = self.gone.range((Bound::Excluded(rev), Bound::Unbounded));
        after.map(|(rev, name)| (*rev, name.clone())).collect()
    }

    pub(super) fn gone_since(&self, rev: Rev) -> Vec<Name> {
        let names: BTreeSet<&Name> = after(&self.gone, rev).collect();
        names.into_iter().cloned().collect()
    }

    pub(super) fn put(&mut self, row: NameRow) {
        self.remove(&row.name);
        self.by_rev.insert(row.rev, row.name.clone());
        if let Some(owner) = &row.owner {
            self.by_owner.entry(owner.clone()).or_default().insert(row.name.clone());
        }
        self.rows.insert(row.name.clone(), row);
    }

    pub(super) fn remove(&mut self, name: &Name) {
        let Some(row) = self.rows.remove(name) else { return };
        self.by_rev.remove(&row.rev);
        let Some(owner) = &row.owner else { return };
        if let Some(owned) = self.by_owner.get_mut(owner) {
            owned.remove(name);
            if owned.is_empty() {
                self.by_owner.remove(owner);
            }
        }
    }

    pub(super) fn add_gone(&mut self, rev: Rev, name: &Name) {
        self.gone.insert(rev, name.clone());
    }

    pub(super) fn forget_gone(&mut self, before: Rev, most: usize) -> usize {
        let oldest: Vec<Rev> = self.gone.range(..before).map(|(rev, _)| *rev).take(most).collect();
        for rev in &oldest {
            self.gone.remove(rev);
        }
        oldest.len()
    }
}

fn after(map: &BTreeMap<Rev, Name>, rev: Rev) -> impl Iterator<Item = &Name> {
    map.range((Bound::Excluded(rev), Bound::Unbounded)).map(|(_, name)| name)
}
