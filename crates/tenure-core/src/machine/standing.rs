//! Candidacies, and the indexes that keep ten thousand of them cheap: what is
//! due when, and how many terms are held.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::StopReason;
use crate::{ElectionName, Incarnation, MemberId, Mono, Nonce, Priority, ReleaseCause, TermNumber};

/// A member standing for one election, or leading it.
#[derive(Clone, Debug, Hash)]
pub(super) struct Candidacy {
    pub(super) priority: Priority,
    pub(super) stage: Stage,
    /// Set while a bid's outcome is unknown: the next bid repeats it (rule E2).
    pub(super) open_nonce: Option<Nonce>,
    /// Whether the store may know of this candidacy.
    pub(super) registered: bool,
    /// How many candidates were ahead when the store was last asked.
    pub(super) ahead: u32,
    /// The holder that was seen last.
    pub(super) holder: Option<Incarnation>,
    /// [`Common::activity`](super::context::Common::activity) when its last bid was
    /// answered: a look sent before that says nothing new about it.
    pub(super) heard: u64,
    /// A bid that is won has at least this number: see `rollback.rs`.
    pub(super) least: TermNumber,
}

#[derive(Clone, Debug, Hash)]
pub(super) enum Stage {
    /// Waits, and bids at this moment unless told otherwise; [`Mono::MAX`]
    /// while an older term must be given back first.
    Waiting { bid_at: Mono },
    /// Is in the claim in flight.
    Bidding,
    /// Leads this term.
    Leading(TermNumber),
    /// Leads, but the work was told to stop (rule E4).
    Stopping {
        number: TermNumber,
        reason: StopReason,
        /// Whom the application itself hands over to.
        to: Option<MemberId>,
        drain_until: Mono,
    },
}

impl Stage {
    /// The term that is held.
    pub(super) fn term(&self) -> Option<TermNumber> {
        match self {
            Stage::Waiting { .. } | Stage::Bidding => None,
            Stage::Leading(number) | Stage::Stopping { number, .. } => Some(*number),
        }
    }

    /// When it wants to bid.
    fn bid_at(&self) -> Option<Mono> {
        match self {
            Stage::Waiting { bid_at } if *bid_at < Mono::MAX => Some(*bid_at),
            _ => None,
        }
    }

    /// When the time to drain is over.
    fn drain_until(&self) -> Option<Mono> {
        match self {
            Stage::Stopping { drain_until, .. } => Some(*drain_until),
            _ => None,
        }
    }
}

/// All candidacies of the member, by election.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Standings {
    by_election: BTreeMap<ElectionName, Candidacy>,
    bids: BTreeSet<(Mono, ElectionName)>,
    drains: BTreeSet<(Mono, ElectionName)>,
    held: usize,
    /// How many bids have not been answered.
    unclear: usize,
}

impl Standings {
    pub(super) fn get(&self, election: &ElectionName) -> Option<&Candidacy> {
        self.by_election.get(election)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_election.is_empty()
    }

    /// How many terms are held.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// How many bids may have won without our knowing.
    pub(super) fn unclear(&self) -> usize {
        self.unclear
    }

    pub(super) fn insert(&mut self, election: ElectionName, candidacy: Candidacy) {
        self.remove(&election);
        self.unclear += usize::from(candidacy.open_nonce.is_some());
        self.index(&election, &candidacy.stage);
        self.by_election.insert(election, candidacy);
    }

    pub(super) fn remove(&mut self, election: &ElectionName) -> Option<Candidacy> {
        let candidacy = self.by_election.remove(election)?;
        self.unindex(election, &candidacy.stage);
        self.unclear -= usize::from(candidacy.open_nonce.is_some());
        Some(candidacy)
    }

    /// Changes one candidacy and keeps the indexes right.
    pub(super) fn change(&mut self, election: &ElectionName, with: impl FnOnce(&mut Candidacy)) {
        let Some(mut candidacy) = self.remove(election) else { return };
        with(&mut candidacy);
        self.insert(election.clone(), candidacy);
    }

