//! Being a member: join, beat, be ended, leave.

use core::time::Duration;

use super::{Event, Flight, Machine, Rule, Slot};
use crate::{
    Beat, Failed, Heartbeat, Join, Joined, LostReason, MemberRef, Mono, Reply, Request,
    TermOutcome, TermRef,
};

/// How often a leave is tried before the member is left to its ttl.
const LEAVE_TRIES: u32 = 3;

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Membership {
    state: State,
    /// Whether to be a member even while standing for nothing.
    wanted: bool,
    /// Whether the next join may end an older life of the same id.
    was_superseded: bool,
    pub(super) join: Slot<MemberRef>,
    pub(super) beat: Slot<BeatSent>,
    pub(super) leave: Slot<()>,
    leave_tries: u32,
}

#[derive(Clone, Debug, Default, Hash)]
enum State {
    #[default]
    Out,
    Joining(MemberRef),
    In(Life),
    Gone,
}

/// One life in the store.
#[derive(Clone, Debug, Hash)]
pub(super) struct Life {
    pub(super) member: MemberRef,
    attention: u64,
    next_beat: Mono,
    /// When the newest confirmed grant was asked for: the member's one trust.
    granted: Option<Mono>,
}

/// What a heartbeat in flight was sent with.
#[derive(Clone, Debug, Hash)]
pub(super) struct BeatSent {
    /// See [`Machine::activity`].
    activity: u64,
    /// Whether it wrote the short ttl of a holder.
    short: bool,
    /// Whether it named a term that was handed over.
    named: bool,
}

impl Membership {
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Gone)
    }

    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    pub(super) fn life(&self) -> Option<&Life> {
        match &self.state {
            State::In(life) => Some(life),
            _ => None,
        }
    }

    fn life_mut(&mut self) -> Option<&mut Life> {
        match &mut self.state {
            State::In(life) => Some(life),
            _ => None,
        }
    }

    pub(super) fn me(&self) -> Option<MemberRef> {
        self.life().map(|life| life.member.clone())
    }

    /// Asks for a heartbeat as soon as may be.
    pub(super) fn beat_by(&mut self, at: Mono) {
        if let Some(life) = self.life_mut() {
            life.next_beat = life.next_beat.min(at);
        }
    }
}

impl Machine {
    /// When the member's one trust ends, if anything hangs on it.
    pub(super) fn trust_end(&self) -> Option<Mono> {
        if self.standings.held() == 0 {
            return None;
        }
        if let Some(taking) = &self.taking {
            return Some(taking.until);
        }
        Some(self.trusted_from(self.membership.life()?.granted?))
    }

    /// Until when a grant asked for at `started` may be trusted (rule T1).
    pub(super) fn trusted_from(&self, started: Mono) -> Mono {
        if self.mutated(Rule::TrustIgnoresDrift) {
            return started + (self.settings.ttl() - self.settings.margin());
        }
        started + self.settings.trust()
    }

    /// Records that the store confirmed the member's life by a request sent at
    /// `started`, and tells the application where that reaches. `short` says
    /// that the request wrote the short ttl of a holder: the next beat must
    /// come soon, even if nothing is held any more.
    pub(super) fn grant(&mut self, now: Mono, started: Mono, short: bool) {
        let before = self.trust_end();
        self.renew(now, started, short, before);
    }

    /// The same, with the trust there was `before`.
    fn renew(&mut self, now: Mono, started: Mono, short: bool, before: Option<Mono>) {
        let started = if self.mutated(Rule::TrustFromReply) { now } else { started };
        self.beat_after(started, short);
        let Some(life) = self.membership.life_mut() else { return };
        if life.granted.is_none_or(|granted| granted < started) {
            life.granted = Some(started);
            self.membership.join.succeeded();
        }
        self.tell_trust(now, before);
    }

    /// Tells the application where trust reaches now, if that is further than
    /// `before`.
    pub(super) fn tell_trust(&mut self, now: Mono, before: Option<Mono>) {
        if let (Some(before), Some(until)) = (before, self.trust_end())
            && until > before
        {
            let margin_left = before.since(now);
            self.emit(Event::Trusted { until, margin_left });
        }
    }

    /// Plans the beat after one that was sent at `started`.
    fn beat_after(&mut self, started: Mono, short: bool) {
        let pause = if short || self.holds_anything() {
            self.settings.heartbeat()
        } else {
            self.settings.idle_heartbeat()
        };
        if let Some(life) = self.membership.life_mut() {
            life.next_beat = started + pause;
        }
    }

    /// Whether the store holds, or may hold, a term for this member. A bid
    /// that was not answered may have won: if its heartbeats wrote the long ttl
    /// of an idle member, a crash would keep the others waiting for that long.
    fn holds_anything(&self) -> bool {
        let terms = self.standings.held() + self.debts.terms();
        terms + self.standings.unclear() > 0
    }

