//! Rows in maps: the simplest place to keep a namespace.

mod journal;
mod names;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::ops::Bound;
use core::time::Duration;

use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, ElectionName, Entry, Era, EraView,
    Examined, Heartbeat, Incarnation, Join, Joined, MemberId, MemberRef, Mono, Name, NamesView,
    Query, Raised, Release, Rev, Seq, Snapshot, Timestamp, WhichNames,
};

use self::journal::Journal;
use self::names::Names;
use crate::rows::{
    CandidacyRow, ElectionRow, EraCause, ForgottenRow, MemberRow, Moment, NameRow, NamesRow,
    ReadRows, WriteRows,
};

/// One namespace in memory, without a clock, a lock or a task: every verb takes the time
/// and happens at once. `MemoryStore` in `tenure-store` puts it behind the `Store`
/// contract; a simulator steps it directly.
///
/// Its rows are read by [`ReadRows`]. Two states are equal if the same requests have the
/// same answers in both from then on.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::*;
/// use tenure_rules::{MemoryState, ReadRows};
///
/// let mut state = MemoryState::new();
/// let (now, wall) = (Mono::from_millis(5), Timestamp::default());
/// let member = MemberRef::new(MemberId::new("web-1").unwrap(), Incarnation::from_u128(1));
/// let ttl = Duration::from_secs(10);
/// let join = Join::new(member.clone(), ttl);
/// assert!(matches!(state.join(now, wall, &join), Joined::In { .. }));
/// let Ok(members) = state.members();
/// assert_eq!(members[0].until, now + ttl);
///
/// let beat = Heartbeat::new(member, ttl);
/// assert!(matches!(state.heartbeat(now + ttl / 2, &beat), Beat::Alive { .. }));
/// assert!(matches!(state.heartbeat(now + ttl * 2, &beat), Beat::Ended { .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryState {
    members: BTreeMap<MemberId, MemberRow>,
    elections: BTreeMap<ElectionName, ElectionRow>,
    candidacies: BTreeMap<ElectionName, BTreeMap<MemberId, CandidacyRow>>,
    /// The elections that each life stands for.
    stands: BTreeMap<MemberRef, BTreeSet<ElectionName>>,
    /// Lives that ended and still have candidacies or names.
    remains: BTreeSet<MemberRef>,
    pub(crate) names: Names,
    journal: Journal,
    forgotten: ForgottenRow,
    era: Era,
    /// When and why the era began.
    raised: Option<(Timestamp, EraCause)>,
}

impl Default for MemoryState {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryState {
    /// How many entries a journal keeps unless something else is asked for.
    pub const JOURNAL_BOUND: usize = 10_000;

    /// An empty namespace, whose journal keeps 10,000 entries.
    #[must_use]
    pub fn new() -> Self {
        Self::keeping(Self::JOURNAL_BOUND)
    }

    /// An empty namespace, whose journal keeps `bound` entries.
    #[must_use]
    pub fn keeping(bound: usize) -> Self {
        Self {
            members: BTreeMap::new(),
            elections: BTreeMap::new(),
            candidacies: BTreeMap::new(),
            stands: BTreeMap::new(),
            remains: BTreeSet::new(),
            names: Names::default(),
            journal: Journal::bounded(bound),
            forgotten: ForgottenRow::default(),
            era: Era::START,
            raised: None,
        }
    }

    /// What a copy does that takes over from an original whose last writes it may lack:
    /// a new [`Era`] begins, so that numbers which were given out and forgotten stay below
    /// the next one. The holder of a term goes on holding it, also of one that was handed
    /// over: that it was confirmed may be among what is lacking. That it was given back may
    /// be too: a bid of its holder begins a new one, as everywhere else.
    pub fn promote(&mut self, wall: Timestamp) {
        self.raised = Some((wall, EraCause::TookOver));
        self.begin(self.era.raised(wall));
    }

    /// Begins this era: one of a store whose namespaces have an era in common.
    pub fn begin(&mut self, era: Era) {
        self.era = era;
        for member in self.members.values_mut() {
            member.attention = era.calls(member.attention);
        }
    }

    /// The place of the newest journal entry.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.journal.last()
    }

