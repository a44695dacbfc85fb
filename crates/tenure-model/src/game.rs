//! What can happen in a world, and what becomes of it.

use std::sync::Arc;

use stateright::{Model, Property};
use tenure_core::{Amend, Beat, Claim, Claimed, Claims, Failed, Input, Note, Reply, Request, Seq};

use crate::action::Action;
use crate::marks::{Mark, Marks};
use crate::naming;
use crate::outlives;
use crate::properties;
use crate::world::{Body, Letter, World, elections, member_id};
use crate::{Config, StoreRule};

/// A small world as stateright wants it.
#[derive(Clone, Debug)]
pub struct Game {
    /// Which world.
    pub config: Config,
}

impl Model for Game {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        World::begin(&self.config).into_iter().collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.broken.is_some() {
            // One broken rule is enough.
            return;
        }
        self.time(world, actions);
        self.post(world, actions);
        if self.troubled(world) {
            self.orders(world, actions);
        }
        for (process, p) in world.processes.iter().enumerate() {
            if world.is_due(process) {
                actions.push(Action::Wake(process));
            }
            if p.leaderships.iter().any(|r| r.stopping || r.lost) {
                actions.push(Action::WorkStops(process));
            }
            if p.owned.iter().any(|owned| owned.lost) {
                actions.push(Action::LetGo(process));
            }
            if p.machine.is_none() && p.stands {
                actions.push(Action::Restart(process));
            }
            if p.cut {
                actions.push(Action::Mend(process));
            } else if !p.hints.is_empty() {
                actions.push(Action::Hint(process));
            }
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        world.seen = Marks::default();
        let left = &mut world.left;
        match action {
            Action::Tick => self.tick(&mut world, None),
            Action::Slip(process) => {
                left.slips -= 1;
                self.tick(&mut world, Some(process));
            }
            Action::Wake(process) => world.feed(process, Input::Wake),
            Action::Deliver(letter) => {
                let letter = world.letters.remove(letter);
                self.deliver(&mut world, letter, Delivery::Prompt);
            }
            Action::Delay(letter) => {
                left.late -= 1;
                let letter = world.letters.remove(letter);
                self.deliver(&mut world, letter, Delivery::Late);
            }
            Action::LoseReply(letter) => {
                left.lost -= 1;
                let letter = world.letters.remove(letter);
                self.deliver(&mut world, letter, Delivery::Lost);
            }
            Action::Lose(letter) => {
                left.lost -= 1;
                world.letters.remove(letter);
            }
            Action::Double(letter) => {
                left.doubled -= 1;
                let mut letter = world.letters.remove(letter);
                self.deliver(&mut world, letter.clone(), Delivery::Prompt);
                letter.late = true;
                world.post(letter);
            }
            Action::Cut(process) => {
                left.cuts -= 1;
                world.processes[process].cut = true;
            }
            Action::Mend(process) => world.processes[process].cut = false,
            Action::Hint(process) => {
                let hint = world.processes[process].hints.remove(0);
                world.feed(process, Input::Hint(hint));
            }
            Action::WorkStops(process) => world.work_stops(process, |r| r.stopping || r.lost),
            Action::Resign(process) => {
                left.resigns -= 1;
                world.work_stops(process, |r| !r.stopping && !r.lost);
            }
            Action::Drop(process) => {
                left.resigns -= 1;
                world.drop_name(process);
            }
            Action::LetGo(process) => world.let_go(process),
            Action::Crash(process) => {
                left.crashes -= 1;
                world.crash(process);
            }
            Action::Restart(process) => {
                world.processes[process].life += 1;
                world.start(&self.config, process)?;
            }
            Action::Shutdown(process) => {
                left.shutdowns -= 1;
                world.processes[process].stands = false;
                world.feed(process, Input::Shutdown);
            }
            order => self.order(&mut world, order)?,
        }
        properties::check_trust(&self.config, &mut world);
        naming::check(&self.config, &mut world);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(&self.config)
    }
}

impl Game {
    /// Whether trouble may still happen.
    fn troubled(&self, world: &World) -> bool {
        self.config.heals_at.is_none_or(|heals| world.now < heals)
    }

    fn time(&self, world: &World, actions: &mut Vec<Action>) {
        if world.now >= self.config.horizon {
            return;
        }
        let troubled = self.troubled(world);
        let due = (0..world.processes.len()).any(|process| world.is_due(process));
        let late = world.fresh();
        let bearable = (late == 0 || (troubled && world.left.late >= late))
            && (!due || (troubled && world.left.starved > 0))
            && (troubled || world.processes.iter().all(|p| !p.cut));
        if !bearable {
            return;
        }
        actions.push(Action::Tick);
        if troubled && world.left.slips > 0 {
            actions.extend((0..world.processes.len()).map(Action::Slip));
        }
    }

