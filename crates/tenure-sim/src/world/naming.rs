//! What applications do with names: take, change, drop, give up waiting, lose, take again.

use tenure_core::{
    Input, LostReason, Mono, Name, NameAnswer, NameOp, NameWish, TermNumber, TermRef, Token, Value,
    WhichNames,
};

use super::World;
use super::process::OwnedName;
use super::queue::{Act, Happens, NameAct};
use crate::clock::Nanos;
use crate::config::{Feature, StoreKind, nanos};
use crate::fact::{Fact, SurveyedName, Who};

/// What was asked for with a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Take,
    Change,
    Drop,
}

/// A world, for what applications do with names in it.
pub(super) struct Naming<'w> {
    world: &'w mut World,
}

impl World {
    pub(super) fn names(&mut self) -> Naming<'_> {
        Naming { world: self }
    }
}

impl Naming<'_> {
    /// Lets a process that has just started take names.
    pub(super) fn begin_names(&mut self, who: Who) {
        for name in self.world.names.clone() {
            let keen = self.world.naming.chance(800);
            let soon = self.world.naming.below(nanos(self.world.config.ttl));
            let at = if self.world.healed { 1 } else { soon };
            if keen || self.world.healed {
                self.name_in(at, who, NameAct::Take(name));
            }
        }
    }

    fn name_in(&mut self, after: Nanos, who: Who, act: NameAct) {
        self.world.do_in(after, who, Act::Name(act));
    }

    pub(super) fn act_on_name(&mut self, who: Who, act: NameAct) {
        match act {
            NameAct::Take(name) => self.take_names(who, name),
            NameAct::Change(name, token) => {
                if !self.world.healed && self.is_owner(who, &name, token) {
                    let data = self.world.naming.below(1 << 20).to_be_bytes();
                    let value = Value::empty().with_data(data).unwrap_or_default();
                    self.ask(
                        who,
                        [(name, NameWish::Change { token, expect: None, value })].into(),
                        None,
                    );
                }
            }
            NameAct::Drop(name, token) => {
                if !self.world.healed && self.is_owner(who, &name, token) {
                    self.world.see(Fact::NameWorkStopped { who, name: &name, token });
                    self.ask(who, [(name, NameWish::Drop { token })].into(), None);
                }
            }
            NameAct::Withdraw(name, ticket) => self.withdraw_take(who, name, ticket),
            NameAct::LetGo(name, token) => {
                self.world.see(Fact::NameWorkStopped { who, name: &name, token });
                if self.world.processes[who.process].app.habits.confirms {
                    self.world.feed(who, Input::LetGoOfName { name, token });
                }
            }
        }
    }

    fn is_owner(&mut self, who: Who, name: &Name, token: Token) -> bool {
        let owned = self.world.processes[who.process].name(name).owned;
        owned.is_some_and(|owned| owned.token == token)
    }

    /// Takes one name, or with it all others that are not owned or asked for.
    fn take_names(&mut self, who: Who, name: Name) {
        let together = self.world.naming.chance(250);
        let fickle = self.world.naming.chance(200);
        let soon = self.world.naming.below(6_000_000);
        let wanted = if together { self.world.names.clone() } else { vec![name] };
        let process = &mut self.world.processes[who.process];
        let is_free = |name: &Name| {
            let stance = process.name(name);
            stance.asked.is_none() && stance.owned.is_none()
        };
        let free: Vec<Name> = wanted.into_iter().filter(is_free).collect();
        if free.is_empty() {
            return;
        }
        let fence = self.fence(who);
        let takes =
            free.iter().map(|name| (name.clone(), NameWish::Take { value: Value::empty() }));
        if self.world.on(Feature::Withdrawals) && fickle {
            let first = self.world.processes[who.process].app.tickets + 1;
            for (ticket, name) in (first..).zip(free.clone()) {
                self.name_in(soon, who, NameAct::Withdraw(name, ticket));
            }
        }
        self.ask(who, takes.collect(), fence);
    }

    /// Now and then only under a term: one that is led, or the one before it.
    fn fence(&mut self, who: Who) -> Option<TermRef> {
        let fenced = self.world.naming.chance(150);
        let stale = self.world.naming.chance(300);
        if !fenced || self.world.config.store == StoreKind::Cas {
            return None;
        }
        let election = self.world.elections.first().cloned()?;
        let led = self.world.processes[who.process].stance(&election).leadership?;
        let number = TermNumber::new(led.number.get() - u64::from(stale));
        Some(TermRef { election, number })
    }

    /// Asks the machine; the tickets rise.
    fn ask(&mut self, who: Who, wishes: Vec<(Name, NameWish)>, fence: Option<TermRef>) {
        let process = &mut self.world.processes[who.process];
        let mut ops = Vec::with_capacity(wishes.len());
        for (name, wish) in wishes {
            process.app.tickets += 1;
            let ticket = process.app.tickets;
            let asked = match wish {
                NameWish::Take { .. } | NameWish::Post { .. } => Asked::Take,
                NameWish::Change { .. } | NameWish::Repost { .. } => Asked::Change,
                NameWish::Drop { .. } => Asked::Drop,
            };
            process.app.asked.insert(ticket, (name.clone(), asked));
            if asked == Asked::Take {
                process.name(&name).asked = Some(ticket);
            }
            ops.push(NameOp { ticket, name, wish, fence: fence.clone() });
        }
        self.world.feed(who, Input::Bind { ops });
    }

    fn withdraw_take(&mut self, who: Who, name: Name, ticket: u64) {
        let process = &mut self.world.processes[who.process];
        if self.world.healed || process.name(&name).asked != Some(ticket) {
            return;
        }
        process.name(&name).asked = None;
        process.app.asked.remove(&ticket);
        self.world.feed(who, Input::WithdrawName { name: name.clone(), ticket });
        self.take_again(who, name);
    }

    /// The application is told what came of an operation.
    pub(super) fn name_answered(&mut self, who: Who, ticket: u64, answer: NameAnswer) {
        let process = &mut self.world.processes[who.process];
        let Some((name, asked)) = process.app.asked.remove(&ticket) else { return };
        if asked == Asked::Take {
            process.name(&name).asked = None;
        }
        match answer {
            NameAnswer::Bound { binding, trusted_until } if asked == Asked::Take => {
                let token = binding.token;
                let owned = binding.owner.map(|owner| OwnedName {
                    token,
                    life: owner.incarnation,
                    until: trusted_until,
                });
                process.name(&name).owned = owned;
                self.plan_changes(who, name, token);
            }
            NameAnswer::Taken(binding) if self.world.healed => {
                let after = nanos(binding.remaining) + nanos(self.world.config.ttl) / 100;
                self.name_in(after, who, NameAct::Take(name));
            }
            NameAnswer::ShutDown | NameAnswer::Bound { .. } => {}
            NameAnswer::Gone(_) if asked == Asked::Change => {}
            _ => self.take_again(who, name),
        }
    }

    /// A new name: changed now and then, and dropped at last.
    fn plan_changes(&mut self, who: Who, name: Name, token: Token) {
        let ttl = nanos(self.world.config.ttl);
        let changes = self.world.naming.chance(400);
        let when = self.world.naming.below(ttl * 2);
        let tires = self.world.naming.chance(600);
        let after = self.world.naming.below(ttl * 4);
        if changes {
            self.name_in(when, who, NameAct::Change(name.clone(), token));
        }
        if tires {
            self.name_in(after, who, NameAct::Drop(name, token));
        }
    }

    fn take_again(&mut self, who: Who, name: Name) {
        let soon = self.world.naming.chance(500);
        let late = self.world.naming.below(nanos(self.world.config.ttl));
        let after = if soon || self.world.healed { late / 20 + 1 } else { late };
        self.name_in(after, who, NameAct::Take(name));
    }

    /// Lost: the work stops within the margin, and the application takes the name again.
    pub(super) fn names_lost(&mut self, who: Who, names: Vec<(Name, Token)>, reason: LostReason) {
        let process = &mut self.world.processes[who.process];
        let share = u32::try_from(process.app.habits.stop).unwrap_or(0);
        let span = process.settings.margin() / 1_000 * share;
        for (name, token) in names {
            let stance = self.world.processes[who.process].name(&name);
            if stance.owned.is_some_and(|owned| owned.token == token) {
                stance.owned = None;
            }
            if reason != LostReason::Resigned {
                self.world.do_after(span, who, Act::Name(NameAct::LetGo(name.clone(), token)));
                self.take_again(who, name);
            } else if self.world.processes[who.process].leaving {
                self.world.do_after(span, who, Act::Name(NameAct::LetGo(name, token)));
            }
        }
    }

    pub(super) fn trust_names(&mut self, who: Who, until: Mono) {
        for stance in self.world.processes[who.process].app.names.values_mut() {
            if let Some(owned) = &mut stance.owned {
                owned.until = until;
            }
        }
    }

    /// Tells the invariants anew until when, in true time, a process trusts in its names.
    pub(super) fn retrust_names(&mut self, who: Who) {
        let process = &self.world.processes[who.process];
        let clock = process.clock;
        let names = process.app.names.iter();
        let trusted: Vec<_> =
            names.filter_map(|(n, s)| Some((n.clone(), clock.reaches(s.owned?.until)))).collect();
        for (name, until) in trusted {
            self.world.see(Fact::NameRetrusted { who, name: &name, until });
        }
    }

    /// What a consistent read shows now.
    pub(super) fn read_names(&mut self) {
        if self.world.names.is_empty() {
            return;
        }
        let store = self.world.store_clock.at(self.world.now);
        let live = self.world.store.bindings(store, &WhichNames::Prefix(String::new()));
        self.world.see(Fact::Bindings { store, live: &live });
    }

    /// A process that connects anew compares its names with the store's, as one does who follows
    /// them: a copy that forgot does not show what it forgot.
    pub(super) fn compare_names(&mut self, who: Who) {
        let store = self.world.store_clock.at(self.world.now);
        let live = self.world.store.bindings(store, &WhichNames::Prefix(String::new()));
        let names = self.world.processes[who.process].app.names.iter();
        let owned = names.filter_map(|(name, stance)| Some((name.clone(), stance.owned?)));
        let is_shown = |(name, owned): &(Name, OwnedName)| {
            live.iter().any(|b| {
                let life = b.owner.as_ref().map(|owner| owner.incarnation);
                b.name == *name && b.token == owned.token && life == Some(owned.life)
            })
        };
        let lost = owned.filter(|owned| !is_shown(owned));
        let names: Vec<_> = lost.map(|(name, owned)| (name, owned.token)).collect();
        if !names.is_empty() {
            self.world.feed(who, Input::NamesForgotten { names });
        }
    }

    /// Looks the names over: what the store says against what all members believe.
    pub(super) fn survey_names(&mut self) {
        let store = self.world.store_clock.at(self.world.now);
        let live = self.world.store.bindings(store, &WhichNames::Prefix(String::new()));
        let mut names = Vec::new();
        for name in self.world.names.clone() {
            let bound = live
                .iter()
                .find(|binding| binding.name == name)
                .and_then(|binding| Some((binding.owner.as_ref()?.incarnation, binding.token)));
            let owns = self.world.processes.iter().filter_map(|process| {
                process.machine.as_ref()?;
                let owned = process.app.names.get(&name)?.owned?;
                let current = process.local(self.world.now) < owned.until;
                current.then_some((process.who, owned.life, owned.token))
            });
            let owned: Vec<_> = owns.collect();
            let wanted = self.world.processes.iter().any(|process| process.machine.is_some());
            names.push(SurveyedName { name, bound, owned, wanted });
        }
        self.world.see(Fact::NamesSurveyed { names: &names });
    }

    /// A read of the names follows soon, in every other world: in the others no process follows
    /// the names. A copy whose numbers do not jump does not tell that it forgot.
    pub(super) fn compare_names_soon(&mut self, who: Who) {
        let config = &self.world.config;
        let compares = config.store == StoreKind::Replicated
            || config.store == StoreKind::Jumping && config.seed.is_multiple_of(2);
        if !self.world.names.is_empty() && compares {
            let delay = self.world.naming.between(200_000, 2_000_000);
            self.world.queue.push(self.world.now + delay, Happens::CompareNames { who });
        }
    }
}
