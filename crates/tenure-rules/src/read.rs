//! Looking: snapshots, which never write.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use tenure_core::{ElectionName, Entry, Happening, Incarnation, Mono, Query, Snapshot, Which};

use crate::rows::{ElectionRow, ReadRows};
use crate::view::View;

/// A consistent snapshot.
pub fn read<R: ReadRows>(rows: &R, now: Mono, query: &Query) -> Result<Snapshot, R::Error> {
    let view = View { rows, now };
    let elections = view.asked_for(&query.which)?;
    let history = history(rows, query, &elections)?;
    let shown = |election| view.election_view(election, query.asker.as_ref(), query.candidates);
    let views = elections.iter().map(shown).collect::<Result<_, _>>()?;
    let members = if query.members { rows.members()? } else { Vec::new() };
    let members = members.into_iter().filter_map(|row| view.member_view(row)).collect();
    Ok(Snapshot { seq: rows.seq(), elections: views, members, history, examined: None })
}

impl<R: ReadRows> View<'_, R> {
    fn asked_for(&self, which: &Which) -> Result<Vec<ElectionRow>, R::Error> {
        match which {
            Which::Nothing => Ok(Vec::new()),
            Which::All => self.rows.elections(),
            Which::Named(names) => names.iter().map(|name| self.election(name)).collect(),
            Which::HeldBy(life) => self.held_by(*life),
        }
    }

    /// What a life holds, if it lives. All of it is held by one member: one look at its
    /// row decides.
    fn held_by(&self, life: Incarnation) -> Result<Vec<ElectionRow>, R::Error> {
        let found = self.rows.elections_held_by(life)?;
        let Some(held) = found.first().and_then(|election| election.holder.clone()) else {
            return Ok(Vec::new());
        };
        if !self.recorded(&held.member)?.is_some_and(|row| row.is_live(self.now)) {
            return Ok(Vec::new());
        }
        let mut standing = Vec::with_capacity(found.len());
        for election in found {
            if !self.has_lapsed(&election)? {
                standing.push(election);
            }
        }
        Ok(standing)
    }
}

/// The newest entries about the elections asked for, oldest first, with the end of each
/// life that was elected there: its terms ended with it.
fn history<R: ReadRows>(
    rows: &R,
    query: &Query,
    elections: &[ElectionRow],
) -> Result<Vec<Entry>, R::Error> {
    if query.history == 0 {
        return Ok(Vec::new());
    }
    if query.which == Which::All {
        return rows.newest(None, query.history);
    }
    let names: BTreeSet<&ElectionName> = elections.iter().map(|election| &election.name).collect();
    let mut entries = Vec::new();
    for name in names {
        entries.extend(rows.newest(Some(name), query.history)?);
    }
    let elected = entries.iter().filter_map(|entry| match &entry.what {
        Happening::Elected { term, .. } => Some(term.member.clone()),
        _ => None,
    });
    for life in elected.collect::<BTreeSet<_>>() {
        entries.extend(rows.end_of(&life)?);
    }
    entries.sort_by_key(|entry| entry.seq);
    let surplus = entries.len().saturating_sub(query.history);
    Ok(entries.split_off(surplus))
}
