//! Trouble: what clocks, hosts, processes and operators do at random times.

use tenure_core::{Amend, ElectionName, Hint, Incarnation, MemberId, Note, TermNumber};

use super::process::Frozen;
use super::queue::{Act, Happens};
use super::{Outage, World};
use crate::clock::{Nanos, SECOND};
use crate::config::{Feature, StoreKind, nanos};
use crate::fact::{Fact, Who};

/// The features that come at random times; the others are always there.
const TIMED: [Feature; 16] = [
    Feature::ForgedHints,
    Feature::Partitions,
    Feature::Outages,
    Feature::Stops,
    Feature::Suspends,
    Feature::Crashes,
    Feature::Shutdowns,
    Feature::Drift,
    Feature::StepDowns,
    Feature::HandOvers,
    Feature::Pauses,
    Feature::Evictions,
    Feature::ForcedEvictions,
    Feature::Withdrawals,
    Feature::Failovers,
    Feature::Removals,
];

/// A world, for the trouble that is made in it.
pub(super) struct Troubles<'w> {
    world: &'w mut World,
}

impl World {
    pub(super) fn troubles(&mut self) -> Troubles<'_> {
        Troubles { world: self }
    }
}

impl Troubles<'_> {
    pub(super) fn schedule_troubles(&mut self) {
        for feature in TIMED {
            self.again(feature);
        }
    }

    fn again(&mut self, feature: Feature) {
        let gap = self.world.troubles.between(1, nanos(self.world.config.ttl) * 8);
        if self.world.on(feature) {
            self.world.queue.push(self.world.now + gap, Happens::Trouble(feature));
        }
    }

    pub(super) fn trouble(&mut self, feature: Feature) {
        if !self.world.on(feature) {
            return;
        }
        self.again(feature);
        let index = self.any_process();
        let ttl = nanos(self.world.config.ttl);
        // Short ones, ones that end about with trust, and long ones.
        let span = match self.world.troubles.below(3) {
            0 => self.world.troubles.below(ttl / 4),
            1 => self.world.troubles.between(ttl * 8 / 10, ttl * 12 / 10),
            _ => self.world.troubles.below(ttl * 6),
        };
        match feature {
            Feature::ForgedHints => self.storm(index),
            Feature::Partitions => {
                self.world.processes[index].cut = true;
                self.world.queue.push(self.world.now + span, Happens::Reconnect { process: index });
            }
            Feature::Outages => self.toggle_outage(span),
            Feature::Stops | Feature::Suspends if self.hits_a_client() => {
                self.world.clients().freeze(index, span);
            }
            Feature::Stops => self.freeze(index, span, false),
            Feature::Suspends => self.freeze(index, span, true),
            Feature::Crashes => self.crash(index, Some(span)),
            Feature::Shutdowns => self.on_app(index, Act::Shutdown),
            Feature::Drift => {
                let ppm = super::rate(&self.world.config, &mut self.world.troubles);
                self.change_rate(index, ppm);
            }
            Feature::Failovers => self.fail_over(),
            Feature::Removals => self.remove_by_hand(index),
            Feature::Withdrawals => {
                let election = self.any_election();
                self.on_app(index, Act::Withdraw(election));
            }
            _ => self.operator(feature),
        }
    }

    /// Whether a client is stopped in place of its server.
    fn hits_a_client(&mut self) -> bool {
        self.world.config.clients && self.world.serving.chance(500)
    }

    fn any_process(&mut self) -> usize {
        usize::try_from(self.world.troubles.below(self.world.processes.len() as u64)).unwrap_or(0)
    }

    fn any_election(&mut self) -> ElectionName {
        let at = usize::try_from(self.world.troubles.below(self.world.elections.len() as u64))
            .unwrap_or(0);
        self.world.elections[at].clone()
    }

    fn on_app(&mut self, index: usize, act: Act) {
        let who = self.world.processes[index].who;
        self.world.do_in(0, who, act);
    }

    /// The store stops answering, or answers again if it was silent.
    fn toggle_outage(&mut self, span: Nanos) {
        let kind = if self.world.troubles.chance(500) { Outage::Silent } else { Outage::Refusing };
        self.world.outage = if self.world.outage.is_some() { None } else { Some(kind) };
        if self.world.outage.is_some() {
            self.world.queue.push(self.world.now + span, Happens::Trouble(Feature::Outages));
        }
    }

    /// The store's copy takes over. Every member connects to it anew, which is a
    /// hint (H13).
    fn fail_over(&mut self) {
        if self.world.config.store == StoreKind::Replicated {
            self.world.copy_wall_ms = self.world.troubles.below(1 << 42);
        }
        let wall = self.world.network().wall();
        // Another time: `trouble` has planned the next one. To plan one more here would
        // double them each time.
        let jumps = self.world.config.store == StoreKind::Jumping;
        if jumps && !self.world.store.is_behind_the_clock(wall) {
            return;
        }
        let lag = usize::try_from(self.world.troubles.below(20)).unwrap_or(0);
        let Some(lost) = self.world.store.fail_over(wall, lag) else { return };
        self.world.see(Fact::Promoted { lost });
        for index in 0..self.world.processes.len() {
            if !self.world.processes[index].cut {
                self.world.network().reconnect(index);
            }
        }
    }

    /// An operator removes a member's record, also one that lives or leads.
    fn remove_by_hand(&mut self, index: usize) {
        let id = self.world.processes[index].id.clone();
        if let Some(cas) = &mut self.world.store.cas {
            cas.remove_member(&id);
        }
    }

    pub(super) fn freeze(&mut self, index: usize, span: Nanos, suspended: bool) {
        let since = self.world.now;
        let process = &mut self.world.processes[index];
        if process.machine.is_none() || process.frozen.is_some() {
            return;
        }
        process.frozen = Some(Frozen { since, suspended, inbox: Vec::new() });
        let who = process.who;
        let until = self.world.now + span;
        self.world.see(Fact::Froze { who, until, suspended });
        self.world.queue.push(until, Happens::Thaw { who });
    }

    /// Stops a process that has just asked for a grant, for about as long as it
    /// lasts: the answer waits in its inbox, as old as can be (H4, B5).
    pub(super) fn stop_at_the_worst(&mut self, index: usize) {
        let ttl = nanos(self.world.config.ttl);
        let unlucky = self.world.troubles.chance(15);
        let span = self.world.troubles.between(ttl * 7 / 10, ttl * 15 / 10);
        if self.world.on(Feature::Stops) && unlucky {
            self.freeze(index, span, false);
        }
    }

    /// Goes on: what came meanwhile is handled now, in any order.
    pub(super) fn thaw(&mut self, who: Who) {
        let process = &mut self.world.processes[who.process];
        if !process.is(who) {
            return;
        }
        let Some(Frozen { since, suspended, mut inbox }) = process.frozen.take() else { return };
        if suspended && self.world.mutation.is_some_and(|m| m.clock_misses_suspends()) {
            process.clock.miss(self.world.now, self.world.now - since);
            self.retrust(who);
        }
        if suspended && (self.world.watched() || self.world.config.store.forgets()) {
            inbox.push(Happens::Hint { who, hint: Hint::Anything });
        }
        while !inbox.is_empty() {
            let at = usize::try_from(self.world.troubles.below(inbox.len() as u64)).unwrap_or(0);
            let what = inbox.remove(at);
            self.world.queue.push(self.world.now, what);
        }
        self.world.make_wish(who);
    }

    /// Ends a process without a word, and starts it again after `pause`.
    pub(super) fn crash(&mut self, index: usize, pause: Option<Nanos>) {
        let process = &mut self.world.processes[index];
        if process.machine.take().is_none() {
            return;
        }
        process.frozen = None;
        process.app.stances.clear();
        process.app.names.clear();
        process.app.served.clear();
        let who = process.who;
        self.world.store.gone(who);
        self.world.see(Fact::Crashed { who });
        if let Some(pause) = pause {
            self.world.queue.push(self.world.now + pause, Happens::Start { process: index });
        }
    }

    pub(super) fn change_rate(&mut self, index: usize, ppm: i64) {
        let now = self.world.now;
        let process = &mut self.world.processes[index];
        // A wake that was wished for is due at another true moment now, and
        // trust that was given out as a reading of this clock lasts longer or
        // shorter: both are known only as long as the rate stays within bounds.
        process.clock.change_rate(now, ppm);
        let who = process.who;
        if process.machine.is_some() && process.frozen.is_none() {
            self.world.make_wish(who);
        }
        self.retrust(who);
    }

    /// Tells the invariants anew until when, in true time, a process trusts.
    fn retrust(&mut self, who: Who) {
        let process = &self.world.processes[who.process];
        let clock = process.clock;
        let leaderships = process.app.stances.iter();
        let trusted: Vec<_> = leaderships
            .filter_map(|(e, s)| Some((e.clone(), clock.reaches(s.leadership?.until))))
            .collect();
        for (election, until) in trusted {
            self.world.see(Fact::Retrusted { who, election: &election, until });
        }
        self.world.names().retrust_names(who);
    }

    /// Hints that no change caused: all kinds, about anything, many at once; or, now and then, a
    /// flood of them for two ttls.
    fn storm(&mut self, index: usize) {
        let process = &self.world.processes[index];
        let who = process.who;
        let id = process.id.clone();
        let (count, span) = match self.world.troubles.chance(100) {
            true => (600, nanos(self.world.config.ttl) * 2),
            false => (self.world.troubles.between(1, 40), SECOND / 20),
        };
        for _ in 0..count {
            let election = self.any_election();
            let hint = match self.world.troubles.below(6) {
                0 => Hint::Anything,
                1 => Hint::Election(election),
                2 => Hint::Vacant { election, heir: None },
                3 => Hint::Vacant { election, heir: Some(id.clone()) },
                4 => Hint::Handed { election, to: id.clone() },
                _ => Hint::Gone(self.any_life()),
            };
            let at = self.world.now + self.world.troubles.below(span);
            self.world.queue.push(at, Happens::Hint { who, hint });
        }
    }

    /// The life of some leader, or one that never was.
    fn any_life(&mut self) -> Incarnation {
        let index = self.any_process();
        let leaderships =
            self.world.processes[index].app.stances.values().find_map(|s| s.leadership);
        leaderships.map_or(Incarnation::from_u128(7), |leadership| leadership.incarnation)
    }

    fn operator(&mut self, feature: Feature) {
        let election = self.any_election();
        let index = self.any_process();
        let member: MemberId = self.world.processes[index].id.clone();
        let reason = Note::new("because");
        let by = Note::new("operator");
        let exact = self.world.troubles.chance(300);
        let pausing = self.world.troubles.chance(400);
        let store = self.world.store_clock.at(self.world.now);
        let newest = self.world.store.newest(store, &election);
        // Now and then the term before it, as an operator does who looked a while ago.
        let asked =
            newest.get() - u64::from(self.world.steps.is_multiple_of(4) && newest.get() > 1);
        let number = exact.then(|| TermNumber::new(asked.max(1)));
        let amend = match feature {
            Feature::StepDowns => Amend::StepDown { election, number, to: None, reason, by },
            Feature::HandOvers => {
                Amend::StepDown { election, number, to: Some(member), reason, by }
            }
            Feature::Pauses if pausing => Amend::Pause { election, reason, by },
            Feature::Pauses => Amend::Resume { election, by },
            Feature::Evictions => Amend::Evict { member, now: false, by },
            Feature::ForcedEvictions => Amend::Evict { member, now: true, by },
            _ => return,
        };
        let at = self.world.now + self.world.network().message_delay();
        self.world.queue.push(at, Happens::Operator(amend));
    }
}
