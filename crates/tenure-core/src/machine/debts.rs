//! Debts: terms that are no longer led but that the store still has under this
//! member's name, and candidacies that are over. They are paid by a release,
//! which is repeated until the store confirms it (B8).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::Event;
use super::context::Context;
use super::membership::Life;
use super::slot::{Flight, Slot};
use super::standing::{Stage, Standings};
use super::terms::Terms;
use crate::{
    ElectionName, Failed, MemberId, Mono, Release, ReleaseCause, ReleaseItem, Reply, Request,
    TermNumber,
};

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Debts {
    owed: BTreeMap<ElectionName, Debt>,
    /// How many of them are terms.
    terms: usize,
    pub(super) slot: Slot<Sent>,
}

/// What a release in flight gives back.
type Sent = Vec<(ElectionName, Option<TermNumber>)>;

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

    /// The machine does not bid for what it owes: a store may answer the bid with that very
    /// term, and then carry out the release that is on its way.
    pub(super) fn owe(&mut self, standings: &mut Standings, election: &ElectionName, debt: Debt) {
        let stage = standings.get(election).map(|c| &c.stage);
        let waits = matches!(stage, Some(Stage::Waiting { .. }));
        if debt.number.is_some() && waits {
            standings.bid_at(election, Mono::MAX);
        }
        self.insert(election.clone(), debt);
    }

    /// The candidacy is over; there is no term to give back.
    pub(super) fn owe_candidacy(&mut self, standings: &mut Standings, election: &ElectionName) {
        // A term that is given back takes the candidacy with it.
        if self.owes(election) {
            return;
        }
        let cause = ReleaseCause::Resigned;
        let debt = Debt { number: None, cause, successor: None, not_before: Mono::ZERO };
        self.owe(standings, election, debt);
    }

    /// A term that no work of ours ever relied on.
    pub(super) fn owe_unknown(
        &mut self,
        standings: &mut Standings,
        election: &ElectionName,
        number: TermNumber,
    ) {
        let number = Some(number);
        let cause = ReleaseCause::Abandoned;
        let debt = Debt { number, cause, successor: None, not_before: Mono::ZERO };
        self.owe(standings, election, debt);
    }

    /// The work of a term that was lost has stopped: nothing keeps it any more.
    pub(super) fn work_stopped(&mut self, election: &ElectionName, number: TermNumber) {
        // Only of this number: the work of an older term says nothing of a newer one's.
        if let Some(debt) = self.owed.get_mut(election)
            && debt.number == Some(number)
        {
            debt.not_before = Mono::ZERO;
        }
    }

    /// When something can be given back; `may_pay` unless the member is about to leave,
    /// which gives back everything.
    pub(super) fn wake(&self, may_pay: bool) -> Option<Mono> {
        let first = self.owed.values().map(|debt| debt.not_before).min();
        self.slot.wake(first.filter(|_| may_pay))
    }

    /// Marks debts whose time has come, so that a shutdown need not wait.
    pub(super) fn ripen(&mut self, now: Mono) {
        for debt in self.owed.values_mut() {
            if now >= debt.not_before {
                debt.not_before = Mono::ZERO;
            }
        }
    }

    pub(super) fn step(&mut self, cx: &mut Context<'_>, life: &Life) {
        if !self.slot.is_free(cx.now) {
            return;
        }
        let item = |(election, debt): (&ElectionName, &Debt)| ReleaseItem {
            election: election.clone(),
            number: debt.number,
            cause: debt.cause,
            successor: debt.successor.clone(),
        };
        let items: Vec<_> = self.due(cx.now).take(cx.traits.batch).map(item).collect();
        if items.is_empty() {
            return;
        }
        *cx.activity += 1;
        let sent = items.iter().map(|i| (i.election.clone(), i.number)).collect();
        let release = Release::new(life.member.clone(), items)
            .with_heir_grace(cx.heir_grace())
            .with_confirm_within(cx.confirm_within())
            .with_seen(cx.place.to_tell(cx.decide));
        self.slot.send(cx, Request::Release(release), sent);
    }
}

impl Terms {
    /// The answer to a release, or that there was none.
    pub(super) fn on_release(
        &mut self,
        cx: &mut Context<'_>,
        flight: Flight<Sent>,
        result: &Result<Reply, Failed>,
    ) {
        *cx.activity += 1;
        if *result != Ok(Reply::Release) {
            return self.debts.slot.failed(cx, Duration::MAX);
        }
        self.debts.slot.succeeded();
        for (election, number) in flight.what {
            // Another term of the election may have come to be owed while this release was on
            // its way: that one is not paid by it.
            if self.debts.owed.get(&election).is_none_or(|debt| debt.number != number) {
                continue;
            }
            self.debts.remove(&election);
            if let Some(number) = number {
                cx.emit(Event::GivenBack { election: election.clone(), number });
            }
            // A candidacy that stands again waited for this.
            self.hasten(cx.now, &election, cx.now);
        }
    }
}