    /// The revision of the newest change of names.
    #[must_use]
    pub fn rev(&self) -> Rev {
        self.names.stands.rev
    }

    /// What is known of the term numbers, by the store's wall clock.
    #[must_use]
    pub fn examine(&self, wall: Timestamp) -> Examined {
        let raised = self.raised.map(|(at, cause)| Raised { at, why: cause.as_str().into() });
        let numbers = self.elections.values().map(|election| election.number);
        let highest = numbers.max().unwrap_or_default().max(self.forgotten.number);
        let era = EraView { era: self.era, raised, highest, clock: Era::clock(wall) };
        Examined { era: Some(era), ..Examined::default() }
    }

    /// How often this took over, was said to be restored, or was found to have
    /// forgotten something: each time numbers jump.
    #[must_use]
    pub fn era(&self) -> Era {
        self.era
    }

    /// Every journal entry after `position`; an error with the place to go on from, if
    /// some of them are gone or the journal ends before it.
    pub fn entries_after(&self, position: Seq) -> Result<Vec<Entry>, Seq> {
        self.journal.after(position)
    }

    /// See [`join`](crate::join).
    pub fn join(&mut self, now: Mono, wall: Timestamp, join: &Join) -> Joined {
        let Ok(joined) = crate::join(self, Moment { now, wall }, join);
        joined
    }

    /// See [`heartbeat`](crate::heartbeat).
    pub fn heartbeat(&mut self, now: Mono, beat: &Heartbeat) -> Beat {
        let at = Moment { now, wall: Timestamp::default() };
        let Ok(beat) = crate::heartbeat(self, at, beat);
        beat
    }

    /// See [`leave`](crate::leave).
    pub fn leave(&mut self, wall: Timestamp, member: &MemberRef) {
        let Ok(()) = crate::leave(self, Moment { now: Mono::ZERO, wall }, member);
    }

    /// See [`claim`](crate::claim).
    pub fn claim(&mut self, now: Mono, wall: Timestamp, claim: &Claim) -> Claims {
        let Ok(claims) = crate::claim(self, Moment { now, wall }, claim);
        claims
    }

    /// See [`release`](crate::release).
    pub fn release(&mut self, now: Mono, wall: Timestamp, release: &Release) {
        let Ok(()) = crate::release(self, Moment { now, wall }, release);
    }

    /// See [`amend`](crate::amend).
    pub fn amend(&mut self, now: Mono, wall: Timestamp, amend: &Amend) -> Amended {
        let Ok(amended) = crate::amend(self, Moment { now, wall }, amend);
        amended
    }

    /// See [`bind`](crate::bind).
    pub fn bind(&mut self, now: Mono, wall: Timestamp, bind: &Bind) -> Bindings {
        let Ok(bindings) = crate::bind(self, Moment { now, wall }, bind);
        bindings
    }

    /// See [`names`](crate::names).
    #[must_use]
    pub fn names(&self, now: Mono, which: &WhichNames) -> NamesView {
        let Ok(names) = crate::names(self, now, which);
        names
    }

    /// See [`read`](crate::read).
    #[must_use]
    pub fn read(&self, now: Mono, query: &Query) -> Snapshot {
        let Ok(snapshot) = crate::read(self, now, query);
        snapshot
    }
}

impl ReadRows for MemoryState {
    type Error = Infallible;

    fn member(&self, id: &MemberId) -> Result<Option<MemberRow>, Infallible> {
        Ok(self.members.get(id).cloned())
    }

    fn members(&self) -> Result<Vec<MemberRow>, Infallible> {
        Ok(self.members.values().cloned().collect())
    }

    fn idle_members(&self) -> Result<Vec<MemberRow>, Infallible> {
        Ok(self.members.values().filter(|row| row.holds == 0).cloned().collect())
    }

    fn is_proven_dead(&self, _: &MemberRow) -> Result<bool, Infallible> {
        Ok(false)
    }

    fn is_at_work(&self, _: &MemberRow) -> Result<bool, Infallible> {
        Ok(false)
    }

    fn election(&self, name: &ElectionName) -> Result<Option<ElectionRow>, Infallible> {
        Ok(self.elections.get(name).cloned())
    }

