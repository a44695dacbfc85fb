//! One atomic step: the few ways in which a term begins, and in which a term or a member
//! comes to its end.

use alloc::collections::BTreeMap;
use core::time::Duration;

use tenure_core::{
    EndCause, Entry, Happening, MemberId, MemberRef, Nonce, ReleaseCause, Seq, Term, TermNumber,
    Told,
};

use crate::rank;
use crate::rows::{
    ElectionRow, EraCause, ForgottenRow, Held, MemberRow, Moment, Reserved, WriteRows,
};
use crate::view::View;

/// How many candidacies and how many names of an ended life one step clears away at most.
pub(crate) const SWEPT: usize = 64;

/// Rows being changed at one moment.
#[derive(Debug)]
pub(crate) struct Step<'a, R> {
    pub(crate) rows: &'a mut R,
    pub(crate) at: Moment,
    /// Written at the end of the step, so that a request about a thousand elections
    /// writes each member's row once.
    changes: BTreeMap<MemberRef, Change>,
    /// How many names were cleared away.
    pub(crate) swept: usize,
}

/// What a step adds to a member's row.
#[derive(Debug, Default)]
struct Change {
    holds: i32,
    attention: u64,
}

/// What becomes of a vacancy; by default nothing.
#[derive(Debug, Default)]
pub(crate) struct Keep<'a> {
    /// The candidate it is kept for, and how long, instead of the preferred one.
    pub(crate) successor: Option<&'a (MemberId, Duration)>,
    pub(crate) grace: Duration,
    /// See [`Release::confirm_within`](tenure_core::Release::confirm_within).
    pub(crate) confirm_within: Duration,
}

/// The candidate that is next, how long a vacancy is kept for it, and how long a term
/// that is handed to it stands without its confirmation.
struct Heir {
    member: MemberRow,
    grace: Duration,
    unconfirmed: Duration,
}

impl<'a, R: WriteRows> Step<'a, R> {
    /// Carries out one step, and then writes what it changed of members' rows.
    pub(crate) fn run<T>(
        rows: &'a mut R,
        at: Moment,
        verb: impl FnOnce(&mut Self) -> Result<T, R::Error>,
    ) -> Result<T, R::Error> {
        let mut step = Self { rows, at, changes: BTreeMap::new(), swept: 0 };
        let answer = verb(&mut step)?;
        for (member, change) in core::mem::take(&mut step.changes) {
            // The terms of a life that is over are void: it counts nothing any more.
            // Read anew: the verb may have renewed the row, or ended the member.
            if let Some(mut row) = step.view().recorded(&member)? {
                row.holds = row.holds.saturating_add_signed(change.holds);
                row.attention += change.attention;
                step.rows.put_member(&row)?;
            }
        }
        Ok(answer)
    }