    pub(super) fn membership_wake(&self) -> Option<Mono> {
        let membership = &self.membership;
        let leave = membership.leave.wake(self.may_leave().then_some(Mono::ZERO));
        match &membership.state {
            State::Out if self.wants_to_join() => membership.join.wake(Some(Mono::ZERO)),
            State::Joining(_) if self.shutdown.is_none() || membership.join.is_in_flight() => {
                membership.join.wake(Some(Mono::ZERO))
            }
            State::Joining(_) => leave,
            State::In(life) => {
                let beat = membership.beat.wake(Some(life.next_beat));
                leave.into_iter().chain(beat).min()
            }
            State::Out | State::Gone => None,
        }
    }

    /// Whether it is time to leave: asked to, and nothing is led any more.
    pub(super) fn may_leave(&self) -> bool {
        let must_wait = self.debts.must_wait() && !self.mutated(Rule::LeaveEarly);
        self.shutdown.is_some() && self.standings.held() == 0 && !must_wait
    }

    fn wants_to_join(&self) -> bool {
        self.shutdown.is_none() && (self.membership.wanted || !self.standings.is_empty())
    }

    pub(super) fn step_membership(&mut self, now: Mono) {
        match &self.membership.state {
            State::Out if self.wants_to_join() => {
                let member = MemberRef::new(self.id.clone(), self.entropy.incarnation());
                self.membership.state = State::Joining(member);
                self.send_join(now);
            }
            State::Joining(_) => self.send_join(now),
            State::In(life) if now >= life.next_beat => self.send_beat(now),
            _ => {}
        }
    }

    fn send_join(&mut self, now: Mono) {
        let State::Joining(member) = &self.membership.state else { return };
        if !self.membership.join.is_free(now) || self.shutdown.is_some() {
            return;
        }
        let member = member.clone();
        let join = Join::new(member.clone(), self.settings.idle_ttl())
            .with_profile(self.profile.clone())
            .with_supersede(!self.membership.was_superseded)
            .with_takes_over(!self.hand_over().is_zero())
            .with_seen(self.has_seen());
        let flight = self.send(now, Request::Join(join), member);
        self.membership.join.begin(flight);
    }

    pub(super) fn on_join(
        &mut self,
        now: Mono,
        flight: Flight<MemberRef>,
        result: Result<Reply, Failed>,
    ) {
        match result {
            Ok(Reply::Join(Joined::In { attention, seq })) => {
                let member = flight.what;
                let next_beat = flight.started + self.settings.idle_heartbeat();
                let life = Life { member: member.clone(), attention, next_beat, granted: None };
                self.membership.state = State::In(life);
                self.hear_of_place(now, flight.seen, seq);
                self.emit(Event::Joined { member });
            }
            Ok(Reply::Join(Joined::Taken { by, remaining })) => {
                self.membership.join.succeeded();
                if by == flight.what.incarnation {
                    // This very life is over already: the next try is another.
                    self.membership.state = State::Out;
                }
                // It may be gone before its ttl has run out.
                let wait = remaining.min(self.settings.idle_ttl());
                let retry_at = now + wait.max(self.settings.retry_least());
                self.membership.join.hold_until(retry_at);
                self.emit(Event::IdTaken { by, retry_at });
            }
            // Unknown or failed: the same life asks again, which is harmless.
            _ => self.back_off(now, |m| &mut m.membership.join, Duration::MAX),
        }
    }

    fn send_beat(&mut self, now: Mono) {
        let Some(member) = self.membership.me() else { return };
        if !self.membership.beat.is_free(now) {
            return;
        }
        let short = self.holds_anything();
        let ttl = if short { self.settings.ttl() } else { self.settings.idle_ttl() };
        let held = self.taken_on();
        let named = !held.is_empty();
        let sent = BeatSent { activity: self.activity, short, named };
        let request = Request::Heartbeat(Heartbeat::new(member, ttl).with_held(held));
        let flight = self.send(now, request, sent);
        self.membership.beat.begin(flight);
    }

    pub(super) fn on_beat(
        &mut self,
        now: Mono,
        flight: Flight<BeatSent>,
        result: Result<Reply, Failed>,
    ) {
        match result {
            Ok(Reply::Heartbeat(Beat::Alive { attention, holds, seq, terms })) => {
                self.membership.beat.succeeded();
                let news = seq > self.seq;
                self.hear_of_place(now, flight.seen, seq);
                let before = self.trust_end();
                if self.lacks_a_term(holds, flight.what.activity) {
                    // One of ours is gone, and a look will say which: until
                    // then nothing is trusted any longer than it was.
                    self.beat_after(flight.started, flight.what.short);
                } else {
                    self.hear_of_taking(&terms);
                    self.renew(now, flight.started, flight.what.short, before);
                }
                if self.taking.is_some() && !flight.what.named {
                    // It was on its way before we were handed anything.
                    self.membership.beat_by(now);
                }
                if !flight.what.short && self.holds_anything() {
                    // Something was won meanwhile, and this beat may have put
                    // the long ttl of an idle member over the short one.
                    self.membership.beat_by(now);
                }
                for beat in terms {
                    self.on_term_beat(now, &beat.term, beat.outcome);
                }
                self.compare(attention, holds, flight.what.activity);
                if news {
                    self.looks.at_waiting();
                }
            }
            Ok(Reply::Heartbeat(Beat::Ended { superseded })) if !self.goes_on() => {
                self.life_over(now, superseded);
            }
            _ => {
                // Retried within what is left of trust, so that a short outage
                // costs nothing (rule F1).
                let end = self.trust_end().into_iter().chain(self.standings.next_drain()).min();
                let most = end.map_or(Duration::MAX, |end| end.since(now) / 4);
                self.back_off(now, |m| &mut m.membership.beat, most);
            }
        }
    }

