//! Looking: what hints, heartbeats and doubts lead to. Every hint only causes a
//! look (N1), looks are coalesced, and none delays a heartbeat.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use super::standing::{Stage, Standings};
use super::{Flight, Machine, Slot};
use crate::{
    ElectionName, ElectionView, Failed, Hint, Incarnation, Mono, Query, Reply, Request, Snapshot,
    Which,
};

#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Elections to look at.
    wanted: BTreeSet<ElectionName>,
    /// Whether to look at everything the store has under our name.
    own_terms: bool,
    /// Lives that seem to be over.
    gone: BTreeSet<Incarnation>,
    /// When a hint last caused a bid at once.
    early_bid: Mono,
    pub(super) slot: Slot<Look>,
}

/// A look in flight.
#[derive(Debug)]
pub(super) struct Look {
    own_terms: bool,
    names: Vec<ElectionName>,
    /// See [`Machine::activity`].
    activity: u64,
}

impl Looks {
    pub(super) fn at_own_terms(&mut self) {
        self.own_terms = true;
    }

    /// At every election that somebody here waits for.
    pub(super) fn at_waiting(&mut self, standings: &Standings) {
        let waiting = standings.iter().filter(|(_, c)| matches!(c.stage, Stage::Waiting { .. }));
        self.wanted.extend(waiting.map(|(election, _)| election.clone()));
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    fn is_wanted(&self) -> bool {
        self.own_terms || !self.wanted.is_empty() || !self.gone.is_empty()
    }
}

impl Machine {
    pub(super) fn on_hint(&mut self, now: Mono, hint: Hint) {
        match hint {
            Hint::Anything => {
                self.looks.at_own_terms();
                self.looks.at_waiting(&self.standings);
            }
            Hint::Election(election) => self.look_at(election),
            Hint::Gone(incarnation) => {
                self.looks.gone.insert(incarnation);
            }
            Hint::Vacant { election, heir } => self.on_vacant(now, election, heir.as_ref()),
        }
    }

    fn look_at(&mut self, election: ElectionName) {
        if self.standings.get(&election).is_some() {
            self.looks.wanted.insert(election);
        }
    }

    /// The one it is kept for bids at once: that is its look. The others let it
    /// go first (F4).
    fn on_vacant(&mut self, now: Mono, election: ElectionName, heir: Option<&crate::MemberId>) {
        let Some(candidacy) = self.standings.get(&election) else { return };
        if candidacy.stage.reign().is_some() {
            return self.look_at(election);
        }
        let rank = self.stagger(candidacy.ahead);
        let wait = match heir {
            Some(heir) if *heir == self.id => Duration::ZERO,
            Some(_) => self.settings.heir_grace() + rank,
            None => rank,
        };
        // A storm of such hints makes one early bid, not a storm of bids (C24).
        let at = (now + wait).max(self.looks.early_bid + self.settings.look_gap());
        if at == now {
            self.looks.early_bid = now;
        }
        self.hasten(now, &election, at);
    }

    pub(super) fn looks_wake(&self) -> Option<Mono> {
        let may_look = self.looks.is_wanted() && self.shutdown.is_none();
        let wanted = self.membership.life().filter(|_| may_look);
        self.looks.slot.wake(wanted.map(|_| Mono::ZERO))
    }

    pub(super) fn step_looks(&mut self, now: Mono) {
        if !self.looks.is_wanted() || !self.looks.slot.is_free(now) || self.shutdown.is_some() {
            return;
        }
        let Some(me) = self.membership.me() else { return };
        self.hear_of_the_gone(now, me.incarnation);
        let own_terms = core::mem::take(&mut self.looks.own_terms);
        let (which, names) = if own_terms {
            (Which::HeldBy(me.incarnation), Vec::new())
        } else {
            let names: Vec<_> = self.looks.wanted.iter().take(self.traits.batch).cloned().collect();
            (Which::Named(names.clone()), names)
        };
        for name in &names {
            self.looks.wanted.remove(name);
        }
        if !own_terms && names.is_empty() {
            return;
        }
        let query = Query { which, asker: Some(me), ..Query::nothing() };
        let look = Look { own_terms, names, activity: self.activity };
        let flight = self.send(now, Request::Read(query), look);
        self.looks.slot.begin(flight);
    }