    /// The rows as they are now.
    pub(crate) fn view(&self) -> View<'_, R> {
        View { rows: &*self.rows, now: self.at.now }
    }

    fn change(&mut self, member: &MemberRef) -> &mut Change {
        self.changes.entry(member.clone()).or_default()
    }

    /// Asks a member to look at what concerns it.
    pub(crate) fn call_attention(&mut self, member: &MemberRef) {
        self.change(member).attention += 1;
    }

    /// Writes one journal entry.
    pub(crate) fn tell(&mut self, what: Happening) -> Result<Seq, R::Error> {
        let seq = self.rows.seq().next();
        self.rows.append(Entry { seq, at: self.at.wall, what })?;
        Ok(seq)
    }

    /// A member has seen more than the journal has: what it saw was forgotten (rule M6).
    /// In the same step in which that is found out, and before any number is given out.
    pub(crate) fn catch_up(&mut self, seen: Told) -> Result<(), R::Error> {
        if self.rows.seq() < seen.place {
            // The journal goes on behind what was seen, so that no place has two entries for
            // those who follow.
            self.rows.go_on_after(seen.place)?;
            self.raise(seen.number.get(), EraCause::Seen)?;
        }
        Ok(())
    }

    /// Begins the era that follows, above a number that was told.
    pub(crate) fn raise(&mut self, told: u64, cause: EraCause) -> Result<(), R::Error> {
        let era = self.rows.era()?.raised(self.at.wall).above(told);
        self.rows.begin_era(era, self.at.wall, cause)
    }

    /// Ends a member (rule M2). No heartbeat in flight finds it alive from here on.
    pub(crate) fn end(&mut self, member: &MemberRef, cause: EndCause) -> Result<(), R::Error> {
        self.tell(Happening::Ended { member: member.clone(), cause })?;
        self.remove(member)
    }

    /// Ends a life from which something is to be taken, if it may be ended, and says whether
    /// it is over: by the ttl it wrote itself (rule M3) or by proof (rule M4), in the same
    /// step (rule M2), and not while processes work under it.
    pub(crate) fn end_if_dead(&mut self, holder: &MemberRef) -> Result<bool, R::Error> {
        let Some(row) = self.view().recorded(holder)? else { return Ok(true) };
        let Some(cause) = self.view().fate(&row)? else { return Ok(false) };
        // Processes that work under its terms keep them, also when its ttl has run out or its
        // own death is proven (R2).
        if self.rows.is_at_work(&row)? {
            return Ok(false);
        }
        self.end(holder, cause)?;
        Ok(true)
    }

    /// Removes a member, at the same cost whatever it held (rule M5). Its terms,
    /// candidacies and names are void with its life: no reader regards them any more. A term
    /// is written off when a member bids for it; candidacies and names are cleared away a few
    /// at a time.
    pub(crate) fn remove(&mut self, member: &MemberRef) -> Result<(), R::Error> {
        // The row goes first. From then on all that names this life is void, however many
        // steps it takes to clear it away.
        self.rows.remove_member(member)?;
        if !self.sweep_life(member)? {
            self.rows.add_remains(member)?;
        }
        Ok(())
    }

    /// Clears away some candidacies and names of one life that ended earlier.
    pub(crate) fn sweep(&mut self) -> Result<(), R::Error> {
        let Some(member) = self.rows.remains()? else { return Ok(()) };
        if self.sweep_life(&member)? {
            self.rows.remove_remains(&member)?;
        }
        Ok(())
    }

    /// Clears away some candidacies and names of an ended life, and says whether none is
    /// left. Followers of names are not told: the names were gone with the life.
    pub(crate) fn sweep_life(&mut self, member: &MemberRef) -> Result<bool, R::Error> {
        let stood = self.rows.candidacies_of(member, SWEPT)?;
        for name in &stood {
            if let Some(loaded) = self.rows.election(name)? {
                let mut election = loaded.clone();
                self.withdraw(&mut election, member)?;
                self.put_changed(Some(&loaded), &election)?;
                self.forget_if_unused(&election)?;
            } else {
                self.rows.remove_candidacy(name, member)?;
            }
        }
        let owned = self.rows.names_of(member, SWEPT)?;
        for name in &owned {
            self.rows.remove_name(name)?;
        }
        self.swept += owned.len();
        Ok(stood.len() < SWEPT && owned.len() < SWEPT)
    }

    /// Ends exactly this life's candidacy, and what was kept for it.
    pub(crate) fn withdraw(
        &mut self,
        election: &mut ElectionRow,
        member: &MemberRef,
    ) -> Result<(), R::Error> {
        if self.rows.remove_candidacy(&election.name, member)? {
            election.reserved.take_if(|kept| kept.member == member.id);
        }
        Ok(())
    }

    /// Writes an election's row if it differs from what was loaded: what changes nothing
    /// writes nothing.
    pub(crate) fn put_changed(
        &mut self,
        loaded: Option<&ElectionRow>,
        election: &ElectionRow,
    ) -> Result<(), R::Error> {
        if loaded != Some(election) {
            self.rows.put_election(election)?;
        }
        Ok(())
    }

    /// Drops an election that was never won, has no candidate and is not paused (H27).
    pub(crate) fn forget_if_unused(&mut self, election: &ElectionRow) -> Result<(), R::Error> {
        let unused = election.number == TermNumber::NONE && election.paused.is_none();
        if unused && !self.rows.has_candidates(&election.name)? {
            self.rows.remove_election(&election.name)?;
        }
        Ok(())
    }

    /// Writes off a term that ended with its holder's life, and keeps the vacancy for its
    /// heir. The cause is the life's, for as long as the journal has it.
    pub(crate) fn settle(
        &mut self,
        election: &mut ElectionRow,
        holder: &MemberRef,
        grace: Duration,
    ) -> Result<(), R::Error> {
        let known = self.rows.end_of(holder)?.and_then(|entry| match entry.what {
            Happening::Left { .. } => Some(ReleaseCause::Left),
            Happening::Ended { cause, .. } => Some(ReleaseCause::Ended(cause)),
            _ => None,
        });
        let cause = known.unwrap_or(ReleaseCause::Ended(EndCause::Expired));
        self.vacate(election, cause, &Keep { grace, ..Keep::default() })
    }

    /// Makes an election vacant and keeps the vacancy for its heir, or hands it over to
    /// the heir at once.
    pub(crate) fn vacate(
        &mut self,
        election: &mut ElectionRow,
        cause: ReleaseCause,
        keep: &Keep<'_>,
    ) -> Result<(), R::Error> {
        // Chosen while the holder is still there, so that it is not its own heir.
        let heir = self.heir(election, keep)?;
        let Some(Held { member: holder, .. }) = election.holder.take() else { return Ok(()) };
        let handed = heir.as_ref().filter(|heir| is_handed_over(election, heir, keep));
        let kept = heir.as_ref().filter(|heir| handed.is_none() && !heir.grace.is_zero());
        // A request to step down was meant for this term alone (E5).
        election.step_down = None;
        election.changed_at = self.at.wall;
        election.reserved = kept.map(|heir| Reserved {
            member: heir.member.member.id.clone(),
            until: self.at.now + heir.grace,
        });
        if let Some(heir) = kept {
            self.call_attention(&heir.member.member);
        }
        self.change(&holder).holds -= 1;
        // Told before the election of the heir below: readers of the journal see the old term
        // end before the new one begins (N2).
        self.tell(Happening::Released {
            election: election.name.clone(),
            number: election.number,
            member: holder,
            cause,
            heir: kept.map(|heir| heir.member.member.id.clone()),
        })?;
        if let Some(heir) = handed {
            let lapses = self.at.now + heir.unconfirmed;
            self.elect(election, &heir.member.member, Origin::HandedOver { lapses })?;
        }
        Ok(())
    }

    /// The candidate that is next. Where nothing is kept for it, it is not looked up.
    fn heir(&self, election: &ElectionRow, keep: &Keep<'_>) -> Result<Option<Heir>, R::Error> {
        if keep.successor.is_none() && keep.grace.is_zero() && keep.confirm_within.is_zero() {
            return Ok(None);
        }
        let standing = self.view().standing(&election.name)?;
        let holder = election.holder.as_ref().map(|held| &held.member);
        let Some((heir, grace)) = rank::heir(&standing, holder, keep.successor, keep.grace) else {
            return Ok(None);
        };
        // A successor that was named has the time that was named with it; any other, the time
        // that the release gives.
        let named = keep.successor.is_some_and(|(id, _)| *id == heir.member.member.id);
        let unconfirmed = if named { grace } else { keep.confirm_within };
        Ok(Some(Heir { member: heir.member.clone(), grace, unconfirmed }))
    }

    /// Begins a new term, with a number never used before (H5, H6). A reservation is
    /// used up.
    pub(crate) fn elect(
        &mut self,
        election: &mut ElectionRow,
        member: &MemberRef,
        origin: Origin,
    ) -> Result<Term, R::Error> {
        let era = self.rows.era()?;
        // The first number of an election is above those that were forgotten.
        let (last, given_in) = match election.number {
            TermNumber::NONE => {
                let ForgottenRow { number, era } = self.rows.forgotten()?;
                (number, era)
            }
            number => (number, election.era),
        };
        election.number = era.number_after(last, given_in);
        election.era = era.count();
        election.changed_at = self.at.wall;
        let (nonce, lapses) = match origin {
            Origin::Bid(nonce) => (nonce, None),
            Origin::HandedOver { lapses } => (Nonce::default(), Some(lapses)),
        };
        election.attempted(member, nonce);
        let elected_at = self.at.wall;
        let handed = lapses.is_some();
        election.holder = Some(Held { member: member.clone(), elected_at, handed, lapses });
        election.step_down = None;
        election.reserved = None;
        self.change(member).holds += 1;
        let term = Term {
            election: election.name.clone(),
            number: election.number,
            member: member.clone(),
            elected_at,
        };
        self.tell(Happening::Elected { term: term.clone() })?;
        Ok(term)
    }
}

