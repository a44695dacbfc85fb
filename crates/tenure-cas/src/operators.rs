//! The operator's verbs: step down, pause, resume, evict, restored. None of them is a sign of
//! life: they leave the holder's beat alone, so that asking something of a dead holder
//! does not keep it alive. Each raises the holder's attention, by which the holder and
//! its followers notice it.

use tenure_core::{
    Amend, Amended, ElectionName, Era, MemberId, MemberRef, Namespace, Note, TermNumber,
};
use tenure_store::{Error, ErrorKind, Result};

use crate::cells::{ATTEMPTS, Cells, partly, too_busy};
use crate::eras::Eras;
use crate::judge::Hold;
use crate::lives::Lives;
use crate::members::{Edit, Life};
use crate::names::Floor;
use crate::parts::Parts;
use crate::record::election::{ElectionRecord, PauseRecord, StepDownRecord};
use crate::record::member::{EndedLife, MemberRecord};
use crate::seen::Seen;

/// What an edit of an election comes to.
enum Change {
    /// Write this.
    Write(Box<ElectionRecord>),
    /// Nothing to write: this is the answer.
    Answer(Amended),
}

/// What operators ask of elections and members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operators<'a> {
    parts: Parts<'a>,
    lives: Lives<'a>,
    eras: Eras<'a>,
    floor: Floor<'a>,
}

impl<'a> Operators<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self {
            parts: Parts::new(cells, ns),
            lives: Lives::new(cells, ns),
            eras: Eras::new(cells, ns),
            floor: Floor::new(cells, ns),
        }
    }
}

