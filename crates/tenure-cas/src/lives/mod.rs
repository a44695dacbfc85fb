//! A member's life: join, heartbeat, leave, and how it ends.

mod cleanup;
mod ending;

use std::time::Duration;

use serde_json::Map;
use tenure_core::{Beat, Heartbeat, Join, Joined, MemberRef, Mono, Namespace, Seq};
use tenure_store::Result;

use crate::cells::{ATTEMPTS, Cells, Renews, too_busy};
use crate::members::{Edit, Life};
use crate::names::{Floor, NameReader};
use crate::parts::Parts;
use crate::record::FORMAT;
use crate::record::member::{EndedLife, Holds, MemberRecord};
use crate::releases::Releases;
use crate::seen::Seen;

/// The lives of members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lives<'a> {
    parts: Parts<'a>,
    releases: Releases<'a>,
    names: NameReader<'a>,
    floor: Floor<'a>,
}

impl<'a> Lives<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self {
            parts: Parts::new(cells, ns),
            releases: Releases::new(cells, ns),
            names: NameReader::new(cells, ns),
            floor: Floor::new(cells, ns),
        }
    }
}

impl Lives<'_> {
    /// See [`Store::join`](tenure_store::Store::join).
    pub(crate) async fn join(&self, join: &Join) -> Result<Joined> {
        let key = self.parts.cells.keys.member(self.parts.ns, &join.member.id);
        for _ in 0..ATTEMPTS {
            let seen = self.parts.cells.load::<MemberRecord>(&key).await?;
            let mut record = match self.admit(&key, join, seen.as_ref()).await? {
                Ok(record) => record,
                Err(taken) => return Ok(taken),
            };
            let renews = Renews { life: join.member.incarnation, asked: join.ttl };
            // Read before the swap is sent: the life may count on no more than from here.
            let started = self.parts.cells.now();
            record.clock = self.parts.cells.clock_id;
            record.elapsed_ns = started.since(Mono::ZERO);
            let written =
                self.parts.cells.swap(&key, seen.as_ref(), record, started, Some(renews)).await?;
            if let Some(written) = written {
                self.remove_long_dead(true).await;
                return Ok(Joined::In { attention: written.record.attention, seq: Seq::START });
            }
        }
        Err(too_busy(&key))
    }

    /// The record to write for a newcomer, or why it has to wait or to come
    /// back under another id. A life that is there and live is replaced only on the very
    /// version of its record that says it holds nothing. A win in between is no win
    /// before its heartbeat has changed that record, and then the newcomer's swap
    /// conflicts (C1).
    async fn admit(
        &self,
        key: &str,
        join: &Join,
        seen: Option<&Seen<MemberRecord>>,
    ) -> Result<Result<MemberRecord, Joined>> {
        let life = join.member.incarnation;
        let left = seen.map_or(Duration::ZERO, |s| self.parts.judge.member_left(s));
        let taken = |by| Ok(Err(Joined::Taken { by, remaining: left }));
        // A copy of the join may arrive after the end, when the record shows another life
        // or none. This process knows that it ended the life itself.
        if self.parts.cells.memory().is_over(key, life) {
            return taken(life);
        }
        let Some(other) = seen else { return Ok(Ok(self.newcomer(join, None))) };
        let is_over = |past: &MemberRecord| past.past.contains(&life);
        if other.record.incarnation == life {
            let over = other.record.ended.is_some() || other.record.condemned;
            // M1: a join that comes again renews no more than a heartbeat would.
            if over || self.parts.judge.own_ran_out(key, life, other) {
                return taken(life);
            }
            return Ok(Ok(again(&other.record, join)));
        }
        if is_over(&other.record) {
            return taken(life);
        }
        let may_end = left.is_zero()
            || join.supersede
                && self.parts.cells.decide.is_idle(self.parts.reader, &other.record).await?;
        if !may_end {
            return taken(other.record.incarnation);
        }
        Ok(Ok(self.newcomer(join, Some(&other.record))))
    }

    fn newcomer(&self, join: &Join, before: Option<&MemberRecord>) -> MemberRecord {
        MemberRecord {
            tenure: FORMAT,
            member: join.member.id.clone(),
            incarnation: join.member.incarnation,
            revision: before.map_or(0, |b| b.revision),
            beat: 1,
            ttl_ns: join.ttl,
            clock: 0,
            elapsed_ns: Duration::ZERO,
            profile: join.profile.clone(),
            joined_at_ms: self.parts.cells.clock.wall().unix_millis(),
            condemned: false,
            attention: 0,
            changes: 0,
            holds: Holds::Nothing,
            names: before.is_some_and(|b| b.names),
            ended: None,
            past: before.map(MemberRecord::lives_before_the_next).unwrap_or_default(),
            other: Map::new(),
        }
    }

    /// See [`Store::heartbeat`](tenure_store::Store::heartbeat). One swap, whatever the
    /// member holds.
    pub(crate) async fn heartbeat(&self, beat: &Heartbeat) -> Result<Beat> {
        let alive =
            |attention| Beat::Alive { attention, holds: None, seq: Seq::START, terms: Vec::new() };
        if let Some(attention) = self.already_granted(beat) {
            return Ok(alive(attention));
        }
        let ttl = self.ttl_to_write(beat);
        let renew = |record: &mut MemberRecord| {
            record.ttl_ns = ttl;
            true
        };
        match self.parts.members.edit(&beat.member, Edit::Beat(beat.ttl), renew).await? {
            Life::Live(seen) => Ok(alive(seen.record.attention)),
            Life::Over { superseded } => Ok(Beat::Ended { superseded }),
        }
    }

    /// A member that holds nothing and beats at its pace is granted more than it
    /// asks for, so that two heartbeats of three find their ttl in the record
    /// already. That costs no other member anything: nothing becomes free by its end.
    fn ttl_to_write(&self, beat: &Heartbeat) -> Duration {
        let key = self.parts.cells.keys.member(self.parts.ns, &beat.member.id);
        let life = beat.member.incarnation;
        let memory = self.parts.cells.memory();
        let idle = !memory
            .holds_anything(&self.parts.cells.keys.elections(self.parts.ns), &beat.member)
            && !memory.owns_names(&key, life);
        let steady = memory.asked(&key, life) == Some(beat.ttl);
        let paced = memory
            .written(&key, life)
            .is_some_and(|started| self.parts.cells.now().since(started) >= beat.ttl / 8);
        // At the usual quarter of a ttl, five eighths on top cover the two beats after this
        // one, and leave an eighth for beats that come late.
        if idle && steady && paced {
            return beat.ttl.saturating_add(beat.ttl / 2 + beat.ttl / 8);
        }
        beat.ttl
    }

    /// The member's attention, if what is written already grants the ttl asked
    /// for, counted from now, with something to spare.
    fn already_granted(&self, beat: &Heartbeat) -> Option<u64> {
        let key = self.parts.cells.keys.member(self.parts.ns, &beat.member.id);
        let life = beat.member.incarnation;
        let known = self.parts.cells.known::<MemberRecord>(&key)?;
        let record = &known.record;
        let memory = self.parts.cells.memory();
        let started = memory.written(&key, life)?;
        let granted = record.shows(life)
            && !record.condemned
            && memory.asked(&key, life) == Some(beat.ttl)
            && record.changes >= memory.changes(life)
            && !memory
                .holds_anything(&self.parts.cells.keys.elections(self.parts.ns), &beat.member)
            && !memory.owns_names(&key, life)
            && record.ttl_ns > beat.ttl
            && started + record.ttl_ns >= self.parts.cells.now() + beat.ttl;
        granted.then_some(record.attention)
    }

    /// See [`Store::leave`](tenure_store::Store::leave). One swap ends the life and
    /// with it everything it holds; the rest is tidying up.
    pub(crate) async fn leave(&self, member: &MemberRef) -> Result<()> {
        let key = self.parts.cells.keys.member(self.parts.ns, &member.id);
        self.parts.cells.load::<MemberRecord>(&key).await?;
        self.end(member, EndedLife::Left).await?;
        self.parts.cells.memory().ended(&key, member.incarnation);
        Ok(())
    }
}

/// A repeated join: as if it were the first.
fn again(record: &MemberRecord, join: &Join) -> MemberRecord {
    let mut record = record.clone();
    record.beat = record.beat.wrapping_add(1);
    record.ttl_ns = join.ttl;
    record.profile = join.profile.clone();
    record
}
