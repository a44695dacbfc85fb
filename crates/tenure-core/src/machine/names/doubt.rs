//! Doubt: whether a store that began another era still has what it bound.
//!
//! A store that was promoted, restored or rolled back may have forgotten that a name was
//! bound, and bind it to another. The answer to a heartbeat does not count names (a count
//! would show the right number of the wrong ones, and cost each heartbeat). But a store that
//! begins an era raises the attention of every member by far ([`Era::calls`]), and attention
//! is in each answer. So while the era stays, a heartbeat costs what it did; when it changed,
//! every name is in doubt: the store is asked for it, in batches, and until it has shown it
//! under this life, trust does not reach any further. What it does not show is lost.
//!
//! The question is a change that cannot come about ([`unless_ever`]): its answer shows the
//! binding that is there, and nothing is written.
//!
//! # What could break it
//!
//! - **A heartbeat was answered before the copy was promoted, and arrives after it.** It
//!   stretches trust from before it was sent. The next one tells of the era, so that another
//!   may own the name beside this member for what is left of one trust, and no longer.
//! - **A take was answered by the original, and its answer arrives after the era is known.**
//!   What it bound was not there to be doubted. The request that is on its way when doubt
//!   begins is remembered, and what it binds is in doubt at once.
//! - **A take was sent before, and is answered by the copy.** It is doubted for nothing.
//! - **Heartbeats fail, while binds and claims are answered, which say nothing of the era.**
//!   They stretch no trust in names that are owned already ([`Terms::grant`]).
//! - **Another era begins while the store is asked.** The answer may be of the era before:
//!   each doubt has a number, an answer to an older one says nothing, and all is asked again.
//! - **The name is dropped, or lost and taken again, while the store is asked.** An answer
//!   is about one token; a name that is not owned under it any more is passed over.
//! - **The life ends.** Its names are gone with it, and so is the doubt.
//! - **The store takes long, or does not answer.** Trust ends in time. So that one slow name
//!   does not cost every other, a heartbeat is sent when half of what is left of trust has
//!   passed. If none would have room after it, what is still in doubt is given up.
//! - **An open transaction holds the name by a fence.** A change that cannot come about
//!   locks nothing, and is answered.
//!
//! [`Terms::grant`]: super::Terms::grant

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Names, fit};
use crate::machine::context::Context;
use crate::machine::membership::{Life, LifeOver};
use crate::machine::slot::{Flight, Slot};
use crate::machine::terms::Terms;
use crate::machine::{Event, LostReason, RequestId};
use crate::{
    Bind, BindAnswer, BindOp, Bindings, Failed, Incarnation, Mono, Name, Nonce, Reply, Request,
    Rev, To, Token, Value, What,
};

/// What the store has not shown yet since its era began.
#[derive(Clone, Debug, Default, Hash)]
pub(in crate::machine) struct Doubt {
    names: BTreeMap<Name, Token>,
    /// How often all names were doubted.
    count: u64,
    /// The bind that was on its way then.
    late: Option<RequestId>,
    pub(in crate::machine) slot: Slot<Asked>,
}

/// What the store was asked for.
#[derive(Clone, Debug, Hash)]
pub(in crate::machine) struct Asked {
    /// See [`Doubt::count`].
    count: u64,
    names: Vec<Name>,
}

impl Doubt {
    /// Whether trust must not reach any further.
    pub(in crate::machine) fn is_open(&self) -> bool {
        !self.names.is_empty()
    }

    /// When the store is to be asked.
    pub(in crate::machine) fn wake(&self) -> Option<Mono> {
        self.slot.wake(self.is_open().then_some(Mono::ZERO))
    }

    /// Whether this bind was on its way when doubt began: what it bound may be forgotten.
    pub(super) fn is_late(&mut self, id: RequestId) -> bool {
        self.late.take_if(|late| *late == id).is_some()
    }

    /// This member does not own the name any more.
    pub(super) fn settle(&mut self, name: &Name) {
        self.names.remove(name);
    }

    /// It owns nothing any more.
    pub(super) fn settle_all(&mut self) {
        self.names.clear();
    }
}

impl Names {
    /// The store has begun an era: it may have forgotten what it bound.
    pub(in crate::machine) fn doubt(&mut self) {
        self.doubt.names.clone_from(&self.bound);
        self.doubt.count += 1;
        self.doubt.late = self.slot.in_flight();
    }

