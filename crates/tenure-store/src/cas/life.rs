//! The verbs of a member's life: join, heartbeat, leave.

use std::time::Duration;

use serde_json::Map;
use tenure_core::{
    Beat, Heartbeat, Join, Joined, MemberRef, Namespace, ReleaseCause, Seq, TermBeat, TermOutcome,
    TermRef,
};

use super::handle::{ATTEMPTS, Handle, partly, too_busy};
use super::members::{Life, Need};
use super::record::{ElectionRecord, FORMAT, MemberRecord};
use super::seen::Seen;
use crate::Result;

impl Handle {
    /// See [`Store::join`](crate::Store::join).
    pub(super) async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        let key = self.keys.member(ns, &join.member.id);
        for _ in 0..ATTEMPTS {
            let seen = self.load::<MemberRecord>(&key).await?;
            let record = match self.admit(ns, &key, join, seen.as_ref()).await? {
                Ok(record) => record,
                Err(taken) => return Ok(taken),
            };
            let life = Some(join.member.incarnation);
            if let Some(written) = self.swap(&key, seen.as_ref(), record, life).await? {
                self.collect(ns).await;
                return Ok(Joined::In { attention: written.record.attention, seq: Seq::START });
            }
        }
        Err(too_busy(&key))
    }

    /// The record to write for a newcomer, or why it has to wait or to come
    /// back as somebody else.
    async fn admit(
        &self,
        ns: &Namespace,
        key: &str,
        join: &Join,
        seen: Option<&Seen<MemberRecord>>,
    ) -> Result<Result<MemberRecord, Joined>> {
        let life = join.member.incarnation;
        let left = seen.map_or(Duration::ZERO, |s| self.member_left(s));
        let taken = |by| Ok(Err(Joined::Taken { by, remaining: left }));
        if self.memory().is_over(key, life) {
            return taken(life);
        }
        let Some(other) = seen else { return Ok(Ok(self.newcomer(join, 0))) };
        if other.record.incarnation == life {
            let ttl = other.record.ttl_ns;
            if other.record.condemned || self.own_ran_out(key, life, other, ttl) {
                return taken(life);
            }
            return Ok(Ok(again(&other.record, join)));
        }
        let may_end = left.is_zero()
            || join.supersede && !self.holds_anything(ns, &other.record.member()).await?;
        if !may_end {
            return taken(other.record.incarnation);
        }
        Ok(Ok(self.newcomer(join, other.record.revision)))
    }

    fn newcomer(&self, join: &Join, revision: u64) -> MemberRecord {
        MemberRecord {
            tenure: FORMAT,
            member: join.member.id.clone(),
            incarnation: join.member.incarnation,
            revision,
            beat: 1,
            ttl_ns: join.ttl,
            profile: join.profile.clone(),
            joined_at_ms: self.clock.wall().unix_millis(),
            condemned: false,
            attention: 0,
            candidacies: Vec::new(),
            other: Map::new(),
        }
    }

    /// Whether this life holds any election. Joins are rare enough to look at
    /// all of them.
    async fn holds_anything(&self, ns: &Namespace, member: &MemberRef) -> Result<bool> {
        let elections = self.load_elections(ns).await?;
        Ok(elections.iter().any(|s| s.record.is_held_by(member) && !self.holder_left(s).is_zero()))
    }

    /// See [`Store::heartbeat`](crate::Store::heartbeat).
    ///
    /// The member's record first: it says whether this life goes on at all, and
    /// an operator's eviction is written there. Then the terms, each on its own
    /// record. If only the member's record cannot be reached, the terms are
    /// renewed all the same, since nobody judges them by it.
    pub(super) async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        let renew = |record: &mut MemberRecord| {
            record.ttl_ns = beat.ttl;
            true
        };
        let member = self.edit_member(ns, &beat.member, Need::Life, true, renew).await;
        if let Ok(Life::Over { superseded }) = member {
            return Ok(Beat::Ended { superseded });
        }
        let terms = beat.held.iter().map(|term| self.beat_term(ns, beat, term)).collect();
        let terms = self.all(terms).await;
        let attention = match member {
            Ok(Life::Live(seen)) => seen.record.attention,
            Ok(Life::Over { .. }) => 0,
            Err(error) if terms.iter().all(|t| t.outcome == TermOutcome::Unknown) => {
                return Err(if beat.held.is_empty() { error } else { error.maybe_applied() });
            }
            Err(_) => self.known_attention(ns, &beat.member),
        };
        Ok(Beat::Alive { attention, holds: None, seq: Seq::START, terms })
    }

    fn known_attention(&self, ns: &Namespace, member: &MemberRef) -> u64 {
        let known = self.known::<MemberRecord>(&self.keys.member(ns, &member.id));
        known.map_or(0, |seen| seen.record.attention)
    }

    async fn beat_term(&self, ns: &Namespace, beat: &Heartbeat, term: &TermRef) -> TermBeat {
        // Unclear or failed, it is the same to the holder: trust was not
        // extended, and the next heartbeat finds out.
        let renewed = self.renew_term(ns, beat, term).await;
        TermBeat { term: term.clone(), outcome: renewed.unwrap_or(TermOutcome::Unknown) }
    }

    /// Renews one term by a swap on what is known of its record; if that has
    /// changed, looks whether it is still the same term of the same life, and
    /// carries over whatever an operator wrote there.
    async fn renew_term(
        &self,
        ns: &Namespace,
        beat: &Heartbeat,
        term: &TermRef,
    ) -> Result<TermOutcome> {
        let key = self.keys.election(ns, &term.election);
        let life = beat.member.incarnation;
        let mut seen = self.known::<ElectionRecord>(&key);
        for attempt in 0..=ATTEMPTS {
            let Some(mine) = seen.filter(|s| is_term_of(&s.record, &beat.member, term)) else {
                if attempt == 0 {
                    seen = self.load(&key).await?;
                    continue;
                }
                self.memory().gave_up(&key, life);
                return Ok(TermOutcome::Lost);
            };
            let ttl = mine.record.holder.as_ref().map_or(Duration::ZERO, |h| h.ttl_ns);
            if self.own_ran_out(&key, life, &mine, ttl) {
                return Ok(TermOutcome::Lost);
            }
            let mut record = (*mine.record).clone();
            record.renew(beat.ttl);
            if let Some(written) = self.swap(&key, Some(&mine), record, Some(life)).await? {
                return Ok(TermOutcome::Renewed { step_down: written.record.step_down() });
            }
            seen = self.load(&key).await?;
        }
        Err(too_busy(&key))
    }

    /// See [`Store::leave`](crate::Store::leave). The terms go first: whoever is
    /// interrupted in between is still a member and can leave again.
    pub(super) async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        let key = self.keys.member(ns, &member.id);
        let seen = self.load::<MemberRecord>(&key).await?;
        let recorded = seen.filter(|s| s.record.incarnation == member.incarnation);
        let mut names: Vec<_> = self.known_held(ns, member);
        if let Some(seen) = &recorded {
            names.extend(seen.record.candidacies.iter().map(|c| c.election.clone()));
        }
        names.sort();
        names.dedup();
        let vacated = names.iter().map(|name| self.vacate(ns, name, member, ReleaseCause::Left));
        let mut wrote = false;
        let mut failed = None;
        for vacated in self.all(vacated.collect()).await {
            match vacated {
                Ok(changed) => wrote |= changed,
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return partly(wrote, Err(error));
        }
        partly(wrote, self.remove_member(ns, member).await)?;
        self.memory().ended(&key, member.incarnation);
        Ok(())
    }
}

/// Whether the record shows exactly this term of exactly this life (rule E1).
fn is_term_of(record: &ElectionRecord, member: &MemberRef, term: &TermRef) -> bool {
    record.number() == term.number && record.is_held_by(member)
}

/// A repeated join: as if it were the first.
fn again(record: &MemberRecord, join: &Join) -> MemberRecord {
    let mut record = record.clone();
    record.beat = record.beat.wrapping_add(1);
    record.ttl_ns = join.ttl;
    record.profile = join.profile.clone();
    record
}
