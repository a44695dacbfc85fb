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
//! The numbers that were shown are told with the place ([`Told`]), so that one bid is enough
//! where the store's clock is far behind the one that gave them out.
//!
//! A member that finds out gives up what it leads, since its terms may be among what
//! was forgotten. It lets the store know with its next bid, join or release, which carry what
//! it has seen: the store raises its era in that same step, before it elects any member. Until then
//! it leads nothing that it did not bid for.

use super::context::Context;
use super::terms::Terms;
use super::{Decisions, Event};
use crate::{ElectionView, Incarnation, Seq, Term, TermNumber, Told};

/// Further than any member's knowledge can lag behind the journal.
const FAR: u64 = 1 << 20;

/// What is known of the store's journal and numbers.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Place {
    /// The newest place that was told.
    seq: Seq,
    /// The highest number of a term that was told.
    number: TermNumber,
    /// Whether the store has less than that, as far as is known.
    is_behind: bool,
}

impl Place {
    pub(super) fn seq(self) -> Seq {
        self.seq
    }

    /// Whether the store has forgotten some of what it told.
    pub(super) fn is_behind(self) -> bool {
        self.is_behind
    }

    /// What the next join or bid says that was seen.
    pub(super) fn to_tell(self, decide: Decisions) -> Told {
        match decide.heeds_rollbacks() {
            true => Told::new(self.seq, decide.told(self.number)),
            false => Told::NOTHING,
        }
    }

    /// A term with this number was given out.
    pub(super) fn note_number(&mut self, number: TermNumber) {
        self.number = self.number.max(number);
    }

    /// The store was found at an older place. Gives what to tell of it, once.
    fn fall_behind(&mut self, found: Seq) -> Option<Event> {
        let first = !core::mem::replace(&mut self.is_behind, true);
        first.then_some(Event::RolledBack { seen: self.seq, found })
    }
}

/// A bid that is won now has at least this number, by what was shown of the
/// election: a term of another is followed by a higher one.
pub(super) fn least_after(view: &ElectionView, me: Incarnation) -> TermNumber {
    let another = view.holder.as_ref().is_some_and(|h| h.member.incarnation != me);
    if another { view.number.next() } else { view.number }
}

impl Terms {
    /// A reply told where the journal stands; `seen` was known when it was asked.
    pub(super) fn note_place(&mut self, cx: &mut Context<'_>, seen: Seq, found: Seq) {
        if found == Seq::START || !cx.decide.heeds_rollbacks() {
            return;
        }
        if found < seen {
            self.rolled_back(cx, found);
        } else {
            cx.place.is_behind = false;
        }
        cx.place.seq = cx.place.seq.max(found);
    }

    /// Whether a win has a number that was given out before. It is not led, and what
    /// was seen counts for more than whatever the journal has by now.
    pub(super) fn was_given_before(&mut self, cx: &mut Context<'_>, won: &Term) -> bool {
        let least = self.standings.get(&won.election).map(|c| c.least).unwrap_or_default();
        if won.number >= least || !cx.decide.heeds_rollbacks() {
            return false;
        }
        let found = cx.place.seq;
        cx.place.seq = Seq::new(found.get().saturating_add(FAR));
        self.rolled_back(cx, found);
        // The next bid tells the number, so that its win is above it, unless the store does
        // not heed so high a number: the bid is repeated at twice the pace of heartbeats.
        let until = cx.now + cx.settings.heartbeat() / 2;
        self.cooldowns.insert(won.election.clone(), until);
        true
    }

    fn rolled_back(&mut self, cx: &mut Context<'_>, found: Seq) {
        if let Some(event) = cx.place.fall_behind(found) {
            cx.emit(event);
        }
        self.give_up_forgotten(cx);
    }
}
