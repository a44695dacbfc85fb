//! The records of one member: its life, and what it waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenure_core::{ElectionName, EndCause, Incarnation, MemberId, MemberRef, Mono, Profile};

use super::anchor::{begun_by, not_begun_before};
use super::format::{candidacies, lives, nanos, profile, text};
use super::record::{FORMAT, Record, Stamp};
use super::seen::{Memory, Rhythm, Seen, Table};

/// The most elections one member may wait for in such a store: one record lists
/// them. What it holds is not counted.
pub const MAX_CANDIDACIES: usize = 10_000;

/// How many signs of life are counted from, and over how many ttls.
const SIGHTS: u32 = 8;

/// How many lives a record remembers that it has replaced.
pub(super) const REMEMBERED_LIVES: usize = 8;

/// One member: the record that is written at every heartbeat, and so small.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct MemberRecord {
    pub(super) tenure: u32,
    #[serde(with = "text")]
    pub(super) member: MemberId,
    #[serde(with = "text")]
    pub(super) incarnation: Incarnation,
    pub(super) revision: u64,
    /// Counts heartbeats.
    pub(super) beat: u64,
    #[serde(with = "nanos")]
    pub(super) ttl_ns: Duration,
    /// Whose clock `elapsed_ns` was counted by.
    pub(super) clock: u64,
    /// What that clock counted up to the start of the last heartbeat.
    #[serde(with = "nanos")]
    pub(super) elapsed_ns: Duration,
    #[serde(with = "profile")]
    pub(super) profile: Profile,
    /// By its own wall clock; for people.
    pub(super) joined_at_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) condemned: bool,
    /// Counts what others ask of it.
    #[serde(default)]
    pub(super) attention: u64,
    /// Counts the requests in which it gave something back.
    #[serde(default)]
    pub(super) changes: u64,
    /// Whether it holds anything: a newcomer of the same id may replace exactly the
    /// version of this record that says it does not, and no listing is asked (C1).
    /// It is set by the heartbeat that makes a win one, and cleared only by the
    /// handle that knows all it won.
    #[serde(default, skip_serializing_if = "Holds::is_unknown")]
    pub(super) holds: Holds,
    /// Set when this life is over, whatever the beat says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<EndedLife>,
    /// The lives that this record showed before and that were ended by a swap
    /// of it, oldest first.
    #[serde(with = "lives", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) past: Vec<Incarnation>,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

/// Whether a life holds anything, and who knows what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Holds {
    /// Nothing.
    Nothing,
    /// Something, all of it won through the handle with this clock.
    KnownTo(u64),
    /// Something, perhaps, and nobody knows all of it. Also where nothing is said.
    #[default]
    Unknown,
}

impl Holds {
    fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// After a win through this handle.
    pub(super) fn won(self, clock_id: u64) -> Self {
        match self {
            Self::Nothing => Self::KnownTo(clock_id),
            Self::KnownTo(known) if known == clock_id => self,
            Self::KnownTo(_) | Self::Unknown => Self::Unknown,
        }
    }

    /// After this handle found that nothing is left of what it won.
    pub(super) fn nothing_left(self, clock_id: u64) -> Self {
        if self == Self::KnownTo(clock_id) { Self::Nothing } else { self }
    }
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EndedLife {
    /// It left.
    Left,
    /// Its ttl ran out, by the clock of one who watched it.
    Expired,
    /// An operator ended it.
    Evicted,
    /// Its record was missing. That proves nothing about how long ago it beat
    /// last: whoever wants what it held waits out its ttl from here.
    Missing,
}

impl EndedLife {
    /// Whether the end is one that whoever lived that life has heard of, or has
    /// waited out.
    pub(super) fn is_proof(self) -> bool {
        self != Self::Missing
    }

    pub(super) fn cause(self) -> EndCause {
        match self {
            Self::Evicted => EndCause::Evicted,
            Self::Left | Self::Expired | Self::Missing => EndCause::Expired,
        }
    }
}

/// What a member waits for. Written only when that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StandingRecord {
    pub(super) tenure: u32,
    #[serde(with = "text")]
    pub(super) member: MemberId,
    /// Whose candidacies these are: those of an older life count for nothing.
    #[serde(with = "text")]
    pub(super) incarnation: Incarnation,
    pub(super) revision: u64,
    #[serde(with = "candidacies", default)]
    pub(super) elections: BTreeMap<ElectionName, CandidacyRecord>,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

/// Written as `[priority, order]`: there may be thousands of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CandidacyRecord {
    pub(super) priority: u16,
    /// One more than the highest that was there when it began to stand: who
    /// waits longer, without a clock.
    pub(super) order: u64,
}

impl MemberRecord {
    pub(super) fn member(&self) -> MemberRef {
        MemberRef::new(self.member.clone(), self.incarnation)
    }

    /// Whether both are of one life, counted by one clock.
    fn is_of_one_clock(&self, other: &Self) -> bool {
        self.incarnation == other.incarnation && self.clock == other.clock
    }

    /// Whether the record shows this life, and not as ended.
    pub(super) fn shows(&self, life: Incarnation) -> bool {
        self.incarnation == life && self.ended.is_none()
    }

    /// Whether the record proves that this life is over: it shows it as ended,
    /// or lists it among those it has replaced.
    pub(super) fn proves_over(&self, life: Incarnation) -> Option<EndCause> {
        if self.incarnation == life {
            return self.ended.filter(|ended| ended.is_proof()).map(EndedLife::cause);
        }
        self.past.contains(&life).then_some(EndCause::Expired)
    }

