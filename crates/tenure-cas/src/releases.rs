//! The end of a term: release, and the vacancy that it leaves.

use std::time::Duration;

use tenure_core::{
    ElectionName, MemberId, MemberRef, Namespace, Release, ReleaseCause, ReleaseItem, TermNumber,
};
use tenure_store::Result;

use crate::cells::{ATTEMPTS, Cells, partly, too_busy};
use crate::parts::Parts;
use crate::record::candidacies::CandidaciesRecord;
use crate::record::election::ElectionRecord;
use crate::seen::Seen;

/// Which term to end, and how.
struct Ending<'a> {
    member: &'a MemberRef,
    /// Exactly this term; `None` for whichever this life holds.
    number: Option<TermNumber>,
    cause: ReleaseCause,
    successor: Option<&'a (MemberId, Duration)>,
    grace: Duration,
}

/// Ends terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Releases<'a> {
    parts: Parts<'a>,
}

impl<'a> Releases<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self { parts: Parts::new(cells, ns) }
    }
}

impl Releases<'_> {
    /// See [`Store::release`](tenure_store::Store::release).
    ///
    /// The candidacies end first and the terms after: a release that is
    /// interrupted leaves terms that can be released again, and none of them
    /// makes the caller its own successor. Last the member's record says that
    /// something changed, once for all of them.
    pub(crate) async fn release(&self, release: &Release) -> Result<()> {
        self.parts.cells.check_batch("releases", release.items.len())?;
        let checks = release.items.iter().map(|item| self.is_due(&release.member, item));
        let mut due = Vec::new();
        for (item, is_due) in release.items.iter().zip(self.parts.cells.all(checks.collect()).await)
        {
            if is_due? {
                due.push(item);
            } else {
                // An earlier attempt may have ended it, and its answer have been lost.
                self.note_given_back(&release.member, item);
            }
        }
        let withdraw = |record: &mut CandidaciesRecord| {
            let before = record.elections.len();
            record.elections.retain(|name, _| !due.iter().any(|item| item.election == *name));
            record.elections.len() != before
        };
        let withdrew = self.parts.candidates.edit(&release.member, withdraw).await?;
        let terms: Vec<_> = due.iter().filter(|item| item.number.is_some()).collect();
        let kept = |item: &&&&ReleaseItem| item.successor.is_some();
        if !release.heir_grace.is_zero() || terms.iter().find(kept).is_some() {
            // Without the list the vacancy is simply open to all: better than
            // to hold on to a term under which no work runs.
            let _ = self.parts.reader.know_members(self.parts.cells.now()).await;
        }
        // Before the first write: the caller may stop waiting at any moment, and then the next
        // heartbeat says what could not be said.
        if !terms.is_empty() {
            self.parts.members.note_change(&release.member);
        }
        let endings = terms.iter().map(|item| {
            let ending = Ending {
                member: &release.member,
                number: item.number,
                cause: item.cause,
                successor: item.successor.as_ref(),
                grace: release.heir_grace,
            };
            self.end_term(&item.election, ending)
        });
        let ended = self.parts.cells.all(endings.collect()).await;
        for (item, _) in terms.iter().zip(&ended).filter(|(_, ended)| matches!(ended, Ok(true))) {
            self.note_given_back(&release.member, item);
        }
        // An error counts, too: its write may have been applied.
        let gave_back = ended.iter().any(|ended| matches!(ended, Ok(true) | Err(_)));
        // A repeated release finds nothing to end, and still has to say it.
        if gave_back || self.parts.members.owes_announcement(&release.member) {
            self.parts.members.announce_change(&release.member).await;
        }
        let ended: Result<Vec<bool>> = ended.into_iter().collect();
        partly(withdrew || gave_back, ended).map(drop)
    }

    /// Remembers that this very term is not held any more.
    fn note_given_back(&self, who: &MemberRef, item: &ReleaseItem) {
        let Some(number) = item.number else { return };
        let key = self.parts.cells.keys.member(self.parts.ns, &who.id);
        self.parts.cells.memory().gave_back(&key, who.incarnation, &item.election, number);
    }

    /// Whether an item is not too late: it names no term, or exactly the one
    /// this life holds (rule E1).
    async fn is_due(&self, who: &MemberRef, item: &ReleaseItem) -> Result<bool> {
        let Some(number) = item.number else { return Ok(true) };
        let is_own =
            |s: &Seen<ElectionRecord>| s.record.number() == number && s.record.is_held_by(who);
        // If that is out of date, the swap conflicts.
        if self.parts.reader.told(&item.election).is_some_and(|seen| is_own(&seen)) {
            return Ok(true);
        }
        let key = self.parts.cells.keys.election(self.parts.ns, &item.election);
        let seen = self.parts.cells.load::<ElectionRecord>(&key).await?;
        Ok(seen.is_some_and(|seen| is_own(&seen)))
    }

    /// Ends whichever term this life holds of an election, and keeps the
    /// vacancy for no heir. Says whether there was one.
    pub(crate) async fn vacate(
        &self,
        name: &ElectionName,
        member: &MemberRef,
        cause: ReleaseCause,
    ) -> Result<bool> {
        let number = None;
        let successor = None;
        let grace = Duration::ZERO;
        self.end_term(name, Ending { member, number, cause, successor, grace }).await
    }

    async fn end_term(&self, name: &ElectionName, ending: Ending<'_>) -> Result<bool> {
        let key = self.parts.cells.keys.election(self.parts.ns, name);
        let mut tried = false;
        for attempt in 0..ATTEMPTS {
            let told = self.parts.reader.told(name).filter(|_| attempt == 0);
            let is_told = told.is_some();
            let seen = match told {
                told @ Some(_) => told,
                None => self.parts.cells.load::<ElectionRecord>(&key).await?,
            };
            let held = seen.filter(|s| {
                s.record.is_held_by(ending.member)
                    && ending.number.is_none_or(|number| s.record.number() == number)
            });
            // That it is not held is believed of the record as it is now.
            if held.is_none() && is_told {
                continue;
            }
            let Some(held) = held else {
                // After a conflict it may well have been this very write that
                // ended it, and others have to be told of that.
                return Ok(tried);
            };
            // Chosen for the very version that is swapped: after a conflict, anew.
            let heir = self.parts.candidates.heir(&held.record, ending.successor, ending.grace);
            tried = true;
            let mut record = (*held.record).clone();
            record.vacate(ending.cause, heir.clone(), self.parts.cells.clock.wall());
            let swapped = self
                .parts
                .cells
                .swap(&key, Some(&held), record, self.parts.cells.now(), None)
                .await?;
            self.parts.cells.memory().may_have_changed(&key);
            if swapped.is_some() {
                if let Some((heir, _)) = heir.filter(|_| !is_told) {
                    // Only a courtesy: it will find out by itself.
                    let _ = self.parts.members.raise_attention(&heir).await;
                }
                return Ok(true);
            }
        }
        Err(too_busy(&key))
    }
}
