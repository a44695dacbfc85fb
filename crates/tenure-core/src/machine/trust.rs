//! Trust: how long the member may believe in what it holds, and the heartbeats that
//! extend it.
//!
//! One heartbeat renews everything that is held, so there is one trust for all of it. It
//! reaches from the moment *before* the newest confirmed request was sent (T1), which was
//! a heartbeat or a claim that won. Where it ends, [`Terms::expire`] gives everything up.

use core::time::Duration;

use super::context::Context;
use super::membership::{Life, LifeOver};
use super::slot::{Flight, Slot};
use super::terms::Terms;
use super::{Decisions, Event};
use crate::{Beat, Era, Failed, Heartbeat, Mono, Reply, Request, Settings, TermOutcome, TermRef};

/// How far trust reaches, and when it is to be renewed.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Trust {
    /// Until when the newest confirmed grant of this life is trusted.
    until: Option<Mono>,
    next_beat: Mono,
}

impl Trust {
    /// The trust of a life that begins: none, and the first beat is due then.
    pub(super) fn of_new_life(first_beat: Mono) -> Self {
        Self { until: None, next_beat: first_beat }
    }

    /// Whether the store ever confirmed this life after its join.
    pub(super) fn was_granted(&self) -> bool {
        self.until.is_some()
    }

    pub(super) fn next_beat(&self) -> Mono {
        self.next_beat
    }

    /// Asks for a heartbeat as soon as may be.
    pub(super) fn beat_by(&mut self, at: Mono) {
        self.next_beat = self.next_beat.min(at);
    }
}

/// Until when a grant asked for at `started` may be trusted (rule T1).
pub(super) fn trusted_from(decide: Decisions, settings: &Settings, started: Mono) -> Mono {
    started + decide.trust(settings)
}

/// How far anything that hangs on trust may be trusted.
pub(super) fn trusted_until(terms: &Terms) -> Option<Mono> {
    terms.handed.until().or(terms.trust.until)
}

impl Terms {
    /// When trust ends, if anything hangs on it.
    pub(super) fn trust_end(&self) -> Option<Mono> {
        if self.standings.held() == 0 && !self.names.owns_any() {
            return None;
        }
        trusted_until(self)
    }

    /// Records that the store confirmed the member's life by a request sent at
    /// `started`, and tells the application where that reaches. `short` says
    /// that the request wrote the short ttl of a holder: the next beat must
    /// come soon, even if nothing is held any more. Where names are owned, trust goes on as
    /// far as it did: such an answer does not say in which era the store is, so that it may
    /// have forgotten them (`names/doubt.rs`).
    pub(super) fn grant(&mut self, cx: &mut Context<'_>, started: Mono, short: bool) {
        if self.names.owns_any() && cx.decide.doubts_names() {
            return self.trust.beat_by(started + cx.settings.heartbeat());
        }
        let before = self.trust_end();
        self.renew(cx, started, short, before);
    }

    /// The same, with the trust there was `before`.
    fn renew(&mut self, cx: &mut Context<'_>, started: Mono, short: bool, before: Option<Mono>) {
        let started = cx.decide.granted_from(started, cx.now);
        self.beat_after(cx, started, short);
        let until = trusted_from(cx.decide, cx.settings, started);
        // A claim and a heartbeat may be in flight side by side: the answer to the one that
        // was sent first takes nothing back.
        self.trust.until = self.trust.until.max(Some(until));
        self.tell_trust(cx, before);
    }

    /// Tells the application where trust reaches now, if that is further than
    /// `before`.
    pub(super) fn tell_trust(&self, cx: &mut Context<'_>, before: Option<Mono>) {
        if let (Some(before), Some(until)) = (before, self.trust_end())
            && until > before
        {
            let margin_left = before.since(cx.now);
            cx.emit(Event::Trusted { until, margin_left });
        }
    }

    /// Plans the beat after one that was sent at `started`.
    fn beat_after(&mut self, cx: &Context<'_>, started: Mono, short: bool) {
        let holds = short || self.holds_anything();
        let settings = cx.settings;
        let pause = if holds { settings.heartbeat() } else { settings.idle_heartbeat() };
        self.trust.next_beat = started + pause;
    }
}

/// Heartbeats in flight.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Beats {
    pub(super) slot: Slot<Sent>,
}

/// What a heartbeat in flight was sent with.
#[derive(Clone, Debug, Hash)]
pub(super) struct Sent {
    /// See [`Common::activity`](super::context::Common::activity).
    activity: u64,
    /// Whether it wrote the short ttl of a holder.
    short: bool,
    /// Whether it named a term that was handed over.
    named: bool,
}

impl Beats {
    pub(super) fn wake(&self, terms: &Terms) -> Option<Mono> {
        self.slot.wake(Some(terms.trust.next_beat()))
    }