    fn elections(&self) -> Result<Vec<ElectionRow>, Infallible> {
        Ok(self.elections.values().cloned().collect())
    }

    fn elections_after(
        &self,
        after: Option<&ElectionName>,
        most: usize,
    ) -> Result<Vec<ElectionRow>, Infallible> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.elections.range::<ElectionName, _>((from, Bound::Unbounded));
        Ok(range.take(most).map(|(_, row)| row.clone()).collect())
    }

    fn forgotten(&self) -> Result<ForgottenRow, Infallible> {
        Ok(self.forgotten)
    }

    fn elections_held_by(&self, life: Incarnation) -> Result<Vec<ElectionRow>, Infallible> {
        let holds = |row: &&ElectionRow| {
            row.holder.as_ref().is_some_and(|held| held.member.incarnation == life)
        };
        Ok(self.elections.values().filter(holds).cloned().collect())
    }

    fn candidacy(
        &self,
        election: &ElectionName,
        id: &MemberId,
    ) -> Result<Option<CandidacyRow>, Infallible> {
        Ok(self.candidacies.get(election).and_then(|all| all.get(id)).cloned())
    }

    fn candidates(
        &self,
        election: &ElectionName,
    ) -> Result<Vec<(CandidacyRow, MemberRow)>, Infallible> {
        let all = self.all_candidacies(election);
        let of_its_life = |row: &CandidacyRow| {
            let member = self.members.get(&row.member.id)?;
            (member.member == row.member).then(|| (row.clone(), member.clone()))
        };
        Ok(all.filter_map(of_its_life).collect())
    }

    fn has_candidates(&self, election: &ElectionName) -> Result<bool, Infallible> {
        Ok(self.candidacies.contains_key(election))
    }

    fn candidacies_of(
        &self,
        member: &MemberRef,
        most: usize,
    ) -> Result<Vec<ElectionName>, Infallible> {
        Ok(self.stands.get(member).into_iter().flatten().take(most).cloned().collect())
    }

    fn remains(&self) -> Result<Option<MemberRef>, Infallible> {
        Ok(self.remains.first().cloned())
    }

    fn names(&self) -> Result<NamesRow, Infallible> {
        Ok(self.names.stands)
    }

    fn name(&self, name: &Name) -> Result<Option<NameRow>, Infallible> {
        Ok(self.names.get(name).cloned())
    }

    fn names_asked(&self, which: &WhichNames) -> Result<Vec<NameRow>, Infallible> {
        Ok(self.names.asked(which))
    }

    fn names_after(&self, after: Option<&Name>, most: usize) -> Result<Vec<NameRow>, Infallible> {
        Ok(self.names.some_after(after, most))
    }

    fn names_gone(&self, since: Rev) -> Result<Vec<Name>, Infallible> {
        Ok(self.names.gone_since(since))
    }

    fn names_of(&self, life: &MemberRef, most: usize) -> Result<Vec<Name>, Infallible> {
        Ok(self.names.of(life).take(most).cloned().collect())
    }

    fn era(&self) -> Result<Era, Infallible> {
        Ok(self.era)
    }

    fn seq(&self) -> Seq {
        self.journal.last()
    }

    fn end_of(&self, life: &MemberRef) -> Result<Option<Entry>, Infallible> {
        Ok(self.journal.end_of(life).cloned())
    }

    fn newest(
        &self,
        election: Option<&ElectionName>,
        most: usize,
    ) -> Result<Vec<Entry>, Infallible> {
        let about =
            |entry: &&Entry| election.is_none_or(|name| entry.what.election() == Some(name));
        let mut newest: Vec<_> =
            self.journal.entries().rev().filter(about).take(most).cloned().collect();
        newest.reverse();
        Ok(newest)
    }
}

impl WriteRows for MemoryState {
    fn add_member(&mut self, row: &MemberRow) -> Result<(), Infallible> {
        self.members.insert(row.member.id.clone(), row.clone());
        Ok(())
    }

    fn put_member(&mut self, row: &MemberRow) -> Result<(), Infallible> {
        if let Some(found) = self.members.get_mut(&row.member.id) {
            let MemberRow { ttl, until, .. } = *found;
            *found = MemberRow { ttl, until, ..row.clone() };
        }
        Ok(())
    }

