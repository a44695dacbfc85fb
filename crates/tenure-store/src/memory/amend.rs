//! The operator's verbs: step down, pause, resume, evict, restored.

use std::time::Duration;

use tenure_core::{
    Amend, Amended, ElectionName, EndCause, Happening, MemberId, Mono, Note, Pause, StepDown,
    TermNumber, Timestamp,
};

use super::state::{Member, MemoryState};

impl MemoryState {
    /// An operator's request; see [`Store::amend`](crate::Store::amend).
    pub fn amend(&mut self, now: Mono, wall: Timestamp, amend: &Amend) -> Amended {
        match amend {
            Amend::StepDown { election, number, to, reason, by } => {
                let asked = Asked { number: *number, to: to.as_ref(), reason, by };
                self.step_down(now, wall, election, &asked)
            }
            Amend::Pause { election, reason, by } => self.pause(now, wall, election, reason, by),
            Amend::Resume { election, by } => self.resume(now, wall, election, by),
            Amend::Evict { member, now: at_once, .. } => self.evict(now, wall, member, *at_once),
            Amend::Restored { .. } => {
                let before = self.era.count();
                self.promote(wall);
                Amended::Restored { before, after: self.era.count() }
            }
        }
    }

    /// E5: the request is kept beside the term it is meant for, and ends with it.
    fn step_down(
        &mut self,
        now: Mono,
        wall: Timestamp,
        name: &ElectionName,
        asked: &Asked<'_>,
    ) -> Amended {
        let Some((number, holder)) = self.reign(now, name) else { return Amended::Vacant };
        if asked.number.is_some_and(|n| n != number) {
            return Amended::Superseded { number };
        }
        if !asked.to.is_none_or(|to| self.may_succeed(now, name, to)) {
            return Amended::NoSuchCandidate;
        }
        let done = done(now, Some(number), holder);
        let holder = holder.member.id.clone();
        let Some(election) = self.elections.get_mut(name) else { return Amended::Vacant };
        let request = asked.of(number);
        if election.step_down.as_ref() == Some(&request) {
            return Amended::Unchanged;
        }
        election.step_down = Some(request);
        if let Some(holder) = self.members.get_mut(&holder) {
            holder.attention += 1;
        }
        self.journal.write(wall, asked.entry(name, number));
        done
    }

    /// The present term's number and its live holder.
    fn reign(&self, now: Mono, name: &ElectionName) -> Option<(TermNumber, &Member)> {
        let election = self.elections.get(name).filter(|e| !e.has_lapsed(now))?;
        let holder = self.recorded(&election.holder.as_ref()?.member)?;
        holder.is_live(now).then_some((election.number, holder))
    }

    fn may_succeed(&self, now: Mono, name: &ElectionName, to: &MemberId) -> bool {
        self.elections.get(name).is_some_and(|e| self.ranked(now, e).contains(to))
    }

    /// E6: nobody is newly elected; the incumbent stays.
    fn pause(
        &mut self,
        now: Mono,
        wall: Timestamp,
        name: &ElectionName,
        reason: &Note,
        by: &Note,
    ) -> Amended {
        let election = self.elections.entry(name.clone()).or_default();
        if election.paused.is_some() {
            return Amended::Unchanged;
        }
        election.paused = Some(Pause { reason: reason.clone(), by: by.clone() });
        let (election, reason, by) = (name.clone(), reason.clone(), by.clone());
        self.journal.write(wall, Happening::Paused { election, reason, by });
        self.concerning(now, name)
    }

    fn resume(&mut self, now: Mono, wall: Timestamp, name: &ElectionName, by: &Note) -> Amended {
        let paused = self.elections.get_mut(name).and_then(|e| e.paused.take());
        if paused.is_none() {
            return Amended::Unchanged;
        }
        let (election, by) = (name.clone(), by.clone());
        self.journal.write(wall, Happening::Resumed { election, by });
        let amended = self.concerning(now, name);
        self.forget_if_unused(name);
        amended
    }

    /// Done, with the present term and its holder where there is one.
    fn concerning(&self, now: Mono, name: &ElectionName) -> Amended {
        match self.reign(now, name) {
            Some((number, holder)) => done(now, Some(number), holder),
            None => Amended::Done { number: None, member: None, remaining: Duration::ZERO },
        }
    }

    /// Condemns a member, or ends it at once.
    fn evict(&mut self, now: Mono, wall: Timestamp, id: &MemberId, at_once: bool) -> Amended {
        // One whose ttl has run out may still be ended at once: it may hold what
        // nobody has bid for since.
        let found = self.members.get_mut(id).filter(|m| at_once || m.is_live(now));
        let Some(member) = found else { return Amended::NoSuchMember };
        let done = done(now, None, member);
        if at_once {
            let member = member.member.clone();
            self.end(wall, &member, EndCause::Evicted);
            return done;
        }
        // What it holds stays its own until its ttl has run out, since it may
        // believe in it for that long.
        if std::mem::replace(&mut member.condemned, true) { Amended::Unchanged } else { done }
    }
}

fn done(now: Mono, number: Option<TermNumber>, member: &Member) -> Amended {
    let remaining = member.remaining(now);
    Amended::Done { number, member: Some(member.member.clone()), remaining }
}

/// A step-down as the operator put it.
struct Asked<'a> {
    number: Option<TermNumber>,
    to: Option<&'a MemberId>,
    reason: &'a Note,
    by: &'a Note,
}

impl Asked<'_> {
    fn of(&self, number: TermNumber) -> StepDown {
        let (reason, by) = (self.reason.clone(), self.by.clone());
        StepDown { number, reason, by, to: self.to.cloned() }
    }

    fn entry(&self, name: &ElectionName, number: TermNumber) -> Happening {
        let StepDown { number, reason, by, to } = self.of(number);
        Happening::StepDownAsked { election: name.clone(), number, reason, by, to }
    }
}
