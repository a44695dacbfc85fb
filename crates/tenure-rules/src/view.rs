//! What rows mean at one moment: who lives, who may lead, and what is shown of it.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_core::{
    Candidate, ElectionName, ElectionView, EndCause, HeldUp, Holder, MemberRef, MemberView, Mono,
    Priority, Reservation,
};

use crate::rank::{self, Stands};
use crate::rows::{CandidacyRow, ElectionRow, Held, MemberRow, ReadRows, Reserved};

/// How soon a bidder asks again whether the work of a member that is over has ended. The
/// store may tell it sooner; this is in case it does not.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Rows at one moment.
#[derive(Debug)]
pub(crate) struct View<'a, R> {
    pub(crate) rows: &'a R,
    pub(crate) now: Mono,
}

/// A candidacy and the member it belongs to, who lives and may act.
pub(crate) struct Standing {
    pub(crate) candidacy: CandidacyRow,
    pub(crate) member: MemberRow,
}

impl Stands for Standing {
    fn member(&self) -> &MemberRef {
        &self.candidacy.member
    }

    fn priority(&self) -> Priority {
        self.candidacy.priority
    }

    fn place(&self) -> u64 {
        self.candidacy.stood.get()
    }
}

impl<R: ReadRows> View<'_, R> {
    /// Exactly this life, live or not, as long as it was not ended.
    pub(crate) fn recorded(&self, member: &MemberRef) -> Result<Option<MemberRow>, R::Error> {
        Ok(self.rows.member(&member.id)?.filter(|row| row.member == *member))
    }

    /// Exactly this life, if it may still act for itself (rule M1): live, not condemned.
    pub(crate) fn acting(&self, member: &MemberRef) -> Result<Option<MemberRow>, R::Error> {
        let found = self.recorded(member)?;
        Ok(found.filter(|row| row.is_live(self.now) && !row.condemned))
    }

    /// Whether another life goes by this one's id.
    pub(crate) fn superseded(&self, member: &MemberRef) -> Result<bool, R::Error> {
        Ok(self.rows.member(&member.id)?.is_some_and(|row| row.member != *member))
    }

    /// Why a member may be ended now; `None` while others must reckon with it.
    pub(crate) fn fate(&self, row: &MemberRow) -> Result<Option<EndCause>, R::Error> {
        if !row.is_live(self.now) {
            let condemned = row.condemned;
            return Ok(Some(if condemned { EndCause::Evicted } else { EndCause::Expired }));
        }
        Ok(self.rows.is_proven_dead(row)?.then_some(EndCause::ProvenDead))
    }

    /// An election, as a blank one if there is no row for it.
    pub(crate) fn election(&self, name: &ElectionName) -> Result<ElectionRow, R::Error> {
        let found = self.rows.election(name)?;
        Ok(found.unwrap_or_else(|| ElectionRow::new(name.clone())))
    }

    /// The live candidates, the preferred first: the holder and those that never lead
    /// among them, the condemned not.
    pub(crate) fn standing(&self, name: &ElectionName) -> Result<Vec<Standing>, R::Error> {
        let mut standing = Vec::new();
        for (candidacy, member) in self.rows.candidates(name)? {
            if !member.condemned && self.fate(&member)?.is_none() {
                standing.push(Standing { candidacy, member });
            }
        }
        standing.sort_by(rank::compare);
        Ok(standing)
    }

    /// The reservation of a vacancy, while its time has not run out and the heir lives.
    pub(crate) fn reservation<'e>(
        &self,
        election: &'e ElectionRow,
    ) -> Result<Option<&'e Reserved>, R::Error> {
        let Some(kept) = election.reserved.as_ref().filter(|kept| self.now < kept.until) else {
            return Ok(None);
        };
        let Some(heir) = self.rows.member(&kept.member)? else { return Ok(None) };
        Ok(self.fate(&heir)?.is_none().then_some(kept))
    }

    /// The holder, if its term was handed over in the present era. Whether such a term
    /// was confirmed or given back may be among what the store forgot, so that in a later
    /// era it is a term like any other.
    pub(crate) fn handed<'e>(
        &self,
        election: &'e ElectionRow,
    ) -> Result<Option<&'e Held>, R::Error> {
        let Some(held) = election.holder.as_ref().filter(|held| held.handed) else {
            return Ok(None);
        };
        Ok((self.rows.era()?.count() == election.era).then_some(held))
    }

    /// What is left of a term that was handed over and not confirmed; `None` for any
    /// other.
    pub(crate) fn unconfirmed(&self, election: &ElectionRow) -> Result<Option<Duration>, R::Error> {
        let lapses = self.handed(election)?.and_then(|held| held.lapses);
        Ok(lapses.map(|lapses| lapses.since(self.now)))
    }

    /// Whether a term that was handed over was not confirmed in time.
    pub(crate) fn has_lapsed(&self, election: &ElectionRow) -> Result<bool, R::Error> {
        Ok(self.unconfirmed(election)?.is_some_and(|left| left.is_zero()))
    }

    /// One election as it stands.
    pub(crate) fn election_view(
        &self,
        election: &ElectionRow,
        asker: Option<&MemberRef>,
        list_candidates: bool,
    ) -> Result<ElectionView, R::Error> {
        let holder = self.holder(election)?;
        let reserved = self.reservation(election)?.map(|kept| Reservation {
            member: kept.member.clone(),
            remaining: kept.until.since(self.now),
        });
        let standing = match asker.is_some() || list_candidates {
            true => self.standing(&election.name)?,
            false => Vec::new(),
        };
        let holding = election.holder.as_ref().map(|held| &held.member);
        let ahead = asker.map_or(0, |asker| rank::ahead(&standing, holding, asker));
        let shown = standing.into_iter().filter(|_| list_candidates);
        let held_up = match holder {
            Some(_) => None,
            None => self.held_up(election)?,
        };
        Ok(ElectionView {
            election: election.name.clone(),
            number: election.number,
            step_down: election.step_down.clone().filter(|_| holder.is_some()),
            holder,
            paused: election.paused.clone(),
            reserved,
            held_up,
            ahead,
            candidates: shown.map(|one| self.candidate(one)).collect(),
        })
    }

    fn candidate(&self, standing: Standing) -> Candidate {
        let CandidacyRow { member, priority, since, .. } = standing.candidacy;
        Candidate { member, priority, waiting: self.now.since(since) }
    }

    /// The holder, unless its ttl has run out, or what it was handed has lapsed:
    /// every reader sees a vacancy (rule N3).
    fn holder(&self, election: &ElectionRow) -> Result<Option<Holder>, R::Error> {
        let Some(held) = &election.holder else { return Ok(None) };
        let unconfirmed = self.unconfirmed(election)?;
        if unconfirmed.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        let live = self.recorded(&held.member)?.filter(|row| row.is_live(self.now));
        let Some(row) = live else { return Ok(None) };
        let remaining = row.remaining(self.now);
        Ok(Some(Holder {
            member: row.member,
            profile: row.profile,
            elected_at: held.elected_at,
            ttl: row.ttl,
            remaining: remaining.min(unconfirmed.unwrap_or(Duration::MAX)),
            unconfirmed: unconfirmed.is_some(),
        }))
    }

    /// What keeps a vacancy from being won: processes still work for a holder that is over.
    /// A term that lapsed is free all the same, since it was never led.
    fn held_up(&self, election: &ElectionRow) -> Result<Option<HeldUp>, R::Error> {
        let Some(held) = &election.holder else { return Ok(None) };
        if self.has_lapsed(election)? {
            return Ok(None);
        }
        let Some(row) = self.recorded(&held.member)? else { return Ok(None) };
        let works = self.rows.is_at_work(&row)?;
        Ok(works.then_some(HeldUp::Processes { member: row.member }))
    }

    /// A member, if it lives.
    pub(crate) fn member_view(&self, row: MemberRow) -> Option<MemberView> {
        let remaining = row.remaining(self.now);
        row.is_live(self.now).then_some(MemberView {
            member: row.member,
            profile: row.profile,
            ttl: row.ttl,
            remaining,
            joined_at: row.joined_at,
            holds: row.holds,
        })
    }
}
