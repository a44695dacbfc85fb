//! The names of a history: what is asked of them, and what their answers have in common.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{
    Bind, BindAnswer, BindOp, Binding, Era, Incarnation, MemberRef, Mono, Name, NamesView, Nonce,
    Rev, Timestamp, To, Token, Value, What, WhichNames,
};
use tenure_store::MemoryState;

use crate::compare::round;
use crate::steps::{Asked, Attempt, Becomes, NAMES, NameOp, Number, Seen};
use crate::world::UNIT;

/// Where the names stood on both sides, after each step. They go on alike, and jump alike.
pub struct Revs(Vec<(u64, u64)>);

impl Default for Revs {
    fn default() -> Self {
        Self(vec![(0, 0)])
    }
}

impl Revs {
    fn last(&self) -> (u64, u64) {
        self.0.last().copied().unwrap()
    }

    /// Takes up where both stand now.
    pub fn learn(&mut self, spec: Rev, ours: Rev) -> Result<(), String> {
        let last = self.last();
        let next = (spec.get(), ours.get());
        let [by_rules, here] = [(last.0, next.0), (last.1, next.1)].map(|(a, b)| b.checked_sub(a));
        let both = by_rules.zip(here);
        let sound = both.is_some_and(|(a, b)| a == b || a >= Era::JUMP && b >= Era::JUMP);
        if next != last {
            self.0.push(next);
        }
        let told = || format!("names go on from {last:?} to {next:?} by the rules and here");
        sound.then_some(()).ok_or_else(told)
    }

    /// PostgreSQL's revision for one of the specification's: as far below the next place
    /// where both stood.
    pub fn ours(&self, spec: u64) -> u64 {
        let at = self.0.iter().find(|place| place.0 >= spec).copied().unwrap_or(self.last());
        at.1.wrapping_add(spec).wrapping_sub(at.0)
    }

    pub fn spec(&self, ours: u64) -> u64 {
        let at = self.0.iter().find(|place| place.1 >= ours).copied().unwrap_or(self.last());
        at.0.wrapping_add(ours).wrapping_sub(at.1)
    }

    pub fn known(&self, seen: Seen) -> Rev {
        Rev::new(match seen {
            Seen::Nothing => 0,
            Seen::All => self.last().0,
            Seen::Beyond(more @ ..3) => self.last().0 + more,
            Seen::Beyond(more) => self.last().0 + Era::JUMP * more,
        })
    }

    /// With PostgreSQL's revisions in place of the specification's.
    pub fn renumber(&self, bind: &mut Bind) {
        bind.known = Rev::new(self.ours(bind.known.get()));
        for op in &mut bind.ops {
            match &mut op.what {
                What::Take { .. } => {}
                What::Change { token, expect, .. } => {
                    *token = Token::new(self.ours(token.get()));
                    *expect = expect.map(|rev| Rev::new(self.ours(rev.get())));
                }
                What::Drop { token } => *token = Token::new(self.ours(token.get())),
            }
        }
    }
}

/// What is known of a namespace's names.
#[derive(Default)]
pub struct Names {
    pub revs: Revs,
    /// The newest attempt of each life, and of each life at each name.
    attempts: BTreeMap<Option<Incarnation>, u64>,
    last: BTreeMap<(Option<Incarnation>, usize), u64>,
}

fn name(name: usize) -> Name {
    let first = ["n/a", "n/b", "n/\u{e9}", "m", "o", "n"].get(name);
    Name::new(first.map_or_else(|| format!("n/b/{name}"), |name| (*name).to_owned())).unwrap()
}

fn value(value: usize) -> Value {
    match value {
        0 => Value::empty(),
        1 => Value::at("10.0.0.7:9000").unwrap(),
        2 => Value::empty().with_index([("role", "w"), ("a b", "\u{2603}")]).unwrap(),
        _ => Value::at("h").unwrap().with_data([0, 255, 10]).unwrap(),
    }
}

/// The same of a name that the caller may change or drop, if it is aimed and there is one.
fn aimed(spec: &MemoryState, now: Mono, caller: Option<&MemberRef>, op: &NameOp) -> NameOp {
    let found = spec.names(now, &WhichNames::Prefix(String::new())).bindings;
    let is_own = |binding: &Binding| match op.what {
        Becomes::Changed { of_life: false, .. } => binding.owner.is_none(),
        Becomes::Changed { .. } => binding.owner.is_some() && binding.owner.as_ref() == caller,
        Becomes::Dropped { .. } => binding.owner.is_none() || binding.owner.as_ref() == caller,
        Becomes::Taken | Becomes::Posted => false,
    };
    let own = found.iter().filter(|binding| op.aimed && is_own(binding));
    let own: Vec<_> = own.filter_map(|own| (0..NAMES).find(|n| name(*n) == own.name)).collect();
    NameOp { name: own.get(op.name % own.len().max(1)).copied().unwrap_or(op.name), ..op.clone() }
}

