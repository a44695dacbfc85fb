//! Looking: what hints, heartbeats and doubts lead to. Every hint only causes a
//! look (N1), looks are coalesced and paced, and none delays a heartbeat. A few in a
//! row go out as soon as they are wanted; after that one goes out in each
//! [`look_pace`](crate::Settings::look_pace), whatever a flood of hints asks for (P12).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use super::standing::{Candidacy, Stage};
use super::{Flight, Machine, Rule, Slot};
use crate::{
    ElectionName, ElectionView, Failed, Hint, Incarnation, Mono, Nonce, Query, Reply, Request,
    Snapshot, TermNumber, Which,
};

/// How many lives that seem to be over are told apart; beyond that, a storm of
/// such hints would only cost memory.
const MOST_GONE: usize = 1_000;

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Looks {
    /// Elections to look at.
    wanted: BTreeSet<ElectionName>,
    /// Whether to look at every election that somebody here waits for. They
    /// are gathered when it is their turn, so that a storm of hints costs a
    /// flag and not a walk each.
    waiting: bool,
    /// Whether to look at everything the store has under our name.
    own_terms: bool,
    /// Whether the last look was at that.
    was_own: bool,
    /// Lives that seem to be over.
    pub(super) gone: BTreeSet<Incarnation>,
    /// When a hint last caused a bid at once.
    early_bid: Mono,
    /// When a hint last caused a look at once.
    early: Mono,
    /// Whether the next look may go out whatever the pace.
    urgent: bool,
    /// Whether a hint has moved a bid forward.
    hinted_bid: bool,
    /// What looks have cost so far, and what was done at once because a hint named this
    /// member: apart, so that a flood of the one does not delay the other.
    pace: Pace,
    heir_pace: Pace,
    pub(super) slot: Slot<Look>,
}

/// How many may follow each other at the shortest distance before they are paced.
const BURST: u32 = 8;

/// Few at once, and then one in each interval: what a flood of hints may cost (P12).
#[derive(Clone, Copy, Debug, Default, Hash)]
struct Pace {
    /// When all that was spent is made good.
    until: Mono,
}

impl Pace {
    /// From when on there may be one more.
    fn next(self, every: Duration) -> Mono {
        self.until - every * (BURST - 1)
    }

    fn spend(&mut self, now: Mono, every: Duration) {
        self.until = self.until.max(now) + every;
    }
}

/// A look in flight.
#[derive(Clone, Debug, Hash)]
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
    pub(super) fn at_waiting(&mut self) {
        self.waiting = true;
    }

    /// All of it, but not what it cost: a new life is paced like the one before.
    pub(super) fn forget(&mut self) {
        *self = Self { pace: self.pace, heir_pace: self.heir_pace, ..Self::default() };
    }
}

impl Machine {
    pub(super) fn on_hint(&mut self, now: Mono, hint: Hint) {
        match hint {
            Hint::Anything => {
                self.looks.at_own_terms();
                self.looks.at_waiting();
            }
            Hint::Election(election) => self.look_at(election),
            Hint::Gone(incarnation) => self.on_gone(incarnation),
            Hint::Handed { election, to } => self.on_handed(now, election, &to),
            Hint::Vacant { election, heir } => self.on_vacant(now, election, heir.as_ref()),
        }
    }

    /// The one it was handed to looks at once, however lately it looked. If it does
    /// not stand for it any more, and its last bid came late, it gives it back as
    /// soon as it has seen it.
    fn on_handed(&mut self, now: Mono, election: ElectionName, to: &crate::MemberId) {
        if *to == self.id {
            // A storm of such hints makes one early look (C24), and few in a row.
            let due = self.looks.early + self.settings.look_gap();
            if now >= due.max(self.heir_due()) {
                self.looks.early = now;
                self.looks.heir_pace.spend(now, self.settings.look_pace());
                self.looks.urgent = true;
                self.looks.slot.hurry();
            }
            if self.standings.get(&election).is_none() {
                return self.looks.at_own_terms();
            }
        }
        self.look_at(election);
    }

    fn on_gone(&mut self, incarnation: Incarnation) {
        if self.looks.gone.len() >= MOST_GONE {
            // More than can be told apart: look at everything instead.
            self.looks.gone.clear();
            self.looks.at_own_terms();
            self.looks.at_waiting();
        }
        self.looks.gone.insert(incarnation);
    }

    pub(super) fn look_at(&mut self, election: ElectionName) {
        if self.standings.get(&election).is_some() {
            self.looks.wanted.insert(election);
        }
    }

