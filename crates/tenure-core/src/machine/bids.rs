//! Standing: when to bid, and what an answer means for the next bid.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::Event;
use super::context::Context;
use super::looks::Looks;
use super::membership::{Life, LifeOver};
use super::rollback::least_after;
use super::slot::{Flight, Slot};
use super::standing::Stage;
use super::terms::Terms;
use crate::{
    Bid, Claim, Claimed, Claims, ElectionName, ElectionView, Failed, HeldUp, Incarnation, Mono,
    Nonce, Reply, Request,
};

/// A bid at the very moment a ttl runs out would often come a hair early by the
/// store's clock, and cost a second one.
const JUST_AFTER: Duration = Duration::from_millis(1);

/// How soon to bid again while processes of the last holder still run. The store may tell
/// sooner that they are gone; this is in case it does not.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Claims in flight.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Bids {
    pub(super) slot: Slot<Sent>,
}

/// What a claim in flight bids for.
pub(super) type Sent = Vec<(ElectionName, Nonce)>;

impl Bids {
    pub(super) fn wake(&self, terms: &Terms) -> Option<Mono> {
        self.slot.wake(terms.standings.next_bid())
    }

    pub(super) fn step(
        &mut self,
        cx: &mut Context<'_>,
        life: &Life,
        terms: &mut Terms,
        looks: &mut Looks,
    ) {
        if !self.slot.is_free(cx.now) || cx.is_shutting_down {
            return;
        }
        let due: Vec<_> = terms.standings.bids_due(cx.now).take(cx.traits.batch).cloned().collect();
        if due.is_empty() {
            return;
        }
        let mut sent = Vec::with_capacity(due.len());
        let mut bids = Vec::with_capacity(due.len());
        for election in due {
            let Some(candidacy) = terms.standings.get(&election) else { continue };
            let priority = candidacy.priority;
            // A bid whose answer was lost may have won. Repeated with its nonce it is
            // answered with that term; with another it would begin a second one (E2).
            let nonce = candidacy.open_nonce.unwrap_or_else(|| cx.out.next_nonce());
            terms.standings.change(&election, |c| {
                c.open_nonce = Some(nonce);
                // From here on the store may know of the candidacy, whatever becomes of the
                // answer: to withdraw it takes a release.
                c.registered = true;
                c.stage = Stage::Bidding;
            });
            sent.push((election.clone(), nonce));
            bids.push(Bid::new(election, nonce).with_priority(priority));
        }
        *cx.activity += 1;
        looks.answered_by_bids(cx, terms, &sent);
        let claim = Claim::new(life.member.clone(), cx.settings.ttl(), bids)
            .with_heir_grace(cx.heir_grace())
            .with_seen(cx.place.to_tell(cx.decide));
        self.slot.send(cx, Request::Claim(claim), sent);
    }

    /// The answer to a claim, or that there was none.
    pub(super) fn on_claim(
        &mut self,
        cx: &mut Context<'_>,
        flight: Flight<Sent>,
        result: Result<Reply, Failed>,
        terms: &mut Terms,
        me: Incarnation,
    ) -> Result<(), LifeOver> {
        *cx.activity += 1;
        match result {
            Ok(Reply::Claim(Claims::Answered(answers))) if fit(&flight.what, &answers) => {
                self.slot.succeeded();
                // After the success: one bid that is open is enough to back off.
                if answers.iter().any(|answer| matches!(answer, Claimed::Unknown(_))) {
                    self.unanswered(cx, flight.started, terms);
                }
                for ((election, nonce), answer) in flight.what.into_iter().zip(answers) {
                    let is_standing = terms.standings.still_bids(&election, nonce);
                    let heard = *cx.activity;
                    terms.standings.change(&election, |c| c.heard = heard);
                    match &answer {
                        Claimed::Won(term) => cx.place.note_number(term.number),
                        Claimed::Held(view) => cx.place.note_number(view.number),
                        Claimed::Unknown(_) => {}
                    }
                    match answer {
                        Claimed::Won(term) => terms.won(cx, flight.started, term, is_standing),
                        Claimed::Held(view) if is_standing => terms.not_won(cx, view, me),
                        Claimed::Held(_) => terms.end_ghost(&election),
                        Claimed::Unknown(_) => terms.bid_once_more(cx, &election, nonce),
                    }
                }
            }
            Ok(Reply::Claim(Claims::Ended { superseded })) => return Err(LifeOver { superseded }),
            // Also an answer that does not fit the bids: what it says of them is not known.
            _ => {
                self.unanswered(cx, flight.started, terms);
                for (election, nonce) in flight.what {
                    terms.bid_once_more(cx, &election, nonce);
                }
            }
        }
        Ok(())
    }

