//! Leading: winning a term, being asked to stop, losing it.

use super::context::Context;
use super::debts::Debt;
use super::standing::Stage;
use super::terms::Terms;
use super::trust::trusted_from;
use super::{Event, LostReason, StopReason};
use crate::{ElectionName, MemberId, Mono, ReleaseCause, StepDown, Term, TermNumber};

/// How a term ends that is still to be given back.
struct End {
    /// What the application is told.
    reason: LostReason,
    /// What the journal is told.
    cause: ReleaseCause,
    /// For whom the vacancy is kept.
    successor: Option<MemberId>,
    /// From when on it may be given back.
    release_from: Mono,
}

impl Terms {
    /// The store gave us a term by a bid sent at `started`.
    pub(super) fn won(
        &mut self,
        cx: &mut Context<'_>,
        started: Mono,
        term: Term,
        is_standing: bool,
    ) {
        let counted_from = cx.decide.granted_from(started, cx.now);
        let until = trusted_from(cx.decide, cx.settings, counted_from);
        let election = term.election.clone();
        // The win counted as a heartbeat with the short ttl, whatever becomes
        // of it here.
        self.grant(cx, started, true);
        if !is_standing {
            // Withdrawn meanwhile.
            return self.debts.owe_unknown(&mut self.standings, &election, term.number);
        }
        if !cx.decide.believes_win(cx.now, until) || self.was_given_before(cx, &term) {
            // B5: the answer came after the grant was over, or M6: it is worth
            // nothing. The application was not told that we lead; give it back and stand again.
            self.debts.owe_unknown(&mut self.standings, &election, term.number);
            self.standings.change(&election, |c| {
                c.open_nonce = None;
                c.stage = Stage::Waiting { bid_at: Mono::MAX };
            });
            return;
        }
        self.standings.change(&election, |c| {
            c.open_nonce = None;
            c.stage = Stage::Leading(term.number);
        });
        let trusted_until = self.trust_end().unwrap_or(until);
        cx.emit(Event::Elected { term, trusted_until });
    }

    /// Gives up whatever is no longer trusted now, without any I/O (T3).
    pub(super) fn expire(&mut self, cx: &mut Context<'_>) {
        if self.trust_end().is_some_and(|end| cx.now >= end) {
            self.handed.forget();
            for election in self.standings.led() {
                self.distrust(cx, &election);
            }
            self.names.lose(cx, LostReason::TrustEnded);
        }
        while let Some(election) = self.standings.drain_over(cx.now) {
            self.drained_too_slowly(cx, &election);
        }
    }

    fn distrust(&mut self, cx: &mut Context<'_>, election: &ElectionName) {
        // If it was asked to step down, this answers the request all the same.
        let (cause, successor) = match self.standings.stopping_for(election) {
            (ReleaseCause::SteppedDown, to) => (ReleaseCause::SteppedDown, to),
            (_, to) => (ReleaseCause::Abandoned, to),
        };
        let release_from = cx.decide.release_from(cx.now, cx.settings);
        let reason = LostReason::TrustEnded;
        self.give_up(cx, election, End { reason, cause, successor, release_from });
    }

    /// It was told to stop and did not in time. It is told that the term is
    /// lost, and gets the margin that the end of trust would have given it.
    fn drained_too_slowly(&mut self, cx: &mut Context<'_>, election: &ElectionName) {
        let (cause, successor) = self.standings.stopping_for(election);
        let release_from = cx.decide.release_from(cx.now, cx.settings);
        let reason = LostReason::DrainTimeout;
        self.give_up(cx, election, End { reason, cause, successor, release_from });
    }

    /// M6: the store has forgotten something, and what is led may be among it.
    pub(super) fn give_up_forgotten(&mut self, cx: &mut Context<'_>) {
        let release_from = cx.decide.release_from(cx.now, cx.settings);
        for election in self.standings.led() {
            let reason = LostReason::RolledBack;
            let cause = ReleaseCause::Abandoned;
            self.give_up(cx, &election, End { reason, cause, successor: None, release_from });
        }
        self.names.lose(cx, LostReason::RolledBack);
    }

