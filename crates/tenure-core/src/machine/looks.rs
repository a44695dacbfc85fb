//! Looking: what hints, heartbeats and doubts lead to. Every hint only causes a
//! look (N1), looks are coalesced and paced, and none delays a heartbeat. A few in a
//! row go out as soon as they are wanted; after that one goes out in each
//! [`look_pace`](crate::Settings::look_pace), whatever a flood of hints asks for (P12).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use super::Decisions;
use super::context::{Common, Context};
use super::handover::handed_to_us;
use super::membership::Life;
use super::slot::{Flight, Slot};
use super::standing::{Candidacy, Stage};
use super::terms::Terms;
use crate::{
    ElectionName, ElectionView, Failed, Hint, Incarnation, MemberId, Mono, Nonce, Query, Reply,
    Request, Settings, Snapshot, TermNumber, Which,
};

/// How many lives that seem to be over are told apart; beyond that, a storm of
/// such hints would only cost memory.
const MOST_GONE: usize = 1_000;

/// How many may follow each other at the shortest distance before they are paced.
const BURST: u32 = 8;

/// What a look is to find out, besides single elections.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Doubts {
    /// Whether the store has other terms under our name than we know of.
    pub(super) own_terms: bool,
    /// Whether to look at every election for which a caller of this member waits. Which
    /// elections these are is found out when the look is sent, so that each hint of a storm
    /// sets a flag and walks over nothing.
    pub(super) waiting: bool,
}

impl Doubts {
    fn about_everything(&mut self) {
        *self = Self { own_terms: true, waiting: true };
    }
}

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Looks {
    /// Elections to look at.
    wanted: BTreeSet<ElectionName>,
    /// Whether the last look was at our own terms.
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

/// Bounds what a flood of hints can cost (P12): a few looks at once, then one in each interval.
#[derive(Clone, Copy, Debug, Default, Hash)]
struct Pace {
    /// When all that was spent is made good.
    until: Mono,
}

impl Pace {
    /// From when on there may be one more.
    fn next(self, every: Duration) -> Mono {
        // What was spent is made good at one look in each interval; all but one look of a
        // burst may be owed.
        self.until - every * (BURST - 1)
    }

    fn spend(&mut self, cx: &Context<'_>) {
        self.until = self.until.max(cx.now) + cx.decide.look_pace(cx.settings);
    }
}

/// A look in flight.
#[derive(Clone, Debug, Hash)]
pub(super) struct Look {
    own_terms: bool,
    names: Vec<ElectionName>,
    /// See [`Common::activity`](super::context::Common::activity).
    activity: u64,
}

/// When a look was sent whose answer has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) started: Mono,
    /// See [`Common::activity`](super::context::Common::activity).
    activity: u64,
}

impl Looks {
    pub(super) fn on_hint(&mut self, cx: &mut Context<'_>, hint: Hint, terms: &mut Terms) {
        match hint {
            Hint::Anything => terms.doubts.about_everything(),
            Hint::Election(election) => self.look_at(election, terms),
            Hint::Gone(incarnation) => self.on_gone(incarnation, terms),
            Hint::Handed { election, to } => self.on_handed(cx, election, &to, terms),
            Hint::Vacant { election, heir } => self.on_vacant(cx, election, heir.as_ref(), terms),
            // No election depends on a name.
            Hint::Names => {}
        }
    }

    /// The one it was handed to looks at once, however lately it looked. If it does
    /// not stand for it any more, and its last bid came late, it gives it back as
    /// soon as it has seen it.
    fn on_handed(
        &mut self,
        cx: &Context<'_>,
        election: ElectionName,
        to: &MemberId,
        terms: &mut Terms,
    ) {
        if to == cx.id {
            // A storm of such hints makes one early look (C24), and few in a row.
            let due = self.early + cx.settings.look_gap();
            if cx.now >= due.max(self.heir_due(cx)) {
                self.early = cx.now;
                self.heir_pace.spend(cx);
                self.urgent = true;
                self.slot.hurry();
            }
            if terms.standings.get(&election).is_none() {
                terms.doubts.own_terms = true;
                return;
            }
        }
        self.look_at(election, terms);
    }

