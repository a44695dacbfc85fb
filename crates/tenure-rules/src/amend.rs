//! The operator's verbs: step down, pause, resume, evict, restored. What a purge does stands
//! in `purge.rs`.

use core::time::Duration;

use tenure_core::{
    Amend, Amended, ElectionName, EndCause, Happening, MemberId, Mono, Note, Pause, StepDown,
    TermNumber,
};

use crate::purge;
use crate::rank::may_follow;
use crate::rows::{ElectionRow, EraCause, MemberRow, Moment, ReadRows, WriteRows};
use crate::step::Step;
use crate::view::View;

/// An operator's request.
pub fn amend<R: WriteRows>(rows: &mut R, at: Moment, amend: &Amend) -> Result<Amended, R::Error> {
    Step::run(rows, at, |step| match amend {
        Amend::StepDown { election, number, to, reason, by } => {
            let to = to.clone();
            let reason = reason.clone();
            let by = by.clone();
            let asked = |number| StepDown { number, reason, by, to };
            step.step_down(election, *number, asked)
        }
        Amend::Pause { election, reason, by } => {
            step.pause(election, Pause { reason: reason.clone(), by: by.clone() })
        }
        Amend::Resume { election, by } => step.resume(election, by),
        Amend::Evict { member, now: at_once, .. } => step.evict(member, *at_once),
        Amend::Restored { .. } => {
            let before = step.rows.era()?.count();
            step.raise(0, EraCause::Restored)?;
            Ok(Amended::Restored { before, after: step.rows.era()?.count() })
        }
        Amend::Purge(purge) => purge::purge(step, purge).map(Amended::Purged),
    })
}

impl<R: WriteRows> Step<'_, R> {
    /// E5: the request is kept beside the term it is meant for, and ends with it.
    fn step_down(
        &mut self,
        name: &ElectionName,
        meant: Option<TermNumber>,
        asked: impl FnOnce(TermNumber) -> StepDown,
    ) -> Result<Amended, R::Error> {
        let mut election = self.view().election(name)?;
        let Some(holder) = self.view().live_holder(&election)? else {
            return Ok(Amended::Vacant);
        };
        let number = election.number;
        if meant.is_some_and(|meant| meant != number) {
            return Ok(Amended::Superseded { number });
        }
        let request = asked(number);
        if let Some(to) = &request.to
            && !self.view().may_succeed(&election, to)?
        {
            return Ok(Amended::NoSuchCandidate);
        }
        if election.step_down.as_ref() == Some(&request) {
            return Ok(Amended::Unchanged);
        }
        election.step_down = Some(request.clone());
        self.rows.put_election(&election)?;
        self.call_attention(&holder.member);
        let StepDown { reason, by, to, .. } = request;
        self.tell(Happening::StepDownAsked { election: election.name, number, reason, by, to })?;
        Ok(done(self.at.now, Some(number), &holder))
    }

    /// E6: no member is newly elected; the incumbent stays.
    fn pause(&mut self, name: &ElectionName, pause: Pause) -> Result<Amended, R::Error> {
        let mut election = self.view().election(name)?;
        if election.paused.is_some() {
            return Ok(Amended::Unchanged);
        }
        election.paused = Some(pause.clone());
        self.rows.put_election(&election)?;
        let Pause { reason, by } = pause;
        self.tell(Happening::Paused { election: name.clone(), reason, by })?;
        self.concerning(&election)
    }

    fn resume(&mut self, name: &ElectionName, by: &Note) -> Result<Amended, R::Error> {
        let mut election = self.view().election(name)?;
        if election.paused.take().is_none() {
            return Ok(Amended::Unchanged);
        }
        self.rows.put_election(&election)?;
        self.tell(Happening::Resumed { election: name.clone(), by: by.clone() })?;
        self.forget_if_unused(&election)?;
        self.concerning(&election)
    }

    /// Done, with the present term and its holder where there is one.
    fn concerning(&self, election: &ElectionRow) -> Result<Amended, R::Error> {
        Ok(match self.view().live_holder(election)? {
            Some(holder) => done(self.at.now, Some(election.number), &holder),
            None => Amended::Done { number: None, member: None, remaining: Duration::ZERO },
        })
    }

    /// Condemns a member, or ends it at once.
    fn evict(&mut self, id: &MemberId, at_once: bool) -> Result<Amended, R::Error> {
        // A member whose ttl has run out may still be ended at once: it may hold terms for
        // which no other has bid since.
        let found = self.rows.member(id)?;
        let Some(mut row) = found.filter(|row| at_once || row.is_live(self.at.now)) else {
            return Ok(Amended::NoSuchMember);
        };
        if at_once {
            self.end(&row.member, EndCause::Evicted)?;
        } else if row.condemned {
            return Ok(Amended::Unchanged);
        } else {
            // What it holds stays its own until its ttl has run out, since it may believe
            // in it for that long.
            row.condemned = true;
            self.rows.put_member(&row)?;
        }
        Ok(done(self.at.now, None, &row))
    }
}

impl<R: ReadRows> View<'_, R> {
    /// The live holder of the present term.
    fn live_holder(&self, election: &ElectionRow) -> Result<Option<MemberRow>, R::Error> {
        let Some(held) = &election.holder else { return Ok(None) };
        if self.has_lapsed(election)? {
            return Ok(None);
        }
        Ok(self.recorded(&held.member)?.filter(|row| row.is_live(self.now)))
    }

    /// Whether a member is a live candidate that may lead after the holder.
    fn may_succeed(&self, election: &ElectionRow, to: &MemberId) -> Result<bool, R::Error> {
        let holder = election.holder.as_ref().map(|held| &held.member);
        let standing = self.standing(&election.name)?;
        Ok(standing.iter().any(|one| one.member.member.id == *to && may_follow(one, holder)))
    }
}

fn done(now: Mono, number: Option<TermNumber>, row: &MemberRow) -> Amended {
    Amended::Done { number, member: Some(row.member.clone()), remaining: row.remaining(now) }
}