    /// The one it is kept for bids at once: that is its look. The others let it
    /// go first (F4).
    fn on_vacant(&mut self, now: Mono, election: ElectionName, heir: Option<&crate::MemberId>) {
        let Some(candidacy) = self.standings.get(&election) else { return };
        if candidacy.stage.term().is_some() && self.mutated(Rule::TrustHints) {
            return self.superseded(now, &election);
        }
        if candidacy.stage.term().is_some() || !candidacy.priority.may_lead() {
            return self.look_at(election);
        }
        let rank = self.stagger(candidacy.ahead);
        if self.is_bidding(&election) || self.looks.slot.is_in_flight() {
            // An answer on its way may be older than this hint, and would put
            // the bid off: look again after it.
            self.look_at(election.clone());
        }
        let wait = match heir {
            Some(heir) if *heir == self.id => Duration::ZERO,
            Some(_) => self.settings.heir_grace() + rank,
            None => rank,
        };
        // A storm of such hints makes one early bid, not a storm of bids (C24), and few
        // in a row.
        let due = (self.looks.early_bid + self.settings.look_gap()).max(self.heir_due());
        let at = (now + wait).max(due);
        if at == now {
            self.looks.early_bid = now;
        }
        self.looks.hinted_bid = true;
        self.hasten(now, &election, at);
    }

    /// From when on a look may go out.
    fn look_due(&self) -> Mono {
        match self.looks.urgent || self.mutated(Rule::HintsNotPaced) {
            true => Mono::ZERO,
            false => self.looks.pace.next(self.settings.look_pace()),
        }
    }

    /// From when on a hint that names this member may cause something at once.
    fn heir_due(&self) -> Mono {
        match self.mutated(Rule::HintsNotPaced) {
            true => Mono::ZERO,
            false => self.looks.heir_pace.next(self.settings.look_pace()),
        }
    }

    fn is_bidding(&self, election: &ElectionName) -> bool {
        self.standings.get(election).is_some_and(|c| matches!(c.stage, Stage::Bidding))
    }

    /// Whether there is something to look at now. What is being bid for waits
    /// for the answer, which is a look itself.
    fn wants_to_look(&self) -> bool {
        let looks = &self.looks;
        looks.own_terms
            || looks.waiting
            || (!looks.gone.is_empty() && !self.bidding.slot.is_in_flight())
            || looks.wanted.iter().any(|election| !self.is_bidding(election))
    }

    pub(super) fn looks_wake(&self) -> Option<Mono> {
        let may_look = self.shutdown.is_none() && self.wants_to_look();
        let wanted = self.membership.life().filter(|_| may_look);
        self.looks.slot.wake(wanted.map(|_| self.look_due()))
    }

    pub(super) fn step_looks(&mut self, now: Mono) {
        let due = now >= self.look_due() && self.looks.slot.is_free(now);
        let may_look = self.shutdown.is_none() && due;
        let Some(me) = self.membership.me().filter(|_| may_look) else { return };
        if !self.wants_to_look() {
            return;
        }
        if !self.bidding.slot.is_in_flight() {
            self.hear_of_the_gone(now, me.incarnation);
        }
        // In turns: a storm of hints about everything must not keep a candidate
        // from ever looking at what it waits for.
        let own_first = self.looks.own_terms && !self.looks.was_own;
        let names = if own_first { Vec::new() } else { self.names_to_look_at() };
        let own_terms = names.is_empty() && core::mem::take(&mut self.looks.own_terms);
        self.looks.was_own = own_terms;
        let which = match own_terms {
            true => Which::HeldBy(me.incarnation),
            false if names.is_empty() => return,
            false => Which::Named(names.clone()),
        };
        let query = Query { which, asker: Some(me), ..Query::nothing() };
        let look = Look { own_terms, names, activity: self.activity };
        if !core::mem::take(&mut self.looks.urgent) {
            self.looks.pace.spend(now, self.settings.look_pace());
        }
        let flight = self.send(now, Request::Read(query), look);
        self.looks.slot.begin(flight);
    }

    /// These bids are about to be sent. Their answers are looks, later than any
    /// hint so far: what was wanted of them is as good as done.
    pub(super) fn looked_by_bids(&mut self, now: Mono, bids: &[(ElectionName, Nonce)]) {
        if core::mem::take(&mut self.looks.hinted_bid) {
            self.looks.heir_pace.spend(now, self.settings.look_pace());
        }
        self.gather_waiting();
        for (election, _) in bids {
            self.looks.wanted.remove(election);
        }
    }

    fn gather_waiting(&mut self) {
        if core::mem::take(&mut self.looks.waiting) {
            let waiting = self.standings.iter().filter(|(_, c)| c.stage.term().is_none());
            self.looks.wanted.extend(waiting.map(|(election, _)| election.clone()));
        }
    }

