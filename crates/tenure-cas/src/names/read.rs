//! Reading names. It never writes.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{Binding, MemberRef, Name, NamesView, Namespace, Rev, WhichNames};
use tenure_store::Result;

use super::floor::Floor;
use crate::cells::Cells;
use crate::judge::{HangsOn, Hold, Judge};
use crate::reader::{Reader, first_of, is_foreign};
use crate::record::member::MemberRecord;
use crate::record::name::NameRecord;
use crate::register::Listed;
use crate::seen::Seen;

/// A name as it was found; `None` if it has no record.
pub(super) type FoundName = Option<Seen<NameRecord>>;

/// The names of a namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameReader<'a> {
    cells: &'a Cells,
    ns: &'a Namespace,
    judge: Judge<'a>,
    reader: Reader<'a>,
    floor: Floor<'a>,
}

impl<'a> NameReader<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        let judge = Judge::new(cells, ns);
        let reader = Reader::new(cells, ns);
        Self { cells, ns, judge, reader, floor: Floor::new(cells, ns) }
    }
}

impl NameReader<'_> {
    /// See [`Store::names`](tenure_store::Store::names). Each binding is of one moment;
    /// several of them are of moments close together.
    pub(crate) async fn names(&self, which: &WhichNames) -> Result<NamesView> {
        let begun = self.cells.step();
        let mut found = match which {
            WhichNames::Named(names) => self.load_named(names).await?,
            WhichNames::Prefix(text) => {
                self.load_below(text, usize::MAX).await?.unwrap_or_default()
            }
            WhichNames::OwnedBy(owner) => self.load_owned(owner).await?,
            WhichNames::Since(_) => Vec::new(),
        };
        first_of(self.reader.load_lives(hangs_on(&found), begun).await)?;
        found.sort_by(|a, b| a.record.name.cmp(&b.record.name));
        let bindings = found.iter().filter_map(|seen| self.live_binding(seen)).collect();
        self.note_left_over(&found);
        Ok(NamesView { rev: Rev::START, bindings, ..NamesView::default() })
    }

    async fn load_named(&self, names: &[Name]) -> Result<Vec<Seen<NameRecord>>> {
        let names: BTreeSet<&Name> = names.iter().collect();
        let keys: Vec<_> = names.iter().map(|name| self.cells.keys.name(self.ns, name)).collect();
        let loads = keys.iter().map(|key| self.cells.load::<NameRecord>(key)).collect();
        self.cells.all(loads).await.into_iter().filter_map(Result::transpose).collect()
    }

    /// The names that begin with this text. The listing only gives keys: each record is
    /// loaded, unless the listing shows the very version that is known. One that this
    /// observer knows of and that the listing lacks is loaded too, since a listing may lag
    /// (C1). A record that cannot be read is left out. `None` if there are more than `most`.
    async fn load_below(&self, text: &str, most: usize) -> Result<Option<Vec<Seen<NameRecord>>>> {
        let prefix = self.cells.keys.names_from(self.ns, text);
        let sent = self.cells.now();
        let mut listed = self.cells.register.list(&prefix).await?;
        if listed.len() > most {
            return Ok(None);
        }
        listed.retain(|listed| self.cells.keys.is_name(self.ns, &listed.key));
        let keys: BTreeSet<&str> = listed.iter().map(|listed| listed.key.as_str()).collect();
        let is_unlisted = |(key, seen): &(&String, &Seen<NameRecord>)| {
            seen.record.bound.is_some() && !keys.contains(key.as_str())
        };
        let unlisted: Vec<Listed> = {
            let memory = self.cells.memory();
            let unlisted = memory.names.below(&prefix).filter(is_unlisted);
            unlisted
                .map(|(key, _)| Listed { key: key.clone(), version: None, bytes: None })
                .collect()
        };
        listed.extend(unlisted);
        let loads = listed.iter().map(|listed| self.cells.load_listed(listed, sent)).collect();
        let loaded: Vec<Result<FoundName>> = self.cells.all(loads).await;
        let readable = loaded.into_iter().filter(|loaded| !is_foreign(loaded));
        readable.filter_map(Result::transpose).collect::<Result<_>>().map(Some)
    }

    /// The names of one life, of which a life that is over has none.
    async fn load_owned(&self, owner: &MemberRef) -> Result<Vec<Seen<NameRecord>>> {
        let key = self.cells.keys.member(self.ns, &owner.id);
        let member = self.cells.load::<MemberRecord>(&key).await;
        let over = |seen: &Seen<MemberRecord>| seen.record.proves_over(owner.incarnation).is_some();
        if !is_foreign(&member) && member?.is_some_and(|seen| over(&seen)) {
            return Ok(Vec::new());
        }
        let mut found = self.load_below("", usize::MAX).await?.unwrap_or_default();
        found.retain(|seen| {
            seen.record.owner().is_some_and(|of| of.incarnation == owner.incarnation)
        });
        Ok(found)
    }

    /// Every name, if there are not more than `most`, with their owners.
    pub(crate) async fn load_up_to(&self, most: usize) -> Result<Option<Vec<Seen<NameRecord>>>> {
        let begun = self.cells.step();
        let Some(found) = self.load_below("", most).await? else { return Ok(None) };
        first_of(self.reader.load_lives(hangs_on(&found), begun).await)?;
        self.note_left_over(&found);
        Ok(Some(found))
    }

    /// Remembers what can be removed: the next bind does it, in bounded steps.
    fn note_left_over(&self, found: &[Seen<NameRecord>]) {
        for seen in found.iter().filter(|seen| self.floor.is_left_over(seen)) {
            let key = self.cells.keys.name(self.ns, &seen.record.name);
            self.cells.memory().binding.is_left_over(&key);
        }
    }

    /// What is left of the life that a binding hangs on; `None` if it is void or its owner
    /// has been silent for its ttl.
    fn left(&self, record: &NameRecord) -> Option<Duration> {
        match record.hangs_on().map(|on| self.judge.hold_on(&on)) {
            None | Some(Hold::Vacant) => Some(Duration::ZERO),
            Some(Hold::Live(left) | Hold::Unproven { left, .. }) => Some(left),
            Some(Hold::Silent(_) | Hold::Over(_)) => None,
        }
    }

    /// The binding, if it is one and its owner lives.
    fn live_binding(&self, seen: &Seen<NameRecord>) -> Option<Binding> {
        let left = self.left(&seen.record)?;
        Some(Binding { remaining: left, ..binding(&seen.record)? })
    }

    /// What a binding hangs on.
    pub(super) fn hold(&self, on: &HangsOn) -> Hold {
        self.judge.hold_on(on)
    }

    /// The binding as its record shows it.
    pub(super) fn shown(&self, seen: &Seen<NameRecord>) -> Option<Binding> {
        let remaining = self.left(&seen.record).unwrap_or_default();
        Some(Binding { remaining, ..binding(&seen.record)? })
    }

    /// The binding, if it is one and not void.
    pub(super) fn binding(&self, seen: &Seen<NameRecord>) -> Option<Binding> {
        if self.floor.is_left_over(seen) { None } else { self.shown(seen) }
    }
}

/// The lives that these names hang on.
pub(super) fn hangs_on(
    found: &[Seen<NameRecord>],
) -> impl Iterator<Item = HangsOn> + Clone + use<'_> {
    found.iter().filter_map(|seen| seen.record.hangs_on())
}

/// The binding that a record shows, without what is left of its owner.
fn binding(record: &NameRecord) -> Option<Binding> {
    let row = record.row()?;
    Some(Binding {
        name: row.name,
        token: row.token,
        rev: row.rev,
        owner: row.owner,
        value: row.value,
        remaining: Duration::ZERO,
        bound_at: row.bound_at,
    })
}