    /// The work has stopped. Of a term that was lost before, nothing keeps the release
    /// any more.
    pub(super) fn resign(
        &mut self,
        cx: &mut Context<'_>,
        election: &ElectionName,
        number: TermNumber,
        to: Option<MemberId>,
    ) {
        if self.standings.term(election) != Some(number) {
            return self.debts.work_stopped(election, number);
        }
        let (cause, asked_to) = self.standings.stopping_for(election);
        let reason = match cause {
            ReleaseCause::SteppedDown => LostReason::SteppedDown,
            _ => LostReason::Resigned,
        };
        let successor = to.or(asked_to);
        self.give_up(cx, election, End { reason, cause, successor, release_from: Mono::ZERO });
    }

    /// Ends a reign: the application is told first, then the store is owed
    /// the term.
    fn give_up(&mut self, cx: &mut Context<'_>, election: &ElectionName, end: End) {
        let Some(number) = self.standings.term(election) else { return };
        self.lose(cx, election, end.reason);
        let successor = end.successor.map(|id| (id, cx.settings.successor_grace()));
        let debt = Debt {
            number: Some(number),
            cause: end.cause,
            successor,
            not_before: end.release_from,
        };
        self.debts.owe(&mut self.standings, election, debt);
    }

    /// Ends a reign that there is nothing left to give back of. A member that was
    /// asked to step down cools down, however the reign ended (rule E5).
    pub(super) fn lose(&mut self, cx: &mut Context<'_>, election: &ElectionName, why: LostReason) {
        let Some(number) = self.standings.term(election) else { return };
        if self.standings.stopping_for(election).0 == ReleaseCause::SteppedDown {
            let until = cx.now + cx.decide.cooldown(cx.settings);
            self.cooldowns.insert(election.clone(), until);
        }
        self.standings.remove(election);
        cx.emit(Event::Lost { election: election.clone(), number, reason: why });
        self.forget_unconfirmed(cx, election);
    }

    /// H3: the store says the term is not ours: lost, now.
    pub(super) fn superseded(&mut self, cx: &mut Context<'_>, election: &ElectionName) {
        self.lose(cx, election, LostReason::Superseded);
        self.debts.owe_candidacy(&mut self.standings, election);
    }

    /// E4: tell the work to stop; keep renewing while it drains.
    fn stop(&mut self, cx: &mut Context<'_>, election: &ElectionName, reason: StopReason) {
        let Some(Stage::Leading(number)) = self.standings.get(election).map(|c| c.stage.clone())
        else {
            return;
        };
        let drain_until = cx.now + cx.settings.drain();
        let stage = Stage::Stopping { number, reason: reason.clone(), to: None, drain_until };
        self.standings.change(election, |c| c.stage = stage);
        if cx.decide.releases_while_draining() {
            self.debts.owe_unknown(&mut self.standings, election, number);
        }
        let election = election.clone();
        cx.emit(Event::Stopping { election, number, reason, drain_until });
    }

    /// The application asks its own leadership of this term to stop, in favour of `to`.
    /// The release goes out when it would without a successor: after the work has stopped,
    /// or after the drain and the margin. So that the successor leads no sooner beside work
    /// that goes on than any other member would.
    pub(super) fn stop_own(
        &mut self,
        cx: &mut Context<'_>,
        election: &ElectionName,
        number: TermNumber,
        to: Option<MemberId>,
    ) {
        if self.standings.term(election) != Some(number) {
            return;
        }
        self.stop(cx, election, StopReason::Shutdown);
        self.standings.change(election, |c| {
            if let Stage::Stopping { to: chosen, .. } = &mut c.stage {
                *chosen = to.or_else(|| chosen.take());
            }
        });
    }

    /// E5: a request works only on the term it is meant for.
    pub(super) fn asked_to_step_down(
        &mut self,
        cx: &mut Context<'_>,
        election: &ElectionName,
        asked: &StepDown,
    ) {
        if self.standings.term(election) != Some(asked.number) {
            return;
        }
        let StepDown { reason, by, to, .. } = asked.clone();
        let asked = StopReason::Asked { reason, by, to };
        self.stop(cx, election, asked.clone());
        // One that drains already is told nothing new, but the newest request
        // says whom it hands over to.
        self.standings.change(election, |c| {
            if let Stage::Stopping { reason, .. } = &mut c.stage {
                *reason = asked;
            }
        });
    }

    /// The process shuts down: what is led is to stop, and nothing is stood for any more.
    pub(super) fn stop_all(&mut self, cx: &mut Context<'_>) {
        for election in self.standings.names() {
            if self.standings.term(&election).is_some() {
                self.stop(cx, &election, StopReason::Shutdown);
            } else {
                self.standings.remove(&election);
                cx.emit(Event::Withdrawn { election });
            }
        }
    }
}
