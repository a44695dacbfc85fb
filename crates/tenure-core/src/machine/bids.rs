//! Standing: when to bid, and what an answer means for the next bid.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::standing::{Candidacy, Stage};
use super::{Event, Flight, Machine, Rule, Slot};
use crate::{
    Bid, Claim, Claimed, Claims, ElectionName, ElectionView, Failed, MAX_TTL, Mono, Nonce,
    Priority, Reply, Request, TermNumber,
};

/// A bid at the very moment a ttl runs out would often come a hair early by the
/// store's clock, and cost a second one.
const JUST_AFTER: Duration = Duration::from_millis(1);

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Bidding {
    pub(super) slot: Slot<Vec<(ElectionName, Nonce)>>,
}

impl Machine {
    pub(super) fn stand(&mut self, now: Mono, election: ElectionName, priority: Priority) {
        if self.shutdown.is_some() {
            return self.emit(Event::Withdrawn { election });
        }
        if let Some(candidacy) = self.standings.get(&election) {
            if candidacy.priority != priority {
                self.standings.change(&election, |c| c.priority = priority);
                // A bid is how the store hears of it.
                self.hasten(now, &election, now);
            }
            return;
        }
        let bid_at = self.earliest_bid(now, &election);
        let candidacy = Candidacy {
            priority,
            stage: Stage::Waiting { bid_at },
            open_nonce: None,
            registered: false,
            ahead: 0,
            holder: None,
            heard: self.activity,
            least: TermNumber::NONE,
        };
        self.standings.insert(election, candidacy);
    }

    /// Not while an older term must be given back, nor within the cooldown.
    pub(super) fn earliest_bid(&mut self, now: Mono, election: &ElectionName) -> Mono {
        self.cooldowns.retain(|_, until| *until > now);
        if self.debts.owes(election) {
            return Mono::MAX;
        }
        self.cooldowns.get(election).map_or(now, |until| *until)
    }

    /// Moves a bid forward to `at`, but never into a cooldown.
    pub(super) fn hasten(&mut self, now: Mono, election: &ElectionName, at: Mono) {
        let at = at.max(self.earliest_bid(now, election));
        self.standings.bid_by(election, at);
    }

    pub(super) fn bids_wake(&self) -> Option<Mono> {
        let wanted = self.membership.life().and(self.standings.next_bid());
        self.bidding.slot.wake(wanted)
    }

    pub(super) fn step_bids(&mut self, now: Mono) {
        let Some(member) = self.membership.me() else { return };
        if !self.bidding.slot.is_free(now) || self.shutdown.is_some() {
            return;
        }
        let due: Vec<_> = self.standings.bids_due(now).take(self.traits.batch).cloned().collect();
        if due.is_empty() {
            return;
        }
        let mut sent = Vec::with_capacity(due.len());
        let mut bids = Vec::with_capacity(due.len());
        for election in due {
            let Some(candidacy) = self.standings.get(&election) else { continue };
            let priority = candidacy.priority;
            let nonce = candidacy.open_nonce.unwrap_or_else(|| self.next_nonce());
            self.standings.change(&election, |c| {
                c.open_nonce = Some(nonce);
                c.registered = true;
                c.stage = Stage::Bidding;
            });
            sent.push((election.clone(), nonce));
            bids.push(Bid { election, priority, nonce });
        }
        self.activity += 1;
        self.looked_by_bids(now, &sent);
        let claim = Claim::new(member, self.settings.ttl(), bids)
            .with_heir_grace(self.heir_grace())
            .with_seen(self.has_seen());
        let flight = self.send(now, Request::Claim(claim), sent);
        self.bidding.slot.begin(flight);
    }

    /// A vacancy is kept for its heir only where the heir hears of it at once.
    pub(super) fn heir_grace(&self) -> Duration {
        if self.traits.native_watch { self.settings.heir_grace() } else { Duration::ZERO }
    }

    pub(super) fn on_claim(
        &mut self,
        now: Mono,
        flight: Flight<Vec<(ElectionName, Nonce)>>,
        result: Result<Reply, Failed>,
    ) {
        self.activity += 1;
        match result {
            Ok(Reply::Claim(Claims::Answered(answers))) if fit(&flight.what, &answers) => {
                self.bidding.slot.succeeded();
                if answers.iter().any(|answer| matches!(answer, Claimed::Unknown(_))) {
                    self.unanswered(now, flight.started);
                }
                for ((election, nonce), answer) in flight.what.into_iter().zip(answers) {
                    let standing = self.still_bids(&election, nonce);
                    let heard = self.activity;
                    self.standings.change(&election, |c| c.heard = heard);
                    match answer {
                        Claimed::Won(term) => self.won(now, flight.started, term, standing),
                        Claimed::Held(view) if standing => self.not_won(now, &election, view),
                        Claimed::Held(_) => self.end_ghost(&election),
                        Claimed::Unknown(_) => self.bid_once_more(now, &election, nonce),
                    }
                }
            }
            Ok(Reply::Claim(Claims::Ended { superseded })) => self.life_over(now, superseded),
            _ => {
                self.unanswered(now, flight.started);
                for (election, nonce) in flight.what {
                    self.bid_once_more(now, &election, nonce);
                }
            }
        }
    }

