//! Healing: no more faults, and the world must come right again, in time.

use tenure_core::{Amend, Note};

use super::World;
use super::queue::{Act, Happens};
use crate::clock::Nanos;
use crate::config::{Feature, nanos};
use crate::fact::{Fact, Surveyed};

/// A world, for the parts of its healing.
pub(super) struct Healing<'w> {
    world: &'w mut World,
}

impl World {
    pub(super) fn healing(&mut self) -> Healing<'_> {
        Healing { world: self }
    }
}

impl Healing<'_> {
    /// The longest ttl of any process.
    fn longest(&self) -> Nanos {
        let ttls = self.world.processes.iter().map(|p| nanos(p.settings.ttl()));
        ttls.max().unwrap_or_default()
    }

    /// The parts of healing: faults end, members lead; the leaders crash,
    /// others lead; the leaders resign, others lead; all leave.
    pub(super) fn heal(&mut self, part: u8) {
        let longest = self.longest();
        let pause = match part {
            0 => {
                self.end_faults();
                crate::invariants::settling_time(longest)
            }
            1 => {
                self.survey();
                self.world.names().survey_names();
                self.bereave(true);
                longest * 2
            }
            2 => {
                self.world.names().survey_names();
                if std::mem::take(&mut self.world.orphaned) {
                    self.world.coverage.mark("an owner crashed and another took its name in time");
                }
                // A process that crashed starts again, and has time to join.
                for process in 0..self.world.processes.len() {
                    self.world.start(process);
                }
                longest * 6
            }
            3 => {
                self.survey();
                self.world.names().survey_names();
                self.bereave(false);
                longest * 2
            }
            4 => {
                self.world.closing = true;
                for process in 0..self.world.processes.len() {
                    let who = self.world.processes[process].who;
                    self.world.do_in(0, who, Act::Shutdown);
                }
                longest * 8
            }
            _ => {
                self.check_the_end();
                self.world.done = true;
                return;
            }
        };
        self.world.queue.push(self.world.now + pause, Happens::Heal(part + 1));
    }

    fn end_faults(&mut self) {
        self.world.healed = true;
        self.world.clients().thaw();
        self.world.outage = None;
        if let Some(turns) = &mut self.world.store.turns {
            turns.operators_stop();
        }
        if self.world.config.features.has(Feature::DriftBeyond) {
            self.world.store_clock.change_rate(self.world.now, 0);
        }
        for index in 0..self.world.processes.len() {
            self.world.processes[index].app.habits.drain = 1;
            let who = self.world.processes[index].who;
            self.world.troubles().thaw(who);
            self.world.network().reconnect(index);
            if self.world.config.features.has(Feature::DriftBeyond) {
                self.world.troubles().change_rate(index, 0);
            }
            if index == 1 && self.world.config.features.has(Feature::Namesakes) {
                self.world.troubles().crash(index, None);
            }
            self.world.start(index);
        }
        for election in self.world.elections.clone() {
            self.world
                .network()
                .amend(&Amend::Resume { election: election.clone(), by: Note::new("operator") });
            // Not every member stands: a term that its holder does not know of must
            // not be mended by the holder's next bid alone.
            for index in 0..self.world.processes.len() {
                let who = self.world.processes[index].who;
                if index == 0 || self.world.apps.chance(500) {
                    self.world.do_in(1, who, Act::Stand(election.clone()));
                }
            }
        }
        for index in 0..self.world.processes.len() {
            let who = self.world.processes[index].who;
            self.world.names().begin_names(who);
        }
        self.world.see(Fact::Healed);
    }

    /// Takes the leader of the first election away, if another could lead.
    fn bereave(&mut self, crash: bool) {
        let Some(election) = self.world.elections.first().cloned() else { return };
        let leads = |index: &usize| {
            self.world.processes[*index].current(self.world.now, &election).is_some()
        };
        let Some(leader) = (0..self.world.processes.len()).find(leads) else { return };
        let others = (0..self.world.processes.len()).filter(|index| *index != leader);
        let able = |index: &usize| {
            let process = &self.world.processes[*index];
            let stance = process.app.stances.get(&election);
            self.world.priority(*index).may_lead() && stance.is_some_and(|stance| stance.standing)
        };
        if !others.into_iter().any(|index| able(&index)) {
            return;
        }
        let who = self.world.processes[leader].who;
        let leadership = self.world.processes[leader].stance(&election).leadership;
        if crash {
            let names = self.world.processes[leader].app.names.values();
            self.world.orphaned = names.filter(|stance| stance.owned.is_some()).count() > 0;
            self.world.troubles().crash(leader, None);
        } else if let Some(leadership) = leadership {
            self.world.do_in(0, who, Act::Stopped(election.clone(), leadership.number));
        }
        self.world.see(Fact::Bereaved { who, election: &election, crashed: crash });
    }

    /// Looks the world over: what the store says against what all members believe.
    fn survey(&mut self) {
        let store = self.world.store_clock.at(self.world.now);
        let mut elections = Vec::new();
        for election in self.world.elections.clone() {
            let leaderships = self.world.processes.iter().filter_map(|process| {
                let leadership = process.current(self.world.now, &election)?;
                Some((process.who, leadership.incarnation, leadership.number))
            });
            let led: Vec<_> = leaderships.collect();
            let wanted = self.world.processes.iter().enumerate().any(|(index, process)| {
                let stance = process.app.stances.get(&election);
                let stands = stance.is_some_and(|s| s.standing || s.leadership.is_some());
                process.machine.is_some() && stands && self.world.priority(index).may_lead()
            });
            let held = self.world.store.holder(store, &election);
            elections.push(Surveyed { election, held, led, wanted });
        }
        self.world.see(Fact::Surveyed { elections: &elections });
    }

    /// C11: all left in order, so nothing is left behind.
    fn check_the_end(&mut self) {
        let now = self.world.now;
        for process in &self.world.processes {
            if process.machine.is_some() {
                let text = format!("{} did not shut down", process.who);
                self.world.checks.report("all members leave", now, text);
            }
        }
        let store = self.world.store_clock.at(now);
        for line in self.world.store.leftovers(store) {
            self.world.checks.report("nothing is left behind", now, line);
        }
    }
}