    fn renew_member(
        &mut self,
        member: &MemberRef,
        now: Mono,
        ttl: Duration,
    ) -> Result<(), Infallible> {
        if let Some(found) = self.members.get_mut(&member.id) {
            found.ttl = ttl;
            found.until = now + ttl;
        }
        Ok(())
    }

    fn remove_member(&mut self, member: &MemberRef) -> Result<(), Infallible> {
        if self.members.get(&member.id).is_some_and(|row| row.member == *member) {
            self.members.remove(&member.id);
        }
        Ok(())
    }

    fn put_election(&mut self, row: &ElectionRow) -> Result<(), Infallible> {
        self.elections.insert(row.name.clone(), row.clone());
        Ok(())
    }

    fn put_forgotten(&mut self, row: &ForgottenRow) -> Result<(), Infallible> {
        self.forgotten = *row;
        Ok(())
    }

    fn remove_election(&mut self, name: &ElectionName) -> Result<(), Infallible> {
        self.elections.remove(name);
        Ok(())
    }

    fn put_candidacy(&mut self, row: &CandidacyRow) -> Result<(), Infallible> {
        let all = self.candidacies.entry(row.election.clone()).or_default();
        if let Some(older) = all.insert(row.member.id.clone(), row.clone()) {
            self.no_longer_stands(&older.member, &row.election);
        }
        self.stands.entry(row.member.clone()).or_default().insert(row.election.clone());
        Ok(())
    }

    fn remove_candidacy(
        &mut self,
        election: &ElectionName,
        member: &MemberRef,
    ) -> Result<bool, Infallible> {
        let Some(all) = self.candidacies.get_mut(election) else { return Ok(false) };
        if all.get(&member.id).is_none_or(|row| row.member != *member) {
            return Ok(false);
        }
        all.remove(&member.id);
        if all.is_empty() {
            self.candidacies.remove(election);
        }
        self.no_longer_stands(member, election);
        Ok(true)
    }

    fn put_names(&mut self, row: &NamesRow) -> Result<(), Infallible> {
        self.names.stands = *row;
        Ok(())
    }

    fn put_name(&mut self, row: &NameRow) -> Result<(), Infallible> {
        self.names.put(row.clone());
        Ok(())
    }

    fn remove_name(&mut self, name: &Name) -> Result<(), Infallible> {
        self.names.remove(name);
        Ok(())
    }

    fn add_gone(&mut self, rev: Rev, name: &Name) -> Result<(), Infallible> {
        self.names.add_gone(rev, name);
        Ok(())
    }

    fn forget_gone(&mut self, before: Rev, most: usize) -> Result<usize, Infallible> {
        Ok(self.names.forget_gone(before, most))
    }

    fn add_remains(&mut self, member: &MemberRef) -> Result<(), Infallible> {
        self.remains.insert(member.clone());
        Ok(())
    }

    fn remove_remains(&mut self, member: &MemberRef) -> Result<(), Infallible> {
        self.remains.remove(member);
        Ok(())
    }

    fn append(&mut self, entry: Entry) -> Result<(), Infallible> {
        self.journal.append(entry);
        Ok(())
    }

    fn forget_entries(&mut self) -> Result<(), Infallible> {
        self.journal.go_on_after(self.journal.last());
        Ok(())
    }

    fn go_on_after(&mut self, place: Seq) -> Result<(), Infallible> {
        self.journal.go_on_after(place);
        Ok(())
    }

    fn begin_era(&mut self, era: Era, wall: Timestamp, cause: EraCause) -> Result<(), Infallible> {
        self.raised = Some((wall, cause));
        self.begin(era);
        Ok(())
    }
}

impl MemoryState {
    /// The candidacies in an election, also of lives that are over.
    pub(crate) fn all_candidacies(
        &self,
        election: &ElectionName,
    ) -> impl Iterator<Item = &CandidacyRow> {
        self.candidacies.get(election).into_iter().flat_map(BTreeMap::values)
    }

    fn no_longer_stands(&mut self, member: &MemberRef, election: &ElectionName) {
        if let Some(stands) = self.stands.get_mut(member) {
            stands.remove(election);
            if stands.is_empty() {
                self.stands.remove(member);
            }
        }
    }
}
