//! Leading: winning a term, trusting it, being asked to stop, losing it.

use super::debts::Debt;
use super::standing::Stage;
use super::{Event, LostReason, Machine, Rule, StopReason};
use crate::{ElectionName, MemberId, Mono, ReleaseCause, StepDown, Term, TermNumber};

impl Machine {
    /// The store gave us a term by a bid sent at `started`.
    pub(super) fn won(&mut self, now: Mono, started: Mono, term: Term, standing: bool) {
        let started = if self.mutated(Rule::TrustFromReply) { now } else { started };
        let until = self.trusted_from(started);
        let election = term.election.clone();
        // The win counted as a heartbeat with the short ttl, whatever becomes
        // of it here.
        self.grant(now, started, true);
        if !standing {
            // Withdrawn meanwhile.
            return self.owe_unknown(&election, term.number);
        }
        let late = now >= until && !self.mutated(Rule::LateWins);
        if late || self.was_given_before(now, &term) {
            // B5: the answer came after the grant was over, or M6: it is worth
            // nothing. Nobody was told that we lead; give it back and stand again.
            self.owe_unknown(&election, term.number);
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
        self.emit(Event::Elected { term, trusted_until });
    }

    /// Gives up whatever is no longer trusted at `now`, without any I/O (T3).
    pub(super) fn expire(&mut self, now: Mono) {
        if self.trust_end().is_some_and(|end| now >= end) {
            self.taking = None;
            for election in self.standings.led() {
                self.distrust(now, &election);
            }
        }
        while let Some(election) = self.standings.drain_over(now) {
            self.drained_too_slowly(now, &election);
        }
    }

    fn distrust(&mut self, now: Mono, election: &ElectionName) {
        let not_before = now + self.settings.margin();
        // If it was asked to step down, this answers the request all the same.
        let (cause, to) = match self.stopping_for(election) {
            (ReleaseCause::SteppedDown, to) => (ReleaseCause::SteppedDown, to),
            _ => (ReleaseCause::Abandoned, None),
        };
        self.give_up(now, election, LostReason::TrustEnded, cause, to, not_before);
    }

    /// It was told to stop and did not in time. It is told that the term is
    /// lost, and gets the margin that the end of trust would have given it.
    fn drained_too_slowly(&mut self, now: Mono, election: &ElectionName) {
        let not_before = now + self.settings.margin();
        let (cause, to) = self.stopping_for(election);
        self.give_up(now, election, LostReason::DrainTimeout, cause, to, not_before);
    }

    pub(super) fn resign(
        &mut self,
        now: Mono,
        election: &ElectionName,
        number: TermNumber,
        to: Option<MemberId>,
    ) {
        if self.standings.term(election) != Some(number) {
            return self.work_stopped(election, number);
        }
        let (cause, asked_to) = self.stopping_for(election);
        let reason = match cause {
            ReleaseCause::SteppedDown => LostReason::SteppedDown,
            _ => LostReason::Resigned,
        };
        self.give_up(now, election, reason, cause, to.or(asked_to), Mono::ZERO);
    }

    /// Why the term is being given up, and for whom.
    fn stopping_for(&self, election: &ElectionName) -> (ReleaseCause, Option<MemberId>) {
        match self.standings.get(election).map(|c| &c.stage) {
            Some(Stage::Stopping { reason: StopReason::Asked { to, .. }, .. }) => {
                (ReleaseCause::SteppedDown, to.clone())
            }
            _ => (ReleaseCause::Resigned, None),
        }
    }

    /// Ends a reign: the application hears of it first, then the store is owed
    /// the term.
    fn give_up(
        &mut self,
        now: Mono,
        election: &ElectionName,
        reason: LostReason,
        cause: ReleaseCause,
        to: Option<MemberId>,
        not_before: Mono,
    ) {
        let Some(number) = self.standings.term(election) else { return };
        self.lose(now, election, reason);
        let not_before = if self.mutated(Rule::NoMargin) { Mono::ZERO } else { not_before };
        let successor = to.map(|id| (id, self.settings.handover_grace()));
        self.owe(election, Debt { number: Some(number), cause, successor, not_before });
    }

    /// Ends a reign that there is nothing left to give back of. Whoever was
    /// asked to step down cools down, however the reign ended (rule E5).
    pub(super) fn lose(&mut self, now: Mono, election: &ElectionName, reason: LostReason) {
        let Some(number) = self.standings.term(election) else { return };
        let asked = self.stopping_for(election).0 == ReleaseCause::SteppedDown;
        if asked && !self.mutated(Rule::NoCooldown) {
            self.cooldowns.insert(election.clone(), now + self.settings.cooldown());
        }
        self.standings.remove(election);
        self.emit(Event::Lost { election: election.clone(), number, reason });
        self.forget_taking(now, election);
    }

    /// H3: the store says the term is not ours: lost, now.
    pub(super) fn superseded(&mut self, now: Mono, election: &ElectionName) {
        self.lose(now, election, LostReason::Superseded);
        self.owe_candidacy(election);
    }

    /// M6: the store has forgotten something, and what is led may be among it.
    pub(super) fn give_up_forgotten(&mut self, now: Mono) {
        let not_before = now + self.settings.margin();
        for election in self.standings.led() {
            let (reason, cause) = (LostReason::RolledBack, ReleaseCause::Abandoned);
            self.give_up(now, &election, reason, cause, None, not_before);
        }
    }

    /// E4: tell the work to stop; keep renewing while it drains.
    pub(super) fn stop(&mut self, now: Mono, election: &ElectionName, reason: StopReason) {
        let Some(Stage::Leading(number)) = self.standings.get(election).map(|c| c.stage.clone())
        else {
            return;
        };
        let drain_until = now + self.settings.drain();
        let stage = Stage::Stopping { number, reason: reason.clone(), drain_until };
        self.standings.change(election, |c| c.stage = stage);
        if self.mutated(Rule::ReleaseFirst) {
            self.owe_unknown(election, number);
        }
        let election = election.clone();
        self.emit(Event::Stopping { election, number, reason, drain_until });
    }

    pub(super) fn stop_own(&mut self, now: Mono, election: &ElectionName, number: TermNumber) {
        if self.standings.term(election) == Some(number) {
            self.stop(now, election, StopReason::Shutdown);
        }
    }

    /// E5: a request works only on the term it is meant for.
    pub(super) fn asked_to_step_down(
        &mut self,
        now: Mono,
        election: &ElectionName,
        asked: &StepDown,
    ) {
        if self.standings.term(election) != Some(asked.number) {
            return;
        }
        let (reason, by, to) = (asked.reason.clone(), asked.by.clone(), asked.to.clone());
        let asked = StopReason::Asked { reason, by, to };
        self.stop(now, election, asked.clone());
        // One that drains already is told nothing new, but the newest request
        // says whom it hands over to.
        self.standings.change(election, |c| {
            if let Stage::Stopping { reason, .. } = &mut c.stage {
                *reason = asked;
            }
        });
    }

    pub(super) fn begin_shutdown(&mut self, now: Mono) {
        if self.shutdown.is_some() {
            return;
        }
        let patience = self.settings.drain() + self.settings.margin();
        self.shutdown = Some(now + patience + self.settings.request_timeout() * 3);
        let all: alloc::vec::Vec<_> = self.standings.iter().map(|(e, _)| e.clone()).collect();
        for election in all {
            if self.standings.term(&election).is_some() {
                self.stop(now, &election, StopReason::Shutdown);
            } else {
                self.standings.remove(&election);
                self.emit(Event::Withdrawn { election });
            }
        }
    }
}