    pub(super) fn step(&mut self, cx: &mut Context<'_>, life: &Life, terms: &Terms) {
        if cx.now < terms.trust.next_beat() || !self.slot.is_free(cx.now) {
            return;
        }
        let short = terms.holds_anything();
        let ttl = if short { cx.settings.ttl() } else { cx.settings.idle_ttl() };
        let held = terms.handed.to_confirm();
        let sent = Sent { activity: *cx.activity, short, named: !held.is_empty() };
        let beat = Heartbeat::new(life.member.clone(), ttl).with_held(held);
        self.slot.send(cx, Request::Heartbeat(beat), sent);
    }

    /// The answer to a heartbeat, or that there was none.
    pub(super) fn on_beat(
        &mut self,
        cx: &mut Context<'_>,
        flight: Flight<Sent>,
        result: Result<Reply, Failed>,
        terms: &mut Terms,
        life: &mut Life,
    ) -> Result<(), LifeOver> {
        match result {
            Ok(Reply::Heartbeat(Beat::Alive { attention, holds, seq, terms: answers })) => {
                self.slot.succeeded();
                let is_news = seq > cx.place.seq();
                terms.note_place(cx, flight.seen, seq);
                let sent = flight.what;
                // Read before anything below moves it: what was left of the margin is told.
                let before = terms.trust_end();
                if Era::has_begun(life.attention, attention) && cx.decide.doubts_names() {
                    terms.names.doubt();
                } else if terms.names.doubt.is_open() && !has_room(before, cx) {
                    terms.names.give_up_doubted(cx);
                }
                if lacks_a_term(holds, &sent, cx, terms) || terms.names.doubt.is_open() {
                    // One of ours is gone, and a look will say which: until
                    // then nothing is trusted any longer than it was.
                    terms.beat_after(cx, flight.started, sent.short);
                    // Half of what is left each time: the doubt is asked about again while
                    // there is still time for an answer.
                    if let Some(end) = before.filter(|_| terms.names.doubt.is_open()) {
                        terms.trust.beat_by(cx.now + end.since(cx.now) / 2);
                    }
                } else {
                    // In this order: a term that is confirmed now has the trust of all.
                    terms.handed.note_confirmation(cx.decide, &answers);
                    terms.renew(cx, flight.started, sent.short, before);
                }
                if terms.handed.is_open() && !sent.named {
                    // It was on its way before we were handed anything.
                    terms.trust.beat_by(cx.now);
                }
                if !sent.short && terms.holds_anything() {
                    // Something was won meanwhile, and this beat may have put
                    // the long ttl of an idle member over the short one.
                    terms.trust.beat_by(cx.now);
                }
                for answer in answers {
                    on_term_beat(terms, cx, &answer.term, answer.outcome);
                }
                let is_asked = core::mem::replace(&mut life.attention, attention) != attention;
                let is_in_doubt = is_asked || counts_otherwise(holds, &sent, cx, terms);
                terms.doubts.own_terms |= is_in_doubt;
                terms.doubts.waiting |= is_in_doubt || is_news;
                Ok(())
            }
            Ok(Reply::Heartbeat(Beat::Ended { superseded }))
                if cx.decide.believes_end(terms.standings.held() > 0) =>
            {
                Err(LifeOver { superseded })
            }
            _ => {
                // Retried within what is left of trust, so that a short outage
                // costs nothing (rule F1).
                let end = terms.trust_end().into_iter().chain(terms.standings.next_drain()).min();
                // A quarter of what is left: the attempts come closer together towards the
                // end, and the last one still has time to be answered.
                let most = end.map_or(Duration::MAX, |end| end.since(cx.now) / 4);
                self.slot.failed(cx, most);
                Ok(())
            }
        }
    }
}

/// Whether another heartbeat has room before trust ends.
fn has_room(trust_end: Option<Mono>, cx: &Context<'_>) -> bool {
    trust_end.is_some_and(|end| end.since(cx.now) > cx.settings.heartbeat())
}

/// Whether the store has fewer terms under our name than we lead, although
/// nothing was won or given back while the beat was on its way.
fn lacks_a_term(holds: Option<u32>, sent: &Sent, cx: &Context<'_>, terms: &Terms) -> bool {
    let led = u32::try_from(terms.standings.held()).unwrap_or(u32::MAX);
    sent.activity == *cx.activity && holds.is_some_and(|holds| holds < led)
}

/// Whether the store has another number of terms under our name than we know of,
/// although nothing was won or given back while the beat was on its way.
fn counts_otherwise(holds: Option<u32>, sent: &Sent, cx: &Context<'_>, terms: &Terms) -> bool {
    let known = terms.standings.held() + terms.debts.terms();
    let differs = holds.is_some_and(|holds| usize::try_from(holds) != Ok(known));
    sent.activity == *cx.activity && differs
}

/// The answer for one term that a beat named.
fn on_term_beat(terms: &mut Terms, cx: &mut Context<'_>, term: &TermRef, outcome: TermOutcome) {
    if terms.standings.term(&term.election) != Some(term.number) {
        return;
    }
    match outcome {
        TermOutcome::Renewed { step_down: None } => {}
        TermOutcome::Renewed { step_down: Some(asked) } => {
            terms.asked_to_step_down(cx, &term.election, &asked);
        }
        TermOutcome::Lost => terms.superseded(cx, &term.election),
    }
}
