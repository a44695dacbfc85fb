//! The rules on a copy of some rows, for stores that keep them elsewhere.
//!
//! Such a store is asked to **look** (rows, and where the namespace stands), the rules run on
//! what it answered, and what they changed is sent back as one **turn** under guards. A row
//! that the rules ask for and that was not looked at is [`Missing`]: the store looks again,
//! for that row too.
//!
//! Three guards, judged by the store inside its one step, make a turn as good as a step
//! that held a lock from the look on:
//!
//! - **the version**: every turn raises it, so that no other turn came between. Heartbeats
//!   do not raise it.
//! - **members unchanged**: each member's row that the turn writes or removes is as it was
//!   seen. So no turn ends a member beside a heartbeat in flight (rule M2).
//! - **the time**: the turn comes before the instant on which it relies, by the store's
//!   clock: the end of the caller's ttl (rule M1), or of an unconfirmed term that the caller
//!   confirms. The process may have been stopped between the look and the turn.
//!
//! What the rules judged by the time of the look is judged no later than the turn: a ttl
//! that had run out by then has run out now, and what is granted counts from the look.

mod copy;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::convert::Infallible;

use tenure_core::{
    ElectionName, Entry, Era, Incarnation, MemberId, MemberRef, Mono, Name, Rev, Seq, WhichNames,
};

pub use self::copy::Partial;
use crate::memory::MemoryState;
use crate::rows::{
    CandidacyRow, ElectionRow, ForgottenRow, MemberRow, Moment, NameRow, NamesRow, ReadRows,
    WriteRows,
};

/// Rows to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Want {
    /// A member, by its id.
    Member(MemberId),
    /// Every member.
    Members,
    /// Every member that holds nothing.
    IdleMembers,
    /// An election, by its name.
    Election(ElectionName),
    /// Every election.
    Elections,
    /// Elections by name, after one if it is given, so many at most.
    ElectionsAfter(Option<ElectionName>, usize),
    /// The elections whose holder is this life.
    ElectionsHeldBy(Incarnation),
    /// One candidacy.
    Candidacy(ElectionName, MemberId),
    /// The candidacies in an election, also of lives that are over, and the rows of the
    /// members that go by their ids.
    Candidates(ElectionName),
    /// This many of the candidacies of a life, if it has so many, and the elections they
    /// are in.
    CandidaciesOf(MemberRef, usize),
    /// Some life that is over and still has candidacies or names.
    Remains,
    /// A name.
    Name(Name),
    /// Names, by what they are asked for.
    Names(WhichNames),
    /// Names in their order, after one if it is given, so many at most.
    NamesAfter(Option<Name>, usize),
    /// The names that were dropped after this revision.
    NamesGone(Rev),
    /// This many of the names of a life, if it has so many.
    NamesOf(MemberRef, usize),
    /// The entry that tells how a life ended.
    EndOf(MemberRef),
    /// So many of the newest entries, of one election if it is named.
    Newest(Option<ElectionName>, usize),
}

/// A row that the rules need and that was not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub Want);

/// What a store found, all of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// By the store's clock, read after the rows are locked, or before they are read.
    pub at: Moment,
    /// How many turns there were.
    pub version: u64,
    /// The place of the newest journal entry.
    pub seq: Seq,
    /// What decides the next number.
    pub era: Era,
    /// What is kept of the elections that were purged.
    pub forgotten: ForgottenRow,
    /// The members wanted, each once.
    pub members: Vec<MemberRow>,
    /// The elections wanted, each once.
    pub elections: Vec<ElectionRow>,
    /// The candidacies wanted, each once.
    pub candidacies: Vec<CandidacyRow>,
    /// The life that is over and still has candidacies or names, if it was wanted.
    pub remains: Option<MemberRef>,
    /// Where the names stand.
    pub names: NamesRow,
    /// The names wanted, each once.
    pub name_rows: Vec<NameRow>,
    /// The names that were dropped, if they were wanted, with the revision of each.
    pub gone: Vec<(Rev, Name)>,
    /// The ends of lives that were wanted.
    pub ends: Vec<Entry>,
    /// The newest entries that were wanted, oldest first.
    pub newest: BTreeMap<(Option<ElectionName>, usize), Vec<Entry>>,
}

