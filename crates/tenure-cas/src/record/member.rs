//! The record of one member's life, which every heartbeat writes.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenure_core::{EndCause, Incarnation, MemberId, MemberRef, Mono, Profile};

use super::format::{lives, nanos, profile, text};
use super::{Age, FORMAT, Record, Stamp};
use crate::anchor::{begun_by, not_begun_before};
use crate::memory::Memory;
use crate::seen::{Rhythm, Seen, Table};

/// How many signs of life are counted from, and over how many ttls.
const SIGHTS: u32 = 8;

/// How many lives a record remembers that it has replaced.
pub(crate) const REMEMBERED_LIVES: usize = 8;

/// One member: the record that is written at every heartbeat, and so small.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MemberRecord {
    pub(crate) tenure: u32,
    #[serde(with = "text")]
    pub(crate) member: MemberId,
    #[serde(with = "text")]
    pub(crate) incarnation: Incarnation,
    pub(crate) revision: u64,
    /// Counts heartbeats.
    pub(crate) beat: u64,
    #[serde(with = "nanos")]
    pub(crate) ttl_ns: Duration,
    /// Whose clock `elapsed_ns` was counted by.
    pub(crate) clock: u64,
    /// What that clock counted up to the start of the last heartbeat.
    #[serde(with = "nanos")]
    pub(crate) elapsed_ns: Duration,
    #[serde(with = "profile")]
    pub(crate) profile: Profile,
    /// By its own wall clock; for people.
    pub(crate) joined_at_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) condemned: bool,
    /// Counts what others ask of it.
    #[serde(default)]
    pub(crate) attention: u64,
    /// Counts the requests in which it gave something back.
    #[serde(default)]
    pub(crate) changes: u64,
    /// Whether it holds anything: a newcomer of the same id may replace exactly the
    /// version of this record that says it does not, and no listing is asked (C1).
    /// It is set by the heartbeat that makes a win one, and cleared only by the
    /// observer that knows all it won.
    #[serde(default, skip_serializing_if = "Holds::is_unknown")]
    pub(crate) holds: Holds,
    /// Whether this life, or one before it that is listed here, may own names. Then the
    /// record stays after its end: it is what proves that they are void.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) names: bool,
    /// Set when this life is over, whatever the beat says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<EndedLife>,
    /// The lives that this record showed before and that were ended by a swap
    /// of it, oldest first.
    #[serde(with = "lives", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) past: Vec<Incarnation>,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// Whether a life holds anything, and who knows what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Holds {
    /// Nothing.
    Nothing,
    /// Something, all of it won through the observer with this clock.
    KnownTo(u64),
    /// Something, perhaps, and what exactly is not known. Also where nothing is said.
    #[default]
    Unknown,
}

impl Holds {
    fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// After a win through this observer.
    pub(crate) fn won(self, clock_id: u64) -> Self {
        match self {
            Self::Nothing => Self::KnownTo(clock_id),
            Self::KnownTo(known) if known == clock_id => self,
            Self::KnownTo(_) | Self::Unknown => Self::Unknown,
        }
    }

    /// After this observer found that nothing is left of what it won.
    pub(crate) fn nothing_left(self, clock_id: u64) -> Self {
        if self == Self::KnownTo(clock_id) { Self::Nothing } else { self }
    }
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EndedLife {
    /// It left.
    Left,
    /// Its ttl ran out, by the clock of an observer that watched it.
    Expired,
    /// An operator ended it.
    Evicted,
    /// Its record was missing. That proves nothing about how long ago it beat
    /// last: a bidder for what it held waits out its ttl from here.
    Missing,
}

impl EndedLife {
    /// Whether the end is one that the process of that life was told of, or has
    /// waited out.
    pub(crate) fn is_proof(self) -> bool {
        self != Self::Missing
    }

    pub(crate) fn cause(self) -> EndCause {
        match self {
            Self::Evicted => EndCause::Evicted,
            Self::Left | Self::Expired | Self::Missing => EndCause::Expired,
        }
    }
}

impl MemberRecord {
    pub(crate) fn member(&self) -> MemberRef {
        MemberRef::new(self.member.clone(), self.incarnation)
    }

    /// Whether both are of one life, counted by one clock.
    fn is_of_one_clock(&self, other: &Self) -> bool {
        self.incarnation == other.incarnation && self.clock == other.clock
    }

    /// Whether the record shows this life, and not as ended.
    pub(crate) fn shows(&self, life: Incarnation) -> bool {
        self.incarnation == life && self.ended.is_none()
    }

    /// Whether the record proves that this life is over: it shows it as ended,
    /// or lists it among those it has replaced.
    pub(crate) fn proves_over(&self, life: Incarnation) -> Option<EndCause> {
        if self.incarnation == life {
            return self.ended.filter(|ended| ended.is_proof()).map(EndedLife::cause);
        }
        self.past.contains(&life).then_some(EndCause::Expired)
    }

    /// The lives that the next one remembers as over.
    pub(crate) fn lives_before_the_next(&self) -> Vec<Incarnation> {
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
    pub(crate) fn missing(life: &MemberRef, ttl: Duration) -> Self {
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
            names: false,
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
    pub(crate) fn unknown_after(
        &self,
        not_before: Mono,
        looks: u32,
        apart: Duration,
        drift_ppm: u32,
    ) -> Duration {
        let newest = self.record.elapsed_ns;
        let time = apart.saturating_mul(looks);
        let forgotten = (self.sights.len() + looks as usize).saturating_sub(SIGHTS as usize);
        let latest = self.sights.iter().skip(forgotten).filter_map(|(seen, then)| {
            let elapsed = newest.checked_sub(*then)?.saturating_add(time);
            (elapsed <= self.record.ttl_ns * SIGHTS).then(|| begun_by(*seen, elapsed, drift_ppm))
        });
        let earliest = not_begun_before(not_before, time, drift_ppm);
        latest.min().map_or(Duration::MAX, |latest| latest.since(earliest))
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

    fn age(&self) -> Age {
        (self.incarnation.as_u128(), self.revision)
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
