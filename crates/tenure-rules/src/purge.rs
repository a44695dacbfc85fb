//! Forgetting what is no longer used, in bounded steps.
//!
//! A step does one of these, the first for which there is anything to do: it ends members whose
//! ttl has run out; it clears away what one life that is over left behind; it looks at some
//! elections, in the order of their names, and removes those that are not used. When no election
//! is left to look at and no member is there, the drops of names are forgotten; and when
//! nothing else is left, the journal. What remains of a namespace is its place in the
//! journal, the revision of its names, and a [`ForgottenRow`]: three small rows.
//!
//! An election is removed if all of this holds: no member stands for it, its last winner has
//! no row, it is not paused, and no term of it began or ended for the time that was asked for.
//!
//! What could bring a number back, or remove an election that is in use, and what prevents
//! it:
//!
//! - *A claim comes first, the purge second.* Both are steps of one namespace, one after the
//!   other: the purge finds the candidacy or the holder, and leaves the election.
//! - *The purge comes first, the claim second.* The election is founded anew. Its first number
//!   follows the highest number that was forgotten, which the purge wrote in its own step.
//! - *A fence is in an open transaction, its holder's life is ended, and the row is removed: a
//!   new term would begin beside the transaction.* Where a fence locks a row and nothing else
//!   (PostgreSQL), a purge passes over rows that are locked. In SQLite the transaction holds
//!   the file.
//! - *L wins by attempt 5, gives the term back, the election is purged, and a late copy of
//!   attempt 5 arrives.* The row that knew attempt 5 is gone: L would be elected without
//!   wanting it. So an election stays while the life that won it last has a row. A life without
//!   a row is answered `Ended` (rule M1).
//! - *A release, a heartbeat that names the term, or a request to step down arrives after the
//!   purge.* There is no row: nothing is changed, the term is lost, the election is vacant.
//! - *The store is restored to a moment before the purge.* The rows are there again, and the
//!   era rises as after any restore. Restored to a moment after it: the number that was
//!   forgotten is kept with its era, and the first number of an election jumps as any other.
//! - *An observer knows term 7 of an election that is purged.* It is shown a vacancy with
//!   number 0, which is no news to one that knows a higher number; the next term it is told of
//!   is above 7 (rule N3).
//! - *A client follows from a place of the journal, or asks which names changed since a
//!   revision.* Places and revisions stay: what is no longer kept is told as such, by the
//!   means there are for a journal that was trimmed and for drops of long ago.
//! - *A member that was stopped for months joins again, having seen place 500.* The place of
//!   the journal stays, so that nothing seems to be forgotten, and no era rises.
//!
//! - *A leader left something to its successor, and the election is purged.* What was left
//!   goes in the same step, as a drop that copies of names are told of. A late write of it
//!   stands under the fence of a term that is no more. A successor that is elected later is
//!   told that nothing was left, as after a term of another that left nothing.
//!
//! The age goes by wall clocks. It is the only thing that does, and nothing above hangs on it:
//! at an age of zero all of this still holds.

#[cfg(test)]
mod tests;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_core::{
    Bind, BindOp, ElectionName, Era, Incarnation, MemberRef, Name, Nonce, Purge, Purged, Rev,
    TermNumber, Timestamp,
};

use crate::rows::{ElectionRow, ForgottenRow, NameRow, NamesRow, ReadRows, WriteRows};
use crate::step::Step;

/// One step of a purge.
pub(crate) fn purge<R: WriteRows>(
    step: &mut Step<'_, R>,
    purge: &Purge,
) -> Result<Purged, R::Error> {
    Purging { step, most: purge.most.max(1) }.run(purge)
}

/// A purge in one step.
struct Purging<'s, 'a, R> {
    step: &'s mut Step<'a, R>,
    most: usize,
}

impl<R: WriteRows> Purging<'_, '_, R> {
    fn run(&mut self, purge: &Purge) -> Result<Purged, R::Error> {
        let most = self.most;
        if purge.dry_run {
            return self.foretell(purge, most);
        }
        let busy = Purged { upto: purge.after.clone(), more: true, ..Purged::default() };
        let ended = self.end_the_dead(most)?;
        if ended > 0 {
            return Ok(Purged { members: count(ended), names: count(self.step.swept), ..busy });
        }
        if self.clear_remains(most)? {
            return Ok(Purged { names: count(self.step.swept), ..busy });
        }
        self.walk(purge, most)
    }

