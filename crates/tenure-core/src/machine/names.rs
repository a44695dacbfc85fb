//! Names: taking, changing and dropping them for this life, and losing them.
//!
//! A name is the member's as a term is: it hangs on the one trust of the life, it is lost
//! without any I/O where that ends, and a lost name is owed back to the store until a drop
//! is confirmed. The end of the life takes all of them at once.
//!
//! # What could break it
//!
//! - **Two operations on one name overtake each other**: a drop that is repeated after a
//!   failure comes after the take that followed it. So operations on one name wait in a
//!   line of their own, and only the first of each line is sent.
//! - **A take is answered late**, when its grant is over: nobody is told that it was bound.
//!   It is dropped, and taken again by another attempt.
//! - **A take is not answered**: it may have been done. The same nonce is sent again, and
//!   the store answers with the same binding (E2). Meanwhile heartbeats carry the short ttl.
//! - **The caller stops waiting** while its take is on its way: what it gets is dropped.
//! - **The owner is told that a name is lost, and its work goes on**: the drop waits for the
//!   margin, or for the work's word that it has stopped (E4).
//! - **The life ends**: tokens of the old life are worth nothing. Changes and drops that
//!   wait are answered *gone*; takes go on in the next life, with another nonce.
//! - **The store shows a name under this life that the machine does not know of**: it is
//!   dropped, and not believed.
//!
//! Each step costs the same however many names are bound; only losing all of them at once,
//! and telling it, costs a step for each.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use super::context::Context;
use super::membership::{Life, LifeOver};
use super::queue::Queue;
use super::slot::{Flight, Slot};
use super::terms::Terms;
use super::trust::{trusted_from, trusted_until};
use super::{Event, LostReason, NameAnswer, NameOp, NameWish};
use crate::{
    Bind, BindAnswer, BindOp, Binding, Bindings, Failed, Incarnation, Mono, Name, Nonce, Reply,
    Request, Rev, TermNumber, TermRef, To, Token, What,
};

/// What this member owns, wants and owes of names.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Names {
    bound: BTreeMap<Name, Token>,
    /// What is to be done with each name, in order. The first of each line may be on its way.
    lines: BTreeMap<Name, VecDeque<Wanted>>,
    /// The names whose line has something to send, in the order of asking.
    ready: Queue,
    /// Lost, and to be dropped when the work has had time to stop.
    owed: BTreeMap<Name, (Mono, Token)>,
    /// The same, by time.
    owed_from: BTreeMap<(Mono, Name), ()>,
    /// The newest revision heard of: see [`Bind::known`].
    known: Rev,
    pub(super) slot: Slot<Vec<Name>>,
}

/// An operation that waits for its answer.
#[derive(Clone, Debug, Hash)]
struct Wanted {
    /// Who asked; `None` if nobody waits for the answer.
    ticket: Option<u64>,
    wish: NameWish,
    fence: Option<TermRef>,
    /// The attempt in this life, from the first sending on.
    nonce: Option<Nonce>,
}

impl Wanted {
    fn is_take(&self) -> bool {
        matches!(self.wish, NameWish::Take { .. })
    }

    fn to_drop(token: Token) -> Self {
        Self { ticket: None, wish: NameWish::Drop { token }, fence: None, nonce: None }
    }
}

impl Names {
    /// Whether any name is trusted to be this member's.
    pub(super) fn owns_any(&self) -> bool {
        !self.bound.is_empty()
    }

    /// Whether the store has, or may have, a name for this life.
    pub(super) fn holds_any(&self) -> bool {
        self.owns_any() || !self.owed.is_empty() || self.wants_any()
    }