/// What a store is to write, all or nothing, and the guards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Guard: the version of the look. The turn raises it by one.
    pub version: u64,
    /// Guard: the store's clock has not reached this.
    pub before: Option<Mono>,
    /// Guard: these rows of members are as they were.
    pub unchanged: Vec<MemberRow>,
    /// Members to add or replace, with their ttl and when it runs out.
    pub put_members: Vec<MemberRow>,
    /// Members to remove.
    pub removed_members: Vec<MemberRef>,
    /// Elections to add or replace.
    pub put_elections: Vec<ElectionRow>,
    /// What is kept from now on of the elections that were purged.
    pub forgotten: Option<ForgottenRow>,
    /// Elections to remove.
    pub removed_elections: Vec<ElectionName>,
    /// Candidacies to add or replace.
    pub put_candidacies: Vec<CandidacyRow>,
    /// Candidacies to remove.
    pub removed_candidacies: Vec<(ElectionName, MemberRef)>,
    /// Lives that are over and still have candidacies or names.
    pub added_remains: Vec<MemberRef>,
    /// Lives that have no candidacies and no names any more.
    pub removed_remains: Vec<MemberRef>,
    /// Where the names stand from now on.
    pub names: Option<NamesRow>,
    /// Names to add or replace.
    pub put_names: Vec<NameRow>,
    /// Names to remove.
    pub removed_names: Vec<Name>,
    /// Names that are dropped, to remember.
    pub added_gone: Vec<(Rev, Name)>,
    /// Names that were dropped before this revision, to forget: the oldest, so many at most.
    pub forget_gone: Option<(Rev, usize)>,
    /// Every journal entry is to be forgotten, before any is appended.
    pub forget_entries: bool,
    /// The journal goes on after this place, before any entry is appended.
    pub go_on_after: Option<Seq>,
    /// An era begins: the attention of every member rises by 2^20, before members are put.
    pub era: Option<Era>,
    /// Entries to append.
    pub entries: Vec<Entry>,
}

impl Looked {
    /// What is found in rows that lie in memory.
    #[must_use]
    pub fn of(state: &MemoryState, at: Moment, version: u64, wants: &BTreeSet<Want>) -> Self {
        let mut members = BTreeMap::new();
        let mut elections = BTreeMap::new();
        let mut candidacies = BTreeMap::new();
        let mut looked = Self {
            at,
            version,
            seq: state.seq(),
            era: state.era(),
            forgotten: state.forgotten().unwrap_or_default(),
            members: Vec::new(),
            elections: Vec::new(),
            candidacies: Vec::new(),
            remains: None,
            names: state.names.stands,
            name_rows: Vec::new(),
            gone: Vec::new(),
            ends: Vec::new(),
            newest: BTreeMap::new(),
        };
        let mut names = BTreeMap::new();
        for want in wants {
            let Ok(()) = looked.answer(state, want, &mut members, &mut elections, &mut candidacies);
            let Ok(()) = looked.answer_names(state, want, &mut names);
        }
        looked.name_rows = names.into_values().collect();
        looked.members = members.into_values().collect();
        looked.elections = elections.into_values().collect();
        looked.candidacies = candidacies.into_values().collect();
        looked
    }

    fn answer(
        &mut self,
        state: &MemoryState,
        want: &Want,
        members: &mut BTreeMap<MemberId, MemberRow>,
        elections: &mut BTreeMap<ElectionName, ElectionRow>,
        candidacies: &mut BTreeMap<(ElectionName, MemberId), CandidacyRow>,
    ) -> Result<(), Infallible> {
        let mut member = |row: MemberRow| drop(members.insert(row.member.id.clone(), row));
        let mut election = |row: ElectionRow| drop(elections.insert(row.name.clone(), row));
        let mut candidacy = |row: CandidacyRow| {
            let key = (row.election.clone(), row.member.id.clone());
            drop(candidacies.insert(key, row));
        };
        match want {
            Want::Member(id) => state.member(id)?.into_iter().for_each(&mut member),
            Want::Members => state.members()?.into_iter().for_each(&mut member),
            Want::IdleMembers => state.idle_members()?.into_iter().for_each(&mut member),
            Want::Election(name) => state.election(name)?.into_iter().for_each(&mut election),
            Want::Elections => state.elections()?.into_iter().for_each(&mut election),
            Want::ElectionsAfter(after, most) => {
                let found = state.elections_after(after.as_ref(), *most)?;
                found.into_iter().for_each(&mut election);
            }
            Want::ElectionsHeldBy(life) => {
                state.elections_held_by(*life)?.into_iter().for_each(&mut election);
            }
            Want::Candidacy(name, id) => {
                state.candidacy(name, id)?.into_iter().for_each(&mut candidacy);
            }
            Want::Candidates(name) => {
                for row in state.all_candidacies(name) {
                    state.member(&row.member.id)?.into_iter().for_each(&mut member);
                    candidacy(row.clone());
                }
            }
            Want::CandidaciesOf(life, most) => {
                for name in state.candidacies_of(life, *most)? {
                    state.candidacy(&name, &life.id)?.into_iter().for_each(&mut candidacy);
                    state.election(&name)?.into_iter().for_each(&mut election);
                }
            }
            Want::Remains => self.remains = state.remains()?,
            Want::EndOf(life) => self.ends.extend(state.end_of(life)?),
            Want::Newest(name, most) => {
                let entries = state.newest(name.as_ref(), *most)?;
                self.newest.insert((name.clone(), *most), entries);
            }
            // See `answer_names`.
            _ => {}
        }
        Ok(())
    }