    /// Ends members whose ttl has run out, as any member does that wants something of theirs
    /// (rule M2).
    fn end_the_dead(&mut self, most: usize) -> Result<usize, R::Error> {
        let mut ended = 0;
        for row in self.step.rows.members()? {
            if ended == most || self.step.swept >= most {
                break;
            }
            if self.step.view().fate(&row)?.is_some() && self.step.end_if_dead(&row.member)? {
                ended += 1;
            }
        }
        Ok(ended)
    }

    /// Clears away what one life left behind, and says whether there was one.
    fn clear_remains(&mut self, most: usize) -> Result<bool, R::Error> {
        let Some(life) = self.step.rows.remains()? else { return Ok(false) };
        for _ in 0..most.div_ceil(crate::step::SWEPT) {
            if self.step.sweep_life(&life)? {
                self.step.rows.remove_remains(&life)?;
                break;
            }
        }
        Ok(true)
    }

    /// Looks at some elections, and removes those that are not used.
    fn walk(&mut self, purge: &Purge, most: usize) -> Result<Purged, R::Error> {
        let lives = self.lives()?;
        let found = self.step.rows.elections_after(purge.after.as_ref(), most)?;
        let upto = found.last().map(|row| row.name.clone()).or_else(|| purge.after.clone());
        let is_last = found.len() < most;
        let mut unused = Vec::new();
        for row in found {
            // Rows of the void are cleared away by now; one that is left keeps its election.
            let stands = self.step.rows.has_candidates(&row.name)?;
            match self.step.view().use_of(&row, &lives, stands)? {
                Use::None { since } if self.is_older(since, purge.older_than) => unused.push(row),
                Use::Unknown => self.write_off(row)?,
                Use::None { .. } | Use::Some => {}
            }
        }
        let names: Vec<ElectionName> = unused.iter().map(|row| row.name.clone()).collect();
        self.forget_numbers(&unused)?;
        names.iter().try_for_each(|name| self.step.rows.remove_election(name))?;
        let left = self.left_in(&names)?;
        let drops =
            left.iter().map(|row| BindOp::drop(row.name.clone(), Nonce::default(), row.token));
        self.step.operate(&Bind::anonymous(drops))?;
        let elections = count(names.len());
        let mut purged = Purged { elections, names: count(left.len()), upto, ..Purged::default() };
        if !is_last {
            purged.more = true;
        } else if lives.is_empty() {
            self.forget_the_rest(purge, most, &mut purged)?;
        }
        Ok(purged)
    }

    /// What leaders left in these elections to successors that never came.
    fn left_in(&self, elections: &[ElectionName]) -> Result<Vec<NameRow>, R::Error> {
        let mut left = Vec::new();
        for name in elections.iter().filter_map(Name::left_in) {
            left.extend(self.step.rows.name(&name)?.filter(|row| row.owner.is_none()));
        }
        Ok(left)
    }

    /// The lives that have a row.
    fn lives(&self) -> Result<BTreeSet<Incarnation>, R::Error> {
        Ok(self.step.rows.members()?.iter().map(|row| row.member.incarnation).collect())
    }

    /// Whether so much time has passed since, by the wall clock.
    fn is_older(&self, since: Timestamp, age: Duration) -> bool {
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        since.unix_millis().saturating_add(age) <= self.step.at.wall.unix_millis()
    }

    /// When the holder's life ended is no longer known: the age of this election counts
    /// from now on. The journal has forgotten that life, and is told nothing.
    fn write_off(&mut self, row: ElectionRow) -> Result<(), R::Error> {
        let changed_at = self.step.at.wall;
        self.step.rows.put_election(&ElectionRow {
            holder: None,
            step_down: None,
            changed_at,
            ..row
        })
    }

    /// Keeps the highest number of those that are forgotten, before they are.
    fn forget_numbers(&mut self, unused: &[ElectionRow]) -> Result<(), R::Error> {
        let era = self.step.rows.era()?;
        let known = self.step.rows.forgotten()?;
        let numbers = unused.iter().map(|row| reached(era, row.number, row.era));
        let Some(highest) = numbers.max().filter(|number| *number > TermNumber::NONE) else {
            return Ok(());
        };
        let number = highest.max(reached(era, known.number, known.era));
        let kept = ForgottenRow { number, era: era.count() };
        if kept != known { self.step.rows.put_forgotten(&kept) } else { Ok(()) }
    }

