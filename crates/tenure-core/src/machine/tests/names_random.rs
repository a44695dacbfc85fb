//! Random lives of names: requests are lost, late and answered twice; lives end. Whatever
//! happens, each operation is answered once, nothing is believed that the store gave to
//! another, and nothing is left behind.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use super::random::Dice;
use super::script::*;
use crate::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What the store has: a name's owner, its token and the attempt that took it.
#[derive(Debug, Default)]
struct Store {
    member: Option<MemberRef>,
    names: BTreeMap<Name, (Incarnation, u64, Nonce)>,
    last: u64,
}

impl Store {
    fn perform(&mut self, dice: &mut Dice, request: &Request) -> Reply {
        let lives = |member: &MemberRef| self.member.as_ref() == Some(member);
        match request {
            Request::Join(join) => {
                self.member = Some(join.member.clone());
                joined()
            }
            Request::Heartbeat(beat) if lives(&beat.member) => alive(0),
            Request::Heartbeat(_) => ended(false),
            Request::Bind(bind) if bind.member.as_ref().is_some_and(lives) => {
                let life = bind.member.as_ref().unwrap().incarnation;
                let answers = bind.ops.iter().map(|op| self.op(dice, life, op)).collect();
                Reply::Bind(Bindings::Answered(answers))
            }
            Request::Bind(_) => Reply::Bind(Bindings::Ended { superseded: false }),
            Request::Leave(_) => {
                self.end();
                Reply::Leave
            }
            other => panic!("not about names: {other:?}"),
        }
    }

    fn end(&mut self) {
        let Some(member) = self.member.take() else { return };
        self.names.retain(|_, (life, ..)| *life != member.incarnation);
    }

    fn op(&mut self, dice: &mut Dice, life: Incarnation, op: &BindOp) -> BindAnswer {
        if dice.roll(12) == 0 {
            return BindAnswer::Busy(op.name.clone());
        }
        let there = self.names.get(&op.name).copied();
        match (&op.what, there) {
            (What::Take { .. }, None) => {
                self.last += 1;
                self.names.insert(op.name.clone(), (life, self.last, op.nonce));
            }
            (What::Take { .. }, Some((owner, _, nonce))) => {
                if owner != life || nonce != op.nonce {
                    return BindAnswer::Taken(self.view(&op.name).unwrap());
                }
            }
            (What::Change { token, .. } | What::Drop { token }, Some((owner, at, _)))
                if owner == life && at == token.get() =>
            {
                if let What::Drop { .. } = op.what {
                    self.names.remove(&op.name);
                    return BindAnswer::Gone(None);
                }
            }
            _ => return BindAnswer::Gone(self.view(&op.name)),
        }
        BindAnswer::Bound(self.view(&op.name).unwrap())
    }

    fn view(&self, name: &Name) -> Option<Binding> {
        let (life, token, _) = *self.names.get(name)?;
        Some(Binding {
            name: name.clone(),
            token: Token::new(token),
            rev: Rev::new(token),
            owner: Some(MemberRef::new(MemberId::new("x").unwrap(), life)),
            value: Value::empty(),
            remaining: Duration::from_secs(10),
            bound_at: Timestamp::default(),
        })
    }
}

