//! The way between processes and the store: delays, losses, doubles, errors.

use std::rc::Rc;

use tenure_core::{
    Amend, Entry, Failed, Hint, Input, Mono, Outgoing, Reply, Request, RequestId, Timestamp,
};

use super::process::Process;
use super::queue::Happens;
use super::{Outage, START_MS, World};
use crate::clock::Nanos;
use crate::config::{Feature, StoreKind, nanos};
use crate::fact::{Fact, Who};
use crate::store::{Arrived, Caller, Fate};

const MILLI: Nanos = 1_000_000;

/// A world, for the messages that pass in it.
pub(super) struct Network<'w> {
    world: &'w mut World,
}

impl World {
    pub(super) fn network(&mut self) -> Network<'_> {
        Network { world: self }
    }
}

impl Network<'_> {
    /// How long a message takes: mostly milliseconds, now and then so long that
    /// it arrives in another age.
    pub(super) fn message_delay(&mut self) -> Nanos {
        let usual = self.world.net.between(MILLI / 5, 2 * MILLI);
        let late = self.world.net.chance(60);
        let how_late = self.world.net.below(nanos(self.world.config.ttl) * 2);
        if self.world.on(Feature::Stragglers) && late { how_late } else { usual }
    }

    fn lost_on_the_way(&mut self) -> bool {
        let lost = self.world.net.chance(80);
        self.world.on(Feature::Drops) && lost
    }

    pub(super) fn send(&mut self, who: Who, local: Mono, out: Outgoing) {
        let Outgoing { id, request, deadline } = out;
        self.world.see(Fact::Sent { who, local, id: id.get(), request: &request });
        if matches!(request, Request::Claim(_) | Request::Heartbeat(_) | Request::Bind(_)) {
            self.world.troubles().stop_at_the_worst(who.process);
        }
        if self.world.store.in_steps() {
            return self.world.store.begin(who, id, deadline, request);
        }
        if self.world.processes[who.process].cut || self.lost_on_the_way() {
            return;
        }
        let request = Rc::new(request);
        let doubled = self.world.net.chance(80);
        let copies = if self.world.on(Feature::Doubles) && doubled { 2 } else { 1 };
        for _ in 0..copies {
            let at = self.world.now + self.message_delay();
            self.world.queue.push(at, Happens::Request { who, id, request: Rc::clone(&request) });
        }
    }

    /// Goes on with what a process, or an operator, has under way at a service: sends new
    /// operations, and hands over what is answered.
    pub(super) fn work_on_calls(&mut self, by: Caller) {
        if !self.world.store.in_steps() {
            return;
        }
        let local = match by {
            Some(who) => self.world.processes[who.process].local(self.world.now),
            None => self.world.store_clock.at(self.world.now),
        };
        let (answered, calls) = self.world.store.poll(by, local);
        for call in calls {
            if is_cut(&self.world.processes, by) || self.lost_on_the_way() {
                continue;
            }
            let at = self.world.now + self.message_delay();
            self.world.queue.push(at, Happens::Call { call, asked: None });
            if let Some(turns) = &mut self.world.store.turns
                && self.world.net.chance(80)
                && !self.world.healed
                && self.world.config.features.has(Feature::Doubles)
            {
                turns.double(call);
                let at = self.world.now + self.message_delay();
                self.world.queue.push(at, Happens::Call { call, asked: None });
            }
        }
        let Some(who) = by else { return };
        for (id, result) in answered {
            self.world.queue.push(self.world.now, Happens::Reply { who, id, result });
        }
    }

    /// An operation reaches the service. Now and then it has to wait for the lock first.
    pub(super) fn serve(&mut self, call: u64, asked: Option<Mono>) {
        let store = self.world.store_clock.at(self.world.now);
        if self.world.store.turns.is_some() && asked.is_none() {
            let waits = self.world.net.chance(60);
            let span = self.world.net.below(nanos(self.world.config.ttl) * 3 / 2);
            if waits && self.world.on(Feature::Stragglers) {
                self.world.coverage.mark("a turn waited for the lock");
                let again = Happens::Call { call, asked: Some(store) };
                return self.world.queue.push(self.world.now + span, again);
            }
        }
        let Some(fate) = self.fate() else { return };
        let arrived = self.world.store.arrive(call, fate, asked.unwrap_or(store), store);
        let Some(Arrived { by, answer, step, wrote_names }) = arrived else { return };
        if let Some(step) = &step {
            self.world.see(Fact::Stepped { by, store, step });
            self.announce(&step.entries);
        }
        if wrote_names {
            self.world.names().read_names();
        }
        if is_cut(&self.world.processes, by) || self.lost_on_the_way() {
            return;
        }
        let at = self.world.now + self.message_delay();
        self.world.queue.push(at, Happens::Answer { by, answer });
    }

    /// What the service makes of an operation; `None` if it is silent.
    fn fate(&mut self) -> Option<Fate> {
        let fails = self.world.net.chance(40);
        let acts = self.world.net.chance(500);
        let certain = self.world.net.chance(500);
        let refusal = if certain { Fate::Refused } else { Fate::Unclear };
        match self.world.outage {
            Some(Outage::Silent) => None,
            Some(Outage::Refusing) => Some(refusal),
            None if !(self.world.on(Feature::Errors) && fails) => Some(Fate::Done),
            None => Some(if acts { Fate::DoneUnsaid } else { refusal }),
        }
    }

    /// A process looks at every election, as one does who follows a store that
    /// tells nothing. The first look is at everything.
    pub(super) fn poll(&mut self, who: Who, first: bool) {
        let Some(pace) = self.world.config.poll() else { return };
        let lost = self.world.net.chance(300);
        let early = self.world.net.below(250);
        let pause = nanos(pace) - nanos(pace) / 1_000 * early;
        self.world.queue.push(self.world.now + pause, Happens::Poll { who, first: false });
        if self.world.on(Feature::BadHints) && lost {
            return;
        }
        if first {
            return self.world.feed(who, Input::Hint(Hint::Anything));
        }
        for election in self.world.elections.clone() {
            if self.world.processes[who.process].is(who) {
                self.world.feed(who, Input::Hint(Hint::Election(election)));
            }
        }
    }

    /// The service's answer reaches whom it is for.
    pub(super) fn serve_answers(&mut self, by: Caller, answer: u64) {
        self.world.store.answered(answer);
        self.work_on_calls(by);
    }

    /// A request reaches the store, which may fail before or after it acts.
    pub(super) fn arrive(&mut self, who: Who, id: RequestId, request: &Request) {
        let fails = self.world.net.chance(60);
        let acts = self.world.net.chance(500);
        let certain = self.world.net.chance(500);
        if let Some(outage) = self.world.outage {
            if outage == Outage::Refusing {
                let failed = Failed { may_have_applied: !certain };
                self.answer(who, id, Err(failed));
            }
            return;
        }
        let fails = self.world.on(Feature::Errors) && fails;
        if fails && !acts {
            return self.answer(who, id, Err(Failed { may_have_applied: !certain }));
        }
        let reply = self.apply(who, request);
        let result = if fails { Err(Failed { may_have_applied: true }) } else { reply };
        self.answer(who, id, result);
    }

    /// Carries a request out, and tells all members what it changed.
    fn apply(&mut self, who: Who, request: &Request) -> Result<Reply, Failed> {
        let store = self.world.store_clock.at(self.world.now);
        let before = self.world.store.seq();
        let wall = self.wall();
        let reply = Ok(self.world.store.perform(store, wall, request));
        let entries = self.world.store.after(before);
        self.world.see(Fact::Applied { who, store, request, reply: &reply, entries: &entries });
        if matches!(request, Request::Bind(_)) {
            self.world.names().read_names();
        }
        self.announce(&entries);
        reply
    }

    /// The store's wall clock. Nothing may depend on it, so it jumps; but for the numbers
    /// of a store that forgot some. A copy is on another machine, whose clock may be years
    /// ahead or behind, and stays so.
    pub(super) fn wall(&mut self) -> Timestamp {
        Timestamp::from_unix_millis(match self.world.config.store {
            StoreKind::Jumping => START_MS + self.world.now / 1_000_000,
            StoreKind::Replicated => self.world.copy_wall_ms + self.world.now / 1_000_000,
            _ => self.world.net.below(1 << 42),
        })
    }

    pub(super) fn amend(&mut self, amend: &Amend) {
        if self.world.outage.is_some() {
            return;
        }
        if let Some(turns) = &mut self.world.store.turns
            && !self.world.healed
        {
            turns.ask(amend.clone());
            return self.work_on_calls(None);
        }
        let store = self.world.store_clock.at(self.world.now);
        let before = self.world.store.seq();
        let wall = self.wall();
        let Some(answer) = self.world.store.amend(store, wall, amend) else { return };
        let entries = self.world.store.after(before);
        self.world.see(Fact::Amended { store, amend, answer: &answer, entries: &entries });
        self.announce(&entries);
    }

    fn answer(&mut self, who: Who, id: RequestId, result: Result<Reply, Failed>) {
        if self.world.processes[who.process].cut || self.lost_on_the_way() {
            return;
        }
        let at = self.world.now + self.message_delay();
        self.world.queue.push(at, Happens::Reply { who, id, result });
    }

    /// Sends the hints that journal entries amount to.
    fn announce(&mut self, entries: &[Entry]) {
        if !self.world.watched() {
            return;
        }
        for hint in Entry::hints(entries) {
            for index in 0..self.world.processes.len() {
                self.hint(index, hint.clone());
            }
        }
    }

    fn hint(&mut self, index: usize, hint: Hint) {
        let lost = self.world.net.chance(300);
        let doubled = self.world.net.chance(200);
        let delay = self.message_delay();
        let late = self.world.net.below(nanos(self.world.config.ttl));
        let process = &self.world.processes[index];
        let bad = self.world.on(Feature::BadHints);
        if process.machine.is_none() || process.cut || (bad && lost) {
            return;
        }
        let who = process.who;
        if bad && doubled {
            let again = Happens::Hint { who, hint: hint.clone() };
            self.world.queue.push(self.world.now + late, again);
        }
        self.world.queue.push(self.world.now + delay, Happens::Hint { who, hint });
    }

    /// The way is open again: a reconnect is itself a hint (H13).
    pub(super) fn reconnect(&mut self, index: usize) {
        let process = &mut self.world.processes[index];
        process.cut = false;
        let who = process.who;
        let up = process.machine.is_some();
        if up {
            self.world.names().compare_names_soon(who);
        }
        if up && (self.world.watched() || self.world.config.store.forgets()) {
            self.world.queue.push(self.world.now + 1, Happens::Hint { who, hint: Hint::Anything });
        }
    }
}

/// Whether the caller is cut off. Operators never are.
fn is_cut(processes: &[Process], by: Caller) -> bool {
    by.is_some_and(|who| processes[who.process].cut)
}