    /// No member lives here, so that no copy of the names has to be kept up to date. If
    /// nothing else is left either, the journal goes too.
    fn forget_the_rest(
        &mut self,
        purge: &Purge,
        most: usize,
        purged: &mut Purged,
    ) -> Result<(), R::Error> {
        if !self.step.rows.names_gone(Rev::START)?.is_empty() {
            let names = self.step.rows.names()?;
            if names.kept_from != names.rev {
                self.step.rows.put_names(&NamesRow { kept_from: names.rev, ..names })?;
            }
            purged.drops = count(self.step.rows.forget_gone(names.rev.next(), most)?);
            purged.more = true;
            return Ok(());
        }
        let is_empty = self.step.rows.elections_after(None, 1)?.is_empty()
            && self.step.rows.names_after(None, 1)?.is_empty();
        if let Some(newest) = self.step.rows.newest(None, 1)?.first()
            && is_empty
            && self.is_older(newest.at, purge.older_than)
        {
            self.step.rows.forget_entries()?;
            purged.journal = true;
        }
        Ok(())
    }

    /// Counts what would be removed, and writes nothing. Members and names are counted with
    /// the first elections, all at once: a look delays no other request.
    fn foretell(&mut self, purge: &Purge, most: usize) -> Result<Purged, R::Error> {
        let mut dead = BTreeSet::new();
        for row in self.step.rows.members()? {
            if self.step.view().fate(&row)?.is_some() && !self.step.rows.is_at_work(&row)? {
                dead.insert(row.member);
            }
        }
        let mut lives = self.lives()?;
        for life in &dead {
            lives.remove(&life.incarnation);
        }
        let found = self.step.rows.elections_after(purge.after.as_ref(), most)?;
        let mut purged = Purged {
            upto: found.last().map(|row| row.name.clone()).or_else(|| purge.after.clone()),
            more: found.len() == most,
            ..Purged::default()
        };
        let mut going = Vec::new();
        for row in found {
            let ends_now = row.holder.as_ref().is_some_and(|held| dead.contains(&held.member));
            let candidates = self.step.rows.candidates(&row.name)?;
            let stands = candidates.iter().any(|(_, row)| lives.contains(&row.member.incarnation));
            let since = match self.step.view().use_of(&row, &lives, stands)? {
                Use::Some => None,
                _ if ends_now => Some(self.step.at.wall),
                Use::None { since } => Some(since),
                Use::Unknown => None,
            };
            if since.is_some_and(|since| self.is_older(since, purge.older_than)) {
                going.push(row.name);
            }
        }
        purged.elections = count(going.len());
        let left = count(self.left_in(&going)?.len());
        purged.names = left;
        // Each will have been dropped; drops are forgotten where no member is left.
        purged.drops = if lives.is_empty() { left } else { 0 };
        if purge.after.is_none() {
            purged.members = count(dead.len());
            purged.names += self.void_names(&lives)?;
        }
        if !purged.more && lives.is_empty() {
            purged.drops += count(self.step.rows.names_gone(Rev::START)?.len());
        }
        Ok(purged)
    }

    /// Counted some at a time, so that not all of them are in memory at once.
    fn void_names(&self, lives: &BTreeSet<Incarnation>) -> Result<u64, R::Error> {
        let is_void = |owner: &MemberRef| !lives.contains(&owner.incarnation);
        let mut last: Option<Name> = None;
        let mut void = 0;
        loop {
            let names = self.step.rows.names_after(last.as_ref(), self.most)?;
            void += count(names.iter().filter(|n| n.owner.as_ref().is_some_and(is_void)).count());
            match names.last() {
                Some(row) if names.len() == self.most => last = Some(row.name.clone()),
                _ => return Ok(void),
            }
        }
    }
}

/// Whether a member uses an election.
enum Use {
    Some,
    /// No member, since then.
    None {
        since: Timestamp,
    },
    /// No member; since when is no longer known.
    Unknown,
}

impl<R: ReadRows> crate::view::View<'_, R> {
    /// Whether a member uses an election, where these lives have rows.
    fn use_of(
        &self,
        row: &ElectionRow,
        lives: &BTreeSet<Incarnation>,
        stands: bool,
    ) -> Result<Use, R::Error> {
        let won_by = row.won.map(|(life, _)| life);
        let held_by = row.holder.as_ref().map(|held| held.member.incarnation);
        let is_alive = |life: Option<Incarnation>| life.is_some_and(|life| lives.contains(&life));
        if stands || row.paused.is_some() || is_alive(won_by) || is_alive(held_by) {
            return Ok(Use::Some);
        }
        let since = row.changed_at;
        let Some(held) = &row.holder else { return Ok(Use::None { since }) };
        Ok(match self.rows.end_of(&held.member)? {
            Some(end) => Use::None { since: since.max(end.at) },
            None => Use::Unknown,
        })
    }
}

/// Where a number that was given out in an era stands in the present one.
fn reached(era: Era, number: TermNumber, given_in: u64) -> TermNumber {
    let same = era.count() == given_in || number == TermNumber::NONE;
    if same { number } else { era.number_after(number, given_in) }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