    fn on_gone(&mut self, incarnation: Incarnation, terms: &mut Terms) {
        if self.gone.len() >= MOST_GONE {
            // More than can be told apart: look at everything instead.
            self.gone.clear();
            terms.doubts.about_everything();
        }
        self.gone.insert(incarnation);
    }

    fn look_at(&mut self, election: ElectionName, terms: &Terms) {
        if terms.standings.get(&election).is_some() {
            self.wanted.insert(election);
        }
    }

    /// The one it is kept for bids at once: that is its look. The others let it
    /// go first (F4).
    fn on_vacant(
        &mut self,
        cx: &mut Context<'_>,
        election: ElectionName,
        heir: Option<&MemberId>,
        terms: &mut Terms,
    ) {
        let Some(candidacy) = terms.standings.get(&election) else { return };
        let leads = candidacy.stage.term().is_some();
        // A hint proves nothing (N1): it may be forged, or older than this term. Only the
        // simulator's broken machine believes it.
        if leads && cx.decide.believes_hints() {
            return terms.superseded(cx, &election);
        }
        if leads || !candidacy.priority.may_lead() {
            return self.look_at(election, terms);
        }
        let rank = cx.stagger(candidacy.ahead);
        if terms.standings.is_bidding(&election) || self.slot.is_in_flight() {
            // An answer on its way may be older than this hint, and would put
            // the bid off: look again after it.
            self.look_at(election.clone(), terms);
        }
        let wait = match heir {
            Some(heir) if heir == cx.id => Duration::ZERO,
            Some(_) => cx.settings.heir_grace() + rank,
            None => rank,
        };
        // A storm of such hints makes one early bid, not a storm of bids (C24), and few
        // in a row.
        let due = (self.early_bid + cx.settings.look_gap()).max(self.heir_due(cx));
        let at = (cx.now + wait).max(due);
        if at == cx.now {
            self.early_bid = cx.now;
        }
        self.hinted_bid = true;
        terms.hasten(cx.now, &election, at);
    }

    /// From when on a look may go out.
    fn due(&self, decide: Decisions, settings: &Settings) -> Mono {
        if self.urgent { Mono::ZERO } else { self.pace.next(decide.look_pace(settings)) }
    }

    /// From when on a hint that names this member may cause something at once.
    fn heir_due(&self, cx: &Context<'_>) -> Mono {
        self.heir_pace.next(cx.decide.look_pace(cx.settings))
    }

    /// Whether there is something to look at now. What is being bid for waits
    /// for the answer, which is a look itself.
    fn wants_to_look(&self, terms: &Terms, is_bidding: bool) -> bool {
        terms.doubts.own_terms
            || terms.doubts.waiting
            || (!self.gone.is_empty() && !is_bidding)
            || self.wanted.iter().any(|election| !terms.standings.is_bidding(election))
    }

    /// When to look next. `is_bidding` says that a claim is in flight.
    pub(super) fn wake(&self, common: &Common, terms: &Terms, is_bidding: bool) -> Option<Mono> {
        let may_look = common.shutdown.is_none() && self.wants_to_look(terms, is_bidding);
        self.slot.wake(may_look.then(|| self.due(common.decide, &common.settings)))
    }