impl Names {
    pub fn ops(
        &mut self,
        spec: &MemoryState,
        now: Mono,
        caller: Option<&MemberRef>,
        ops: &[NameOp],
    ) -> Vec<BindOp> {
        let life = caller.map(|caller| caller.incarnation);
        ops.iter().map(|op| self.op(spec, now, life, &aimed(spec, now, caller, op))).collect()
    }

    fn op(
        &mut self,
        spec: &MemoryState,
        now: Mono,
        life: Option<Incarnation>,
        op: &NameOp,
    ) -> BindOp {
        let found = spec.names(now, &WhichNames::Named(vec![name(op.name)])).bindings;
        let found = found.first();
        let number = |number, newest: Option<u64>| match number {
            Number::Newest => newest.unwrap_or(1),
            Number::Former => newest.unwrap_or(1).saturating_sub(1),
            Number::Wrong => newest.unwrap_or(1) + 7,
        };
        let token = |which| Token::new(number(which, found.map(|found| found.token.get())));
        let rev = |which| Rev::new(number(which, found.map(|found| found.rev.get())));
        let value = value(op.value);
        let what = match op.what {
            Becomes::Taken => What::Take { to: To::Life, value },
            Becomes::Posted => What::Take { to: To::Unowned, value },
            Becomes::Changed { of_life, token: which, expect } => What::Change {
                of: if of_life { To::Life } else { To::Unowned },
                token: token(which),
                expect: expect.map(rev),
                value,
            },
            Becomes::Dropped { token: which } => What::Drop { token: token(which) },
        };
        BindOp { name: name(op.name), nonce: self.nonce(life, op), what }
    }

    fn nonce(&mut self, life: Option<Incarnation>, op: &NameOp) -> Nonce {
        let newest = self.attempts.entry(life).or_default();
        let last = self.last.entry((life, op.name)).or_default();
        Nonce::new(match op.attempt {
            Attempt::New => {
                *newest += 1;
                *last = *newest;
                *last
            }
            Attempt::Last => *last,
            Attempt::Former => last.saturating_sub(1),
        })
    }

    /// The names that are meant now.
    pub fn which(&self, asked: &Asked) -> WhichNames {
        match asked {
            Asked::Named(names) => WhichNames::Named(names.iter().copied().map(name).collect()),
            Asked::Prefix(prefix) => WhichNames::Prefix(["", "n/", "n/\u{e9}"][*prefix].into()),
            Asked::Since(back) => {
                let places = &self.revs.0;
                WhichNames::Since(Rev::new(places[places.len().saturating_sub(1 + back)].0))
            }
            Asked::Beyond | Asked::Owned(_) => WhichNames::Since(Rev::new(self.revs.last().0 + 1)),
        }
    }
}

/// Takes away in what answers may differ.
pub fn plain(answer: &mut BindAnswer, rev: &dyn Fn(u64) -> u64) {
    if let BindAnswer::Gone(found) = answer {
        found.take_if(|found| found.owner.is_some() && found.remaining < UNIT / 2);
    }
    match answer {
        BindAnswer::Bound(binding)
        | BindAnswer::Taken(binding)
        | BindAnswer::Gone(Some(binding)) => plain_binding(binding, rev),
        _ => {}
    }
}

pub fn plain_view(view: &mut NamesView, rev: &dyn Fn(u64) -> u64) {
    view.rev = Rev::new(rev(view.rev.get()));
    view.bindings.iter_mut().for_each(|binding| plain_binding(binding, rev));
    view.owners.iter_mut().for_each(|(_, left)| round(left));
}

fn plain_binding(binding: &mut Binding, rev: &dyn Fn(u64) -> u64) {
    binding.token = Token::new(rev(binding.token.get()));
    binding.rev = Rev::new(rev(binding.rev.get()));
    binding.bound_at = Timestamp::default();
    if binding.remaining > Duration::ZERO {
        round(&mut binding.remaining);
    }
}
