//! The copy itself.

mod writes;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::convert::Infallible;

use tenure_core::{
    ElectionName, Entry, Era, Happening, Incarnation, MemberId, MemberRef, Mono, Name, Rev, Seq,
    WhichNames,
};

use super::{Looked, Missing, Turn, Want};
use crate::memory::MemoryState;
use crate::rows::{
    CandidacyRow, ElectionRow, ForgottenRow, MemberRow, Moment, NameRow, NamesRow, ReadRows,
    WriteRows,
};

/// A copy of some rows, on which the rules run.
#[derive(Debug)]
pub struct Partial {
    wants: BTreeSet<Want>,
    at: Moment,
    /// The rows as they were seen.
    members: BTreeMap<MemberId, MemberRow>,
    elections: BTreeMap<ElectionName, ElectionRow>,
    candidacies: BTreeMap<CandidacyKey, CandidacyRow>,
    names: BTreeMap<Name, NameRow>,
    ends: Vec<Entry>,
    newest: BTreeMap<(Option<ElectionName>, usize), Vec<Entry>>,
    /// The rows as they are now, and which of them were written.
    state: MemoryState,
    wrote_members: BTreeSet<MemberId>,
    wrote_elections: BTreeSet<ElectionName>,
    wrote_candidacies: BTreeSet<CandidacyKey>,
    wrote_names: BTreeSet<Name>,
    turn: Turn,
}

/// The key of a candidacy.
type CandidacyKey = (ElectionName, MemberId);

impl Partial {
    /// The rows that were `looked` at because of `wants`.
    #[must_use]
    pub fn new(wants: BTreeSet<Want>, looked: Looked) -> Self {
        let mut state = MemoryState::keeping(usize::MAX);
        let Ok(()) = fill(&mut state, &looked);
        let key = |row: &CandidacyRow| (row.election.clone(), row.member.id.clone());
        let members = looked.members.into_iter().map(|row| (row.member.id.clone(), row));
        let elections = looked.elections.into_iter().map(|row| (row.name.clone(), row));
        let candidacies = looked.candidacies.into_iter().map(|row| (key(&row), row));
        let names = looked.name_rows.into_iter().map(|row| (row.name.clone(), row));
        Self {
            wants,
            at: looked.at,
            members: members.collect(),
            elections: elections.collect(),
            candidacies: candidacies.collect(),
            names: names.collect(),
            ends: looked.ends,
            newest: looked.newest,
            state,
            wrote_members: BTreeSet::new(),
            wrote_elections: BTreeSet::new(),
            wrote_candidacies: BTreeSet::new(),
            wrote_names: BTreeSet::new(),
            turn: Turn { version: looked.version, ..Turn::default() },
        }
    }

    /// The moment of the look.
    #[must_use]
    pub fn at(&self) -> Moment {
        self.at
    }

    /// What to look at besides because of what is missing: the same of every election that was
    /// seen. So a request about many elections looks a few times and not once for each.
    #[must_use]
    pub fn wants_besides(&self, missing: Missing) -> BTreeSet<Want> {
        let elections = self.elections.values();
        let holders = elections.clone().filter_map(|row| Some(&row.holder.as_ref()?.member));
        let mut wants: BTreeSet<Want> = match &missing.0 {
            Want::Member(_) => {
                let heirs = elections.filter_map(|row| Some(&row.reserved.as_ref()?.member));
                let ids = holders.map(|member| &member.id).chain(heirs);
                ids.map(|id| Want::Member(id.clone())).collect()
            }
            Want::Candidates(_) => {
                elections.map(|row| Want::Candidates(row.name.clone())).collect()
            }
            Want::Name(_) => {
                elections.filter_map(|row| Some(Want::Name(Name::left_in(&row.name)?))).collect()
            }
            Want::EndOf(_) => holders.map(|member| Want::EndOf(member.clone())).collect(),
            _ => BTreeSet::new(),
        };
        wants.insert(missing.0);
        wants
    }