    /// The next batch of elections to look at, taken off the list.
    fn names_to_look_at(&mut self) -> Vec<ElectionName> {
        self.gather_waiting();
        let ready = self.looks.wanted.iter().filter(|election| !self.is_bidding(election));
        let names: Vec<_> = ready.take(self.traits.batch).cloned().collect();
        for name in &names {
            self.looks.wanted.remove(name);
        }
        names
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
        let waits = |(election, c): (&ElectionName, &Candidacy)| {
            let waits = c.holder.is_some_and(|holder| gone.contains(&holder));
            waits.then(|| (election.clone(), c.ahead))
        };
        let waited_for: Vec<_> = self.standings.iter().filter_map(waits).collect();
        if !waited_for.is_empty() {
            self.looks.pace.spend(now, self.settings.look_pace());
        }
        for (election, ahead) in waited_for {
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
        let look = flight.what;
        let Ok(Reply::Read(snapshot)) = result else {
            self.looks.own_terms |= look.own_terms;
            self.looks.wanted.extend(look.names);
            return self.back_off(now, |m| &mut m.looks.slot, Duration::MAX);
        };
        self.looks.slot.succeeded();
        // A look at ten thousand terms takes its time, and claims that are
        // answered meanwhile make it useless: at most half of the time is spent
        // on looking.
        let spent = match look.own_terms {
            true => now.since(flight.started).min(self.settings.heartbeat()),
            false => Duration::ZERO,
        };
        self.looks.slot.hold_until(now + self.settings.look_gap().max(spent));
        self.hear_of_place(now, flight.seen, snapshot.seq);
        if look.own_terms {
            self.audit(now, look.activity, snapshot);
        } else {
            for view in snapshot.elections {
                self.on_view(now, flight.started, look.activity, view);
            }
        }
    }

    fn on_view(&mut self, now: Mono, started: Mono, activity: u64, view: ElectionView) {
        let election = view.election.clone();
        let candidacy = self.standings.get(&election);
        // A bid that was answered since the look was sent knows better.
        let known = |c: &&Candidacy| activity >= c.heard || self.mutated(Rule::OldLooks);
        let Some(candidacy) = candidacy.filter(known) else { return };
        match &candidacy.stage {
            Stage::Bidding => {}
            Stage::Waiting { bid_at } if *bid_at == Mono::MAX => {}
            Stage::Waiting { .. } => match self.handed_to_us(candidacy, &view) {
                Some(remaining) => self.handed_over(now, started, activity, view, remaining),
                None => self.plan(now, &election, view, false),
            },
            Stage::Leading(number) | Stage::Stopping { number, .. } => {
                self.check_reign(now, *number, &view);
            }
        }
    }

    /// What is left of a term that was handed to us, if we may lead it.
    fn handed_to_us(&self, candidacy: &Candidacy, view: &ElectionView) -> Option<Duration> {
        let me = self.membership.life().filter(|_| !self.behind)?.member.incarnation;
        view.handed_to(me).filter(|_| candidacy.priority.may_lead())
    }

    /// H3: superseded means lost, now.
    fn check_reign(&mut self, now: Mono, number: TermNumber, view: &ElectionView) {
        let Some(me) = self.membership.me() else { return };
        if view.number != number || !view.is_held_by(me.incarnation) {
            return self.superseded(now, &view.election);
        }
        if let Some(asked) = &view.step_down {
            self.asked_to_step_down(now, &view.election, asked);
        }
    }

    /// Compares all that the store has under our name with what we know of.
    fn audit(&mut self, now: Mono, activity: u64, snapshot: Snapshot) {
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
        let handed: BTreeSet<_> = snapshot
            .elections
            .into_iter()
            .filter(|v| v.holder.as_ref().is_some_and(|h| h.unconfirmed))
            .map(|v| v.election)
            .collect();
        let gone = |(e, number): (&ElectionName, TermNumber)| {
            (!theirs.contains(&(e.clone(), number))).then(|| e.clone())
        };
        let gone: Vec<_> = self.standings.terms().filter_map(gone).collect();
        for election in gone {
            self.superseded(now, &election);
        }
        for (election, number) in theirs {
            let candidacy = self.standings.get(&election);
            let known = candidacy.and_then(|c| c.stage.term());
            if known == Some(number) || self.debts.owes_term(&election) {
                continue;
            }
            let waits = |c: &Candidacy| {
                c.open_nonce.is_some() || (handed.contains(&election) && c.priority.may_lead())
            };
            match candidacy.map(waits) {
                // A bid whose answer was lost, or a term that was handed over:
                // a bid finds out, or takes it on.
                Some(true) => self.hasten(now, &election, now),
                _ if self.mutated(Rule::KeepOrphans) => {}
                _ => self.owe_unknown(&election, number),
            }
        }
    }
}
