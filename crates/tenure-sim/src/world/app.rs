//! What applications do: stand, lead, write, drain, resign, stand again.

use tenure_core::{ElectionName, Event, Input, Mono, StopReason, TermNumber};

use super::World;
use super::process::{Habits, Leadership};
use super::queue::{Act, Happens, NameAct};
use crate::clock::Nanos;
use crate::config::{Feature, nanos};
use crate::fact::{Fact, Who};

impl World {
    /// The habits of an application that starts now.
    pub(super) fn habits(&mut self) -> Habits {
        let (slow, stuck) = (self.apps.between(100, 990), self.apps.chance(500));
        let stop = self.apps.between(0, 999);
        let confirms = self.apps.chance(500);
        let drain = if self.on(Feature::StuckDrains) && stuck {
            2_000
        } else if self.on(Feature::SlowDrains) {
            slow
        } else {
            1
        };
        Habits { drain, stop, confirms }
    }

    /// Lets a process that has just started stand for things.
    pub(super) fn begin_campaigns(&mut self, who: Who) {
        for election in self.elections.clone() {
            let keen = self.healed || self.apps.chance(850);
            let at = if self.healed { 1 } else { self.apps.below(nanos(self.config.ttl)) };
            if keen {
                self.do_in(at, who, Act::Stand(election));
            }
        }
    }

    pub(super) fn do_in(&mut self, after: Nanos, who: Who, act: Act) {
        self.queue.push(self.now + after, Happens::App { who, act });
    }

    /// When `span` by the process's own clock has passed.
    pub(super) fn do_after(&mut self, span: std::time::Duration, who: Who, act: Act) {
        let process = &self.processes[who.process];
        let at = process.clock.reaches(process.local(self.now) + span);
        self.queue.push(at.max(self.now), Happens::App { who, act });
    }

    pub(super) fn act(&mut self, who: Who, act: Act) {
        let now = self.now;
        let process = &mut self.processes[who.process];
        if process.leaving
            && !matches!(act, Act::Stopped(..) | Act::Write(..) | Act::Name(NameAct::LetGo(..)))
        {
            return;
        }
        match act {
            Act::Stand(election) => {
                let priority = process.app.priority.get(&election).copied().unwrap_or_default();
                let stance = process.stance(&election);
                if !stance.standing && stance.leadership.is_none() {
                    stance.standing = true;
                    let (fickle, soon) = (self.apps.chance(200), self.apps.below(6_000_000));
                    if self.on(Feature::Withdrawals) && fickle {
                        self.do_in(soon, who, Act::Withdraw(election.clone()));
                    }
                    self.feed(who, Input::Stand { election, priority });
                }
            }
            Act::Withdraw(election) => {
                if process.stance(&election).standing {
                    self.feed(who, Input::Withdraw { election });
                }
            }
            Act::Stopped(election, number) => self.stopped(who, election, number),
            Act::StopLeading(election, number) => {
                self.feed(who, Input::StopLeading { election, number, to: None });
            }
            Act::Write(election, number) => {
                if process
                    .current(now, &election)
                    .is_some_and(|leadership| leadership.number == number)
                {
                    self.write(who, election, number);
                }
            }
            Act::Name(act) => self.names().act_on_name(who, act),
            Act::Shutdown => {
                process.leaving = true;
                self.feed(who, Input::Shutdown);
            }
        }
    }

    fn stopped(&mut self, who: Who, election: ElectionName, number: TermNumber) {
        self.see(Fact::WorkStopped { who, election: &election, number });
        let confirms = self.processes[who.process].app.habits.confirms;
        let leadership = self.processes[who.process].stance(&election).leadership;
        if confirms || leadership.is_some_and(|leadership| leadership.number == number) {
            self.feed(who, Input::Resign { election, number, to: None });
        }
    }

    /// Sends a fenced write, and thinks of the next.
    fn write(&mut self, who: Who, election: ElectionName, token: TermNumber) {
        let Some(leadership) = self.processes[who.process].stance(&election).leadership else {
            return;
        };
        let delay = self.message_delay();
        let incarnation = leadership.incarnation;
        let write = Happens::Write { who, incarnation, election: election.clone(), token };
        self.queue.push(self.now + delay, write);
        // Where terms are forgotten, it is writes right after that tell.
        let often = if self.config.store.forgets() { 8 } else { 1 };
        let pause = self.apps.between(1, nanos(self.config.ttl) / often);
        self.do_in(pause, who, Act::Write(election, token));
    }