    /// Of these names, those that are owned are in doubt.
    pub(super) fn doubt_these(&mut self, names: &[Name]) {
        for name in names {
            if let Some(token) = self.bound.get(name) {
                self.doubt.names.insert(name.clone(), *token);
            }
        }
    }

    /// No heartbeat would have room any more before trust ends: the others are not to be lost
    /// with those that the store has not shown.
    pub(in crate::machine) fn give_up_doubted(&mut self, cx: &mut Context<'_>) {
        let from = cx.decide.drop_from(cx.now, cx.settings);
        let names: Vec<_> = core::mem::take(&mut self.doubt.names).into_iter().collect();
        for (name, token) in &names {
            self.bound.remove(name);
            self.owe(name.clone(), *token, from);
        }
        if !names.is_empty() {
            cx.emit(Event::NamesLost { names, reason: LostReason::RolledBack });
        }
    }

    /// Asks for what is in doubt, as much of it as goes into one request.
    pub(in crate::machine) fn ask_for_doubted(&mut self, cx: &mut Context<'_>, life: &Life) {
        if !self.doubt.is_open() || !self.doubt.slot.is_free(cx.now) {
            return;
        }
        let some = self.doubt.names.iter().take(cx.traits.batch);
        let ops: Vec<_> = some
            .map(|(name, token)| unless_ever(name.clone(), cx.out.next_nonce(), *token))
            .collect();
        let names = ops.iter().map(|op| op.name.clone()).collect();
        let bind = Bind::new(life.member.clone(), cx.settings.ttl(), ops);
        let bind = bind.with_seen(cx.place.to_tell(cx.decide), self.known);
        let asked = Asked { count: self.doubt.count, names };
        self.doubt.slot.send(cx, Request::Bind(bind), asked);
    }

    /// What the store shows of one name.
    fn shown(&mut self, name: &Name, there: Option<&crate::Binding>, me: Incarnation) -> bool {
        let Some(token) = self.doubt.names.remove(name) else { return true };
        self.known = self.known.max(there.map_or(Rev::START, |binding| binding.rev));
        let is_own = there.is_some_and(|binding| {
            let owner = binding.owner.as_ref().map(|owner| owner.incarnation);
            binding.token == token && owner == Some(me)
        });
        is_own || self.bound.get(name) != Some(&token)
    }
}

/// The answer to the question for what is in doubt, or that there was none.
pub(in crate::machine) fn on_shown(
    terms: &mut Terms,
    cx: &mut Context<'_>,
    flight: Flight<Asked>,
    result: Result<Reply, Failed>,
    me: Incarnation,
) -> Result<(), LifeOver> {
    let Asked { count, names } = flight.what;
    let Terms { names: own, trust, .. } = terms;
    match result {
        Ok(Reply::Bind(Bindings::Answered(answers))) if fit(&names, &answers) => {
            own.doubt.slot.succeeded();
            if count != own.doubt.count {
                return Ok(());
            }
            let mut lost = Vec::new();
            let mut is_odd = false;
            for (name, answer) in names.into_iter().zip(answers) {
                match answer {
                    BindAnswer::Gone(there) if !own.shown(&name, there.as_ref(), me) => {
                        lost.extend(own.bound.get(&name).map(|token| (name.clone(), *token)));
                    }
                    BindAnswer::Gone(_) => {}
                    // No answer, or none that a store gives to this: it is asked again.
                    _ => is_odd = true,
                }
            }
            if is_odd {
                own.doubt.slot.failed(cx, cx.settings.heartbeat());
            }
            own.forgotten(cx, lost);
            if !own.doubt.is_open() {
                trust.beat_by(cx.now);
            }
        }
        Ok(Reply::Bind(Bindings::Ended { superseded })) => return Err(LifeOver { superseded }),
        _ => own.doubt.slot.failed(cx, Duration::MAX),
    }
    Ok(())
}

/// Changes the binding if its revision is 0, which none ever has.
fn unless_ever(name: Name, nonce: Nonce, token: Token) -> BindOp {
    let expect = Some(Rev::START);
    BindOp {
        name,
        nonce,
        what: What::Change { of: To::Life, token, expect, value: Value::empty() },
    }
}
