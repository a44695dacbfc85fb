//! What applications do: stand, lead, write, drain, resign, stand again.

use tenure_core::{ElectionName, Event, Input, Mono, StopReason, TermNumber};

use super::World;
use super::process::{Habits, Leadership};
use super::queue::{Act, Happens, NameAct};
use crate::config::{Feature, nanos};
use crate::fact::{Fact, Who};

/// A world, for what applications do in it.
pub(super) struct Apps<'w> {
    world: &'w mut World,
}

impl World {
    pub(super) fn apps(&mut self) -> Apps<'_> {
        Apps { world: self }
    }
}

impl Apps<'_> {
    /// The habits of an application that starts now.
    pub(super) fn habits(&mut self) -> Habits {
        let slow = self.world.apps.between(100, 990);
        let stuck = self.world.apps.chance(500);
        let stop = self.world.apps.between(0, 999);
        let confirms = self.world.apps.chance(500);
        let drain = if self.world.on(Feature::StuckDrains) && stuck {
            2_000
        } else if self.world.on(Feature::SlowDrains) {
            slow
        } else {
            1
        };
        Habits { drain, stop, confirms }
    }

    /// Lets a process that has just started stand for things.
    pub(super) fn begin_campaigns(&mut self, who: Who) {
        for election in self.world.elections.clone() {
            let keen = self.world.healed || self.world.apps.chance(850);
            let at = if self.world.healed {
                1
            } else {
                self.world.apps.below(nanos(self.world.config.ttl))
            };
            if keen {
                self.world.do_in(at, who, Act::Stand(election));
            }
        }
    }

    pub(super) fn act(&mut self, who: Who, act: Act) {
        let now = self.world.now;
        let process = &mut self.world.processes[who.process];
        if process.leaving
            && !matches!(
                act,
                Act::Stopped(..)
                    | Act::Write(..)
                    | Act::Session(..)
                    | Act::Name(NameAct::LetGo(..))
            )
        {
            return;
        }
        match act {
            Act::Stand(election) => {
                let priority = process.app.priority.get(&election).copied().unwrap_or_default();
                let served = process.app.served.contains_key(&election);
                let stance = process.stance(&election);
                if !stance.standing && stance.leadership.is_none() && !served {
                    stance.standing = true;
                    if self.world.config.clients {
                        self.world.clients().begin(who, &election);
                    }
                    let fickle = self.world.apps.chance(200);
                    let soon = self.world.apps.below(6_000_000);
                    if self.world.on(Feature::Withdrawals) && fickle {
                        self.world.do_in(soon, who, Act::Withdraw(election.clone()));
                    }
                    self.world.feed(who, Input::Stand { election, priority });
                }
            }
            Act::Withdraw(election) => {
                if process.stance(&election).standing {
                    self.world.feed(who, Input::Withdraw { election });
                }
            }
            Act::Stopped(election, number) => self.stopped(who, election, number),
            Act::StopLeading(election, number) => {
                self.world.feed(who, Input::StopLeading { election, number, to: None });
            }
            Act::Write(election, number) => {
                if process
                    .current(now, &election)
                    .is_some_and(|leadership| leadership.number == number)
                {
                    self.write(who, election, number);
                }
            }
            Act::Session(election, number, said) => {
                self.world.clients().serve(who, &election, number, &said);
            }
            Act::Name(act) => self.world.names().act_on_name(who, act),
            Act::Shutdown => {
                process.leaving = true;
                self.world.feed(who, Input::Shutdown);
            }
        }
    }

    fn stopped(&mut self, who: Who, election: ElectionName, number: TermNumber) {
        if self.world.config.clients {
            return self.world.clients().stop_at_once(who, &election);
        }
        self.world.see(Fact::WorkStopped { who, election: &election, number });
        let confirms = self.world.processes[who.process].app.habits.confirms;
        let leadership = self.world.processes[who.process].stance(&election).leadership;
        if confirms || leadership.is_some_and(|leadership| leadership.number == number) {
            self.world.feed(who, Input::Resign { election, number, to: None });
        }
    }

    /// Sends a fenced write, and thinks of the next.
    fn write(&mut self, who: Who, election: ElectionName, token: TermNumber) {
        let Some(leadership) = self.world.processes[who.process].stance(&election).leadership
        else {
            return;
        };
        let delay = self.world.network().message_delay();
        let incarnation = leadership.incarnation;
        let write = Happens::Write { who, incarnation, election: election.clone(), token };
        self.world.queue.push(self.world.now + delay, write);
        // Where terms are forgotten, it is writes right after that tell.
        let often = if self.world.config.store.forgets() { 8 } else { 1 };
        let pause = self.world.apps.between(1, nanos(self.world.config.ttl) / often);
        self.world.do_in(pause, who, Act::Write(election, token));
    }

    /// The application is told something by its machine.
    pub(super) fn react(&mut self, who: Who, event: Event) {
        let clients = self.world.config.clients;
        let told = clients.then(|| event.clone());
        self.work(who, event);
        if let Some(event) = told {
            self.world.clients().react(who, &event);
        }
    }

    fn work(&mut self, who: Who, event: Event) {
        match event {
            Event::Elected { term, trusted_until } => {
                let number = term.number;
                let incarnation = term.member.incarnation;
                let stance = self.world.processes[who.process].stance(&term.election);
                stance.standing = false;
                stance.leadership = Some(Leadership { number, incarnation, until: trusted_until });
                self.lead(who, term.election, number);
            }
            Event::Trusted { until, .. } => {
                self.trust(who, until);
                self.world.names().trust_names(who, until);
            }
            Event::NameAnswered { ticket, answer } => {
                self.world.names().name_answered(who, ticket, answer)
            }
            Event::NamesLost { names, reason } => self.world.names().names_lost(who, names, reason),
            Event::Stopping { election, number, reason, .. } => {
                self.drain(who, election, number, &reason);
            }
            Event::Lost { election, number, .. } => self.lost(who, election, number),
            Event::Withdrawn { election } => {
                self.world.processes[who.process].stance(&election).standing = false;
                if self.world.apps.chance(500) {
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
        for stance in self.world.processes[who.process].app.stances.values_mut() {
            if let Some(leadership) = &mut stance.leadership {
                leadership.until = until;
            }
        }
    }

    /// A new leadership: some work, and perhaps an end that was not asked for.
    fn lead(&mut self, who: Who, election: ElectionName, number: TermNumber) {
        self.world.do_in(1, who, Act::Write(election.clone(), number));
        let ttl = nanos(self.world.config.ttl);
        let tires = self.world.apps.chance(600);
        let after = self.world.apps.between(0, ttl * 5);
        let orderly = self.world.apps.chance(500);
        if self.world.on(Feature::Resignations) && tires {
            if self.world.config.clients && !orderly {
                return self.world.clients().tire(who, &election, after);
            }
            let act = if orderly { Act::StopLeading } else { Act::Stopped };
            self.world.do_in(after, who, act(election, number));
        }
    }

    fn drain(&mut self, who: Who, election: ElectionName, number: TermNumber, _why: &StopReason) {
        if self.world.config.clients {
            return;
        }
        let process = &self.world.processes[who.process];
        let drain = process.app.habits.drain;
        if self.world.healed || drain <= 1_000 {
            let share = if self.world.healed { 1 } else { u32::try_from(drain).unwrap_or(1) };
            let span = process.settings.drain() / 1_000 * share;
            self.world.do_after(span, who, Act::Stopped(election, number));
        }
    }

    /// Lost: the work stops within the margin, and the application stands again.
    fn lost(&mut self, who: Who, election: ElectionName, number: TermNumber) {
        let process = &mut self.world.processes[who.process];
        process.stance(&election).leadership = None;
        if self.world.config.clients {
            return;
        }
        let share = u32::try_from(process.app.habits.stop).unwrap_or(0);
        let span = process.settings.margin() / 1_000 * share;
        self.world.do_after(span, who, Act::Stopped(election.clone(), number));
        self.stand_again(who, election);
    }

    pub(super) fn stand_again(&mut self, who: Who, election: ElectionName) {
        let soon = self.world.apps.chance(500);
        let late = self.world.apps.below(nanos(self.world.config.ttl) * 2);
        let after = if self.world.healed || soon { 1 } else { late };
        self.world.do_in(after, who, Act::Stand(election));
    }

    /// The machine is done: nothing runs here until the world starts it again.
    pub(super) fn left(&mut self, who: Who) {
        let process = &mut self.world.processes[who.process];
        process.machine = None;
        process.app.stances.clear();
        process.app.names.clear();
        process.app.served.clear();
        self.world.store.gone(who);
        if !self.world.healed {
            let pause = self.world.starts.between(1, nanos(self.world.config.ttl) * 2);
            self.world.queue.push(self.world.now + pause, Happens::Start { process: who.process });
        }
    }
}