struct Run {
    seed: u64,
    dice: Dice,
    script: Script,
    store: Store,
    /// What the application was told is its own.
    owns: BTreeMap<Name, Token>,
    open: BTreeSet<u64>,
    tickets: u64,
    replies: Vec<(RequestId, Result<Reply, Failed>)>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let script = Script::with(WATCHED, Settings::default(), seed.into());
        Self {
            seed,
            dice: Dice::new(seed),
            script,
            store: Store::default(),
            owns: BTreeMap::new(),
            open: BTreeSet::new(),
            tickets: 0,
            replies: Vec::new(),
        }
    }

    fn feed(&mut self, input: Input) {
        self.script.feed(input);
        for event in core::mem::take(&mut self.script.events) {
            match event {
                Event::NameAnswered { ticket, answer } => {
                    assert!(self.open.remove(&ticket), "answered twice: seed {}", self.seed);
                    if let NameAnswer::Bound { binding, trusted_until } = answer
                        && trusted_until > Mono::ZERO
                    {
                        self.owns.insert(binding.name, binding.token);
                    }
                }
                Event::NamesLost { names, .. } => {
                    for (name, token) in names {
                        let was = self.owns.remove(&name);
                        assert_eq!(was, Some(token), "lost what it did not own: {}", self.seed);
                        if self.dice.roll(2) == 0 {
                            self.script.feed(Input::LetGoOfName { name, token });
                        }
                    }
                }
                _ => {}
            }
        }
        // U6: while it is trusted, the store has it for this life, unless the life was ended
        // by the test's own hand, which a real store does after the ttl only.
        for (name, token) in &self.owns {
            if let Some((_, at, _)) = self.store.names.get(name) {
                assert_eq!(*at, token.get(), "seed {}", self.seed);
            }
        }
    }

    fn wish(&mut self) {
        let at = usize::try_from(self.dice.roll(3)).unwrap();
        let name = Name::new(NAMES[at]).unwrap();
        let token = self.owns.get(&name).copied();
        let value = Value::empty();
        let wish = match (self.dice.roll(3), token) {
            (0, Some(token)) => NameWish::Drop { token },
            (1, Some(token)) => NameWish::Change { token, expect: None, value },
            _ => NameWish::Take { value },
        };
        self.tickets += 1;
        self.open.insert(self.tickets);
        let op = NameOp { ticket: self.tickets, name, wish, fence: None };
        self.feed(Input::Bind { ops: [op].into() });
    }

    fn step(&mut self) {
        match self.dice.roll(10) {
            0 | 1 => self.wish(),
            2 | 3 => {
                if let Some(out) = pick(&mut self.dice, &mut self.script.sent) {
                    let reply = self.store.perform(&mut self.dice, &out.request);
                    match self.dice.roll(4) {
                        // Done, and the answer is lost.
                        0 => self.replies.push((out.id, Err(UNKNOWN))),
                        _ => self.replies.push((out.id, Ok(reply))),
                    }
                }
            }
            4 => {
                if let Some(out) = pick(&mut self.dice, &mut self.script.sent) {
                    self.replies.push((out.id, Err(REFUSED)));
                }
            }
            5 | 6 => {
                if let Some((id, result)) = pick(&mut self.dice, &mut self.replies) {
                    self.feed(Input::Reply { id, result: Box::new(result) });
                }
            }
            7 if self.dice.roll(20) == 0 => self.store.end(),
            _ => self.wait(),
        }
    }

    fn wait(&mut self) {
        let wake = self.script.machine.next_wake();
        let step = Duration::from_millis(1 + self.dice.roll(400));
        let to = self.script.now + step;
        self.script.now = wake.map_or(to, |wake| wake.max(self.script.now).min(to));
        self.feed(Input::Wake);
    }

    /// Everything is answered at once from now on, and everything is dropped.
    fn heal(&mut self) {
        for round in 0..400 {
            while let Some(out) = self.script.sent.pop() {
                let reply = self.store.perform(&mut self.dice, &out.request);
                self.feed(Input::Reply { id: out.id, result: Box::new(Ok(reply)) });
            }
            let owned: Vec<_> = self.owns.clone().into_iter().filter(|_| round > 40).collect();
            for (name, token) in owned {
                self.tickets += 1;
                self.open.insert(self.tickets);
                let wish = NameWish::Drop { token };
                let op = NameOp { ticket: self.tickets, name, wish, fence: None };
                self.feed(Input::Bind { ops: [op].into() });
            }
            self.wait();
        }
        assert!(self.open.is_empty(), "never answered: seed {}", self.seed);
        let left = &self.store.names;
        assert!(left.is_empty(), "left behind: {left:?}, seed {}", self.seed);
    }
}

fn pick<T>(dice: &mut Dice, from: &mut Vec<T>) -> Option<T> {
    let len = u64::try_from(from.len()).unwrap();
    if len == 0 {
        return None;
    }
    Some(from.remove(usize::try_from(dice.roll(len)).unwrap()))
}

/// U4, U6, E2.
#[test]
fn random_lives_of_names_answer_once_and_leave_nothing_behind() {
    for seed in 0..2_000 {
        let mut run = Run::new(seed);
        for _ in 0..150 {
            run.step();
        }
        run.heal();
    }
}