impl Operators<'_> {
    /// See [`Store::amend`](tenure_store::Store::amend).
    pub(crate) async fn amend(&self, amend: &Amend) -> Result<Amended> {
        match amend {
            Amend::StepDown { election, number, to, reason, by } => {
                let asked =
                    StepDownRecord { reason: reason.clone(), by: by.clone(), to: to.clone() };
                self.ask_to_step_down(election, *number, asked).await
            }
            Amend::Pause { election, reason, by } => self.pause(election, reason, by).await,
            Amend::Resume { election, .. } => self.resume(election).await,
            Amend::Evict { member, now, .. } => self.evict(member, *now).await,
            Amend::Restored { .. } => self.restored().await,
            Amend::Purge(_) => Err(no_purge()),
        }
    }

    /// M6: numbers go on by the clock, those of names too. Leaders go on leading.
    async fn restored(&self) -> Result<Amended> {
        // In case the clock is behind: a jump above what there still is.
        let elections = self.parts.reader.load_every_election().await?;
        let highest = elections.iter().map(|seen| seen.record.number().get()).max();
        let named = self.floor.load().await?;
        let (before, after) = self.eras.raise(highest.unwrap_or(0).max(named)).await?;
        partly(true, self.floor.raise(after.floor()).await)?;
        partly(true, self.call_all(after).await)?;
        Ok(Amended::Restored { before: before.count(), after: after.count() })
    }

    /// Every member looks at what it leads and owns: it may be among what was forgotten.
    async fn call_all(&self, era: Era) -> Result<()> {
        self.parts.reader.refresh_members(self.parts.cells.now()).await?;
        let prefix = self.parts.cells.keys.members(self.parts.ns);
        let members: Vec<Seen<MemberRecord>> =
            self.parts.cells.memory().members.below(&prefix).map(|(_, s)| s.clone()).collect();
        for seen in members.iter().filter(|seen| seen.record.ended.is_none()) {
            self.parts.members.raise_attention_by(&seen.record.member, |b| era.calls(b)).await?;
        }
        Ok(())
    }

    /// E5: kept beside the term it is meant for, and gone with it.
    async fn ask_to_step_down(
        &self,
        name: &ElectionName,
        number: Option<TermNumber>,
        asked: StepDownRecord,
    ) -> Result<Amended> {
        if asked.to.is_some() {
            self.parts.reader.refresh_members(self.parts.cells.now()).await?;
        }
        let edit = |seen: Option<&Seen<ElectionRecord>>| {
            let Some((seen, holder)) = seen.and_then(|s| Some((s, self.live_holder(s)?))) else {
                return Change::Answer(Amended::Vacant);
            };
            let present = seen.record.number();
            if number.is_some_and(|number| number != present) {
                return Change::Answer(Amended::Superseded { number: present });
            }
            let stands = |to: &MemberId| {
                self.parts
                    .candidates
                    .eligible(name, Some(&holder))
                    .iter()
                    .any(|s| s.member.id == *to)
            };
            if !asked.to.as_ref().is_none_or(stands) {
                return Change::Answer(Amended::NoSuchCandidate);
            }
            if seen.record.step_down.as_ref() == Some(&asked) {
                return Change::Answer(Amended::Unchanged);
            }
            let mut record = (*seen.record).clone();
            record.step_down = Some(asked.clone());
            Change::Write(Box::new(record))
        };
        self.edit_election(name, edit).await
    }

    /// E6: no member is newly elected; the incumbent stays.
    async fn pause(&self, name: &ElectionName, reason: &Note, by: &Note) -> Result<Amended> {
        let edit = |seen: Option<&Seen<ElectionRecord>>| {
            let vacant = || ElectionRecord::vacant(name.clone(), self.newest(name));
            let mut record = seen.map_or_else(vacant, |s| (*s.record).clone());
            if record.paused.is_some() {
                return Change::Answer(Amended::Unchanged);
            }
            record.paused = Some(PauseRecord { reason: reason.clone(), by: by.clone() });
            Change::Write(Box::new(record))
        };
        self.edit_election(name, edit).await
    }

    async fn resume(&self, name: &ElectionName) -> Result<Amended> {
        let edit = |seen: Option<&Seen<ElectionRecord>>| {
            let Some(seen) = seen.filter(|s| s.record.paused.is_some()) else {
                return Change::Answer(Amended::Unchanged);
            };
            let mut record = (*seen.record).clone();
            record.paused = None;
            Change::Write(Box::new(record))
        };
        self.edit_election(name, edit).await
    }

    fn newest(&self, name: &ElectionName) -> TermNumber {
        self.parts
            .cells
            .memory()
            .newest_number(&self.parts.cells.keys.election(self.parts.ns, name))
    }

    /// Changes an election's record, beginning again with what another process
    /// wrote meanwhile.
    async fn edit_election(
        &self,
        name: &ElectionName,
        edit: impl Fn(Option<&Seen<ElectionRecord>>) -> Change,
    ) -> Result<Amended> {
        let key = self.parts.cells.keys.election(self.parts.ns, name);
        for _ in 0..ATTEMPTS {
            let begun = self.parts.cells.step();
            let seen = self.parts.reader.load_election(&key).await?;
            self.parts.reader.load_holders_of(seen.iter(), begun).await?;
            let record = match edit(seen.as_ref()) {
                Change::Write(record) => record,
                Change::Answer(answer) => {
                    if let (Amended::Unchanged, Some(seen)) = (&answer, &seen) {
                        // The operator who asked before may not have told the holder.
                        self.tell_holder(seen).await?;
                    }
                    return Ok(answer);
                }
            };
            let swapped = self
                .parts
                .cells
                .swap(&key, seen.as_ref(), *record, self.parts.cells.now(), None)
                .await?;
            self.parts.cells.memory().may_have_changed(&key);
            if let Some(written) = swapped {
                partly(true, self.tell_holder(&written).await)?;
                return Ok(self.concerning(&written));
            }
        }
        Err(too_busy(&key))
    }

    /// Raises the attention of an election's holder.
    async fn tell_holder(&self, seen: &Seen<ElectionRecord>) -> Result<()> {
        match self.live_holder(seen) {
            Some(holder) => self.parts.members.raise_attention(&holder.id).await,
            None => Ok(()),
        }
    }

    /// Done, with the present term and its holder where there is one.
    fn concerning(&self, seen: &Seen<ElectionRecord>) -> Amended {
        let member = self.live_holder(seen);
        let number = member.is_some().then(|| seen.record.number());
        Amended::Done { number, member, remaining: self.parts.judge.hold(&seen.record).left() }
    }

    fn live_holder(&self, seen: &Seen<ElectionRecord>) -> Option<MemberRef> {
        let holder = seen.record.holder.as_ref().map(|h| h.member());
        let held =
            matches!(self.parts.judge.hold(&seen.record), Hold::Live(_) | Hold::Unproven { .. });
        holder.filter(|_| held)
    }

    /// Condemns a member, or ends it at once, with everything it holds.
    async fn evict(&self, id: &MemberId, at_once: bool) -> Result<Amended> {
        let key = self.parts.cells.keys.member(self.parts.ns, id);
        let seen = self.parts.cells.load::<MemberRecord>(&key).await?;
        let Some(seen) = seen.filter(|s| !self.parts.judge.member_left(s).is_zero()) else {
            return Ok(Amended::NoSuchMember);
        };
        let member = seen.record.member();
        let remaining = self.parts.judge.member_left(&seen);
        let done = Amended::Done { number: None, member: Some(member.clone()), remaining };
        if at_once {
            let ended = self.lives.end(&member, EndedLife::Evicted).await?;
            return Ok(if ended { done } else { Amended::NoSuchMember });
        }
        let mut wrote = false;
        let condemn = |record: &mut MemberRecord| {
            wrote = !std::mem::replace(&mut record.condemned, true);
            wrote
        };
        match self.parts.members.edit(&member, Edit::Note, condemn).await? {
            Life::Over { .. } => Ok(Amended::NoSuchMember),
            Life::Live(_) if wrote => Ok(done),
            Life::Live(_) => Ok(Amended::Unchanged),
        }
    }
}

/// A record that is deleted cannot be told from one that never was, and there is no step in
/// which it could be deleted and its number be kept elsewhere.
fn no_purge() -> Error {
    let what = "a store of single records cannot forget elections without their numbers coming \
                back; nothing was changed";
    Error::new(ErrorKind::Invalid, what).remedy(
        "keep the records of unused elections, or use a prefix of their own for each \
         batch of short-lived elections and delete all of it",
    )
}
