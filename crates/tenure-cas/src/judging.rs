//! The observer's rule: what is left of a life, and whether a term still hangs
//! on one.

use std::time::Duration;

use tenure_core::{EndCause, Incarnation, Mono, Namespace, ReleaseCause, widened};

use super::anchor::begun_by;
use super::election::{ElectionRecord, HolderRecord};
use super::handle::{ATTEMPTS, Handle, too_busy};
use super::member::{EndedLife, MemberRecord};
use super::mutation::CasRule;
use super::seen::Seen;
use tenure_store::{ErrorKind, Result};

/// It is known well enough when a beat began if it is known to this part of the ttl:
/// a dead holder is taken over that much later at most.
const KNOWN_WELL: u32 = 10;

/// What a term hangs on.
#[derive(Clone, Debug)]
pub(super) enum Hold {
    /// Nobody holds the election.
    Vacant,
    /// A life that has this much left.
    Live(Duration),
    /// A life that has been silent for its whole ttl, and has not been ended:
    /// that has to be done before its terms may be taken (rule M2).
    Silent(Seen<MemberRecord>),
    /// A life that is proven over, or waited out.
    Over(ReleaseCause),
    /// A life of which the member's record says nothing, with this much left to
    /// wait. `absent` if there is no record at all.
    Unproven { left: Duration, absent: bool },
}

impl Hold {
    /// What is left before the term may be taken, as far as is known.
    pub(super) fn left(&self) -> Duration {
        match self {
            Hold::Live(left) | Hold::Unproven { left, .. } => *left,
            Hold::Vacant | Hold::Silent(_) | Hold::Over(_) => Duration::ZERO,
        }
    }
}

impl Handle {
    /// How long an observer waits for a sign of life that is due once a ttl: the
    /// ttl, widened by drift, and a fortieth of it on top. The fortieth costs
    /// little and lets one who looks once a ttl see the beat that has just been
    /// sent, instead of the one before it.
    pub(super) fn patience(&self, ttl: Duration) -> Duration {
        widened(ttl, self.options.drift_ppm).saturating_add(ttl / 40)
    }

    /// What is left, for others, of a ttl that began by then.
    pub(super) fn left(&self, since: Mono, ttl: Duration) -> Duration {
        self.patience(ttl).saturating_sub(self.now().since(since))
    }

    /// What is left, for others, of a member's life.
    pub(super) fn member_left(&self, seen: &Seen<MemberRecord>) -> Duration {
        if seen.record.ended.is_some() {
            return Duration::ZERO;
        }
        self.left(seen.since, seen.record.ttl_ns)
    }

    /// Whether a member is known to be dead: ended, or still silent when it was
    /// last looked at. One that was not looked at for long may well live.
    pub(super) fn is_dead(&self, seen: &Seen<MemberRecord>) -> bool {
        let silent = seen.looked.since(seen.since);
        seen.record.ended.is_some() || silent >= self.patience(seen.record.ttl_ns)
    }

    /// Whether a life of this handle's own may not renew this record any more:
    /// its ttl has passed since it began to write it last, or, if that was
    /// through another handle, since it was first seen here (rule M1).
    pub(super) fn own_ran_out(
        &self,
        key: &str,
        life: Incarnation,
        seen: &Seen<MemberRecord>,
    ) -> bool {
        let started = self.memory().written(key, life).unwrap_or(seen.since);
        self.now().since(started) >= seen.record.ttl_ns
    }

    /// When to look at a live holder again: when its ttl is over, so that one look
    /// a ttl does. A look in the middle of the time in which a beat may begin halves
    /// what is unknown of it, whether it finds the beat or not. So if too little will
    /// be known a look later, the look comes with the last beat of the ttl; if it is
    /// too little already, as it always is where clocks may be far apart, with the
    /// next beat.
    pub(super) fn look_in(&self, seen: &Seen<MemberRecord>) -> Duration {
        let (left, ttl) = (self.member_left(seen), seen.record.ttl_ns);
        if left < ttl / 2 {
            return left;
        }
        let Some((not_before, pace)) = seen.rhythm else { return left.min(ttl / 4) };
        let unknown = |looks| seen.unknown_after(not_before, looks, left, self.options.drift_ppm);
        if unknown(2) < ttl / KNOWN_WELL || pace > ttl / 2 {
            return left;
        }
        let next = self.next_beat(seen, not_before, pace).since(self.now()).min(left);
        if unknown(1) < ttl / KNOWN_WELL {
            return next + pace * beats_in(left.saturating_sub(next), pace);
        }
        next
    }

    /// When to look for the next beat: in the middle of the time in which it may
    /// begin; and if it was not there then, at the end of that time, so that there is
    /// a look that comes soon after a beat.
    fn next_beat(&self, seen: &Seen<MemberRecord>, not_before: Mono, pace: Duration) -> Mono {
        let now = self.now();
        let middle = not_before + pace + seen.since.since(not_before) / 2;
        let end = begun_by(seen.since, pace, self.options.drift_ppm);
        if now >= middle && now < end {
            return end;
        }
        let late = now.since(middle);
        let beats = beats_in(late, pace) + u32::from(!late.is_zero());
        middle + pace * beats
    }