    /// Looks, if it is time. `is_bidding` says that a claim is in flight.
    pub(super) fn step(
        &mut self,
        cx: &mut Context<'_>,
        life: &Life,
        terms: &mut Terms,
        is_bidding: bool,
    ) {
        let is_due = cx.now >= self.due(cx.decide, cx.settings) && self.slot.is_free(cx.now);
        if cx.is_shutting_down || !is_due || !self.wants_to_look(terms, is_bidding) {
            return;
        }
        let me = &life.member;
        if !is_bidding {
            self.act_on_the_gone(cx, me.incarnation, terms);
        }
        // In turns: a storm of hints about everything must not keep a candidate
        // from ever looking at what it waits for.
        let own_first = terms.doubts.own_terms && !self.was_own;
        let names = if own_first { Vec::new() } else { self.names_to_look_at(cx, terms) };
        let own_terms = names.is_empty() && core::mem::take(&mut terms.doubts.own_terms);
        self.was_own = own_terms;
        let which = match own_terms {
            true => Which::HeldBy(me.incarnation),
            false if names.is_empty() => return,
            false => Which::Named(names.clone()),
        };
        let query = Query { which, asker: Some(me.clone()), ..Query::nothing() };
        let look = Look { own_terms, names, activity: *cx.activity };
        // What was urgent was paid for by `heir_pace`, when the hint came.
        if !core::mem::take(&mut self.urgent) {
            self.pace.spend(cx);
        }
        self.slot.send(cx, Request::Read(query), look);
    }

    /// These bids are about to be sent. Their answers are looks, later than any
    /// hint so far: what was wanted of them is as good as done.
    pub(super) fn answered_by_bids(
        &mut self,
        cx: &Context<'_>,
        terms: &mut Terms,
        bids: &[(ElectionName, Nonce)],
    ) {
        if core::mem::take(&mut self.hinted_bid) {
            self.heir_pace.spend(cx);
        }
        // Gathered first, so that what these bids answer is not looked at as well.
        self.gather_waiting(terms);
        for (election, _) in bids {
            self.wanted.remove(election);
        }
    }

    fn gather_waiting(&mut self, terms: &mut Terms) {
        if core::mem::take(&mut terms.doubts.waiting) {
            let waiting = terms.standings.iter().filter(|(_, c)| c.stage.term().is_none());
            self.wanted.extend(waiting.map(|(election, _)| election.clone()));
        }
    }

    /// The next batch of elections to look at, taken off the list.
    fn names_to_look_at(&mut self, cx: &Context<'_>, terms: &mut Terms) -> Vec<ElectionName> {
        self.gather_waiting(terms);
        let ready = self.wanted.iter().filter(|election| !terms.standings.is_bidding(election));
        let names: Vec<_> = ready.take(cx.traits.batch).cloned().collect();
        for name in &names {
            self.wanted.remove(name);
        }
        names
    }

    /// Candidacies that wait for a member that seems gone bid, each in its turn: the
    /// store knows whether it really is. If it is ourselves, a beat finds out.
    fn act_on_the_gone(&mut self, cx: &Context<'_>, me: Incarnation, terms: &mut Terms) {
        let gone = core::mem::take(&mut self.gone);
        if gone.is_empty() {
            return;
        }
        if gone.contains(&me) {
            terms.trust.beat_by(cx.now);
        }
        let waits = |(election, c): (&ElectionName, &Candidacy)| {
            let waits = c.holder.is_some_and(|holder| gone.contains(&holder));
            waits.then(|| (election.clone(), c.ahead))
        };
        let waited_for: Vec<_> = terms.standings.iter().filter_map(waits).collect();
        if !waited_for.is_empty() {
            self.pace.spend(cx);
        }
        for (election, ahead) in waited_for {
            let at = cx.now + cx.stagger(ahead);
            terms.hasten(cx.now, &election, at);
        }
        // Ends that are told within a gap of each other are taken together.
        self.slot.hold_until(cx.now + cx.settings.look_gap());
    }

    /// The answer to a look, or that there was none.
    pub(super) fn on_look(
        &mut self,
        cx: &mut Context<'_>,
        flight: Flight<Look>,
        result: Result<Reply, Failed>,
        terms: &mut Terms,
        me: Incarnation,
    ) {
        let look = flight.what;
        let Ok(Reply::Read(snapshot)) = result else {
            // What was to be found out still is.
            terms.doubts.own_terms |= look.own_terms;
            self.wanted.extend(look.names);
            return self.slot.failed(cx, Duration::MAX);
        };
        self.slot.succeeded();
        // A look at ten thousand terms takes its time, and claims that are
        // answered meanwhile make it useless: at most half of the time is spent
        // on looking.
        let spent = match look.own_terms {
            true => cx.now.since(flight.started).min(cx.settings.heartbeat()),
            false => Duration::ZERO,
        };
        self.slot.hold_until(cx.now + cx.settings.look_gap().max(spent));
        terms.note_place(cx, flight.seen, snapshot.seq);
        snapshot.elections.iter().for_each(|view| cx.place.note_number(view.number));
        if look.own_terms {
            audit(terms, cx, look.activity, snapshot);
        } else {
            let seen = Seen { started: flight.started, activity: look.activity };
            for view in snapshot.elections {
                self.on_view(cx, seen, view, terms, me);
            }
        }
    }

