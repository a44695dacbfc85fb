//! What waits to be asked of the store: a line for each name, and what is owed.
//!
//! - Operations on one name wait in a line of their own, and only the first of each line is
//!   sent.
//! - A take of a name that was lost and is not dropped yet waits for that drop, and the drop
//!   for the margin: sent before it, the take would find the name bound to this life by a
//!   binding in which this member no longer trusts, but under which work may still run.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::doubt::Doubt;
use crate::machine::NameWish;
use crate::machine::context::Context;
use crate::machine::membership::Life;
use crate::machine::queue::Queue;
use crate::machine::slot::Slot;
use crate::{Bind, BindOp, Mono, Name, Nonce, Request, Rev, TermRef, To, Token, What};

/// What this member owns, wants and owes of names.
#[derive(Clone, Debug, Default, Hash)]
pub(in crate::machine) struct Names {
    pub(super) bound: BTreeMap<Name, Token>,
    /// What is to be done with each name, in order. The first of each line may be on its way.
    pub(super) lines: BTreeMap<Name, VecDeque<Wanted>>,
    /// The names whose line has something to send, in the order of asking.
    pub(super) ready: Queue,
    /// The names whose line begins with a take that waits for the drop of what was lost.
    pub(super) parked: BTreeSet<Name>,
    /// Lost, and to be dropped when the work has had time to stop.
    pub(super) owed: BTreeMap<Name, (Mono, Token)>,
    /// The same, by time.
    pub(super) owed_from: BTreeMap<(Mono, Name), ()>,
    /// The newest known revision: see [`Bind::known`].
    pub(super) known: Rev,
    pub(in crate::machine) slot: Slot<Vec<Name>>,
    /// What the store may have forgotten.
    pub(in crate::machine) doubt: Doubt,
}

/// An operation that waits for its answer.
#[derive(Clone, Debug, Hash)]
pub(super) struct Wanted {
    /// Who asked; `None` if no caller waits for the answer.
    pub(super) ticket: Option<u64>,
    pub(super) wish: NameWish,
    pub(super) fence: Option<TermRef>,
    /// The attempt in this life, from the first sending on.
    pub(super) nonce: Option<Nonce>,
}

impl Wanted {
    pub(super) fn is_take(&self) -> bool {
        matches!(self.wish, NameWish::Take { .. })
    }

    pub(super) fn to_drop(token: Token) -> Self {
        Self { ticket: None, wish: NameWish::Drop { token }, fence: None, nonce: None }
    }
}

impl Names {
    /// Whether any name is trusted to be this member's.
    pub(in crate::machine) fn owns_any(&self) -> bool {
        !self.bound.is_empty()
    }

    /// Whether the store has, or may have, a name for this life.
    pub(in crate::machine) fn holds_any(&self) -> bool {
        self.owns_any() || !self.owed.is_empty() || self.wants_any()
    }

