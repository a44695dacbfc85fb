//! The verbs of a member's life: join, heartbeat, leave.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_core::{
    Beat, EndCause, Happening, Heartbeat, Join, Joined, MemberRef, TermBeat, TermOutcome, TermRef,
};

use crate::rows::{MemberRow, Moment, WriteRows};
use crate::step::Step;

/// Makes a member.
pub fn join<R: WriteRows>(rows: &mut R, at: Moment, join: &Join) -> Result<Joined, R::Error> {
    Step::run(rows, at, |step| step.join(join))
}

/// Renews a live member.
pub fn heartbeat<R: WriteRows>(
    rows: &mut R,
    at: Moment,
    beat: &Heartbeat,
) -> Result<Beat, R::Error> {
    Step::run(rows, at, |step| step.heartbeat(beat))
}

/// Ends the caller's own life.
///
/// A member whose ttl has run out may still leave, as long as it was not ended: that only
/// frees what no other has taken yet.
pub fn leave<R: WriteRows>(rows: &mut R, at: Moment, member: &MemberRef) -> Result<(), R::Error> {
    Step::run(rows, at, |step| {
        if step.view().recorded(member)?.is_some() {
            step.tell(Happening::Left { member: member.clone() })?;
            step.remove(member)?;
        }
        Ok(())
    })
}

impl<R: WriteRows> Step<'_, R> {
    fn join(&mut self, join: &Join) -> Result<Joined, R::Error> {
        self.catch_up(join.seen)?;
        if let Some(row) = self.view().acting(&join.member)? {
            return self.join_again(row, join);
        }
        if let Some(taken) = self.taken(join)? {
            return Ok(taken);
        }
        self.make_room(&join.member)?;
        self.collect()?;
        self.sweep()?;
        self.admit(join)
    }

    /// A repeated request: as if it were the first, except that it is not news.
    fn join_again(&mut self, mut row: MemberRow, join: &Join) -> Result<Joined, R::Error> {
        row.profile = join.profile.clone();
        row.inherits = join.inherits;
        self.rows.put_member(&row)?;
        self.rows.renew_member(&join.member, self.at.now, join.ttl)?;
        Ok(Joined::In { attention: row.attention, seq: self.rows.seq() })
    }

    /// Why a newcomer has to wait, or has to come back with another incarnation.
    fn taken(&self, join: &Join) -> Result<Option<Joined>, R::Error> {
        let view = self.view();
        let found = self.rows.member(&join.member.id)?;
        let is_own = found.as_ref().is_some_and(|row| row.member == join.member);
        // M1: this life is recorded but does not act any more, or the journal saw it end.
        if is_own || self.rows.end_of(&join.member)?.is_some() {
            let own = found.filter(|_| is_own);
            let remaining = own.map_or(Duration::ZERO, |row| row.remaining(self.at.now));
            return Ok(Some(Joined::Taken { by: join.member.incarnation, remaining }));
        }
        let Some(other) = found else { return Ok(None) };
        let is_over = view.fate(&other)?.is_some() && !self.rows.is_at_work(&other)?;
        if is_over || join.supersede && self.holds_nothing(&other)? {
            return Ok(None);
        }
        let remaining = other.remaining(self.at.now);
        Ok(Some(Joined::Taken { by: other.member.incarnation, remaining }))
    }

    fn holds_nothing(&self, row: &MemberRow) -> Result<bool, R::Error> {
        Ok(row.holds == 0 && self.rows.names_of(&row.member, 1)?.is_empty())
    }

    /// Ends the older life of an id that a newcomer may replace.
    fn make_room(&mut self, newcomer: &MemberRef) -> Result<(), R::Error> {
        let Some(older) = self.rows.member(&newcomer.id)? else { return Ok(()) };
        let cause = self.view().fate(&older)?.unwrap_or(EndCause::Superseded);
        self.end(&older.member, cause)
    }

    /// Ends the dead who hold nothing. Only a join adds members, so that this keeps them
    /// from growing without bound (H27). Those that hold terms stay until another member wants
    /// the terms (rule M2).
    fn collect(&mut self) -> Result<(), R::Error> {
        for idle in self.rows.idle_members()? {
            if let Some(cause) = self.view().fate(&idle)? {
                self.end(&idle.member, cause)?;
            }
        }
        Ok(())
    }

    fn admit(&mut self, join: &Join) -> Result<Joined, R::Error> {
        let row = MemberRow {
            member: join.member.clone(),
            profile: join.profile.clone(),
            ttl: join.ttl,
            until: self.at.now + join.ttl,
            joined_at: self.at.wall,
            attention: 0,
            condemned: false,
            inherits: join.inherits,
            holds: 0,
        };
        self.rows.add_member(&row)?;
        let joined = Happening::Joined { member: row.member, profile: row.profile };
        let seq = self.tell(joined)?;
        Ok(Joined::In { attention: row.attention, seq })
    }

    fn heartbeat(&mut self, beat: &Heartbeat) -> Result<Beat, R::Error> {
        // M1: one that is not live now stays as dead as it is.
        let Some(row) = self.view().acting(&beat.member)? else {
            return Ok(Beat::Ended { superseded: self.view().superseded(&beat.member)? });
        };
        self.rows.renew_member(&beat.member, self.at.now, beat.ttl)?;
        let mut terms = Vec::with_capacity(beat.held.len());
        for term in &beat.held {
            let outcome = self.confirm(&beat.member, term)?;
            terms.push(TermBeat { term: term.clone(), outcome });
        }
        let attention = row.attention;
        let holds = Some(row.holds);
        Ok(Beat::Alive { attention, holds, seq: self.rows.seq(), terms })
    }

    /// A term that was handed over is confirmed by a heartbeat that names it.
    fn confirm(&mut self, caller: &MemberRef, term: &TermRef) -> Result<TermOutcome, R::Error> {
        let Some(loaded) = self.rows.election(&term.election)? else {
            return Ok(TermOutcome::Lost);
        };
        let is_own = loaded.number == term.number && loaded.is_held_by(caller);
        if !is_own || self.view().has_lapsed(&loaded)? {
            return Ok(TermOutcome::Lost);
        }
        let mut election = loaded.clone();
        election.confirm();
        self.put_changed(Some(&loaded), &election)?;
        Ok(TermOutcome::Renewed { step_down: election.step_down })
    }
}
