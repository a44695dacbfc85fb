//! What this handle has seen, and when: all that the observer's rule goes by.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{ElectionName, Incarnation, MemberRef, Mono, Term, TermNumber};

use super::election::ElectionRecord;
use super::member::{MemberRecord, StandingRecord};
use super::record::Record;
use super::register::Version;

/// How many lives that are over a handle remembers.
const REMEMBERED: usize = 1_024;

/// A record, the version it has, and since when its stamp is known.
#[derive(Debug)]
pub(super) struct Seen<R> {
    pub(super) version: Version,
    pub(super) record: Arc<R>,
    /// By this handle's own clock, a moment that is not before that in which
    /// what the record's [`stamp`](Record::stamp) stands for began.
    pub(super) since: Mono,
    /// About the earliest moment it can have begun, and how far beats are apart:
    /// for choosing when to look next and for nothing else.
    pub(super) rhythm: Option<Rhythm>,
    /// The last signs of life seen: when, and what their clock counted.
    pub(super) sights: Vec<(Mono, Duration)>,
    /// When the last look that found it so was sent.
    pub(super) looked: Mono,
    /// The [step](super::handle::Handle::step) after that look was answered.
    pub(super) step: u64,
}

impl<R> Clone for Seen<R> {
    fn clone(&self) -> Self {
        Self {
            version: self.version.clone(),
            record: self.record.clone(),
            sights: self.sights.clone(),
            ..*self
        }
    }
}

/// See [`Seen::rhythm`].
pub(super) type Rhythm = (Mono, Duration);

/// One look: when it was sent, when it was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glance {
    pub(super) sent: Mono,
    pub(super) answered: Mono,
    /// The step after the answer.
    pub(super) step: u64,
    pub(super) drift_ppm: u32,
}

/// The records of one kind, by key.
#[derive(Debug)]
pub(super) struct Table<R> {
    records: BTreeMap<String, Seen<R>>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { records: BTreeMap::new() }
    }
}

impl<R: Record> Table<R> {
    pub(super) fn get(&self, key: &str) -> Option<Seen<R>> {
        self.records.get(key).cloned()
    }

    /// Notes what was found. A stamp that is known already keeps its moment,
    /// whatever else of the record changed; a new one began when it was first
    /// seen, or earlier if what was seen before tells so.
    pub(super) fn found(&mut self, key: &str, version: Version, record: R, at: Glance) -> Seen<R> {
        let (looked, step) = (at.sent, at.step);
        let known = self.records.get(key);
        let (since, rhythm, sights) = match known {
            Some(known) if known.record.stamp() == record.stamp() => {
                (known.since, known.rhythm, known.sights.clone())
            }
            _ => {
                let sights = record.sights(known, at.answered);
                let bound = record.begun_by(&sights, at.drift_ppm);
                let rhythm = known.and_then(|known| record.rhythm(known, at.sent, at.drift_ppm));
                (bound.map_or(at.answered, |bound| bound.min(at.answered)), rhythm, sights)
            }
        };
        let record = Arc::new(record);
        self.put(key, Seen { version, record, since, rhythm, sights, looked, step })
    }

    /// Notes that what is known was found unchanged.
    pub(super) fn confirmed(&mut self, key: &str, at: Glance) -> Option<Seen<R>> {
        let known = self.records.get_mut(key)?;
        known.looked = known.looked.max(at.sent);
        known.step = known.step.max(at.step);
        Some(known.clone())
    }

    pub(super) fn put(&mut self, key: &str, seen: Seen<R>) -> Seen<R> {
        self.records.insert(key.to_owned(), seen.clone());
        seen
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.records.remove(key);
    }

    /// Everything known below `prefix`.
    pub(super) fn below<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a Seen<R>)> {
        let from = self.records.range(prefix.to_owned()..);
        from.take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Forgets what is below `prefix` and not among these.
    pub(super) fn keep(&mut self, prefix: &str, keys: &BTreeSet<String>) {
        self.records.retain(|key, _| !key.starts_with(prefix) || keys.contains(key));
    }
}

/// What a heartbeat of this handle's own wrote last.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// When the write was begun.
    started: Mono,
    /// The ttl that was asked for.
    asked: Duration,
}

/// What of a holder's record tells that nothing of its elections has changed.
type Unchanged = (Incarnation, u64, u64);

/// All that a handle remembers.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) elections: Table<ElectionRecord>,
    pub(super) members: Table<MemberRecord>,
    pub(super) standings: Table<StandingRecord>,
    /// The last heartbeats of lives of this handle's own, by their members' keys.
    written: BTreeMap<(String, Incarnation), Written>,
    /// The newest number seen of each election.
    numbers: BTreeMap<String, TermNumber>,
    /// When the members below a prefix were last listed.
    listed: BTreeMap<String, Mono>,
    /// Lives of this handle's own that are over, by their members' keys.
    over: VecDeque<(String, Incarnation)>,
    /// Since when the candidacies of a member are known.
    stood: BTreeMap<String, Stood>,
    /// Since when a life is known to be neither shown nor proven over.
    missing: BTreeMap<(String, Incarnation), Mono>,
    /// What the holder's record said when an election was last looked at, and
    /// how often it was taken at its word since.
    unchanged: BTreeMap<String, (Unchanged, u32)>,
    /// The elections that somebody asked this handle for by name.
    pub(super) named: BTreeSet<String>,
    /// What `changes` of lives of this handle's own must have come to: they gave
    /// something back.
    changes: BTreeMap<Incarnation, u64>,
    /// What lives of this handle's own have won and not given back, by their members'
    /// keys.
    holding: BTreeMap<(String, Incarnation), BTreeMap<ElectionName, TermNumber>>,
}