    /// Whether there is something to ask for, which needs a member.
    pub(super) fn wants_any(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Whether lost work may still run.
    pub(super) fn must_wait(&self) -> bool {
        !self.owed_from.is_empty()
    }

    /// When something is to be sent.
    pub(super) fn wake(&self) -> Option<Mono> {
        let owed = self.owed_from.keys().next().map(|(from, _)| *from);
        let ready = (!self.ready.is_empty()).then_some(Mono::ZERO);
        self.slot.wake(owed.into_iter().chain(ready).min())
    }

    fn push(&mut self, name: Name, wanted: Wanted) {
        let line = self.lines.entry(name.clone()).or_default();
        line.push_back(wanted);
        if line.len() == 1 {
            self.ready.push_back(name);
        }
    }

    /// Before everything else that waits for this name, whose first operation is not on its
    /// way.
    fn push_first(&mut self, name: &Name, wanted: Wanted) {
        self.lines.entry(name.clone()).or_default().push_front(wanted);
    }

    /// The first operation of a line was answered, or is not wanted any more.
    fn pop(&mut self, name: &Name) -> Option<Wanted> {
        let line = self.lines.get_mut(name)?;
        let first = line.pop_front();
        if line.is_empty() {
            self.lines.remove(name);
        }
        first
    }

    fn owe(&mut self, name: Name, token: Token, from: Mono) {
        self.settle(&name);
        self.owed_from.insert((from, name.clone()), ());
        self.owed.insert(name, (from, token));
    }

    fn settle(&mut self, name: &Name) -> Option<Token> {
        let (from, token) = self.owed.remove(name)?;
        self.owed_from.remove(&(from, name.clone()));
        Some(token)
    }

    /// The work under a name that was lost has stopped: nothing keeps it any more.
    pub(super) fn let_go(&mut self, name: &Name, token: Token) {
        let waits = self.owed.get(name).is_some_and(|(from, owed)| {
            *owed == token && self.owed_from.contains_key(&(*from, name.clone()))
        });
        if waits {
            self.owe(name.clone(), token, Mono::ZERO);
        }
    }

    /// Nobody waits for this operation any more. What is not on its way is forgotten.
    pub(super) fn withdraw(&mut self, name: &Name, ticket: u64) {
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
        }
    }

    /// Drops what is owed and whose time has come.
    pub(super) fn ripen(&mut self, now: Mono) {
        while let Some(((from, _), ())) = self.owed_from.first_key_value()
            && *from <= now
            && let Some(((_, name), ())) = self.owed_from.pop_first()
        {
            // It stays among what is owed until the store has answered.
            let Some((_, token)) = self.owed.get(&name).copied() else { continue };
            self.push(name, Wanted::to_drop(token));
        }
    }