    /// A claim sent at `started` failed, or one bid of it: the next one waits.
    fn unanswered(&mut self, cx: &mut Context<'_>, started: Mono, terms: &mut Terms) {
        self.slot.failed(cx, Duration::MAX);
        // It may have won, and written the short ttl with it.
        terms.trust.beat_by(started + cx.settings.heartbeat());
    }
}

impl Terms {
    /// Nothing is known of this bid. It is made again, with the same nonce (rule
    /// E2); the back-off of the slot paces it.
    fn bid_once_more(&mut self, cx: &Context<'_>, election: &ElectionName, nonce: Nonce) {
        if !self.standings.still_bids(election, nonce) {
            self.end_ghost(election);
            self.doubts.own_terms = true;
            return;
        }
        self.standings.change(election, |c| {
            c.open_nonce = cx.decide.repeats(nonce);
            c.stage = Stage::Waiting { bid_at: cx.now };
        });
    }

    /// The candidacy was withdrawn while its bid was on its way. The bid may
    /// have come after the release and made the store a candidate that does not
    /// exist, for whom vacancies would be kept: end it once more.
    fn end_ghost(&mut self, election: &ElectionName) {
        if self.standings.get(election).is_none() {
            self.debts.owe_candidacy(&mut self.standings, election);
        }
    }

    fn not_won(&mut self, cx: &mut Context<'_>, view: ElectionView, me: Incarnation) {
        self.standings.change(&view.election, |c| c.open_nonce = None);
        if view.is_held_by(me) {
            // The store says we hold what we do not know of.
            self.debts.owe_unknown(&mut self.standings, &view.election, view.number);
            // Not before that is confirmed, which moves the bid forward again.
            return self.standings.bid_at(&view.election, Mono::MAX);
        }
        let turn = turn(cx, &view, true);
        self.plan(cx, view, turn, me);
    }

    /// A look found out what a candidate waits for.
    pub(super) fn looked_at(&mut self, cx: &mut Context<'_>, view: ElectionView, me: Incarnation) {
        if view.is_held_by(me) {
            // It may be older than the release of this term, and an audit can tell.
            self.doubts.own_terms = true;
            return;
        }
        let turn = turn(cx, &view, false);
        self.plan(cx, view, turn, me);
    }

    /// Decides from what the store said when to bid next.
    fn plan(&mut self, cx: &mut Context<'_>, view: ElectionView, turn: Duration, me: Incarnation) {
        let may_lead = self.standings.get(&view.election).is_some_and(|c| c.priority.may_lead());
        let wait = if may_lead { turn } else { cx.settings.ttl() };
        let bid_at = cx.now + cx.decide.wait(wait);
        // Never into a cooldown (E5), nor before a debt of this election is paid.
        let bid_at = bid_at.max(self.earliest_bid(cx.now, &view.election));
        let least = least_after(&view, me);
        self.standings.change(&view.election, |c| {
            // Never less: views may come out of their order.
            c.least = c.least.max(least);
            c.ahead = view.ahead;
            c.holder = view.holder.as_ref().map(|holder| holder.member.incarnation);
            c.stage = Stage::Waiting { bid_at };
        });
        cx.emit(Event::Standby { view: Box::new(view) });
    }
}

/// How long to wait before the next bid, by what the store said in answer to one, or
/// when it was merely looked at.
fn turn(cx: &Context<'_>, view: &ElectionView, after_bid: bool) -> Duration {
    let rank = cx.stagger(view.ahead);
    // After an answer that leaves no time at all, another bid at once would
    // only be told the same: a store that rounds down must not be hammered.
    let least = if after_bid { cx.settings.look_gap() } else { Duration::ZERO };
    let just_after =
        |left: Duration| left.saturating_add(JUST_AFTER).max(least).saturating_add(rank);
    if let Some(holder) = &view.holder {
        // T5: what is left of the holder's own ttl (M3), on our own clock.
        return just_after(holder.remaining);
    }
    if view.paused.is_some() {
        // A hint will say when it is lifted; look again in case it is lost.
        return cx.settings.ttl();
    }
    if let Some(HeldUp::Processes { .. }) = &view.held_up {
        return just_after(LOOK_AGAIN);
    }
    match &view.reserved {
        Some(kept) if kept.member == *cx.id && !after_bid => Duration::ZERO,
        Some(kept) => just_after(kept.remaining),
        // Vacant, and yet the bid did not win: it was overtaken.
        None if after_bid => cx.settings.retry_least().max(rank),
        None => rank,
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