    pub(super) fn bid_at(&mut self, election: &ElectionName, bid_at: Mono) {
        self.change(election, |c| c.stage = Stage::Waiting { bid_at });
    }

    /// Moves a waiting candidate's bid forward to `at`, if it is later.
    pub(super) fn bid_by(&mut self, election: &ElectionName, at: Mono) {
        if let Some(Stage::Waiting { bid_at }) = self.get(election).map(|c| &c.stage)
            && *bid_at > at
        {
            self.bid_at(election, at);
        }
    }

    /// The elections to bid for now, longest due first.
    pub(super) fn bids_due(&self, now: Mono) -> impl Iterator<Item = &ElectionName> {
        self.bids.iter().take_while(move |(at, _)| *at <= now).map(|(_, election)| election)
    }

    pub(super) fn next_bid(&self) -> Option<Mono> {
        self.bids.first().map(|(at, _)| *at)
    }

    /// One election whose time to drain is over.
    pub(super) fn drain_over(&self, now: Mono) -> Option<ElectionName> {
        self.drains.first().filter(|(at, _)| *at <= now).map(|(_, election)| election.clone())
    }

    /// When the next time to drain is over.
    pub(super) fn next_drain(&self) -> Option<Mono> {
        self.drains.first().map(|(at, _)| *at)
    }

    /// Whether it is in the claim in flight.
    pub(super) fn is_bidding(&self, election: &ElectionName) -> bool {
        self.get(election).is_some_and(|c| matches!(c.stage, Stage::Bidding))
    }

    /// Whether this bid for it is in the claim in flight.
    pub(super) fn still_bids(&self, election: &ElectionName, nonce: Nonce) -> bool {
        let candidacy = self.get(election);
        candidacy.is_some_and(|c| matches!(c.stage, Stage::Bidding) && c.open_nonce == Some(nonce))
    }

    /// Why a term is being given up, and for whom.
    pub(super) fn stopping_for(&self, election: &ElectionName) -> (ReleaseCause, Option<MemberId>) {
        match self.get(election).map(|c| &c.stage) {
            Some(Stage::Stopping { reason: StopReason::Asked { to: asked, .. }, to, .. }) => {
                (ReleaseCause::SteppedDown, to.clone().or_else(|| asked.clone()))
            }
            Some(Stage::Stopping { to, .. }) => (ReleaseCause::Resigned, to.clone()),
            _ => (ReleaseCause::Resigned, None),
        }
    }

    /// The term of this election that is held.
    pub(super) fn term(&self, election: &ElectionName) -> Option<TermNumber> {
        self.get(election)?.stage.term()
    }

    /// All terms that are held.
    pub(super) fn terms(&self) -> impl Iterator<Item = (&ElectionName, TermNumber)> {
        self.by_election.iter().filter_map(|(e, c)| Some((e, c.stage.term()?)))
    }

    /// The elections whose terms are held.
    pub(super) fn led(&self) -> Vec<ElectionName> {
        self.terms().map(|(election, _)| election.clone()).collect()
    }

    /// All elections that are stood for or led.
    pub(super) fn names(&self) -> Vec<ElectionName> {
        self.by_election.keys().cloned().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ElectionName, &Candidacy)> {
        self.by_election.iter()
    }

    fn index(&mut self, election: &ElectionName, stage: &Stage) {
        if let Some(at) = stage.bid_at() {
            self.bids.insert((at, election.clone()));
        }
        if let Some(at) = stage.drain_until() {
            self.drains.insert((at, election.clone()));
        }
        self.held += usize::from(stage.term().is_some());
    }

    fn unindex(&mut self, election: &ElectionName, stage: &Stage) {
        if let Some(at) = stage.bid_at() {
            self.bids.remove(&(at, election.clone()));
        }
        if let Some(at) = stage.drain_until() {
            self.drains.remove(&(at, election.clone()));
        }
        self.held -= usize::from(stage.term().is_some());
    }
}