    /// Sends the first of each line, as many as go into one request and under one fence.
    pub(super) fn step(&mut self, cx: &mut Context<'_>, life: &Life) {
        if !self.slot.is_free(cx.now) {
            return;
        }
        let mut sent = Vec::new();
        let mut ops = Vec::new();
        let mut fence = None;
        while ops.len() < cx.traits.batch
            && let Some(name) = self.ready.front()
            && let Some(first) = self.lines.get_mut(name).and_then(VecDeque::front_mut)
        {
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
    fn repeat(&mut self, sent: Vec<Name>) {
        sent.into_iter().rev().for_each(|name| self.ready.push_front(name));
    }

    /// The life is over, and with it all that it owned. Gives what was trusted.
    fn forget_life(&mut self, cx: &mut Context<'_>) -> Vec<(Name, Token)> {
        self.slot.clear();
        self.owed.clear();
        self.owed_from.clear();
        for line in self.lines.values_mut() {
            line.retain_mut(|wanted| {
                wanted.nonce = None;
                let goes_on = wanted.is_take() && wanted.ticket.is_some();
                if let Some(ticket) = wanted.ticket.filter(|_| !goes_on) {
                    cx.emit(Event::NameAnswered { ticket, answer: NameAnswer::Gone(None) });
                }
                goes_on
            });
        }
        self.lines.retain(|_, line| !line.is_empty());
        self.ready = self.lines.keys().cloned().collect();
        core::mem::take(&mut self.bound).into_iter().collect()
    }
}

/// The answer to a bind, or that there was none.
pub(super) fn on_bind(
    terms: &mut Terms,
    cx: &mut Context<'_>,
    flight: Flight<Vec<Name>>,
    result: Result<Reply, Failed>,
    me: Incarnation,
) -> Result<(), LifeOver> {
    let sent = flight.what;
    match result {
        Ok(Reply::Bind(Bindings::Answered(answers))) if fit(&sent, &answers) => {
            if answers.iter().any(|answer| is_bound_to(answer, me)) {
                // It counted as a heartbeat with the short ttl (Q5).
                terms.grant(cx, flight.started, true);
            }
            let counted_from = cx.decide.granted_from(flight.started, cx.now);
            let granted = trusted_from(cx.decide, cx.settings, counted_from);
            let is_believed = cx.decide.believes_win(cx.now, granted);
            let until = is_believed.then(|| trusted_until(terms).unwrap_or(granted));
            terms.names.on_answers(cx, sent, answers, until, me);
        }
        Ok(Reply::Bind(Bindings::Fenced { newest })) => terms.names.on_fenced(cx, sent, newest),
        Ok(Reply::Bind(Bindings::Ended { superseded })) => return Err(LifeOver { superseded }),
        _ => {
            // It may have bound something, and written the short ttl with it.
            terms.trust.beat_by(flight.started + cx.settings.heartbeat());
            terms.names.slot.failed(cx, Duration::MAX);
            terms.names.repeat(sent);
        }
    }
    Ok(())
}

impl Names {
    /// Takes, changes and drops names.
    pub(super) fn bind(&mut self, cx: &mut Context<'_>, ops: Vec<NameOp>) {
        for NameOp { ticket, name, wish, fence } in ops {
            if cx.is_shutting_down {
                cx.emit(Event::NameAnswered { ticket, answer: NameAnswer::ShutDown });
                continue;
            }
            let dropped = match wish {
                NameWish::Drop { token } => Some(token),
                _ => None,
            };
            self.push(name.clone(), Wanted { ticket: Some(ticket), wish, fence, nonce: None });
            if let Some(token) = dropped {
                self.give_up(cx, &name, token);
            }
        }
    }

    /// The application drops a name: it does not trust in it from this moment on.
    fn give_up(&mut self, cx: &mut Context<'_>, name: &Name, token: Token) {
        if self.bound.get(name) == Some(&token) {
            self.bound.remove(name);
            let names = [(name.clone(), token)].into();
            cx.emit(Event::NamesLost { names, reason: LostReason::Resigned });
        }
        // The drop that waits in its line gives it back.
        if self.owed.get(name).is_some_and(|(_, owed)| *owed == token) {
            self.settle(name);
        }
    }

    /// Every name is lost now; each is dropped when its work has stopped or had the margin to.
    pub(super) fn lose(&mut self, cx: &mut Context<'_>, reason: LostReason) {
        if !self.owns_any() {
            return;
        }
        let from = cx.decide.release_from(cx.now, cx.settings);
        let names: Vec<_> = core::mem::take(&mut self.bound).into_iter().collect();
        for (name, token) in &names {
            self.owe(name.clone(), *token, from);
        }
        cx.emit(Event::NamesLost { names, reason });
    }

    /// A read shows that the store does not have these bindings, which it had.
    pub(super) fn forgotten(&mut self, cx: &mut Context<'_>, names: Vec<(Name, Token)>) {
        let mut names = names;
        names.retain(|(name, token)| self.bound.get(name) == Some(token));
        for (name, _) in &names {
            self.bound.remove(name);
        }
        if !names.is_empty() {
            cx.emit(Event::NamesLost { names, reason: LostReason::Superseded });
        }
    }

    /// The process shuts down: nothing is taken any more, and what is owned is lost.
    pub(super) fn stop(&mut self, cx: &mut Context<'_>) {
        for line in self.lines.values_mut() {
            for wanted in line {
                if let Some(ticket) = wanted.ticket.take() {
                    cx.emit(Event::NameAnswered { ticket, answer: NameAnswer::ShutDown });
                }
            }
        }
        self.lose(cx, LostReason::Resigned);
    }

    /// The life is over.
    pub(super) fn end(&mut self, cx: &mut Context<'_>) {
        let names = self.forget_life(cx);
        if !names.is_empty() {
            cx.emit(Event::NamesLost { names, reason: LostReason::Superseded });
        }
    }

    /// Each operation was answered. `until` is how far what is bound now may be trusted;
    /// `None` if it may not be.
    fn on_answers(
        &mut self,
        cx: &mut Context<'_>,
        sent: Vec<Name>,
        answers: Vec<BindAnswer>,
        until: Option<Mono>,
        me: Incarnation,
    ) {
        self.slot.succeeded();
        let mut again = Vec::new();
        for (name, answer) in sent.into_iter().zip(answers) {
            if !self.on_answer(cx, &name, answer, until, me) {
                again.push(name);
            } else if self.lines.contains_key(&name) {
                self.ready.push_back(name);
            }
        }
        if !again.is_empty() {
            self.slot.failed(cx, cx.settings.heartbeat());
            self.repeat(again);
        }
    }

    fn on_fenced(&mut self, cx: &mut Context<'_>, sent: Vec<Name>, newest: TermNumber) {
        self.slot.succeeded();
        for name in sent {
            self.answer(cx, &name, NameAnswer::Fenced { newest });
            if self.lines.contains_key(&name) {
                self.ready.push_back(name);
            }
        }
    }

    /// The answer to the first operation of a line. `false` if it is to be sent again.
    fn on_answer(
        &mut self,
        cx: &mut Context<'_>,
        name: &Name,
        answer: BindAnswer,
        until: Option<Mono>,
        me: Incarnation,
    ) -> bool {
        if let Some(binding) = answer.binding() {
            self.known = self.known.max(binding.rev);
        }
        match answer {
            BindAnswer::Busy(_) | BindAnswer::Unknown(_) => return false,
            BindAnswer::Bound(binding) if self.takes(name) => {
                self.took(cx, name, binding, until);
            }
            BindAnswer::Bound(binding) => {
                self.answer(cx, name, NameAnswer::Bound { binding, trusted_until: Mono::ZERO });
            }
            BindAnswer::Taken(binding) => match self.unknown_of(&binding, me) {
                Some(token) => self.drop_first(name, token),
                None => self.answer(cx, name, NameAnswer::Taken(binding)),
            },
            BindAnswer::Gone(there) => self.name_gone(cx, name, there),
        }
        true
    }

    /// A take was answered with a binding.
    fn took(&mut self, cx: &mut Context<'_>, name: &Name, binding: Binding, until: Option<Mono>) {
        let Some(trusted_until) = until else { return self.drop_first(name, binding.token) };
        let taken = self.pop(name);
        let Some(ticket) = taken.and_then(|wanted| wanted.ticket) else {
            // Nobody waits for it any more.
            return self.push_first(name, Wanted::to_drop(binding.token));
        };
        self.bound.insert(name.clone(), binding.token);
        let answer = NameAnswer::Bound { binding, trusted_until };
        cx.emit(Event::NameAnswered { ticket, answer });
    }

    /// The store has something under this life that nobody relies on. It is dropped, and the
    /// take that met it is made anew.
    fn drop_first(&mut self, name: &Name, token: Token) {
        if let Some(first) = self.lines.get_mut(name).and_then(VecDeque::front_mut) {
            first.nonce = None;
        }
        self.push_first(name, Wanted::to_drop(token));
    }

    /// There is no such binding, or none any more.
    fn name_gone(&mut self, cx: &mut Context<'_>, name: &Name, there: Option<Binding>) {
        let stands = there.as_ref().map(|binding| binding.token);
        let lost = self.bound.get(name).copied().filter(|token| Some(*token) != stands);
        if let Some(token) = lost {
            self.forgotten(cx, [(name.clone(), token)].into());
        }
        self.answer(cx, name, NameAnswer::Gone(there));
    }

    /// The first operation of a line is over: whoever waits for it is told.
    fn answer(&mut self, cx: &mut Context<'_>, name: &Name, answer: NameAnswer) {
        let Some(wanted) = self.pop(name) else { return };
        if let NameWish::Drop { token } = wanted.wish
            && self.owed.get(name).is_some_and(|(_, owed)| *owed == token)
        {
            self.settle(name);
        }
        if let Some(ticket) = wanted.ticket {
            cx.emit(Event::NameAnswered { ticket, answer });
        }
    }
}

impl Names {
    /// Whether the first operation of this line takes the name.
    fn takes(&self, name: &Name) -> bool {
        self.lines.get(name).and_then(VecDeque::front).is_some_and(Wanted::is_take)
    }

    /// The token of a binding to this life that this machine knows nothing of.
    fn unknown_of(&self, binding: &Binding, me: Incarnation) -> Option<Token> {
        let ours = binding.owner.as_ref().is_some_and(|owner| owner.incarnation == me);
        let known = self.bound.get(&binding.name) == Some(&binding.token);
        (ours && !known).then_some(binding.token)
    }
}

fn op(name: Name, nonce: Nonce, wish: &NameWish) -> BindOp {
    match wish {
        NameWish::Take { value } => BindOp::take(name, nonce, value.clone()),
        NameWish::Post { value } => BindOp::post(name, nonce, value.clone()),
        NameWish::Change { token, expect, value } => {
            let (token, expect, value) = (*token, *expect, value.clone());
            BindOp { name, nonce, what: What::Change { of: To::Life, token, expect, value } }
        }
        NameWish::Repost { token, expect, value } => {
            BindOp::repost(name, nonce, *token, *expect, value.clone())
        }
        NameWish::Drop { token } => BindOp::drop(name, nonce, *token),
    }
}

fn is_bound_to(answer: &BindAnswer, me: Incarnation) -> bool {
    let to = |binding: &Binding| binding.owner.as_ref().is_some_and(|o| o.incarnation == me);
    matches!(answer, BindAnswer::Bound(binding) if to(binding))
}

/// Whether there is an answer for each operation, about its name. Any other answer says
/// nothing about what was bound.
fn fit(sent: &[Name], answers: &[BindAnswer]) -> bool {
    let about = |answer: &BindAnswer, name: &Name| match answer {
        BindAnswer::Busy(of) | BindAnswer::Unknown(of) => of == name,
        answer => answer.binding().is_none_or(|binding| binding.name == *name),
    };
    sent.len() == answers.len() && sent.iter().zip(answers).all(|(name, a)| about(a, name))
}