    /// The answer for one term that the beat named.
    fn on_term_beat(&mut self, now: Mono, term: &TermRef, outcome: TermOutcome) {
        if self.standings.term(&term.election) != Some(term.number) {
            return;
        }
        match outcome {
            TermOutcome::Renewed { step_down: None } => {}
            TermOutcome::Renewed { step_down: Some(asked) } => {
                self.asked_to_step_down(now, &term.election, &asked);
            }
            TermOutcome::Lost => self.superseded(now, &term.election),
        }
    }

    /// Whether the store has fewer terms under our name than we lead, although
    /// nothing was won or given back while the beat was on its way.
    fn lacks_a_term(&self, holds: Option<u32>, sent_at: u64) -> bool {
        let led = u32::try_from(self.standings.held()).unwrap_or(u32::MAX);
        sent_at == self.activity && holds.is_some_and(|holds| holds < led)
    }

    /// Compares what the store says of this member with what it knows itself:
    /// a step-down asked, a term it does not know of, one that is gone.
    fn compare(&mut self, attention: u64, holds: Option<u32>, sent_at: u64) {
        let known = self.standings.held() + self.debts.terms();
        let quiet = sent_at == self.activity;
        let differs = holds.is_some_and(|holds| usize::try_from(holds) != Ok(known));
        let Some(life) = self.membership.life_mut() else { return };
        if life.attention != attention || (quiet && differs) {
            life.attention = attention;
            self.looks.at_own_terms();
            self.looks.at_waiting();
        }
    }

    /// The breakage [`Rule::EndedGoesOn`].
    fn goes_on(&self) -> bool {
        self.mutated(Rule::EndedGoesOn) && self.standings.held() > 0
    }

    /// This life is over: everything held is lost, everything owed is moot, and
    /// whoever still stands stands again in the next life.
    pub(super) fn life_over(&mut self, now: Mono, superseded: bool) {
        let Some(member) = self.membership.me() else { return };
        let fruitless = self.membership.life().is_some_and(|life| life.granted.is_none());
        for election in self.standings.led() {
            self.lose(now, &election, LostReason::Superseded);
        }
        for (election, number) in self.debts.forgive_all() {
            self.emit(Event::GivenBack { election, number });
        }
        self.bidding.slot.clear();
        self.looks.forget();
        self.membership.beat.clear();
        self.membership.state = State::Out;
        self.membership.was_superseded = superseded;
        self.activity += 1;
        let standing: alloc::vec::Vec<_> = self.standings.iter().map(|(e, _)| e.clone()).collect();
        for election in standing {
            let bid_at = self.earliest_bid(now, &election);
            self.standings.change(&election, |c| {
                c.open_nonce = None;
                c.registered = false;
                c.stage = super::standing::Stage::Waiting { bid_at };
            });
        }
        if superseded {
            self.membership.join.hold_until(now + self.settings.retry_most());
        } else if fruitless {
            // A store that lets in and ends at once must not be hammered.
            self.back_off(now, |m| &mut m.membership.join, Duration::MAX);
        }
        self.emit(Event::MemberEnded { member, superseded });
    }

    pub(super) fn step_shutdown(&mut self, now: Mono) {
        let Some(give_up) = self.shutdown else { return };
        if now >= give_up {
            return self.gone(now, false);
        }
        if !self.may_leave() {
            return;
        }
        match &self.membership.state {
            State::Out => self.gone(now, true),
            State::Joining(member) => {
                if !self.membership.join.is_in_flight() {
                    let member = member.clone();
                    self.send_leave(now, member);
                }
            }
            State::In(life) => {
                let member = life.member.clone();
                self.send_leave(now, member);
            }
            State::Gone => {}
        }
    }

    fn send_leave(&mut self, now: Mono, member: MemberRef) {
        if !self.membership.leave.is_free(now) {
            return;
        }
        self.membership.leave_tries += 1;
        let flight = self.send(now, Request::Leave(member), ());
        self.membership.leave.begin(flight);
    }

    pub(super) fn on_leave(&mut self, now: Mono, confirmed: bool) {
        if confirmed || self.membership.leave_tries >= LEAVE_TRIES {
            return self.gone(now, confirmed);
        }
        self.back_off(now, |m| &mut m.membership.leave, Duration::MAX);
    }

    fn gone(&mut self, now: Mono, confirmed: bool) {
        for election in self.standings.led() {
            self.lose(now, &election, LostReason::DrainTimeout);
        }
        let owed = self.debts.forgive_all();
        for (election, number) in owed.into_iter().filter(|_| confirmed) {
            self.emit(Event::GivenBack { election, number });
        }
        self.membership.state = State::Gone;
        self.emit(Event::Left { confirmed });
    }
}