    /// What the rules changed, guarded. `caller` is the member whose life the answer relies
    /// on, if it relies on one.
    #[must_use]
    pub fn into_turn(self, caller: Option<&MemberRef>) -> Turn {
        let before = caller.and_then(|caller| self.relies_on(caller));
        let mut turn = Turn { before, ..self.turn };
        for id in self.wrote_members {
            let seen = self.members.get(&id);
            let Ok(now) = self.state.member(&id);
            if seen == now.as_ref() {
                continue;
            }
            turn.unchanged.extend(seen.cloned());
            match now {
                Some(row) => turn.put_members.push(row),
                None => turn.removed_members.extend(seen.map(|row| row.member.clone())),
            }
        }
        for name in self.wrote_elections {
            let seen = self.elections.get(&name);
            let Ok(now) = self.state.election(&name);
            match now {
                Some(row) if seen != Some(&row) => turn.put_elections.push(row),
                None if seen.is_some() => turn.removed_elections.push(name),
                _ => {}
            }
        }
        for key in self.wrote_candidacies {
            let seen = self.candidacies.get(&key);
            let Ok(now) = self.state.candidacy(&key.0, &key.1);
            match (seen, now) {
                (seen, Some(row)) if seen != Some(&row) => turn.put_candidacies.push(row),
                (Some(row), None) => turn.removed_candidacies.push((key.0, row.member.clone())),
                _ => {}
            }
        }
        for name in self.wrote_names {
            let seen = self.names.get(&name);
            let Ok(now) = self.state.name(&name);
            match now {
                Some(row) if seen != Some(&row) => turn.put_names.push(row),
                None if seen.is_some() => turn.removed_names.push(name),
                _ => {}
            }
        }
        turn
    }

    /// The earliest of the caller's instants that had not come at the look.
    fn relies_on(&self, caller: &MemberRef) -> Option<Mono> {
        let life = self.members.get(&caller.id).filter(|row| row.member == *caller);
        let held = self.elections.values().filter(|row| row.is_held_by(caller));
        let lapses = held.filter_map(|row| row.holder.as_ref()?.lapses);
        let instants = lapses.chain(life.map(|row| row.until));
        instants.filter(|instant| self.at.now < *instant).min()
    }

    fn need(&self, is_known: bool, want: Want) -> Result<(), Missing> {
        if is_known || self.wants.contains(&want) { Ok(()) } else { Err(Missing(want)) }
    }

    fn need_member(&self, id: &MemberId) -> Result<(), Missing> {
        let known = self.members.contains_key(id)
            || self.wrote_members.contains(id)
            || self.wants.contains(&Want::Members);
        self.need(known, Want::Member(id.clone()))
    }

    fn need_election(&self, name: &ElectionName) -> Result<(), Missing> {
        let known = self.elections.contains_key(name)
            || self.wrote_elections.contains(name)
            || self.wants.contains(&Want::Elections);
        self.need(known, Want::Election(name.clone()))
    }

    fn need_candidacy(&self, name: &ElectionName, id: &MemberId) -> Result<(), Missing> {
        let key = (name.clone(), id.clone());
        let known = self.candidacies.contains_key(&key)
            || self.wrote_candidacies.contains(&key)
            || self.wants.contains(&Want::Candidates(name.clone()));
        self.need(known, Want::Candidacy(key.0, key.1))
    }
}

impl Partial {
    fn need_name(&self, name: &Name) -> Result<(), Missing> {
        let known = self.names.contains_key(name) || self.wrote_names.contains(name);
        self.need(known, Want::Name(name.clone()))
    }
}

fn fill(state: &mut MemoryState, looked: &Looked) -> Result<(), Infallible> {
    state.begin(looked.era);
    state.go_on_after(looked.seq)?;
    state.put_forgotten(&looked.forgotten)?;
    looked.members.iter().try_for_each(|row| state.add_member(row))?;
    looked.elections.iter().try_for_each(|row| state.put_election(row))?;
    looked.candidacies.iter().try_for_each(|row| state.put_candidacy(row))?;
    state.put_names(&looked.names)?;
    looked.name_rows.iter().try_for_each(|row| state.put_name(row))?;
    looked.gone.iter().try_for_each(|(rev, name)| state.add_gone(*rev, name))?;
    looked.remains.iter().try_for_each(|life| state.add_remains(life))
}

/// A state in memory cannot fail.
fn sure<T>(found: Result<T, Infallible>) -> Result<T, Missing> {
    let Ok(found) = found;
    Ok(found)
}

impl ReadRows for Partial {
    type Error = Missing;

    fn member(&self, id: &MemberId) -> Result<Option<MemberRow>, Missing> {
        self.need_member(id)?;
        sure(self.state.member(id))
    }

    fn members(&self) -> Result<Vec<MemberRow>, Missing> {
        self.need(false, Want::Members)?;
        sure(self.state.members())
    }

    fn idle_members(&self) -> Result<Vec<MemberRow>, Missing> {
        self.need(false, Want::IdleMembers)?;
        sure(self.state.idle_members())
    }

    fn is_proven_dead(&self, _: &MemberRow) -> Result<bool, Missing> {
        Ok(false)
    }

    fn is_at_work(&self, _: &MemberRow) -> Result<bool, Missing> {
        Ok(false)
    }

    fn election(&self, name: &ElectionName) -> Result<Option<ElectionRow>, Missing> {
        self.need_election(name)?;
        sure(self.state.election(name))
    }

    fn elections(&self) -> Result<Vec<ElectionRow>, Missing> {
        self.need(false, Want::Elections)?;
        sure(self.state.elections())
    }

