//! The operator's verbs: step down, pause, resume, evict. None of them is a
//! sign of life: they leave the record's stamp alone, so that asking something
//! of a dead holder does not keep it alive.

use tenure_core::{
    Amend, Amended, ElectionName, EndCause, MemberId, MemberRef, Namespace, Note, ReleaseCause,
    TermNumber,
};

use super::handle::{ATTEMPTS, Handle, partly, too_busy};
use super::members::{Life, Need};
use super::record::{ElectionRecord, MemberRecord, PauseRecord, StepDownRecord};
use super::seen::Seen;
use crate::Result;

/// What an edit of an election comes to.
enum Edit {
    /// Write this.
    Write(Box<ElectionRecord>),
    /// Nothing to write: this is the answer.
    Answer(Amended),
}

impl Handle {
    /// See [`Store::amend`](crate::Store::amend).
    pub(super) async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        match amend {
            Amend::StepDown { election, number, to, reason, by } => {
                let asked =
                    StepDownRecord { reason: reason.clone(), by: by.clone(), to: to.clone() };
                self.ask_to_step_down(ns, election, *number, asked).await
            }
            Amend::Pause { election, reason, by } => self.pause(ns, election, reason, by).await,
            Amend::Resume { election, .. } => self.resume(ns, election).await,
            Amend::Evict { member, now, .. } => self.evict(ns, member, *now).await,
        }
    }

    /// E5: kept beside the term it is meant for, and gone with it.
    async fn ask_to_step_down(
        &self,
        ns: &Namespace,
        name: &ElectionName,
        number: Option<TermNumber>,
        asked: StepDownRecord,
    ) -> Result<Amended> {
        if asked.to.is_some() {
            self.refresh_members(ns, self.now()).await?;
        }
        let edit = |seen: Option<&Seen<ElectionRecord>>| {
            let Some((seen, holder)) = seen.and_then(|s| Some((s, self.live_holder(s)?))) else {
                return Edit::Answer(Amended::Vacant);
            };
            let present = seen.record.number();
            if number.is_some_and(|number| number != present) {
                return Edit::Answer(Amended::Superseded { number: present });
            }
            let stands = |to: &MemberId| {
                self.ranked(ns, name, Some(&holder.id)).iter().any(|s| s.member.id == *to)
            };
            if !asked.to.as_ref().is_none_or(stands) {
                return Edit::Answer(Amended::NoSuchCandidate);
            }
            if seen.record.step_down.as_ref() == Some(&asked) {
                return Edit::Answer(Amended::Unchanged);
            }
            let mut record = (*seen.record).clone();
            record.step_down = Some(asked.clone());
            Edit::Write(Box::new(record))
        };
        let amended = self.edit_election(ns, name, edit).await?;
        if let Amended::Done { member: Some(holder), .. } = &amended {
            self.nudge(ns, &holder.id).await;
        }
        Ok(amended)
    }

    /// E6: nobody is newly elected; the incumbent stays.
    async fn pause(
        &self,
        ns: &Namespace,
        name: &ElectionName,
        reason: &Note,
        by: &Note,
    ) -> Result<Amended> {
        let edit = |seen: Option<&Seen<ElectionRecord>>| {
            let vacant = || ElectionRecord::vacant(name.clone(), self.newest(ns, name));
            let mut record = seen.map_or_else(vacant, |s| (*s.record).clone());
            if record.paused.is_some() {
                return Edit::Answer(Amended::Unchanged);
            }
            record.paused = Some(PauseRecord { reason: reason.clone(), by: by.clone() });
            Edit::Write(Box::new(record))
        };
        self.edit_election(ns, name, edit).await
    }

    async fn resume(&self, ns: &Namespace, name: &ElectionName) -> Result<Amended> {
        let edit = |seen: Option<&Seen<ElectionRecord>>| {
            let Some(seen) = seen.filter(|s| s.record.paused.is_some()) else {
                return Edit::Answer(Amended::Unchanged);
            };
            let mut record = (*seen.record).clone();
            record.paused = None;
            Edit::Write(Box::new(record))
        };
        self.edit_election(ns, name, edit).await
    }

    fn newest(&self, ns: &Namespace, name: &ElectionName) -> TermNumber {
        self.memory().newest_number(&self.keys.election(ns, name))
    }

    /// Changes an election's record, beginning again with whatever somebody
    /// else wrote meanwhile.
    async fn edit_election(
        &self,
        ns: &Namespace,
        name: &ElectionName,
        edit: impl Fn(Option<&Seen<ElectionRecord>>) -> Edit,
    ) -> Result<Amended> {
        let key = self.keys.election(ns, name);
        for _ in 0..ATTEMPTS {
            let seen = self.load(&key).await?;
            let record = match edit(seen.as_ref()) {
                Edit::Write(record) => record,
                Edit::Answer(answer) => return Ok(answer),
            };
            if let Some(written) = self.swap(&key, seen.as_ref(), *record, None).await? {
                return Ok(self.concerning(&written));
            }
        }
        Err(too_busy(&key))
    }

    /// Done, with the present term and its holder where there is one.
    fn concerning(&self, seen: &Seen<ElectionRecord>) -> Amended {
        let member = self.live_holder(seen);
        let number = member.is_some().then(|| seen.record.number());
        Amended::Done { number, member, remaining: self.holder_left(seen) }
    }

    fn live_holder(&self, seen: &Seen<ElectionRecord>) -> Option<MemberRef> {
        let holder = seen.record.holder.as_ref().map(|h| h.member());
        holder.filter(|_| !self.holder_left(seen).is_zero())
    }

    /// Condemns a member, or ends it at once. Even then it is condemned first:
    /// its heartbeats renew nothing from there on, and an eviction that is
    /// interrupted can be asked for again.
    async fn evict(&self, ns: &Namespace, id: &MemberId, at_once: bool) -> Result<Amended> {
        let key = self.keys.member(ns, id);
        let seen = self.load::<MemberRecord>(&key).await?;
        let Some(seen) = seen.filter(|s| !self.member_left(s).is_zero()) else {
            return Ok(Amended::NoSuchMember);
        };
        let (member, remaining) = (seen.record.member(), self.member_left(&seen));
        let mut wrote = false;
        let condemn = |record: &mut MemberRecord| {
            wrote = !std::mem::replace(&mut record.condemned, true);
            wrote
        };
        let life = self.edit_member(ns, &member, Need::Record, false, condemn).await?;
        if let Life::Over { .. } = life {
            return Ok(Amended::NoSuchMember);
        }
        if at_once {
            partly(wrote, self.end_now(ns, &member).await)?;
        } else if !wrote {
            return Ok(Amended::Unchanged);
        }
        Ok(Amended::Done { number: None, member: Some(member), remaining })
    }

    /// Frees what a condemned member holds, and then removes it.
    async fn end_now(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        let cause = ReleaseCause::Ended(EndCause::Evicted);
        let elections = self.load_elections(ns).await?;
        let held: Vec<_> = elections.iter().filter(|s| s.record.is_held_by(member)).collect();
        let vacated = held.iter().map(|s| self.vacate(ns, &s.record.election, member, cause));
        let mut wrote = false;
        for vacated in self.all(vacated.collect()).await {
            wrote |= partly(wrote, vacated)?;
        }
        partly(wrote, self.remove_member(ns, member).await)
    }
}
