//! Noticing that the store was rolled back (rule M6).
//!
//! The journal's place only rises. A reply is compared with what was known *when its
//! request was sent*: what became known while it was on its way may be newer than the
//! moment it speaks of, and proves nothing. So of two requests in flight, the one that
//! is answered later may tell the older place: that is no rollback. A place of
//! [`Seq::START`] says nothing: it is what a store without a journal answers, and a
//! heartbeat that has nothing to tell.
//!
//! That a bid is won under a number below one that was shown before proves the same,
//! where others have written so much since that the place tells nothing any more.
//!
//! A member that finds out gives up what it leads, since its terms may be among what
//! was forgotten. It lets the store know with its next bid or join, which carry what
//! it has seen: the store raises its era in that same step. Until then it leads
//! nothing that it did not bid for.

use super::{Event, Machine, Rule};
use crate::{ElectionView, Mono, Seq, Term, TermNumber};

/// Further than any member's knowledge can lag behind the journal.
const FAR: u64 = 1 << 20;

impl Machine {
    /// A reply told where the journal stands; `seen` was known when it was asked.
    pub(super) fn hear_of_place(&mut self, now: Mono, seen: Seq, found: Seq) {
        if found == Seq::START || self.mutated(Rule::BelieveRollbacks) {
            return;
        }
        if found < seen {
            self.rolled_back(now, found);
        } else {
            self.behind = false;
        }
        self.seq = self.seq.max(found);
    }

    /// What the next join or bid says that was seen.
    pub(super) fn has_seen(&self) -> Seq {
        if self.mutated(Rule::BelieveRollbacks) { Seq::START } else { self.seq }
    }

    /// A bid that is won now has at least this number, by what was shown of the
    /// election: a term of another is followed by a higher one.
    pub(super) fn least_after(&self, view: &ElectionView) -> TermNumber {
        let me = self.membership.life().map(|life| life.member.incarnation);
        let another = view.holder.as_ref().is_some_and(|h| Some(h.member.incarnation) != me);
        if another { view.number.next() } else { view.number }
    }

    /// Whether a win has a number that was given out before. It is not led, and what
    /// was seen counts for more than whatever the journal has by now.
    pub(super) fn was_given_before(&mut self, now: Mono, won: &Term) -> bool {
        let least = self.standings.get(&won.election).map(|c| c.least).unwrap_or_default();
        if won.number >= least || self.mutated(Rule::BelieveRollbacks) {
            return false;
        }
        let found = self.seq;
        self.seq = Seq::new(found.get().saturating_add(FAR));
        self.rolled_back(now, found);
        true
    }

    fn rolled_back(&mut self, now: Mono, found: Seq) {
        if !core::mem::replace(&mut self.behind, true) {
            self.emit(Event::RolledBack { seen: self.seq, found });
        }
        self.give_up_forgotten(now);
    }
}