    fn elections_after(
        &self,
        after: Option<&ElectionName>,
        most: usize,
    ) -> Result<Vec<ElectionRow>, Missing> {
        self.need(false, Want::ElectionsAfter(after.cloned(), most))?;
        sure(self.state.elections_after(after, most))
    }

    fn forgotten(&self) -> Result<ForgottenRow, Missing> {
        sure(self.state.forgotten())
    }

    fn elections_held_by(&self, life: Incarnation) -> Result<Vec<ElectionRow>, Missing> {
        self.need(false, Want::ElectionsHeldBy(life))?;
        sure(self.state.elections_held_by(life))
    }

    fn candidacy(
        &self,
        election: &ElectionName,
        id: &MemberId,
    ) -> Result<Option<CandidacyRow>, Missing> {
        self.need_candidacy(election, id)?;
        sure(self.state.candidacy(election, id))
    }

    fn candidates(
        &self,
        election: &ElectionName,
    ) -> Result<Vec<(CandidacyRow, MemberRow)>, Missing> {
        self.need(false, Want::Candidates(election.clone()))?;
        sure(self.state.candidates(election))
    }

    fn has_candidates(&self, election: &ElectionName) -> Result<bool, Missing> {
        // One that is there already decides it.
        let Ok(any) = self.state.has_candidates(election);
        self.need(any, Want::Candidates(election.clone()))?;
        Ok(any)
    }

    fn candidacies_of(
        &self,
        member: &MemberRef,
        most: usize,
    ) -> Result<Vec<ElectionName>, Missing> {
        let asked = self.wants.iter().filter_map(|want| match want {
            Want::CandidaciesOf(life, count) if life == member => Some(*count),
            _ => None,
        });
        let asked = asked.max().unwrap_or(0);
        let found = self.candidacies.values().filter(|row| row.member == *member).count();
        let names = sure(self.state.candidacies_of(member, most))?;
        // Some of those that were found may be cleared away by now, and others be left.
        let known = asked > 0 && (found < asked || names.len() == most);
        self.need(known, Want::CandidaciesOf(member.clone(), asked + most))?;
        Ok(names)
    }

    fn remains(&self) -> Result<Option<MemberRef>, Missing> {
        self.need(false, Want::Remains)?;
        sure(self.state.remains())
    }

    fn names(&self) -> Result<NamesRow, Missing> {
        Ok(self.state.names.stands)
    }

    fn name(&self, name: &Name) -> Result<Option<NameRow>, Missing> {
        self.need_name(name)?;
        sure(self.state.name(name))
    }

    fn names_asked(&self, which: &WhichNames) -> Result<Vec<NameRow>, Missing> {
        self.need(false, Want::Names(which.clone()))?;
        sure(self.state.names_asked(which))
    }

    fn names_after(&self, after: Option<&Name>, most: usize) -> Result<Vec<NameRow>, Missing> {
        self.need(false, Want::NamesAfter(after.cloned(), most))?;
        sure(self.state.names_after(after, most))
    }

    fn names_gone(&self, since: Rev) -> Result<Vec<Name>, Missing> {
        self.need(false, Want::NamesGone(since))?;
        sure(self.state.names_gone(since))
    }

    fn names_of(&self, life: &MemberRef, most: usize) -> Result<Vec<Name>, Missing> {
        let asked = self.wants.iter().filter_map(|want| match want {
            Want::NamesOf(of, count) if of == life => Some(*count),
            _ => None,
        });
        let asked = asked.max().unwrap_or(0);
        let found = self.names.values().filter(|row| row.owner.as_ref() == Some(life)).count();
        let names = sure(self.state.names_of(life, most))?;
        // As with candidacies: some that were found may be removed by now, and others left.
        let known = names.len() == most || asked > 0 && found < asked;
        self.need(known, Want::NamesOf(life.clone(), asked + most))?;
        Ok(names)
    }

    fn era(&self) -> Result<Era, Missing> {
        Ok(self.state.era())
    }

    fn seq(&self) -> Seq {
        self.state.seq()
    }

    fn end_of(&self, life: &MemberRef) -> Result<Option<Entry>, Missing> {
        let Ok(told) = self.state.end_of(life);
        self.need(told.is_some(), Want::EndOf(life.clone()))?;
        let is_end = |entry: &&Entry| match &entry.what {
            Happening::Left { member } | Happening::Ended { member, .. } => member == life,
            _ => false,
        };
        Ok(told.or_else(|| self.ends.iter().find(is_end).cloned()))
    }

    fn newest(&self, election: Option<&ElectionName>, most: usize) -> Result<Vec<Entry>, Missing> {
        let key = (election.cloned(), most);
        let Some(entries) = self.newest.get(&key) else {
            return Err(Missing(Want::Newest(key.0, key.1)));
        };
        Ok(entries.clone())
    }
}