    /// The lives that whoever replaces this one remembers as over.
    pub(super) fn lives_before_the_next(&self) -> Vec<Incarnation> {
        let mut past = self.past.clone();
        if self.ended.is_none_or(EndedLife::is_proof) {
            past.push(self.incarnation);
        }
        let surplus = past.len().saturating_sub(REMEMBERED_LIVES);
        past.drain(..surplus);
        past
    }

    /// The mark that is put where a member's record is missing, so that no late
    /// heartbeat of that life lands.
    pub(super) fn missing(life: &MemberRef, ttl: Duration) -> Self {
        Self {
            tenure: FORMAT,
            member: life.id.clone(),
            incarnation: life.incarnation,
            revision: 0,
            beat: 0,
            ttl_ns: ttl,
            clock: 0,
            elapsed_ns: Duration::ZERO,
            profile: Profile::default(),
            joined_at_ms: 0,
            condemned: false,
            attention: 0,
            changes: 0,
            holds: Holds::Unknown,
            ended: Some(EndedLife::Missing),
            past: Vec::new(),
            other: Map::new(),
        }
    }
}

impl Seen<MemberRecord> {
    /// How much will be unknown of when a beat began that is found after so many
    /// looks, that far apart, if nothing is learned from the looks between. The signs
    /// of life that are forgotten until then do not count.
    pub(super) fn unknown_after(
        &self,
        not_before: Mono,
        looks: u32,
        apart: Duration,
        drift_ppm: u32,
    ) -> Duration {
        let (newest, time) = (self.record.elapsed_ns, apart.saturating_mul(looks));
        let forgotten = (self.sights.len() + looks as usize).saturating_sub(SIGHTS as usize);
        let latest = self.sights.iter().skip(forgotten).filter_map(|(seen, then)| {
            let elapsed = newest.checked_sub(*then)?.saturating_add(time);
            (elapsed <= self.record.ttl_ns * SIGHTS).then(|| begun_by(*seen, elapsed, drift_ppm))
        });
        let earliest = not_begun_before(not_before, time, drift_ppm);
        latest.min().map_or(Duration::MAX, |latest| latest.since(earliest))
    }
}

impl StandingRecord {
    pub(super) fn new(member: &MemberRef, revision: u64) -> Self {
        let (id, incarnation) = (member.id.clone(), member.incarnation);
        let (elections, other) = (BTreeMap::new(), Map::new());
        Self { tenure: FORMAT, member: id, incarnation, revision, elections, other }
    }
}

impl Record for MemberRecord {
    fn stamp(&self) -> Stamp {
        (self.incarnation.as_u128(), self.beat)
    }

    /// A few, and none that is many ttls old: they lose by drift, and if a clock
    /// was ever worse than its bound, that is to be over in the end.
    fn sights(&self, known: Option<&Seen<Self>>, now: Mono) -> Vec<(Mono, Duration)> {
        let mut sights: Vec<_> = match known {
            Some(known) if self.is_of_one_clock(&known.record) => known.sights.clone(),
            _ => Vec::new(),
        };
        sights.retain(|(_, then)| {
            let elapsed = self.elapsed_ns.checked_sub(*then);
            elapsed.is_some_and(|elapsed| elapsed <= self.ttl_ns * SIGHTS)
        });
        sights.push((now, self.elapsed_ns));
        let surplus = sights.len().saturating_sub(SIGHTS as usize);
        sights.drain(..surplus);
        sights
    }

    fn begun_by(&self, sights: &[(Mono, Duration)], drift_ppm: u32) -> Option<Mono> {
        let bounds = sights.iter().filter_map(|(seen, then)| {
            let elapsed = self.elapsed_ns.checked_sub(*then)?;
            Some(begun_by(*seen, elapsed, drift_ppm))
        });
        bounds.min()
    }

    /// It began after a look that did not find it. Where beats keep their pace, it
    /// also began no earlier after the one before it than its clock counted, and no
    /// longer ago than beats are apart, since the next one was not there yet; both
    /// within the drift. Where they do not (a bid is a beat too, and one that is lost
    /// is none), what was concluded from the pace is given up.
    fn rhythm(&self, known: &Seen<Self>, sent: Mono, drift_ppm: u32) -> Option<Rhythm> {
        let before = &known.record;
        let elapsed = self.elapsed_ns.checked_sub(before.elapsed_ns)?;
        let beats = u32::try_from(self.beat.checked_sub(before.beat)?).ok()?;
        let pace = elapsed.checked_div(beats).filter(|_| self.is_of_one_clock(before))?;
        let kept = known.rhythm.filter(|(_, then)| then.abs_diff(pace) <= pace / 8);
        let regular = kept.map_or(Mono::ZERO, |(then, _)| {
            let one_beat = begun_by(Mono::ZERO, pace, drift_ppm).since(Mono::ZERO);
            not_begun_before(then, elapsed, drift_ppm).max(sent - one_beat)
        });
        Some((regular.max(known.looked), pace))
    }

    fn name(&self) -> &str {
        self.member.as_str()
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn table(memory: &mut Memory) -> &mut Table<Self> {
        &mut memory.members
    }

    fn remember(&self, key: &str, memory: &mut Memory, _now: Mono) {
        if self.ended.is_none() {
            memory.nothing_missing(key, self.incarnation);
        }
    }
}

impl Record for StandingRecord {
    fn stamp(&self) -> Stamp {
        (self.incarnation.as_u128(), self.revision)
    }

    fn name(&self) -> &str {
        self.member.as_str()
    }

    fn revision(&mut self) -> &mut u64 {
        &mut self.revision
    }

    fn table(memory: &mut Memory) -> &mut Table<Self> {
        &mut memory.standings
    }

    fn remember(&self, key: &str, memory: &mut Memory, now: Mono) {
        memory.saw_candidacies(key, self, now);
    }
}
