//! What one observer remembers: the records it has seen, and what it did itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tenure_core::{ElectionName, Incarnation, MemberRef, Mono, Term, TermNumber};

use crate::names::BindingMemory;
use crate::record::candidacies::CandidaciesRecord;
use crate::record::election::ElectionRecord;
use crate::record::member::MemberRecord;
use crate::record::name::{FloorRecord, NameRecord};
use crate::seen::Table;

/// How many lives that are over an observer remembers.
const REMEMBERED: usize = 1_024;

/// What a heartbeat of this observer's own wrote last.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// When the write was begun.
    started: Mono,
    /// The ttl that was asked for.
    asked: Duration,
}

/// What of a holder's record tells that nothing of its elections has changed.
type Unchanged = (Incarnation, u64, u64);

/// All that an observer remembers.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) elections: Table<ElectionRecord>,
    pub(crate) members: Table<MemberRecord>,
    pub(crate) standings: Table<CandidaciesRecord>,
    pub(crate) names: Table<NameRecord>,
    pub(crate) floors: Table<FloorRecord>,
    /// What this observer did with names.
    pub(crate) binding: BindingMemory,
    /// The last heartbeats of lives of this observer's own, by their members' keys.
    written: BTreeMap<(String, Incarnation), Written>,
    /// The newest number seen of each election.
    numbers: BTreeMap<String, TermNumber>,
    /// When the members below a prefix were last listed, and the step after it.
    listed: BTreeMap<String, (Mono, u64)>,
    /// Lives of this observer's own that are over, by their members' keys.
    over: VecDeque<(String, Incarnation)>,
    /// Since when the candidacies of a member are known.
    stood: BTreeMap<String, Stood>,
    /// Since when a life is known to be neither shown nor proven over.
    missing: BTreeMap<(String, Incarnation), Mono>,
    /// What the holder's record said when an election was last looked at, and
    /// how often it was taken at its word since.
    unchanged: BTreeMap<String, (Unchanged, u32)>,
    /// The cells of which a swap of what is known has just conflicted: the next look is
    /// believed, whatever it finds.
    pub(crate) conflicted: BTreeSet<String>,
    /// What is followed by a watch, by the prefix of its namespace.
    watched: BTreeMap<String, Watched>,
    /// The elections for which this observer was asked by name.
    pub(crate) named: BTreeSet<String>,
    /// What `changes` of lives of this observer's own must have come to: they gave
    /// something back.
    changes: BTreeMap<Incarnation, u64>,
    /// What lives of this observer's own have won and not given back, by their members'
    /// keys.
    holding: BTreeMap<(String, Incarnation), BTreeMap<ElectionName, TermNumber>>,
}

/// A watch that is connected.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// The step since which nothing was missed.
    since: u64,
    /// When it told something last.
    told: Mono,
}

/// Since when this life is known to stand for each election.
type Stood = (Incarnation, BTreeMap<ElectionName, Mono>);

impl Memory {
    /// Notes that a term was won through this observer.
    pub(crate) fn won(&mut self, key: &str, term: &Term) {
        let life = (key.to_owned(), term.member.incarnation);
        self.holding.entry(life).or_default().insert(term.election.clone(), term.number);
    }

    /// Notes that exactly this term was given back.
    pub(crate) fn gave_back(
        &mut self,
        key: &str,
        life: Incarnation,
        election: &ElectionName,
        number: TermNumber,
    ) {
        if let Some(held) = self.holding.get_mut(&(key.to_owned(), life))
            && held.get(election) == Some(&number)
        {
            held.remove(election);
        }
    }

    /// Whether this life won terms or took names through this observer, and gave all of
    /// them back.
    pub(crate) fn has_nothing_left(&self, key: &str, life: Incarnation) -> bool {
        let of = (key.to_owned(), life);
        let terms = self.holding.get(&of).map(BTreeMap::is_empty);
        let names = self.binding.gave_all_back(&of);
        (terms.is_some() || names.is_some()) && terms != Some(false) && names != Some(false)
    }

