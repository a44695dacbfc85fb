//! The operator's verbs: step down, pause, resume, evict, restored.

use std::time::Duration;

use rusqlite::params;
use tenure_core::{
    Amend, Amended, ElectionName, EndCause, Happening, MemberId, Note, StepDown, TermNumber,
};

use crate::error::Outcome;
use crate::rows::{Election, Member};
use crate::txn::Txn;

impl Txn<'_> {
    /// An operator's request.
    pub(crate) fn amend(&mut self, amend: &Amend) -> Outcome<Amended> {
        match amend {
            Amend::StepDown { election, number, to, reason, by } => {
                let (reason, by) = (reason.clone(), by.clone());
                let asked = |number| StepDown { number, reason, by, to: to.clone() };
                self.step_down(election, *number, to.as_ref(), asked)
            }
            Amend::Pause { election, reason, by } => self.pause(election, reason, by),
            Amend::Resume { election, by } => self.resume(election, by),
            Amend::Evict { member, now, .. } => self.evict(member, *now),
            Amend::Restored { .. } => {
                let before = self.era()?.count();
                self.raise(0)?;
                Ok(Amended::Restored { before, after: self.era()?.count() })
            }
        }
    }

    /// E5: the request is kept beside the term it is meant for, and ends with it.
    fn step_down(
        &mut self,
        name: &ElectionName,
        meant: Option<TermNumber>,
        to: Option<&MemberId>,
        asked: impl FnOnce(TermNumber) -> StepDown,
    ) -> Outcome<Amended> {
        let election = self.election(name)?;
        let Some((holder, left)) = self.reign(&election)? else { return Ok(Amended::Vacant) };
        let number = election.number;
        if meant.is_some_and(|n| n != number) {
            return Ok(Amended::Superseded { number });
        }
        if let Some(to) = to {
            let ranked = self.ranked(&election)?;
            if !ranked.iter().any(|s| s.member.member.id == *to) {
                return Ok(Amended::NoSuchCandidate);
            }
        }
        let request = asked(number);
        if election.step_down.as_ref() == Some(&request) {
            return Ok(Amended::Unchanged);
        }
        let StepDown { reason, by, to, .. } = request;
        let to_id = to.as_ref().map(MemberId::as_str);
        let columns = params![self.ns, name.as_str(), reason.as_str(), by.as_str(), to_id];
        self.run(include_str!("../sql/election_step_down.sql"), columns)?;
        let attentive = params![self.ns, holder.member.id.as_str()];
        self.run(include_str!("../sql/member_attention.sql"), attentive)?;
        let election = name.clone();
        self.tell(Happening::StepDownAsked { election, number, reason, by, to })?;
        Ok(done(Some(number), &holder, left))
    }

    /// The live holder of an election, and what is left of its ttl.
    fn reign(&self, election: &Election) -> Outcome<Option<(Member, Duration)>> {
        let Some(holder) = &election.holder else { return Ok(None) };
        let Some(member) = self.recorded(holder)? else { return Ok(None) };
        let left = self.remaining(&member);
        Ok(left.map(|left| (member, left)))
    }

    /// E6: nobody is newly elected; the incumbent stays.
    fn pause(&mut self, name: &ElectionName, reason: &Note, by: &Note) -> Outcome<Amended> {
        let election = self.election(name)?;
        if election.paused.is_some() {
            return Ok(Amended::Unchanged);
        }
        self.run(include_str!("../sql/election_make.sql"), params![self.ns, name.as_str()])?;
        self.set_pause(name, Some((reason, by)))?;
        let (what, reason, by) = (name.clone(), reason.clone(), by.clone());
        self.tell(Happening::Paused { election: what, reason, by })?;
        self.concerning(&election)
    }

    fn resume(&mut self, name: &ElectionName, by: &Note) -> Outcome<Amended> {
        let election = self.election(name)?;
        if election.paused.is_none() {
            return Ok(Amended::Unchanged);
        }
        self.set_pause(name, None)?;
        self.tell(Happening::Resumed { election: name.clone(), by: by.clone() })?;
        self.forget_if_unused(name)?;
        self.concerning(&election)
    }

    fn set_pause(&self, name: &ElectionName, pause: Option<(&Note, &Note)>) -> Outcome<()> {
        let (reason, by) = pause.map(|(r, b)| (r.as_str(), b.as_str())).unzip();
        let columns = params![self.ns, name.as_str(), reason, by];
        self.run(include_str!("../sql/election_pause.sql"), columns)?;
        Ok(())
    }

    /// Done, with the present term and its holder where there is one.
    fn concerning(&self, election: &Election) -> Outcome<Amended> {
        Ok(match self.reign(election)? {
            Some((holder, left)) => done(Some(election.number), &holder, left),
            None => Amended::Done { number: None, member: None, remaining: Duration::ZERO },
        })
    }

    /// Condemns a member, or ends it at once.
    fn evict(&mut self, id: &MemberId, at_once: bool) -> Outcome<Amended> {
        let Some(member) = self.named(id)? else { return Ok(Amended::NoSuchMember) };
        let left = self.remaining(&member);
        // One whose ttl has run out may still be ended at once: it may hold what
        // nobody has bid for since.
        if left.is_none() && !at_once {
            return Ok(Amended::NoSuchMember);
        }
        if at_once {
            self.end(&member.member, EndCause::Evicted)?;
        } else if member.condemned {
            return Ok(Amended::Unchanged);
        } else {
            // What it holds stays its own until its ttl has run out, since it
            // may believe in it for that long.
            let condemned = params![self.ns, id.as_str()];
            self.run(include_str!("../sql/member_condemn.sql"), condemned)?;
        }
        Ok(done(None, &member, left.unwrap_or(Duration::ZERO)))
    }
}

fn done(number: Option<TermNumber>, member: &Member, remaining: Duration) -> Amended {
    Amended::Done { number, member: Some(member.member.clone()), remaining }
}
