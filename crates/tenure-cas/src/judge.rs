//! What is left of a life, and whether a term still hangs on one: the observer's rule.
//! Nothing here asks the register or writes to it.

use std::time::Duration;

use tenure_core::{EndCause, Incarnation, MemberRef, Mono, Namespace, ReleaseCause, widened};

use crate::anchor::begun_by;
use crate::cells::Cells;
use crate::record::election::ElectionRecord;
use crate::record::member::MemberRecord;
use crate::seen::Seen;

/// It is known well enough when a beat began if it is known to this part of the ttl:
/// a dead holder is taken over that much later at most.
const KNOWN_WELL: u32 = 10;

/// Beats that come more often than this in a ttl are not waited for one by one: loads at
/// this pace know a beat well. Two beats may come close together, as after a pause, and
/// the pace that they seem to have must not make a candidate load and bid as fast.
const MOST_LOADS: u32 = 2 * KNOWN_WELL;

/// What a term hangs on.
#[derive(Clone, Debug)]
pub(crate) enum Hold {
    /// No member holds the election.
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
    pub(crate) fn left(&self) -> Duration {
        match self {
            Hold::Live(left) | Hold::Unproven { left, .. } => *left,
            Hold::Vacant | Hold::Silent(_) | Hold::Over(_) => Duration::ZERO,
        }
    }
}

/// The life that a term or a name hangs on.
#[derive(Clone, Debug)]
pub(crate) struct HangsOn {
    pub(crate) life: MemberRef,
    /// What it stated, to be waited out where nothing can be learnt of it.
    pub(crate) ttl: Duration,
}

/// When a record may be replaced, by what this observer has seen of it and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judge<'a> {
    cells: &'a Cells,
    ns: &'a Namespace,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self { cells, ns }
    }
}