    fn post(&self, world: &World, actions: &mut Vec<Action>) {
        let troubled = self.troubled(world);
        for (place, letter) in world.letters.iter().enumerate() {
            if world.is_stuck(letter) {
                continue;
            }
            actions.push(Action::Deliver(place));
            let request = matches!(letter.body, Body::Request(_));
            if troubled && world.left.lost > 0 {
                actions.push(Action::Lose(place));
                actions.extend(request.then_some(Action::LoseReply(place)));
            }
            if troubled && world.left.late > 0 && request {
                actions.push(Action::Delay(place));
            }
            if troubled && world.left.doubled > 0 && request {
                actions.push(Action::Double(place));
            }
        }
    }

    fn orders(&self, world: &World, actions: &mut Vec<Action>) {
        let left = &world.left;
        for (process, p) in world.processes.iter().enumerate() {
            let leads = p.leaderships.iter().any(|r| !r.stopping && !r.lost);
            if left.resigns > 0 && leads {
                actions.push(Action::Resign(process));
            }
            if left.resigns > 0 && p.owned.iter().any(|owned| !owned.lost) {
                actions.push(Action::Drop(process));
            }
            if left.cuts > 0 && !p.cut && p.machine.is_some() {
                actions.push(Action::Cut(process));
            }
            if left.crashes > 0 && p.machine.is_some() {
                actions.push(Action::Crash(process));
            }
            if left.shutdowns > 0 && p.stands && p.machine.is_some() {
                actions.push(Action::Shutdown(process));
            }
            if left.evictions > 0 {
                actions.push(Action::Evict(process));
            }
            if left.step_downs > 0 {
                actions.push(Action::StepDown(Some(process)));
            }
        }
        if left.step_downs > 0 {
            actions.push(Action::StepDown(None));
        }
        if left.pauses > 0 {
            actions.extend([Action::Pause, Action::Resume]);
        }
    }

    fn tick(&self, world: &mut World, slow: Option<usize>) {
        let due = (0..world.processes.len()).any(|process| world.is_due(process));
        world.left.starved -= u8::from(due);
        world.left.late -= world.fresh();
        world.end_of_post();
        world.now += 1;
        if let Some(slow) = slow {
            world.processes[slow].slow += 1;
        }
        for process in 0..world.processes.len() {
            // Hints that were not delivered by now are lost: they are hints.
            world.processes[process].hints.clear();
            if slow != Some(process) {
                world.margins_pass(process);
                world.ask_for_names(&self.config, process);
            }
        }
    }

    fn deliver(&self, world: &mut World, letter: Letter, delivery: Delivery) {
        let Letter { process, life, id, body, .. } = letter;
        match body {
            Body::Request(request) => {
                let reply = self.ask(world, &request);
                // The caller may be gone; its reply goes nowhere.
                let p = &world.processes[process];
                if p.life != life || p.machine.is_none() {
                    return;
                }
                let letter = Letter { process, life, id, body: Body::Reply(reply), late: true };
                match delivery {
                    Delivery::Prompt if p.cut => {}
                    Delivery::Prompt => self.deliver(world, letter, delivery),
                    Delivery::Late => world.post(letter),
                    Delivery::Lost => {}
                }
            }
            Body::Reply(reply) => {
                let won = won(&reply);
                let result: Box<Result<Reply, Failed>> = Box::new(Ok(reply));
                world.feed(process, Input::Reply { id, result });
                if won && !world.seen.has(Mark::Elected) {
                    world.seen.set(Mark::LateWin);
                }
                if world.processes[process].machine.as_ref().is_some_and(|m| m.is_done()) {
                    world.processes[process].machine = None;
                    world.seen.set(Mark::Left);
                }
            }
        }
    }

    /// Carries a request to the store, and its news to all members.
    fn ask(&self, world: &mut World, request: &Request) -> Reply {
        let now = world.store_clock();
        let wall = World::wall();
        let before = world.store.seq();
        let rev = world.names_rev();
        let outlived = self
            .config
            .store
            .and_then(|StoreRule::TermOutlivesLife| outlives::broken(world, request));
        if let Some(reply) = outlived {
            outlives::check(world, &reply);
            return reply;
        }
        let store = Arc::make_mut(&mut world.store);
        let reply = match request {
            Request::Join(join) => Reply::Join(store.join(now, wall, join)),
            Request::Heartbeat(beat) => Reply::Heartbeat(store.heartbeat(now, beat)),
            Request::Leave(member) => {
                store.leave(wall, member);
                Reply::Leave
            }
            Request::Claim(claim) => Reply::Claim(store.claim(now, wall, claim)),
            Request::Release(release) => {
                store.release(now, wall, release);
                Reply::Release
            }
            Request::Bind(bind) => Reply::Bind(store.bind(now, wall, bind)),
            Request::Read(query) => Reply::Read(store.read(now, query)),
        };
        outlives::check(world, &reply);
        self.mark(world, before, request, &reply);
        if let Reply::Bind(answers) = &reply {
            world.mark_bind(rev, answers);
        }
        self.spread(world, before);
        reply
    }