    fn on_view(
        &mut self,
        cx: &mut Context<'_>,
        seen: Seen,
        view: ElectionView,
        terms: &mut Terms,
        me: Incarnation,
    ) {
        // A bid that was answered since the look was sent knows better.
        let is_known = |c: &&Candidacy| cx.decide.is_current(seen.activity, c.heard);
        let Some(candidacy) = terms.standings.get(&view.election).filter(is_known) else { return };
        match candidacy.stage {
            // The answer to the bid is newer than this view.
            Stage::Bidding => {}
            // A term is to be given back first, and the view may show that very term.
            Stage::Waiting { bid_at } if bid_at == Mono::MAX => {}
            Stage::Waiting { .. } => match handed_to_us(cx, me, candidacy, &view) {
                None => terms.looked_at(cx, view, me),
                // It may be what we have given back since: look again.
                Some(_) if !cx.decide.is_current(seen.activity, *cx.activity) => {
                    self.look_at(view.election, terms);
                }
                Some(remaining) => terms.handed_over(cx, seen, view, remaining),
            },
            Stage::Leading(number) | Stage::Stopping { number, .. } => {
                check_reign(terms, cx, number, &view, me);
            }
        }
    }

    /// All of it, but not what it cost: a new life is paced like the one before.
    pub(super) fn forget(&mut self) {
        *self = Self { pace: self.pace, heir_pace: self.heir_pace, ..Self::default() };
    }
}

/// H3: superseded means lost, now.
fn check_reign(
    terms: &mut Terms,
    cx: &mut Context<'_>,
    number: TermNumber,
    view: &ElectionView,
    me: Incarnation,
) {
    if view.number != number || !view.is_held_by(me) {
        return terms.superseded(cx, &view.election);
    }
    if let Some(asked) = &view.step_down {
        terms.asked_to_step_down(cx, &view.election, asked);
    }
}

/// Compares all that the store has under our name with what we know of.
fn audit(terms: &mut Terms, cx: &mut Context<'_>, activity: u64, snapshot: Snapshot) {
    // Before the answer is found too old: a request names its term, so that it is right
    // whatever was won or given back meanwhile (E5).
    for view in &snapshot.elections {
        if let Some(asked) = &view.step_down {
            terms.asked_to_step_down(cx, &view.election, asked);
        }
    }
    if activity != *cx.activity {
        // Something was won or given back meanwhile: the rest of this look
        // is of no use, another one is.
        terms.doubts.own_terms = true;
        return;
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
    let gone: Vec<_> = terms.standings.terms().filter_map(gone).collect();
    for election in gone {
        terms.superseded(cx, &election);
    }
    for (election, number) in theirs {
        let is_known = terms.standings.term(&election) == Some(number);
        if is_known || terms.debts.owes_term(&election) {
            continue;
        }
        let waits = |c: &Candidacy| {
            c.open_nonce.is_some() || (handed.contains(&election) && c.priority.may_lead())
        };
        match terms.standings.get(&election).map(waits) {
            // A bid whose answer was lost, or a term that was handed over:
            // a bid finds out, or confirms it.
            Some(true) => terms.hasten(cx.now, &election, cx.now),
            _ if cx.decide.gives_back_unknown() => {
                terms.debts.owe_unknown(&mut terms.standings, &election, number);
            }
            _ => {}
        }
    }
}