/// How a term begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// By a bid with this nonce.
    Bid(Nonce),
    /// By a release, in the same step. Unless the heir confirms it, it stands until then.
    HandedOver { lapses: tenure_core::Mono },
}

/// Whether the election goes to the heir at once: it is not paused (rule E6), and both
/// sides want it.
fn is_handed_over(election: &ElectionRow, heir: &Heir, keep: &Keep<'_>) -> bool {
    let wanted = !keep.confirm_within.is_zero() && !heir.unconfirmed.is_zero();
    wanted && heir.member.inherits && election.paused.is_none()
}

impl ElectionRow {
    /// Remembers the last winner and the newest of its attempts.
    pub(crate) fn attempted(&mut self, member: &MemberRef, nonce: Nonce) {
        let own = self.won.filter(|(winner, _)| *winner == member.incarnation);
        let newest = own.map_or(nonce, |(_, known)| known.max(nonce));
        self.won = Some((member.incarnation, newest));
    }

    /// The present term, if this life holds it.
    pub(crate) fn term_of(&self, member: &MemberRef) -> Option<Term> {
        let held = self.holder.as_ref().filter(|held| held.member == *member)?;
        Some(Term {
            election: self.name.clone(),
            number: self.number,
            member: member.clone(),
            elected_at: held.elected_at,
        })
    }

    /// The holder confirms its term.
    pub(crate) fn confirm(&mut self) {
        if let Some(held) = &mut self.holder {
            held.lapses = None;
        }
    }
}