/// Since when this life is known to stand for each election.
type Stood = (Incarnation, BTreeMap<ElectionName, Mono>);

impl Memory {
    /// Notes that a term was won through this handle.
    pub(super) fn won(&mut self, key: &str, term: &Term) {
        let life = (key.to_owned(), term.member.incarnation);
        self.holding.entry(life).or_default().insert(term.election.clone(), term.number);
    }

    /// Notes that exactly this term was given back.
    pub(super) fn gave_back(
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

    /// Whether this life won something through this handle, and gave all of it back.
    pub(super) fn has_nothing_left(&self, key: &str, life: Incarnation) -> bool {
        self.holding.get(&(key.to_owned(), life)).is_some_and(BTreeMap::is_empty)
    }

    pub(super) fn wrote(&mut self, key: &str, life: Incarnation, started: Mono, asked: Duration) {
        self.written.insert((key.to_owned(), life), Written { started, asked });
    }

    /// Notes that such a write begins, if none is known; says whether it was.
    pub(super) fn attempts(
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

    /// When this handle began to write the last sign of life of its own.
    pub(super) fn written(&self, key: &str, life: Incarnation) -> Option<Mono> {
        self.written.get(&(key.to_owned(), life)).map(|written| written.started)
    }

    /// The ttl that was asked for then.
    pub(super) fn asked(&self, key: &str, life: Incarnation) -> Option<Duration> {
        self.written.get(&(key.to_owned(), life)).map(|written| written.asked)
    }

    /// The write that was noted before it was sent was not applied.
    pub(super) fn gave_up(&mut self, key: &str, life: Incarnation) {
        self.written.remove(&(key.to_owned(), life));
    }

    /// Notes that a life of this handle's own is over. A life it never wrote
    /// for is not its business: it may be about to join.
    pub(super) fn ended(&mut self, member_key: &str, life: Incarnation) {
        self.changes.remove(&life);
        self.holding.remove(&(member_key.to_owned(), life));
        if self.written.remove(&(member_key.to_owned(), life)).is_none() {
            return;
        }
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back((member_key.to_owned(), life));
    }

    pub(super) fn is_over(&self, member_key: &str, life: Incarnation) -> bool {
        self.over.iter().any(|(key, over)| key == member_key && *over == life)
    }

    /// A life of this handle's own gives something back.
    pub(super) fn gives_back(&mut self, life: Incarnation, changes: u64) {
        let least = self.changes.entry(life).or_default();
        *least = changes.saturating_add(1).max(*least);
    }

    /// What `changes` must have come to for this life.
    pub(super) fn changes(&self, life: Incarnation) -> u64 {
        self.changes.get(&life).copied().unwrap_or(0)
    }

    /// Raises the newest number seen.
    pub(super) fn saw_number(&mut self, key: &str, number: TermNumber) {
        let newest = self.numbers.entry(key.to_owned()).or_default();
        *newest = number.max(*newest);
    }

    pub(super) fn newest_number(&self, key: &str) -> TermNumber {
        self.numbers.get(key).copied().unwrap_or_default()
    }

    pub(super) fn listed(&self, prefix: &str) -> Option<Mono> {
        self.listed.get(prefix).copied()
    }

    /// Notes that the members below `prefix` were listed.
    pub(super) fn note_listing(&mut self, prefix: &str, now: Mono) {
        self.listed.insert(prefix.to_owned(), now);
    }

    /// Notes the candidacies of a member; those known already keep their time.
    pub(super) fn saw_candidacies(&mut self, key: &str, record: &StandingRecord, now: Mono) {
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
    pub(super) fn stood(&self, key: &str, election: &ElectionName) -> Option<Mono> {
        self.stood.get(key)?.1.get(election).copied()
    }

    /// Whether this life holds anything below `prefix`, as far as is known.
    pub(super) fn holds_anything(&self, prefix: &str, member: &MemberRef) -> bool {
        self.elections.below(prefix).any(|(_, seen)| seen.record.is_held_by(member))
    }

    /// Notes that a life is neither shown nor proven over, unless that is known.
    pub(super) fn is_missing(&mut self, key: &str, life: Incarnation, now: Mono) {
        self.missing.entry((key.to_owned(), life)).or_insert(now);
    }

    /// The record of this key shows this life.
    pub(super) fn nothing_missing(&mut self, key: &str, life: Incarnation) {
        self.missing.remove(&(key.to_owned(), life));
    }

    pub(super) fn missing_since(&self, key: &str, life: Incarnation) -> Option<Mono> {
        self.missing.get(&(key.to_owned(), life)).copied()
    }

    /// Notes what the holder's record said when an election was looked at.
    /// `before` is the step in which that look began: what was seen of the
    /// holder later than that may be newer than the election.
    pub(super) fn unchanged_as_of(&mut self, key: &str, member_key: &str, before: u64) {
        let holder = self.members.get(member_key).filter(|seen| seen.step <= before);
        match holder {
            Some(seen) => self.unchanged.insert(key.to_owned(), (said(&seen.record), 0)),
            None => self.unchanged.remove(key),
        };
    }

    /// Whether the holder's record still shows the life that holds the election,
    /// and says what it did when the election was last looked at. It is not
    /// taken at its word for ever.
    pub(super) fn is_unchanged(
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
    pub(super) fn may_have_changed(&mut self, key: &str) {
        self.unchanged.remove(key);
    }
}

fn said(record: &MemberRecord) -> Unchanged {
    (record.incarnation, record.changes, record.attention)
}