    /// Whoever waits for a member that seems gone bids, each in its turn: the
    /// store knows whether it really is. If it is ourselves, a beat finds out.
    fn hear_of_the_gone(&mut self, now: Mono, me: Incarnation) {
        let gone = core::mem::take(&mut self.looks.gone);
        if gone.is_empty() {
            return;
        }
        if gone.contains(&me) {
            self.membership.beat_by(now);
        }
        let waits = |(election, c): (&ElectionName, &super::standing::Candidacy)| {
            let waits = c.holder.is_some_and(|holder| gone.contains(&holder));
            waits.then(|| (election.clone(), c.ahead))
        };
        let waiting: Vec<_> = self.standings.iter().filter_map(waits).collect();
        for (election, ahead) in waiting {
            let at = now + self.stagger(ahead);
            self.hasten(now, &election, at);
        }
        self.looks.slot.hold_until(now + self.settings.look_gap());
    }

    pub(super) fn on_look(
        &mut self,
        now: Mono,
        flight: Flight<Look>,
        result: Result<Reply, Failed>,
    ) {
        let Flight { started, what: look, .. } = flight;
        let Ok(Reply::Read(snapshot)) = result else {
            self.looks.own_terms |= look.own_terms;
            self.looks.wanted.extend(look.names);
            return self.back_off(now, |m| &mut m.looks.slot, Duration::MAX);
        };
        self.looks.slot.succeeded();
        self.looks.slot.hold_until(now + self.settings.look_gap());
        self.seq = self.seq.max(snapshot.seq);
        if look.own_terms {
            self.audit(now, started, look.activity, snapshot);
        } else {
            for view in snapshot.elections {
                self.on_view(now, started, view);
            }
        }
    }

    fn on_view(&mut self, now: Mono, looked: Mono, view: ElectionView) {
        let election = view.election.clone();
        let Some(candidacy) = self.standings.get(&election) else { return };
        match &candidacy.stage {
            Stage::Bidding => {}
            Stage::Waiting { bid_at } if *bid_at == Mono::MAX => {}
            Stage::Waiting { .. } => self.plan(now, &election, view, false),
            Stage::Leading(reign) | Stage::Stopping { reign, .. } => {
                let (number, since) = (reign.number, reign.since);
                self.check_reign(now, looked, number, since, &view);
            }
        }
    }

    /// H3: superseded means lost, now. A look that was taken before the term
    /// was won says nothing about it.
    fn check_reign(
        &mut self,
        now: Mono,
        looked: Mono,
        number: crate::TermNumber,
        since: Mono,
        view: &ElectionView,
    ) {
        let Some(me) = self.membership.me() else { return };
        let ours = view.number == number && view.is_held_by(me.incarnation);
        if !ours && looked >= since {
            return self.superseded(&view.election);
        }
        if let Some(asked) = &view.step_down {
            self.asked_to_step_down(now, &view.election, asked);
        }
    }

    /// Compares all that the store has under our name with what we know of.
    fn audit(&mut self, now: Mono, looked: Mono, activity: u64, snapshot: Snapshot) {
        for view in &snapshot.elections {
            if let Some(asked) = &view.step_down {
                self.asked_to_step_down(now, &view.election, asked);
            }
        }
        if activity != self.activity {
            // Something was won or given back meanwhile: the rest of this look
            // is of no use, another one is.
            return self.looks.at_own_terms();
        }
        let theirs: BTreeSet<_> =
            snapshot.elections.iter().map(|v| (v.election.clone(), v.number)).collect();
        let gone = |(e, r): (&ElectionName, super::standing::Reign)| {
            let missing = looked >= r.since && !theirs.contains(&(e.clone(), r.number));
            missing.then(|| e.clone())
        };
        let gone: Vec<_> = self.standings.reigns().filter_map(gone).collect();
        for election in gone {
            self.superseded(&election);
        }
        for (election, number) in theirs {
            let candidacy = self.standings.get(&election);
            let known = candidacy.and_then(|c| c.stage.reign());
            if known.is_some_and(|r| r.number == number) || self.debts.owes(&election) {
                continue;
            }
            match candidacy.map(|c| c.open_nonce.is_some()) {
                // A bid whose answer was lost: repeating it finds out.
                Some(true) => self.hasten(now, &election, now),
                _ => self.owe_unknown(&election, number),
            }
        }
    }
}
