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
//! - **A take is answered late**, when its grant is over: the caller is not told that it was bound.
//!   It is dropped, and taken again by another attempt.
//! - **A take is not answered**: it may have been done. The same nonce is sent again, and
//!   the store answers with the same binding (E2). Meanwhile heartbeats carry the short ttl.
//! - **The caller stops waiting** while its take is on its way: what it gets is dropped.
//! - **The owner is told that a name is lost, and its work goes on**: the drop waits for the
//!   margin, or for the work's word that it has stopped (E4).
//! - **The owner takes a lost name again at once**: the store still has it under this life.
//!   The take waits for that drop, so that the drop still waits for the margin (`lines.rs`).
//! - **The life ends**: tokens of the old life are worth nothing. Changes and drops that
//!   wait are answered *gone*; takes go on in the next life, with another nonce.
//! - **The store shows a name under this life that the machine does not know of**: it is
//!   dropped, and not believed. A copy of a take that arrives when the name is free again
//!   binds it so; a reader of names tells the machine ([`Names::found`]).
//! - **The store forgets that it bound a name**: `doubt.rs`.
//!
//! Each step costs the same however many names are bound; only losing all of them at once,
//! and telling it, costs a step for each.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

mod doubt;
mod lines;

use self::doubt::Doubt;
pub(super) use self::doubt::{Asked, on_shown};
pub(super) use self::lines::Names;
use self::lines::Wanted;
use super::context::Context;
use super::membership::LifeOver;
use super::slot::Flight;
use super::terms::Terms;
use super::trust::{trusted_from, trusted_until};
use super::{Event, LostReason, NameAnswer, NameOp, NameWish};
use crate::{
    BindAnswer, Binding, Bindings, Failed, Incarnation, Mono, Name, Reply, TermNumber, Token,
};

impl Names {
    /// The life is over, and with it all that it owned. Gives what was trusted.
    fn forget_life(&mut self, cx: &mut Context<'_>) -> Vec<(Name, Token)> {
        self.slot.clear();
        self.doubt = Doubt::default();
        self.owed.clear();
        self.owed_from.clear();
        self.parked.clear();
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
            let until = trusted_until(terms).unwrap_or(granted);
            let until = is_believed.then(|| cx.decide.binding_until(until, cx.settings));
            let late = if terms.names.doubt.is_late(flight.id) { sent.clone() } else { Vec::new() };
            terms.names.on_answers(cx, sent, answers, until, me);
            terms.names.doubt_these(&late);
        }
        Ok(Reply::Bind(Bindings::Fenced { newest })) => terms.names.on_fenced(cx, sent, newest),
        Ok(Reply::Bind(Bindings::Ended { superseded })) => return Err(LifeOver { superseded }),
        _ => {
            // It may have bound something, and written the short ttl with it.
            terms.trust.beat_by(flight.started + cx.settings.heartbeat());
            terms.names.slot.failed(cx, Duration::MAX);
            terms.names.repeat(cx, sent);
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
            self.doubt.settle(name);
            let names = [(name.clone(), token)].into();
            cx.emit(Event::NamesLost { names, reason: LostReason::Resigned });
        }
        // The drop that waits in its line gives it back.
        if self.owed.get(name).is_some_and(|(_, owed)| *owed == token) {
            self.settle(name);
            self.unpark(name);
        }
    }

    /// Every name is lost now; each is dropped when its work has stopped or had the margin to.
    pub(super) fn lose(&mut self, cx: &mut Context<'_>, reason: LostReason) {
        if !self.owns_any() {
            return;
        }
        let from = cx.decide.drop_from(cx.now, cx.settings);
        self.doubt.settle_all();
        let names: Vec<_> = core::mem::take(&mut self.bound).into_iter().collect();
        for (name, token) in &names {
            self.owe(name.clone(), *token, from);
        }
        cx.emit(Event::NamesLost { names, reason });
    }

    /// A read shows that the store does not have these bindings, which it had.
    pub(super) fn forgotten(&mut self, cx: &mut Context<'_>, mut names: Vec<(Name, Token)>) {
        names.retain(|(name, token)| self.bound.get(name) == Some(token));
        for (name, _) in &names {
            self.bound.remove(name);
            self.doubt.settle(name);
        }
        if !names.is_empty() {
            cx.emit(Event::NamesLost { names, reason: LostReason::Superseded });
        }
    }

    /// The store has these names under this life. One that is neither owned nor owed, and of
    /// which nothing is asked, was bound by a late copy of a request: no caller knows of it, and
    /// it would stay bound for as long as this process lives. A read that is older than a drop
    /// costs one more drop, which changes nothing.
    pub(super) fn found(&mut self, names: Vec<(Name, Token)>) {
        for (name, token) in names {
            let is_known = self.bound.contains_key(&name)
                || self.owed.contains_key(&name)
                || self.lines.contains_key(&name);
            if !is_known {
                self.push(name, Wanted::to_drop(token));
            }
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
            self.repeat(cx, again);
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
            BindAnswer::Bound(binding) if self.begins_with_take(name) => {
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
            // No caller waits for it any more.
            if cx.decide.drops_withdrawn() {
                self.push_first(name, Wanted::to_drop(binding.token));
            }
            return;
        };
        self.bound.insert(name.clone(), binding.token);
        let answer = NameAnswer::Bound { binding, trusted_until };
        cx.emit(Event::NameAnswered { ticket, answer });
    }

    /// The store has a binding under this life on which no caller relies. It is dropped, and the
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

    /// The first operation of a line is over: its caller is told.
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
    /// The token of a binding to this life that this machine knows nothing of.
    fn unknown_of(&self, binding: &Binding, me: Incarnation) -> Option<Token> {
        let ours = binding.owner.as_ref().is_some_and(|owner| owner.incarnation == me);
        let owed = self.owed.get(&binding.name).map(|(_, token)| token);
        let known = [self.bound.get(&binding.name), owed].contains(&Some(&binding.token));
        (ours && !known).then_some(binding.token)
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