    /// The application is told something by its machine.
    pub(super) fn react(&mut self, who: Who, event: Event) {
        match event {
            Event::Elected { term, trusted_until } => {
                let number = term.number;
                let incarnation = term.member.incarnation;
                let stance = self.processes[who.process].stance(&term.election);
                stance.standing = false;
                stance.leadership = Some(Leadership { number, incarnation, until: trusted_until });
                self.lead(who, term.election, number);
            }
            Event::Trusted { until, .. } => {
                self.trust(who, until);
                self.names().trust_names(who, until);
            }
            Event::NameAnswered { ticket, answer } => {
                self.names().name_answered(who, ticket, answer)
            }
            Event::NamesLost { names, reason } => self.names().names_lost(who, names, reason),
            Event::Stopping { election, number, reason, .. } => {
                self.drain(who, election, number, &reason);
            }
            Event::Lost { election, number, .. } => self.lost(who, election, number),
            Event::Withdrawn { election } => {
                self.processes[who.process].stance(&election).standing = false;
                if self.apps.chance(500) {
                    self.stand_again(who, election);
                }
            }
            Event::Joined { .. }
            | Event::IdTaken { .. }
            | Event::MemberEnded { .. }
            | Event::RolledBack { .. }
            | Event::Standby { .. }
            | Event::GivenBack { .. }
            | Event::Left { .. } => {}
        }
    }

    fn trust(&mut self, who: Who, until: Mono) {
        for stance in self.processes[who.process].app.stances.values_mut() {
            if let Some(leadership) = &mut stance.leadership {
                leadership.until = until;
            }
        }
    }

    /// A new leadership: some work, and perhaps an end that nobody asked for.
    fn lead(&mut self, who: Who, election: ElectionName, number: TermNumber) {
        self.do_in(1, who, Act::Write(election.clone(), number));
        let ttl = nanos(self.config.ttl);
        let (tires, after) = (self.apps.chance(600), self.apps.between(0, ttl * 5));
        let orderly = self.apps.chance(500);
        if self.on(Feature::Resignations) && tires {
            let act = if orderly { Act::StopLeading } else { Act::Stopped };
            self.do_in(after, who, act(election, number));
        }
    }

    fn drain(&mut self, who: Who, election: ElectionName, number: TermNumber, _why: &StopReason) {
        let process = &self.processes[who.process];
        let drain = process.app.habits.drain;
        if self.healed || drain <= 1_000 {
            let share = if self.healed { 1 } else { u32::try_from(drain).unwrap_or(1) };
            let span = process.settings.drain() / 1_000 * share;
            self.do_after(span, who, Act::Stopped(election, number));
        }
    }

    /// Lost: the work stops within the margin, and the application stands again.
    fn lost(&mut self, who: Who, election: ElectionName, number: TermNumber) {
        let process = &mut self.processes[who.process];
        process.stance(&election).leadership = None;
        let share = u32::try_from(process.app.habits.stop).unwrap_or(0);
        let span = process.settings.margin() / 1_000 * share;
        self.do_after(span, who, Act::Stopped(election.clone(), number));
        self.stand_again(who, election);
    }

    fn stand_again(&mut self, who: Who, election: ElectionName) {
        let (soon, late) = (self.apps.chance(500), self.apps.below(nanos(self.config.ttl) * 2));
        let after = if self.healed || soon { 1 } else { late };
        self.do_in(after, who, Act::Stand(election));
    }

    /// The machine is done: nothing runs here until somebody starts it again.
    pub(super) fn left(&mut self, who: Who) {
        let process = &mut self.processes[who.process];
        process.machine = None;
        process.app.stances.clear();
        process.app.names.clear();
        self.store.gone(who);
        if !self.healed {
            let pause = self.starts.between(1, nanos(self.config.ttl) * 2);
            self.queue.push(self.now + pause, Happens::Start { process: who.process });
        }
    }
}
