//! Debts: terms that are no longer led but that the store still has under this
//! member's name, and candidacies that are over. They are paid by a release,
//! which is repeated until the store confirms it (B8).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::standing::Stage;
use super::{Event, Flight, Machine, Slot};
use crate::{
    ElectionName, MemberId, Mono, Release, ReleaseCause, ReleaseItem, Request, TermNumber,
};

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Debts {
    owed: BTreeMap<ElectionName, Debt>,
    /// How many of them are terms.
    terms: usize,
    pub(super) slot: Slot<Vec<(ElectionName, Option<TermNumber>)>>,
}

#[derive(Clone, Debug, Hash)]
pub(super) struct Debt {
    /// The term; `None` if only the candidacy is to end.
    pub(super) number: Option<TermNumber>,
    pub(super) cause: ReleaseCause,
    pub(super) successor: Option<(MemberId, Duration)>,
    /// Not paid before: the work has until then to stop, unless it says sooner
    /// that it has.
    pub(super) not_before: Mono,
}

impl Debts {
    pub(super) fn owes(&self, election: &ElectionName) -> bool {
        self.owed.contains_key(election)
    }

    /// Whether a term of this election is owed, and not merely a candidacy.
    pub(super) fn owes_term(&self, election: &ElectionName) -> bool {
        self.owed.get(election).is_some_and(|debt| debt.number.is_some())
    }

    /// How many terms are owed.
    pub(super) fn terms(&self) -> usize {
        self.terms
    }

    /// Whether a term may not be given back yet. What is due already need not
    /// be waited for: leaving gives it back too.
    pub(super) fn must_wait(&self) -> bool {
        self.owed.values().any(|d| d.number.is_some() && d.not_before > Mono::ZERO)
    }

    /// Nothing is owed any more; gives the terms that were.
    pub(super) fn forgive_all(&mut self) -> Vec<(ElectionName, TermNumber)> {
        let owed = core::mem::take(self).owed;
        owed.into_iter().filter_map(|(election, debt)| Some((election, debt.number?))).collect()
    }

    fn insert(&mut self, election: ElectionName, debt: Debt) {
        self.terms += usize::from(debt.number.is_some());
        if let Some(older) = self.owed.insert(election, debt) {
            self.terms -= usize::from(older.number.is_some());
        }
    }

    fn remove(&mut self, election: &ElectionName) {
        if let Some(debt) = self.owed.remove(election) {
            self.terms -= usize::from(debt.number.is_some());
        }
    }

    /// What may be paid by `now`.
    fn due(&self, now: Mono) -> impl Iterator<Item = (&ElectionName, &Debt)> {
        self.owed.iter().filter(move |(_, debt)| now >= debt.not_before)
    }
}

impl Machine {
    /// Nobody bids for what it owes: a store may answer the bid with that very
    /// term, and then carry out the release that is on its way.
    pub(super) fn owe(&mut self, election: &ElectionName, debt: Debt) {
        let waits =
            matches!(self.standings.get(election).map(|c| &c.stage), Some(Stage::Waiting { .. }));
        if debt.number.is_some() && waits {
            self.standings.bid_at(election, Mono::MAX);
        }
        self.debts.insert(election.clone(), debt);
    }

    /// The candidacy is over; there is no term to give back.
    pub(super) fn owe_candidacy(&mut self, election: &ElectionName) {
        if self.debts.owes(election) {
            return;
        }
        let cause = ReleaseCause::Resigned;
        self.owe(election, Debt { number: None, cause, successor: None, not_before: Mono::ZERO });
    }

    /// A term that no work of ours ever relied on.
    pub(super) fn owe_unknown(&mut self, election: &ElectionName, number: TermNumber) {
        let number = Some(number);
        let cause = ReleaseCause::Abandoned;
        self.owe(election, Debt { number, cause, successor: None, not_before: Mono::ZERO });
    }

    /// The work of a term that was lost has stopped: nothing keeps it any more.
    pub(super) fn work_stopped(&mut self, election: &ElectionName, number: TermNumber) {
        if let Some(debt) = self.debts.owed.get_mut(election)
            && debt.number == Some(number)
        {
            debt.not_before = Mono::ZERO;
        }
    }

    pub(super) fn debts_wake(&self) -> Option<Mono> {
        let first = self.debts.owed.values().map(|debt| debt.not_before).min();
        let payable = self.membership.life().filter(|_| !self.may_leave());
        self.debts.slot.wake(payable.and(first))
    }

    pub(super) fn step_debts(&mut self, now: Mono) {
        self.ripen(now);
        let Some(member) = self.membership.me() else { return };
        if !self.debts.slot.is_free(now) || self.may_leave() {
            return;
        }
        let item = |(election, debt): (&ElectionName, &Debt)| ReleaseItem {
            election: election.clone(),
            number: debt.number,
            cause: debt.cause,
            successor: debt.successor.clone(),
        };
        let items: Vec<_> = self.debts.due(now).take(self.traits.batch).map(item).collect();
        if items.is_empty() {
            return;
        }
        self.activity += 1;
        let sent = items.iter().map(|i| (i.election.clone(), i.number)).collect();
        let release = Release::new(member, items)
            .with_heir_grace(self.heir_grace())
            .with_hand_over(self.hand_over());
        let flight = self.send(now, Request::Release(release), sent);
        self.debts.slot.begin(flight);
    }

    /// Marks debts whose time has come, so that a shutdown need not wait.
    fn ripen(&mut self, now: Mono) {
        for debt in self.debts.owed.values_mut() {
            if now >= debt.not_before {
                debt.not_before = Mono::ZERO;
            }
        }
    }

    pub(super) fn on_release(
        &mut self,
        now: Mono,
        flight: Flight<Vec<(ElectionName, Option<TermNumber>)>>,
        confirmed: bool,
    ) {
        self.activity += 1;
        if !confirmed {
            return self.back_off(now, |m| &mut m.debts.slot, Duration::MAX);
        }
        self.debts.slot.succeeded();
        for (election, number) in flight.what {
            if self.debts.owed.get(&election).is_none_or(|debt| debt.number != number) {
                continue;
            }
            self.debts.remove(&election);
            if let Some(number) = number {
                self.emit(Event::GivenBack { election: election.clone(), number });
            }
            // Whoever stands again waited for this.
            self.hasten(now, &election, now);
        }
    }
}