    fn answer_names(
        &mut self,
        state: &MemoryState,
        want: &Want,
        names: &mut BTreeMap<Name, NameRow>,
    ) -> Result<(), Infallible> {
        let mut found = |row: NameRow| drop(names.insert(row.name.clone(), row));
        match want {
            Want::Name(name) => state.name(name)?.into_iter().for_each(&mut found),
            Want::Names(which) => state.names_asked(which)?.into_iter().for_each(&mut found),
            Want::NamesAfter(after, most) => {
                state.names_after(after.as_ref(), *most)?.into_iter().for_each(&mut found);
            }
            Want::NamesGone(since) => self.gone = state.names.gone_after(*since),
            Want::NamesOf(life, most) => {
                for name in state.names_of(life, *most)? {
                    state.name(&name)?.into_iter().for_each(&mut found);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Turn {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let guards_alone = Self {
            version: self.version,
            before: self.before,
            unchanged: self.unchanged.clone(),
            ..Self::default()
        };
        *self == guards_alone
    }

    /// Whether the guards hold for rows that lie in memory.
    #[must_use]
    pub fn may_apply(&self, state: &MemoryState, now: Mono, version: u64) -> bool {
        let same = |row: &MemberRow| {
            let Ok(found) = state.member(&row.member.id);
            found.as_ref() == Some(row)
        };
        // All three, in one step with the write: each closes an interleaving that the other
        // two leave open.
        self.version == version
            && self.before.is_none_or(|before| now < before)
            && self.unchanged.iter().all(same)
    }

    /// Writes to rows that lie in memory.
    pub fn apply(&self, state: &mut MemoryState) {
        let Ok(()) = self.write(state);
    }

    fn write(&self, state: &mut MemoryState) -> Result<(), Infallible> {
        if self.forget_entries {
            state.forget_entries()?;
        }
        if let Some(place) = self.go_on_after {
            state.go_on_after(place)?;
        }
        // An era raises the attention of all members. The rows below were made from what was
        // seen, and carry that rise already: put first, it would be counted twice.
        if let Some(era) = self.era {
            state.begin(era);
        }
        self.removed_members.iter().try_for_each(|life| state.remove_member(life))?;
        self.put_members.iter().try_for_each(|row| state.add_member(row))?;
        for (name, life) in &self.removed_candidacies {
            state.remove_candidacy(name, life)?;
        }
        self.put_candidacies.iter().try_for_each(|row| state.put_candidacy(row))?;
        self.put_elections.iter().try_for_each(|row| state.put_election(row))?;
        self.forgotten.iter().try_for_each(|row| state.put_forgotten(row))?;
        self.removed_elections.iter().try_for_each(|name| state.remove_election(name))?;
        self.added_remains.iter().try_for_each(|life| state.add_remains(life))?;
        self.removed_remains.iter().try_for_each(|life| state.remove_remains(life))?;
        self.names.iter().try_for_each(|row| state.put_names(row))?;
        self.removed_names.iter().try_for_each(|name| state.remove_name(name))?;
        self.put_names.iter().try_for_each(|row| state.put_name(row))?;
        self.added_gone.iter().try_for_each(|(rev, name)| state.add_gone(*rev, name))?;
        if let Some((rev, most)) = self.forget_gone {
            state.forget_gone(rev, most)?;
        }
        self.entries.iter().try_for_each(|entry| state.append(entry.clone()))
    }
}