    /// What the term of this record hangs on, by what is known of its holder.
    pub(super) fn hold(&self, ns: &Namespace, record: &ElectionRecord) -> Hold {
        let Some(holder) = &record.holder else { return Hold::Vacant };
        let key = self.keys.member(ns, &holder.member);
        let member = self.known::<MemberRecord>(&key);
        if let Some(cause) = member.as_ref().and_then(|m| m.record.proves_over(holder.incarnation))
        {
            return Hold::Over(ReleaseCause::Ended(cause));
        }
        match member {
            Some(seen) if seen.record.shows(holder.incarnation) => match self.member_left(&seen) {
                Duration::ZERO => Hold::Silent(seen),
                left => Hold::Live(left),
            },
            other => self.unproven(&key, holder, other.is_none()),
        }
    }

    /// Nothing is known of this life but that its term was won: its ttl is
    /// waited out from when that was noticed.
    fn unproven(&self, key: &str, holder: &HolderRecord, absent: bool) -> Hold {
        let over = Hold::Over(ReleaseCause::Ended(EndCause::Expired));
        if self.breaks(CasRule::MissingIsOver) {
            return over;
        }
        let since = self.memory().missing_since(key, holder.incarnation);
        match since.map_or(self.patience(holder.ttl_ns), |since| self.left(since, holder.ttl_ns)) {
            Duration::ZERO => over,
            left => Hold::Unproven { left, absent },
        }
    }

    /// Ends a silent life, on exactly the version in which it was silent. `false`
    /// if the record has changed since: it may live after all.
    pub(super) async fn end_silent(&self, key: &str, seen: &Seen<MemberRecord>) -> Result<bool> {
        let mut record = (*seen.record).clone();
        let condemned = record.condemned;
        record.ended = Some(if condemned { EndedLife::Evicted } else { EndedLife::Expired });
        let ended = self.swap(key, Some(seen), record, self.now(), None).await?;
        if ended.is_none() {
            self.load::<MemberRecord>(key).await?;
        }
        Ok(ended.is_some())
    }

    /// Makes sure that a life whose record is missing cannot go on: puts a mark
    /// in its place. Somebody else's will do, and so will a record that nobody
    /// can read, since nobody can renew it.
    async fn mark_missing(&self, ns: &Namespace, holder: &HolderRecord) -> Result<()> {
        let key = self.keys.member(ns, &holder.member);
        let mark = MemberRecord::missing(&holder.member(), holder.ttl_ns);
        if self.swap(&key, None, mark, self.now(), None).await?.is_none() {
            match self.load::<MemberRecord>(&key).await {
                Err(error) if error.kind() != ErrorKind::Foreign => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Begins to count, if nothing is known of the life a term hangs on. Where
    /// there is no record at all, whoever wants the term counts anew from the
    /// mark it puts there.
    pub(super) fn note_missing(&self, ns: &Namespace, record: &ElectionRecord) {
        let Some(holder) = &record.holder else { return };
        if let Hold::Unproven { .. } = self.hold(ns, record) {
            let (key, now) = (self.keys.member(ns, &holder.member), self.now());
            self.memory().is_missing(&key, holder.incarnation, now);
        }
    }

    /// What the term of this record hangs on, once everything is done that lets
    /// it be taken: a silent life is ended, a missing one is marked.
    pub(super) async fn settle(&self, ns: &Namespace, record: &ElectionRecord) -> Result<Hold> {
        let Some(holder) = &record.holder else { return Ok(Hold::Vacant) };
        let key = self.keys.member(ns, &holder.member);
        if let Hold::Unproven { absent: true, .. } = self.hold(ns, record) {
            self.mark_missing(ns, holder).await?;
            let now = self.now();
            if self.known::<MemberRecord>(&key).is_none_or(|m| !m.record.shows(holder.incarnation))
            {
                let mut memory = self.memory();
                memory.nothing_missing(&key, holder.incarnation);
                memory.is_missing(&key, holder.incarnation, now);
            }
        }
        for _ in 0..ATTEMPTS {
            match self.hold(ns, record) {
                Hold::Silent(_) if self.breaks(CasRule::TakenNotEnded) => {
                    return Ok(Hold::Over(ReleaseCause::Ended(EndCause::Expired)));
                }
                Hold::Silent(seen) => {
                    self.end_silent(&key, &seen).await?;
                }
                settled => return Ok(settled),
            }
        }
        Err(too_busy(&key))
    }
}

/// How many beats fit into that time.
fn beats_in(time: Duration, pace: Duration) -> u32 {
    let beats = time.as_nanos().checked_div(pace.as_nanos());
    beats.and_then(|beats| u32::try_from(beats).ok()).unwrap_or(0)
}
