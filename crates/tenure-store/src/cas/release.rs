//! Giving up: release, and the vacancy it leaves.

use std::time::Duration;

use tenure_core::{
    ElectionName, MemberId, MemberRef, Namespace, Release, ReleaseCause, ReleaseItem, TermNumber,
};

use super::handle::{ATTEMPTS, Handle, partly, too_busy};
use super::members::Need;
use super::record::{ElectionRecord, MemberRecord};
use crate::Result;

/// Which term to end, and how.
struct Ending<'a> {
    member: &'a MemberRef,
    /// Exactly this term; `None` for whichever this life holds.
    number: Option<TermNumber>,
    cause: ReleaseCause,
    successor: Option<&'a (MemberId, Duration)>,
    grace: Duration,
}

impl Handle {
    /// See [`Store::release`](crate::Store::release).
    ///
    /// The candidacies end first and the terms after: a release that is
    /// interrupted leaves terms that can be released again, and none of them
    /// makes the caller its own successor.
    pub(super) async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        self.check_batch("releases", release.items.len())?;
        let looks = release.items.iter().map(|item| self.is_due(ns, &release.member, item));
        let mut due = Vec::new();
        for (item, is_due) in release.items.iter().zip(self.all(looks.collect()).await) {
            if is_due? {
                due.push(item);
            }
        }
        let mut wrote = false;
        let withdraw = |record: &mut MemberRecord| {
            let before = record.candidacies.len();
            record.candidacies.retain(|c| !due.iter().any(|item| item.election == c.election));
            let changed = record.candidacies.len() != before;
            wrote |= changed;
            changed
        };
        self.edit_member(ns, &release.member, Need::Record, false, withdraw).await?;
        if due.iter().any(|item| item.number.is_some()) {
            // Without the list the vacancy is simply open to all: better than
            // to hold on to a term nobody works under.
            let _ = self.refresh_members(ns, self.now()).await;
        }
        let endings = due.iter().filter(|item| item.number.is_some()).map(|item| {
            let ending = Ending {
                member: &release.member,
                number: item.number,
                cause: item.cause,
                successor: item.successor.as_ref(),
                grace: release.heir_grace,
            };
            self.end_term(ns, &item.election, ending)
        });
        for ended in self.all(endings.collect()).await {
            wrote |= partly(wrote, ended)?;
        }
        Ok(())
    }

    /// Whether an item is not too late: it names no term, or exactly the one
    /// this life holds (rule E1).
    async fn is_due(&self, ns: &Namespace, who: &MemberRef, item: &ReleaseItem) -> Result<bool> {
        let Some(number) = item.number else { return Ok(true) };
        let key = self.keys.election(ns, &item.election);
        let seen = self.load::<ElectionRecord>(&key).await?;
        Ok(seen.is_some_and(|s| s.record.number() == number && s.record.is_held_by(who)))
    }

    /// Ends whichever term this life holds of an election, and keeps the
    /// vacancy for nobody. Says whether there was one.
    pub(super) async fn vacate(
        &self,
        ns: &Namespace,
        name: &ElectionName,
        member: &MemberRef,
        cause: ReleaseCause,
    ) -> Result<bool> {
        let (number, successor, grace) = (None, None, Duration::ZERO);
        self.end_term(ns, name, Ending { member, number, cause, successor, grace }).await
    }

    async fn end_term(
        &self,
        ns: &Namespace,
        name: &ElectionName,
        ending: Ending<'_>,
    ) -> Result<bool> {
        let key = self.keys.election(ns, name);
        for _ in 0..ATTEMPTS {
            let seen = self.load::<ElectionRecord>(&key).await?;
            let held = seen.filter(|s| {
                s.record.is_held_by(ending.member)
                    && ending.number.is_none_or(|number| s.record.number() == number)
            });
            let Some(held) = held else {
                self.memory().gave_up(&key, ending.member.incarnation);
                return Ok(false);
            };
            let heir = self.heir(ns, &held.record, ending.successor, ending.grace);
            let mut record = (*held.record).clone();
            record.vacate(ending.cause, heir.clone(), self.clock.wall());
            if self.swap(&key, Some(&held), record, None).await?.is_some() {
                self.memory().gave_up(&key, ending.member.incarnation);
                if let Some((heir, _)) = heir {
                    self.nudge(ns, &heir).await;
                }
                return Ok(true);
            }
        }
        Err(too_busy(&key))
    }

    /// The elections this life holds, as far as this handle knows without
    /// looking.
    pub(super) fn known_held(&self, ns: &Namespace, member: &MemberRef) -> Vec<ElectionName> {
        let known = self.memory().elections.below(&self.keys.elections(ns));
        let held = known.into_iter().filter(|(_, seen)| seen.record.is_held_by(member));
        held.map(|(_, seen)| seen.record.election.clone()).collect()
    }
}
