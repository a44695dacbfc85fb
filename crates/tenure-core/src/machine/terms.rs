//! What the member stands for, holds and owes: the state that claims, heartbeats, looks
//! and the application all move.
//!
//! The files beside this one each add a side of it: [`trust`](super::trust) how far trust
//! reaches, [`leading`](super::leading) how a term begins and ends,
//! [`handover`](super::handover) the other way to begin one,
//! [`rollback`](super::rollback) what a store that forgot does to it.

use alloc::collections::BTreeMap;

use super::context::Context;
use super::debts::Debts;
use super::handover::Handed;
use super::looks::Doubts;
use super::names::Names;
use super::standing::{Candidacy, Stage, Standings};
use super::trust::Trust;
use super::{Decisions, Event};
use crate::{ElectionName, Mono, Priority, TermNumber};

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Terms {
    pub(super) standings: Standings,
    pub(super) debts: Debts,
    pub(super) names: Names,
    pub(super) trust: Trust,
    /// Led, but not confirmed yet.
    pub(super) handed: Handed,
    /// Who stepped down from what does not bid before this (rule E5).
    pub(super) cooldowns: BTreeMap<ElectionName, Mono>,
    /// What a look is to find out.
    pub(super) doubts: Doubts,
}

impl Terms {
    pub(super) fn stand(
        &mut self,
        cx: &mut Context<'_>,
        election: ElectionName,
        priority: Priority,
    ) {
        if cx.is_shutting_down {
            return cx.emit(Event::Withdrawn { election });
        }
        if let Some(candidacy) = self.standings.get(&election) {
            if candidacy.priority != priority {
                self.standings.change(&election, |c| c.priority = priority);
                // The store learns of it by a bid alone.
                self.hasten(cx.now, &election, cx.now);
            }
            return;
        }
        let bid_at = self.earliest_bid(cx.now, &election);
        let candidacy = Candidacy {
            priority,
            stage: Stage::Waiting { bid_at },
            open_nonce: None,
            registered: false,
            ahead: 0,
            holder: None,
            heard: *cx.activity,
            least: TermNumber::NONE,
        };
        self.standings.insert(election, candidacy);
    }

    pub(super) fn withdraw(&mut self, cx: &mut Context<'_>, election: &ElectionName) {
        let Some(candidacy) = self.standings.get(election) else { return };
        if let Some(number) = candidacy.stage.term() {
            return self.resign(cx, election, number, None);
        }
        let registered = candidacy.registered;
        let unclear = candidacy.open_nonce.is_some();
        self.standings.remove(election);
        if registered {
            self.debts.owe_candidacy(&mut self.standings, election);
        }
        if unclear {
            // The bid may have won, or may yet: find out, and give it back.
            self.doubts.own_terms = true;
        }
        cx.emit(Event::Withdrawn { election: election.clone() });
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

    /// Whether the store holds, or may hold, a term or a name for this member. A bid
    /// that was not answered may have won: if its heartbeats wrote the long ttl
    /// of an idle member, a crash would keep the others waiting for that long.
    pub(super) fn holds_anything(&self) -> bool {
        let terms = self.standings.held() + self.debts.terms();
        terms + self.standings.unclear() > 0 || self.names.holds_any()
    }

    /// Whether nothing keeps a member that shuts down from leaving: nothing is led any
    /// more, and no lost work may still run.
    pub(super) fn is_free_to_leave(&self, decide: Decisions) -> bool {
        let may_run = self.debts.must_wait() || self.names.must_wait();
        self.standings.held() == 0 && !decide.waits_for_work(may_run)
    }

    /// The life is over, and what belonged to it is too. Who still stands stands again
    /// in the next one.
    pub(super) fn begin_anew(&mut self, now: Mono) {
        self.trust = Trust::default();
        self.doubts = Doubts::default();
        for election in self.standings.names() {
            let bid_at = self.earliest_bid(now, &election);
            self.standings.change(&election, |c| {
                c.open_nonce = None;
                c.registered = false;
                c.stage = Stage::Waiting { bid_at };
            });
        }
    }
}