    /// Whether there is something to ask for, which needs a member.
    pub(in crate::machine) fn wants_any(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Whether lost work may still run.
    pub(in crate::machine) fn must_wait(&self) -> bool {
        !self.owed_from.is_empty()
    }

    /// When something is to be sent.
    pub(in crate::machine) fn wake(&self) -> Option<Mono> {
        let owed = self.owed_from.keys().next().map(|(from, _)| *from);
        let ready = (!self.ready.is_empty()).then_some(Mono::ZERO);
        let asks = [self.slot.wake(owed.into_iter().chain(ready).min()), self.doubt.wake()];
        asks.into_iter().flatten().min()
    }

    pub(super) fn push(&mut self, name: Name, wanted: Wanted) {
        let waits = wanted.is_take() && self.is_awaited(&name);
        let line = self.lines.entry(name.clone()).or_default();
        line.push_back(wanted);
        if line.len() > 1 {
            return;
        }
        if waits {
            self.parked.insert(name);
        } else {
            self.ready.push_back(name);
        }
    }

    /// Before everything else that waits for this name, whose first operation is not on its
    /// way.
    pub(super) fn push_first(&mut self, name: &Name, wanted: Wanted) {
        self.lines.entry(name.clone()).or_default().push_front(wanted);
    }

    /// After the first of this line, which may be on its way, and before the takes that follow.
    fn push_before_takes(&mut self, name: Name, wanted: Wanted) {
        match self.lines.get_mut(&name) {
            Some(line) => {
                let take = (1..line.len()).find(|at| line[*at].is_take());
                line.insert(take.unwrap_or(line.len()), wanted);
            }
            None => self.push(name, wanted),
        }
    }

    /// The first operation of a line was answered, or is not wanted any more.
    pub(super) fn pop(&mut self, name: &Name) -> Option<Wanted> {
        let line = self.lines.get_mut(name)?;
        let first = line.pop_front();
        if line.is_empty() {
            self.lines.remove(name);
        }
        first
    }

    pub(super) fn owe(&mut self, name: Name, token: Token, from: Mono) {
        self.settle(&name);
        self.owed_from.insert((from, name.clone()), ());
        self.owed.insert(name, (from, token));
    }

    pub(super) fn settle(&mut self, name: &Name) -> Option<Token> {
        let (from, token) = self.owed.remove(name)?;
        self.owed_from.remove(&(from, name.clone()));
        Some(token)
    }

    /// The work under a name that was lost has stopped: nothing keeps it any more.
    pub(in crate::machine) fn let_go(&mut self, name: &Name, token: Token) {
        let is_owed = self.owed.get(name).is_some_and(|(_, owed)| *owed == token);
        if is_owed && self.is_awaited(name) {
            self.owe(name.clone(), token, Mono::ZERO);
        }
    }

    /// The caller no longer waits for this operation. What is not on its way is forgotten.
    pub(in crate::machine) fn withdraw(&mut self, name: &Name, ticket: u64) {
        let Some(line) = self.lines.get_mut(name) else { return };
        let Some(at) = line.iter().position(|wanted| wanted.ticket == Some(ticket)) else { return };
        if line[at].nonce.is_some() || !line[at].is_take() {
            line[at].ticket = None;
            return;
        }
        line.remove(at);
        if line.is_empty() {
            self.lines.remove(name);
            self.ready.remove(name);
            self.parked.remove(name);
        }
    }

    /// Drops what is owed and whose time has come.
    pub(in crate::machine) fn ripen(&mut self, now: Mono) {
        while let Some(((from, _), ())) = self.owed_from.first_key_value()
            && *from <= now
            && let Some(((_, name), ())) = self.owed_from.pop_first()
        {
            // It stays among what is owed until the store has answered.
            let Some((_, token)) = self.owed.get(&name).copied() else { continue };
            // A take that waits for its turn is not to be answered by what is dropped here.
            let waits = self.begins_with_take(&name) && self.ready.contains(&name);
            if self.parked.remove(&name) || waits {
                self.push_first(&name, Wanted::to_drop(token));
                self.ready.push_back(name);
            } else {
                self.push_before_takes(name, Wanted::to_drop(token));
            }
        }
    }

    /// Whether the first operation of this line takes the name.
    pub(super) fn begins_with_take(&self, name: &Name) -> bool {
        self.lines.get(name).and_then(VecDeque::front).is_some_and(Wanted::is_take)
    }

    /// Whether work under a binding of this name that was lost may still run.
    fn is_awaited(&self, name: &Name) -> bool {
        let owed = self.owed.get(name);
        owed.is_some_and(|(from, _)| self.owed_from.contains_key(&(*from, name.clone())))
    }

    /// Nothing is owed of this name any more that a take would have to wait for.
    pub(super) fn unpark(&mut self, name: &Name) {
        if self.parked.remove(name) {
            self.ready.push_back(name.clone());
        }
    }

    /// Sends the first of each line, as many as go into one request and under one fence.
    pub(in crate::machine) fn step(&mut self, cx: &mut Context<'_>, life: &Life) {
        if !self.slot.is_free(cx.now) {
            return;
        }
        let mut sent = Vec::new();
        let mut ops = Vec::new();
        let mut fence = None;
        while ops.len() < cx.traits.batch
            && let Some(name) = self.ready.front()
        {
            if self.begins_with_take(name) && self.is_awaited(name) {
                self.parked.extend(self.ready.pop_front());
                continue;
            }
            let Some(first) = self.lines.get_mut(name).and_then(VecDeque::front_mut) else { break };
            if ops.is_empty() {
                fence.clone_from(&first.fence);
            } else if first.fence != fence {
                break;
            }
            let nonce = *first.nonce.get_or_insert_with(|| cx.out.next_nonce());
            ops.push(op(name.clone(), nonce, &first.wish));
            sent.extend(self.ready.pop_front());
        }
        if ops.is_empty() {
            return;
        }
        let bind = Bind::new(life.member.clone(), cx.settings.ttl(), ops);
        let bind = bind.with_seen(cx.place.to_tell(cx.decide), self.known);
        let bind = Bind { fence, ..bind };
        self.slot.send(cx, Request::Bind(bind), sent);
    }

    /// Nothing is known of what was sent: it is sent again, before anything else.
    pub(super) fn repeat(&mut self, cx: &Context<'_>, sent: Vec<Name>) {
        for name in sent.into_iter().rev() {
            if let Some(first) = self.lines.get_mut(&name).and_then(VecDeque::front_mut) {
                first.nonce = first.nonce.and_then(|nonce| cx.decide.repeats_operation(nonce));
            }
            self.ready.push_front(name);
        }
    }
}

fn op(name: Name, nonce: Nonce, wish: &NameWish) -> BindOp {
    match wish {
        NameWish::Take { value } => BindOp::take(name, nonce, value.clone()),
        NameWish::Post { value } => BindOp::post(name, nonce, value.clone()),
        NameWish::Change { token, expect, value } => {
            let token = *token;
            let expect = *expect;
            let value = value.clone();
            BindOp { name, nonce, what: What::Change { of: To::Life, token, expect, value } }
        }
        NameWish::Repost { token, expect, value } => {
            BindOp::repost(name, nonce, *token, *expect, value.clone())
        }
        NameWish::Drop { token } => BindOp::drop(name, nonce, *token),
    }
}
