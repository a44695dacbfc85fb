//! Who waits for what: campaigns for their outcome, resignations for the
//! store's word that the term is free. Each waits only so long.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use tenure_core::{ElectionName, ElectionView, Mono, TermRef};
use tokio::sync::oneshot;

use super::{OutcomeSender, Patience};

/// All callers that wait.
#[derive(Debug, Default)]
pub(super) struct Waits {
    campaigns: HashMap<ElectionName, Campaign>,
    resignations: HashMap<TermRef, Vec<oneshot::Sender<bool>>>,
    /// Terms that were lost here and that the store may still have under this
    /// member's name.
    owed: HashSet<TermRef>,
    /// Only those whose patience ends: ten thousand endless campaigns cost
    /// nothing here.
    limits: BTreeSet<(Mono, Limit)>,
}

/// A campaign that has no answer yet.
#[derive(Debug)]
pub(super) struct Campaign {
    pub(super) reply: OutcomeSender,
    pub(super) patience: Patience,
    pub(super) since: Mono,
    /// Tells this campaign from an earlier or later one for the same election.
    pub(super) ticket: u64,
    /// What the store last said of why it is not won.
    why_not: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Campaign(ElectionName),
    Resignation(TermRef),
}

/// Whose patience is over.
#[derive(Debug)]
pub(super) enum Over {
    Campaign(ElectionName, Campaign),
    Resignation,
}

impl Campaign {
    pub(super) fn new(reply: OutcomeSender, patience: Patience, since: Mono, ticket: u64) -> Self {
        Self { reply, patience, since, ticket, why_not: None }
    }

    fn ends_at(&self) -> Option<Mono> {
        Some(self.since + self.patience.limit()?)
    }

    pub(super) fn why_not(&self) -> Option<String> {
        self.why_not.clone()
    }
}

impl Waits {
    /// How many campaigns are under way.
    pub(super) fn campaigns(&self) -> usize {
        self.campaigns.len()
    }

    pub(super) fn campaign(&self, election: &ElectionName) -> Option<&Campaign> {
        self.campaigns.get(election)
    }

    pub(super) fn begin(&mut self, election: ElectionName, campaign: Campaign) {
        if let Some(at) = campaign.ends_at() {
            self.limits.insert((at, Limit::Campaign(election.clone())));
        }
        self.campaigns.insert(election, campaign);
    }

    pub(super) fn take(&mut self, election: &ElectionName) -> Option<Campaign> {
        let campaign = self.campaigns.remove(election)?;
        if let Some(at) = campaign.ends_at() {
            self.limits.remove(&(at, Limit::Campaign(election.clone())));
        }
        Some(campaign)
    }

    /// Remembers why an election is not won yet, for a caller that gives up on it.
    pub(super) fn note(&mut self, view: &ElectionView) {
        if let Some(campaign) = self.campaigns.get_mut(&view.election)
            && campaign.patience != Patience::Endless
        {
            campaign.why_not = why_not(view);
        }
    }

    /// A term was lost that must be given back.
    pub(super) fn owe(&mut self, term: TermRef) {
        self.owed.insert(term);
    }

    /// A caller waits until `term` is given back; at once if it is.
    pub(super) fn confirm(
        &mut self,
        term: TermRef,
        confirmed: oneshot::Sender<bool>,
        now: Mono,
        limit: Duration,
    ) {
        if !self.owed.contains(&term) {
            let _ = confirmed.send(true);
            return;
        }
        self.limits.insert((now + limit, Limit::Resignation(term.clone())));
        self.resignations.entry(term).or_default().push(confirmed);
    }

    pub(super) fn given_back(&mut self, term: &TermRef) {
        self.owed.remove(term);
        self.answer(term, true);
    }

    /// The member has left, and everything with it.
    pub(super) fn left(&mut self, confirmed: bool) {
        self.owed.clear();
        let waiting: Vec<_> = self.resignations.keys().cloned().collect();
        waiting.iter().for_each(|term| self.answer(term, confirmed));
    }

    fn answer(&mut self, term: &TermRef, confirmed: bool) {
        for waiting in self.resignations.remove(term).into_iter().flatten() {
            // A caller that stopped waiting does not need the answer.
            let _ = waiting.send(confirmed);
        }
    }

    pub(super) fn next_limit(&self) -> Option<Mono> {
        self.limits.first().map(|(at, _)| *at)
    }

    /// Takes one whose patience is over by now.
    pub(super) fn over(&mut self, now: Mono) -> Option<Over> {
        let (at, _) = self.limits.first()?;
        if *at > now {
            return None;
        }
        match self.limits.pop_first()? {
            (_, Limit::Campaign(election)) => {
                let campaign = self.campaigns.remove(&election)?;
                Some(Over::Campaign(election, campaign))
            }
            (_, Limit::Resignation(term)) => {
                self.answer(&term, false);
                Some(Over::Resignation)
            }
        }
    }
}

/// Why an election that looks like this is not won.
fn why_not(view: &ElectionView) -> Option<String> {
    if let Some(holder) = &view.holder {
        return Some(format!("{} leads it", holder.member.id));
    }
    if let Some(pause) = &view.paused {
        return Some(format!("it is paused by {}: {}", pause.by, pause.reason));
    }
    if let Some(held_up) = &view.held_up {
        return Some(format!("it is held up: {held_up}"));
    }
    let kept = view.reserved.as_ref();
    kept.map(|kept| format!("it is kept for {}", kept.member))
}
