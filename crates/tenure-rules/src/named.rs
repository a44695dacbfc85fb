//! Reading names, which never writes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use tenure_core::{Binding, MemberRef, Mono, Name, NamesView, Rev, WhichNames};

use crate::rows::{NameRow, ReadRows};
use crate::view::{LOOK_AGAIN, View};

/// The names that were asked for, as they stand at one moment.
pub fn names<R: ReadRows>(rows: &R, now: Mono, which: &WhichNames) -> Result<NamesView, R::Error> {
    let view = View { rows, now };
    let stands = rows.names()?;
    let era = rows.era()?;
    let rev = stands.rev.reached(stands.era, era);
    let WhichNames::Since(since) = *which else {
        let bindings = view.bindings(rows.names_asked(which)?)?;
        return Ok(NamesView { rev, bindings, ..NamesView::default() });
    };
    // A revision of an earlier era may be one that was forgotten; one that is ahead of the
    // store's certainly was.
    let in_era = stands.era == era.count() && since >= stands.kept_from || since == rev;
    let whole = !in_era || since > rev;
    let from = if whole { Rev::START } else { since };
    let rows_since = rows.names_asked(&WhichNames::Since(from))?;
    // A name that changed hands and whose new owner is not live is gone from the old one too.
    let mut gone: BTreeSet<Name> = rows_since.iter().map(|row| row.name.clone()).collect();
    gone.extend(rows.names_gone(from)?);
    let bindings = view.bindings(rows_since)?;
    for binding in &bindings {
        gone.remove(&binding.name);
    }
    let gone = if whole { Vec::new() } else { gone.into_iter().collect() };
    Ok(NamesView { rev, bindings, gone, owners: view.owners()?, whole })
}

impl<R: ReadRows> View<'_, R> {
    /// The bindings of rows, without those whose owner is not live. One look at each owner.
    fn bindings(&self, rows: Vec<NameRow>) -> Result<Vec<Binding>, R::Error> {
        let mut left: BTreeMap<MemberRef, Option<Duration>> = BTreeMap::new();
        let mut bindings = Vec::with_capacity(rows.len());
        for row in rows {
            let remaining = match &row.owner {
                None => Some(Duration::ZERO),
                Some(owner) => match left.get(owner) {
                    Some(known) => *known,
                    None => *left.entry(owner.clone()).or_insert(self.left_of(owner)?),
                },
            };
            bindings.extend(remaining.map(|remaining| row.bound(remaining)));
        }
        bindings.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(bindings)
    }

    /// What is left of a life; `None` if it is over or its ttl has run out. One that is over
    /// and for which processes still work keeps what it owns a little longer.
    fn left_of(&self, life: &MemberRef) -> Result<Option<Duration>, R::Error> {
        let Some(row) = self.recorded(life)? else { return Ok(None) };
        Ok(match row.is_live(self.now) {
            true => Some(row.remaining(self.now)),
            false => self.rows.is_at_work(&row)?.then_some(LOOK_AGAIN),
        })
    }

    /// The live lives that own names.
    fn owners(&self) -> Result<Vec<(MemberRef, Duration)>, R::Error> {
        let mut owners = Vec::new();
        for row in self.rows.members()? {
            if self.rows.names_of(&row.member, 1)?.is_empty() {
                continue;
            }
            let remaining = self.left_of(&row.member)?;
            owners.extend(remaining.map(|remaining| (row.member, remaining)));
        }
        Ok(owners)
    }

    /// A name as it is bound. Of an owner that is not live but cannot be ended yet, a taker
    /// is told to wait a little.
    pub(crate) fn binding(&self, row: &NameRow) -> Result<Binding, R::Error> {
        let remaining = match &row.owner {
            None => Duration::ZERO,
            Some(owner) => self.left_of(owner)?.unwrap_or(LOOK_AGAIN),
        };
        Ok(row.clone().bound(remaining))
    }
}

impl NameRow {
    fn bound(self, remaining: Duration) -> Binding {
        let Self { name, token, rev, owner, value, bound_at, .. } = self;
        Binding { name, token, rev, owner, value, remaining, bound_at }
    }
}