    /// Whether this life took names through this observer and did not drop all of them.
    pub(crate) fn owns_names(&self, key: &str, life: Incarnation) -> bool {
        self.binding.gave_all_back(&(key.to_owned(), life)) == Some(false)
    }

    pub(crate) fn wrote(&mut self, key: &str, life: Incarnation, started: Mono, asked: Duration) {
        self.written.insert((key.to_owned(), life), Written { started, asked });
    }

    /// Notes that such a write begins, if none is known; says whether it was.
    pub(crate) fn attempts(
        &mut self,
        key: &str,
        life: Incarnation,
        started: Mono,
        asked: Duration,
    ) -> bool {
        let first = self.written(key, life).is_none();
        if first {
            self.wrote(key, life, started, asked);
        }
        first
    }

    /// When this observer began to write the last sign of life of its own.
    pub(crate) fn written(&self, key: &str, life: Incarnation) -> Option<Mono> {
        self.written.get(&(key.to_owned(), life)).map(|written| written.started)
    }

    /// The ttl that was asked for then.
    pub(crate) fn asked(&self, key: &str, life: Incarnation) -> Option<Duration> {
        self.written.get(&(key.to_owned(), life)).map(|written| written.asked)
    }

    /// The write that was noted before it was sent was not applied.
    pub(crate) fn gave_up(&mut self, key: &str, life: Incarnation) {
        self.written.remove(&(key.to_owned(), life));
    }

    /// Notes that a life of this observer's own is over. A life it never wrote
    /// for is not its business: it may be about to join.
    pub(crate) fn ended(&mut self, member_key: &str, life: Incarnation) {
        self.changes.remove(&life);
        let of = (member_key.to_owned(), life);
        self.holding.remove(&of);
        self.binding.ended(&of);
        if self.written.remove(&(member_key.to_owned(), life)).is_none() {
            return;
        }
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back((member_key.to_owned(), life));
    }

    pub(crate) fn is_over(&self, member_key: &str, life: Incarnation) -> bool {
        self.over.iter().any(|(key, over)| key == member_key && *over == life)
    }

    /// A life of this observer's own gives something back.
    pub(crate) fn gives_back(&mut self, life: Incarnation, changes: u64) {
        let least = self.changes.entry(life).or_default();
        *least = changes.saturating_add(1).max(*least);
    }

    /// What `changes` must have come to for this life.
    pub(crate) fn changes(&self, life: Incarnation) -> u64 {
        self.changes.get(&life).copied().unwrap_or(0)
    }

    /// A watch of the namespace of this prefix tells everything from now on.
    pub(crate) fn watch_began(&mut self, prefix: &str, now: Mono, step: u64) {
        self.watched.insert(prefix.to_owned(), Watched { since: step, told: now });
    }

    /// It told something.
    pub(crate) fn watch_told(&mut self, prefix: &str, now: Mono) {
        if let Some(watched) = self.watched.get_mut(prefix) {
            watched.told = watched.told.max(now);
        }
    }

    /// It is over.
    pub(crate) fn watch_ended(&mut self, prefix: &str) {
        self.watched.remove(prefix);
    }

    /// Whether a heartbeat of this observer's own below `members` was begun that long ago
    /// and after all that the watch has told.
    pub(crate) fn wrote_untold(
        &self,
        prefix: &str,
        members: &str,
        now: Mono,
        grace: Duration,
    ) -> bool {
        let Some(watched) = self.watched.get(prefix) else { return false };
        let own = self.written.iter().filter(|((key, _), _)| key.starts_with(members));
        let untold = |begun: Mono| begun > watched.told && now.since(begun) >= grace;
        own.into_iter().any(|(_, written)| untold(written.started))
    }

    /// The step since which a watch tells everything of the namespace; `None` if there is
    /// none, or none that has told anything within that time: it may have died in silence.
    pub(crate) fn watched_since(&self, prefix: &str, now: Mono, within: Duration) -> Option<u64> {
        let watched = self.watched.get(prefix)?;
        (now.since(watched.told) < within).then_some(watched.since)
    }