    /// A claim sent at `started` failed, or one bid of it: the next one waits.
    fn unanswered(&mut self, now: Mono, started: Mono) {
        self.back_off(now, |m| &mut m.bidding.slot, Duration::MAX);
        // It may have won, and written the short ttl with it.
        self.membership.beat_by(started + self.settings.heartbeat());
    }

    /// Nothing is known of this bid. It is made again, with the same nonce (rule
    /// E2); the back-off of the slot paces it.
    fn bid_once_more(&mut self, now: Mono, election: &ElectionName, nonce: Nonce) {
        if !self.still_bids(election, nonce) {
            self.end_ghost(election);
            return self.looks.at_own_terms();
        }
        if self.mutated(Rule::ForgetBids) {
            self.standings.change(election, |c| c.open_nonce = None);
        }
        self.standings.bid_at(election, now);
    }

    /// The candidacy was withdrawn while its bid was on its way. The bid may
    /// have come after the release and made the store a candidate that does not
    /// exist, for whom vacancies would be kept: end it once more.
    fn end_ghost(&mut self, election: &ElectionName) {
        if self.standings.get(election).is_none() {
            self.owe_candidacy(election);
        }
    }

    fn still_bids(&self, election: &ElectionName, nonce: Nonce) -> bool {
        let candidacy = self.standings.get(election);
        candidacy.is_some_and(|c| matches!(c.stage, Stage::Bidding) && c.open_nonce == Some(nonce))
    }

    fn not_won(&mut self, now: Mono, election: &ElectionName, view: ElectionView) {
        self.standings.change(election, |c| c.open_nonce = None);
        self.plan(now, election, view, true);
    }

    /// Decides from what the store said when to bid next. `answered` says that
    /// it was the answer to a bid, and not merely a look.
    pub(super) fn plan(
        &mut self,
        now: Mono,
        election: &ElectionName,
        view: ElectionView,
        answered: bool,
    ) {
        let me = self.membership.me();
        if me.as_ref().is_some_and(|me| view.is_held_by(me.incarnation)) {
            // The store says we hold what we do not know of. After a bid, it is
            // given back; a look may be older than the release, and an audit
            // can tell.
            if answered {
                self.owe_unknown(election, view.number);
                self.standings.bid_at(election, Mono::MAX);
            } else {
                self.looks.at_own_terms();
            }
            return;
        }
        let may_lead = self.standings.get(election).is_some_and(|c| c.priority.may_lead());
        let wait = if may_lead { self.wait_for(&view, answered) } else { self.settings.ttl() };
        let wait = if self.mutated(Rule::BidAtOnce) { Duration::ZERO } else { wait };
        // Whatever a store says, nobody sleeps for ever on it (H16).
        let bid_at = now + wait.min(MAX_TTL);
        let bid_at = bid_at.max(self.earliest_bid(now, election));
        let (ahead, holder) = (view.ahead, view.holder.as_ref().map(|h| h.member.incarnation));
        let least = self.least_after(&view);
        self.standings.change(election, |c| {
            c.least = c.least.max(least);
            c.ahead = ahead;
            c.holder = holder;
            c.stage = Stage::Waiting { bid_at };
        });
        self.emit(Event::Standby { view: Box::new(view) });
    }

    /// How long to wait before the next bid.
    fn wait_for(&self, view: &ElectionView, answered: bool) -> Duration {
        let rank = self.stagger(view.ahead);
        if let Some(holder) = &view.holder {
            // T5: what is left of the holder's own ttl (M3), on our own clock.
            return self.just_after(holder.remaining, answered).saturating_add(rank);
        }
        if view.paused.is_some() {
            // A hint will say when it is lifted; look again in case it is lost.
            return self.settings.ttl();
        }
        match &view.reserved {
            Some(kept) if kept.member == self.id && !answered => Duration::ZERO,
            Some(kept) => self.just_after(kept.remaining, answered).saturating_add(rank),
            // Vacant, and yet the bid did not win: it was overtaken.
            None if answered => self.settings.retry_least().max(rank),
            None => rank,
        }
    }

    /// After an answer that leaves no time at all, another bid at once would
    /// only be told the same: a store that rounds down must not be hammered.
    fn just_after(&self, remaining: Duration, answered: bool) -> Duration {
        let least = if answered { self.settings.look_gap() } else { Duration::ZERO };
        remaining.saturating_add(JUST_AFTER).max(least)
    }

    pub(super) fn withdraw(&mut self, now: Mono, election: &ElectionName) {
        let Some(candidacy) = self.standings.get(election) else { return };
        if let Some(number) = candidacy.stage.term() {
            return self.resign(now, election, number, None);
        }
        let (registered, unclear) = (candidacy.registered, candidacy.open_nonce.is_some());
        self.standings.remove(election);
        if registered {
            self.owe_candidacy(election);
        }
        if unclear {
            // The bid may have won, or may yet: find out, and give it back.
            self.looks.at_own_terms();
        }
        self.emit(Event::Withdrawn { election: election.clone() });
    }
}

/// Whether there is an answer for each bid, about the election bid for. Any
/// other answer says nothing about what was won.
fn fit(bids: &[(ElectionName, Nonce)], answers: &[Claimed]) -> bool {
    let about = |answer: &Claimed, election: &ElectionName| match answer {
        Claimed::Won(term) => term.election == *election,
        Claimed::Held(view) => view.election == *election,
        Claimed::Unknown(of) => of == election,
    };
    bids.len() == answers.len() && bids.iter().zip(answers).all(|((e, _), a)| about(a, e))
}
