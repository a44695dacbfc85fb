//! Healing: no more faults, and the world must come right again, in time.

use tenure_core::{Amend, Note};

use super::World;
use super::queue::{Act, Happens};
use crate::clock::Nanos;
use crate::config::{Feature, nanos};
use crate::fact::{Fact, Surveyed};

impl World {
    /// The longest ttl of any process.
    fn longest(&self) -> Nanos {
        let ttls = self.processes.iter().map(|p| nanos(p.settings.ttl()));
        ttls.max().unwrap_or_default()
    }

    /// The parts of healing: faults end, somebody leads; the leaders crash,
    /// others lead; the leaders resign, others lead; everybody leaves.
    pub(super) fn heal(&mut self, part: u8) {
        let longest = self.longest();
        let pause = match part {
            0 => {
                self.end_faults();
                crate::invariants::settling_time(longest)
            }
            1 => {
                self.survey();
                self.names().survey_names();
                self.bereave(true);
                longest * 2
            }
            2 => {
                self.names().survey_names();
                if std::mem::take(&mut self.orphaned) {
                    self.coverage.mark("an owner crashed and another took its name in time");
                }
                // Whoever crashed starts again, and has time to come in.
                for process in 0..self.processes.len() {
                    self.start(process);
                }
                longest * 6
            }
            3 => {
                self.survey();
                self.names().survey_names();
                self.bereave(false);
                longest * 2
            }
            4 => {
                self.closing = true;
                for process in 0..self.processes.len() {
                    let who = self.processes[process].who;
                    self.do_in(0, who, Act::Shutdown);
                }
                longest * 8
            }
            _ => {
                self.check_the_end();
                self.done = true;
                return;
            }
        };
        self.queue.push(self.now + pause, Happens::Heal(part + 1));
    }

    fn end_faults(&mut self) {
        self.healed = true;
        self.outage = None;
        if let Some(turns) = &mut self.store.turns {
            turns.operators_stop();
        }
        if self.config.features.has(Feature::DriftBeyond) {
            self.store_clock.change_rate(self.now, 0);
        }
        for index in 0..self.processes.len() {
            self.processes[index].app.habits.drain = 1;
            let who = self.processes[index].who;
            self.thaw(who);
            self.reconnect(index);
            if self.config.features.has(Feature::DriftBeyond) {
                self.change_rate(index, 0);
            }
            if index == 1 && self.config.features.has(Feature::Namesakes) {
                self.crash(index, None);
            }
            self.start(index);
        }
        for election in self.elections.clone() {
            self.amend(&Amend::Resume { election: election.clone(), by: Note::new("operator") });
            // Not everybody stands: a term that its holder does not know of must
            // not be mended by the holder's next bid alone.
            for index in 0..self.processes.len() {
                let who = self.processes[index].who;
                if index == 0 || self.apps.chance(500) {
                    self.do_in(1, who, Act::Stand(election.clone()));
                }
            }
        }
        for index in 0..self.processes.len() {
            let who = self.processes[index].who;
            self.names().begin_names(who);
        }
        self.see(Fact::Healed);
    }

    /// Takes the leader of the first election away, if somebody else could lead.
    fn bereave(&mut self, crash: bool) {
        let Some(election) = self.elections.first().cloned() else { return };
        let leads = |index: &usize| self.processes[*index].current(self.now, &election).is_some();
        let Some(leader) = (0..self.processes.len()).find(leads) else { return };
        let others = (0..self.processes.len()).filter(|index| *index != leader);
        let able = |index: &usize| {
            let process = &self.processes[*index];
            let stance = process.app.stances.get(&election);
            self.priority(*index).may_lead() && stance.is_some_and(|stance| stance.standing)
        };
        if !others.into_iter().any(|index| able(&index)) {
            return;
        }
        let who = self.processes[leader].who;
        let leadership = self.processes[leader].stance(&election).leadership;
        if crash {
            let names = self.processes[leader].app.names.values();
            self.orphaned = names.filter(|stance| stance.owned.is_some()).count() > 0;
            self.crash(leader, None);
        } else if let Some(leadership) = leadership {
            self.do_in(0, who, Act::Stopped(election.clone(), leadership.number));
        }
        self.see(Fact::Bereaved { who, election: &election, crashed: crash });
    }

    /// Looks the world over: what the store says against what everybody believes.
    fn survey(&mut self) {
        let store = self.store_clock.at(self.now);
        let mut elections = Vec::new();
        for election in self.elections.clone() {
            let leaderships = self.processes.iter().filter_map(|process| {
                let leadership = process.current(self.now, &election)?;
                Some((process.who, leadership.incarnation, leadership.number))
            });
            let led: Vec<_> = leaderships.collect();
            let wanted = self.processes.iter().enumerate().any(|(index, process)| {
                let stance = process.app.stances.get(&election);
                let stands = stance.is_some_and(|s| s.standing || s.leadership.is_some());
                process.machine.is_some() && stands && self.priority(index).may_lead()
            });
            let held = self.store.holder(store, &election);
            elections.push(Surveyed { election, held, led, wanted });
        }
        self.see(Fact::Surveyed { elections: &elections });
    }

    /// C11: everybody left in order, so nothing is left behind.
    fn check_the_end(&mut self) {
        let now = self.now;
        for process in &self.processes {
            if process.machine.is_some() {
                let text = format!("{} did not shut down", process.who);
                self.checks.report("everybody leaves", now, text);
            }
        }
        let store = self.store_clock.at(now);
        for line in self.store.leftovers(store) {
            self.checks.report("nothing is left behind", now, line);
        }
    }
}