impl Judge<'_> {
    /// How long an observer waits for a sign of life that is due once a ttl: the
    /// ttl, widened by drift, and a fortieth of it on top. The fortieth costs
    /// little and lets an observer that looks once a ttl see the beat that has just been
    /// sent, instead of the one before it. One that is told of beats needs none.
    pub(crate) fn patience(&self, ttl: Duration) -> Duration {
        let widened = widened(ttl, self.cells.options.drift_ppm);
        if self.is_told(ttl) { widened } else { widened.saturating_add(ttl / 40) }
    }

    /// Whether the register tells of changes, and has told something within a ttl.
    pub(crate) fn is_told(&self, ttl: Duration) -> bool {
        self.cells.watched_since(self.ns, ttl).is_some()
    }

    /// What is left, for others, of a ttl that began by then.
    pub(crate) fn left(&self, since: Mono, ttl: Duration) -> Duration {
        self.patience(ttl).saturating_sub(self.cells.now().since(since))
    }

    /// What is left, for others, of a member's life.
    pub(crate) fn member_left(&self, seen: &Seen<MemberRecord>) -> Duration {
        // An end needs no waiting out: a heartbeat in flight conflicts with the swap that
        // wrote it.
        if seen.record.ended.is_some() {
            return Duration::ZERO;
        }
        self.left(seen.since, seen.record.ttl_ns)
    }

    /// Whether a member is known to be dead: ended, or silent for its ttl when its record
    /// was last loaded, or until now if the register would have told of a heartbeat. A member
    /// whose record was not loaded for long may well live. This ends no life.
    pub(crate) fn is_dead(&self, seen: &Seen<MemberRecord>) -> bool {
        let since = self.cells.watched_since(self.ns, seen.record.ttl_ns);
        let is_told = since.is_some_and(|since| seen.heard > since);
        let until = if is_told { self.cells.now() } else { seen.looked };
        let silent = until.since(seen.since);
        seen.record.ended.is_some() || silent >= self.patience(seen.record.ttl_ns)
    }

    /// Whether a life may not renew its own record any more: its ttl has passed since
    /// this observer began to write it last, or, if it was written through another one,
    /// since it was first seen here (rule M1).
    pub(crate) fn own_ran_out(
        &self,
        key: &str,
        life: Incarnation,
        seen: &Seen<MemberRecord>,
    ) -> bool {
        let started = self.cells.memory().written(key, life).unwrap_or(seen.since);
        self.cells.now().since(started) >= seen.record.ttl_ns
    }

    /// How long to wait before a live holder's record is loaded again.
    ///
    /// Usually until its ttl is over: one load a ttl is enough. But a take-over is as
    /// late as the start of the last beat is uncertain. A load in the middle of the time
    /// in which the next beat may begin halves that uncertainty, whether it finds the
    /// beat or not. So if the uncertainty will be too large one load later, the load
    /// comes with the last beat of the ttl; if it is too large already, as it always is
    /// where clocks may be far apart, with the next beat.
    pub(crate) fn load_again_in(&self, seen: &Seen<MemberRecord>) -> Duration {
        let left = self.member_left(seen);
        let ttl = seen.record.ttl_ns;
        // More than half has passed without a beat: the holder beats seldom, or is gone.
        // The load at the end of its ttl tells which, and is due in any case.
        if left < ttl / 2 {
            return left;
        }
        // The next beat is told.
        if self.is_told(ttl) {
            return left;
        }
        // A pace takes two beats to know. Until then it is taken to be the usual one.
        let Some((not_before, pace)) = seen.rhythm else { return left.min(ttl / 4) };
        let unknown =
            |looks| seen.unknown_after(not_before, looks, left, self.cells.options.drift_ppm);
        // A holder that beats that seldom has no beat in between for which to come.
        if unknown(2) < ttl / KNOWN_WELL || pace > ttl / 2 {
            return left;
        }
        if pace < ttl / MOST_LOADS {
            return left.min(ttl / MOST_LOADS);
        }
        let next = self.next_beat(seen, not_before, pace).since(self.cells.now()).min(left);
        if unknown(1) < ttl / KNOWN_WELL {
            return next + pace * beats_in(left.saturating_sub(next), pace);
        }
        next
    }

    /// When to load for the next beat: in the middle of the time in which it may begin;
    /// and if it was not there then, at the end of that time, so that one load comes soon
    /// after a beat.
    fn next_beat(&self, seen: &Seen<MemberRecord>, not_before: Mono, pace: Duration) -> Mono {
        let now = self.cells.now();
        let middle = not_before + pace + seen.since.since(not_before) / 2;
        let end = begun_by(seen.since, pace, self.cells.options.drift_ppm);
        if now >= middle && now < end {
            return end;
        }
        let late = now.since(middle);
        let beats = beats_in(late, pace) + u32::from(!late.is_zero());
        middle + pace * beats
    }

    /// What the term of this record hangs on, by what is known of its holder.
    pub(crate) fn hold(&self, record: &ElectionRecord) -> Hold {
        record.holder.as_ref().map_or(Hold::Vacant, |holder| self.hold_on(&holder.hangs_on()))
    }

    /// The same, of whatever hangs on this life.
    pub(crate) fn hold_on(&self, on: &HangsOn) -> Hold {
        let life = on.life.incarnation;
        let key = self.cells.keys.member(self.ns, &on.life.id);
        let member = self.cells.known::<MemberRecord>(&key);
        // Before anything that is counted: proof needs no time to pass.
        if let Some(cause) = member.as_ref().and_then(|m| m.record.proves_over(life)) {
            return Hold::Over(ReleaseCause::Ended(cause));
        }
        match member {
            Some(seen) if seen.record.shows(life) => match self.member_left(&seen) {
                Duration::ZERO => Hold::Silent(seen),
                left => Hold::Live(left),
            },
            other => self.unproven(&key, on, other.is_none()),
        }
    }

    /// Nothing is known of this life but that its term was won: its ttl is
    /// waited out from when that was noticed.
    fn unproven(&self, key: &str, on: &HangsOn, absent: bool) -> Hold {
        // Not counted from when the term was won, which is a wall clock's word: from when
        // this observer first found nothing, by its own clock.
        let since = self.cells.memory().missing_since(key, on.life.incarnation);
        let left = since.map_or(self.patience(on.ttl), |since| self.left(since, on.ttl));
        match self.cells.decide.left_of_missing(left) {
            Duration::ZERO => Hold::Over(ReleaseCause::Ended(EndCause::Expired)),
            left => Hold::Unproven { left, absent },
        }
    }

    /// The members not known to be dead, with what others may count on.
    pub(crate) fn live_members(&self) -> Vec<(Seen<MemberRecord>, Duration)> {
        let prefix = self.cells.keys.members(self.ns);
        let known: Vec<_> =
            self.cells.memory().members.below(&prefix).map(|(_, s)| s.clone()).collect();
        let live = known.into_iter().filter(|seen| !self.is_dead(seen));
        live.map(|seen| {
            let left = self.member_left(&seen);
            (seen, left)
        })
        .collect()
    }

    /// Begins to count, if nothing is known of the life a term hangs on. Where there is
    /// no record at all, a bidder counts anew from the mark it puts there.
    pub(crate) fn note_missing(&self, on: &HangsOn) {
        if let Hold::Unproven { .. } = self.hold_on(on) {
            let key = self.cells.keys.member(self.ns, &on.life.id);
            let now = self.cells.now();
            self.cells.memory().is_missing(&key, on.life.incarnation, now);
        }
    }
}

/// How many beats fit into that time.
fn beats_in(time: Duration, pace: Duration) -> u32 {
    let beats = time.as_nanos().checked_div(pace.as_nanos());
    beats.and_then(|beats| u32::try_from(beats).ok()).unwrap_or(0)
}