    /// Raises the newest number seen.
    pub(crate) fn saw_number(&mut self, key: &str, number: TermNumber) {
        let newest = self.numbers.entry(key.to_owned()).or_default();
        *newest = number.max(*newest);
    }

    pub(crate) fn newest_number(&self, key: &str) -> TermNumber {
        self.numbers.get(key).copied().unwrap_or_default()
    }

    pub(crate) fn listed(&self, prefix: &str) -> Option<Mono> {
        self.listed.get(prefix).map(|(when, _)| *when)
    }

    /// The step after they were last listed.
    pub(crate) fn listed_in(&self, prefix: &str) -> Option<u64> {
        self.listed.get(prefix).map(|(_, step)| *step)
    }

    /// Notes that the members below `prefix` were listed.
    pub(crate) fn note_listing(&mut self, prefix: &str, now: Mono, step: u64) {
        self.listed.insert(prefix.to_owned(), (now, step));
    }

    /// Notes the candidacies of a member; those known already keep their time.
    pub(crate) fn saw_candidacies(&mut self, key: &str, record: &CandidaciesRecord, now: Mono) {
        let (_, known) = self
            .stood
            .remove(key)
            .filter(|(life, _)| *life == record.incarnation)
            .unwrap_or((record.incarnation, BTreeMap::new()));
        let names = record.elections.keys();
        let stood =
            names.map(|name| (name.clone(), known.get(name).copied().unwrap_or(now))).collect();
        self.stood.insert(key.to_owned(), (record.incarnation, stood));
    }

    /// Since when the member of this key is known to stand for the election.
    pub(crate) fn stood(&self, key: &str, election: &ElectionName) -> Option<Mono> {
        self.stood.get(key)?.1.get(election).copied()
    }

    /// Whether this life holds anything below `prefix`, as far as is known.
    pub(crate) fn holds_anything(&self, prefix: &str, member: &MemberRef) -> bool {
        self.elections.below(prefix).any(|(_, seen)| seen.record.is_held_by(member))
    }

    /// Notes that a life is neither shown nor proven over, unless that is known.
    pub(crate) fn is_missing(&mut self, key: &str, life: Incarnation, now: Mono) {
        self.missing.entry((key.to_owned(), life)).or_insert(now);
    }

    /// The record of this key shows this life.
    pub(crate) fn nothing_missing(&mut self, key: &str, life: Incarnation) {
        self.missing.remove(&(key.to_owned(), life));
    }

    pub(crate) fn missing_since(&self, key: &str, life: Incarnation) -> Option<Mono> {
        self.missing.get(&(key.to_owned(), life)).copied()
    }

    /// Notes what the holder's record said when an election was looked at.
    /// `before` is the step in which that look began: what was seen of the
    /// holder later than that may be newer than the election.
    pub(crate) fn unchanged_as_of(&mut self, key: &str, member_key: &str, before: u64) {
        let holder = self.members.get(member_key).filter(|seen| seen.heard <= before);
        match holder {
            Some(seen) => self.unchanged.insert(key.to_owned(), (said(&seen.record), 0)),
            None => self.unchanged.remove(key),
        };
    }

    /// Whether the holder's record still shows the life that holds the election,
    /// and says what it did when the election was last looked at. It is not
    /// taken at its word for ever.
    pub(crate) fn is_unchanged(
        &mut self,
        key: &str,
        member_key: &str,
        life: Incarnation,
        most: u32,
    ) -> bool {
        let Some(holder) = self.members.get(member_key) else { return false };
        let Some((then, times)) = self.unchanged.get_mut(key) else { return false };
        *times += 1;
        holder.record.shows(life) && *then == said(&holder.record) && *times <= most
    }

    /// The election was written here: what its holder says is compared anew.
    pub(crate) fn may_have_changed(&mut self, key: &str) {
        self.unchanged.remove(key);
    }
}

fn said(record: &MemberRecord) -> Unchanged {
    (record.incarnation, record.changes, record.attention)
}