    fn mark(&self, world: &mut World, before: Seq, request: &Request, reply: &Reply) {
        let unchanged = world.store.seq() == before;
        match (request, reply) {
            (_, Reply::Heartbeat(Beat::Ended { .. })) => world.seen.set(Mark::BeatenDead),
            (Request::Claim(_), _) if won(reply) && unchanged => world.seen.set(Mark::Adopted),
            (Request::Claim(claim), Reply::Claim(answers)) => {
                self.mark_claim(world, claim, answers);
            }
            (Request::Release(release), _)
                if unchanged && release.items.iter().any(|item| item.number.is_some()) =>
            {
                world.seen.set(Mark::LateRelease);
            }
            _ => {}
        }
    }

    fn mark_claim(&self, world: &mut World, claim: &Claim, answers: &Claims) {
        let Claims::Answered(answers) = answers else { return };
        for answer in answers {
            match answer {
                Claimed::Held(view) if view.holder.is_none() && view.paused.is_some() => {
                    world.seen.set(Mark::Paused);
                }
                Claimed::Won(_) if world.kept_for(&claim.member.id) => {
                    world.seen.set(Mark::HandedOver);
                }
                _ => {}
            }
        }
    }

    /// Sends what the journal says since `before` to every process, as hints.
    fn spread(&self, world: &mut World, before: Seq) {
        if !self.config.hints {
            return;
        }
        let news = world.store.entries_after(before).unwrap_or_default();
        for hint in tenure_core::Entry::hints(&news) {
            for process in world.processes.iter_mut().filter(|p| p.machine.is_some()) {
                if !process.hints.contains(&hint) {
                    process.hints.push(hint.clone());
                }
            }
        }
    }

    /// An operator's order. `None` if it would change nothing.
    fn order(&self, world: &mut World, order: Action) -> Option<()> {
        let election = elections(&self.config).next()?;
        let reason = Note::default();
        let by = Note::default();
        let left = &mut world.left;
        let amend = match order {
            Action::StepDown(to) => {
                left.step_downs -= 1;
                let to = to.and_then(member_id);
                Amend::StepDown { election, number: None, to, reason, by }
            }
            Action::Evict(process) => {
                left.evictions -= 1;
                Amend::Evict { member: member_id(process)?, now: false, by }
            }
            Action::Pause => Amend::Pause { election, reason, by },
            _ => {
                left.pauses -= 1;
                Amend::Resume { election, by }
            }
        };
        let now = world.store_clock();
        let wall = World::wall();
        let before = world.store.clone();
        Arc::make_mut(&mut world.store).amend(now, wall, &amend);
        self.spread(world, before.seq());
        (before != world.store).then_some(())
    }
}

/// What becomes of the reply to a request.
#[derive(Clone, Copy, Debug)]
enum Delivery {
    Prompt,
    Late,
    Lost,
}

/// Whether a reply says that something was won.
fn won(reply: &Reply) -> bool {
    let Reply::Claim(Claims::Answered(answers)) = reply else { return false };
    answers.iter().any(|answer| matches!(answer, Claimed::Won(_)))
}

impl World {
    /// The process is gone, and with it what was on its way to it.
    fn crash(&mut self, process: usize) {
        let p = &mut self.processes[process];
        p.machine = None;
        p.leaderships.clear();
        p.owned.clear();
        p.asks.clear();
        p.hints.clear();
        self.letters.retain(|l| l.process != process || matches!(l.body, Body::Request(_)));
    }

    /// Whether a letter cannot arrive: its process is cut off, and it is not
    /// one that had left before.
    fn is_stuck(&self, letter: &Letter) -> bool {
        let on_its_way = letter.late && matches!(letter.body, Body::Request(_));
        self.processes[letter.process].cut && !on_its_way
    }

    /// How many letters would become late if a step of time passed now.
    fn fresh(&self) -> u8 {
        let fresh = self.letters.iter().filter(|l| !l.late && !self.is_stuck(l)).count();
        u8::try_from(fresh).unwrap_or(u8::MAX)
    }

    /// A step is over: what was not delivered is late, or lost where there was
    /// no way.
    fn end_of_post(&mut self) {
        let letters = std::mem::take(&mut self.letters);
        let (stuck, mut kept): (Vec<_>, Vec<_>) =
            letters.into_iter().partition(|l| !l.late && self.is_stuck(l));
        drop(stuck);
        for letter in &mut kept {
            letter.late = true;
        }
        self.letters = kept;
    }

    /// Whether the newest release kept the election for this member.
    fn kept_for(&self, id: &tenure_core::MemberId) -> bool {
        use tenure_core::Happening::Released;
        let entries = self.store.entries_after(Seq::new(self.store.seq().get().saturating_sub(4)));
        let heir = entries.unwrap_or_default().into_iter().rev().find_map(|e| match e.what {
            Released { heir, .. } => Some(heir),
            _ => None,
        });
        heir.flatten().is_some_and(|heir| heir == *id)
    }
}
