//! The driver's side of names: who waits for which operation, and what is owned here.

use std::collections::HashMap;
use std::sync::Arc;

use tenure_core::{
    Binding, Input, LostReason, Mono, Name, NameAnswer, NameOp, NameWish, TermRef, Token,
};
use tokio::sync::oneshot;

use super::Driver;
use crate::member::owned::Owned;

/// An operation on a name, and where its outcome goes.
pub(crate) struct NameCommand {
    pub(crate) ticket: u64,
    pub(crate) name: Name,
    pub(crate) wish: NameWish,
    pub(crate) fence: Option<TermRef>,
    pub(crate) reply: oneshot::Sender<NameOutcome>,
}

/// What came of an operation on a name.
#[derive(Debug)]
pub(crate) enum NameOutcome {
    /// It was taken, and is owned here.
    Owned(Arc<Owned>),
    /// Anything else.
    Answered(Box<NameAnswer>),
}

/// Who waits, and what is owned.
#[derive(Debug, Default)]
pub(super) struct NameWaits {
    waiting: HashMap<u64, oneshot::Sender<NameOutcome>>,
    owned: HashMap<Name, Arc<Owned>>,
}

impl NameWaits {
    /// However the loop ends, no handle is left believing to own a name.
    pub(super) fn end(&mut self) {
        for (_, owned) in self.owned.drain() {
            owned.end(LostReason::TrustEnded);
        }
    }
}

impl Driver {
    pub(super) fn bind(&mut self, commands: Vec<NameCommand>) {
        let mut ops = Vec::with_capacity(commands.len());
        for NameCommand { ticket, name, wish, fence, reply } in commands {
            self.names.waiting.insert(ticket, reply);
            ops.push(NameOp { ticket, name, wish, fence });
        }
        self.feed(Input::Bind { ops });
    }

    pub(super) fn withdraw_name(&mut self, name: Name, ticket: u64) {
        self.names.waiting.remove(&ticket);
        self.feed(Input::WithdrawName { name, ticket });
    }

    /// The owner's handle is gone: its work has stopped. A name that is owned is dropped; of
    /// one that was lost before, nothing keeps the drop any more.
    pub(super) fn let_go_of_name(&mut self, name: Name, token: Token) {
        let owns = self.names.owned.get(&name).is_some_and(|owned| owned.token() == token);
        if !owns {
            return self.feed(Input::LetGoOfName { name, token });
        }
        self.feed(Input::Bind { ops: [unwatched_drop(name, token)].into() });
    }

    pub(super) fn on_name_answered(&mut self, ticket: u64, answer: NameAnswer) {
        let reply = self.names.waiting.remove(&ticket);
        let (binding, until) = match answer {
            // A change has no trust of its own.
            NameAnswer::Bound { binding, trusted_until } if trusted_until > Mono::ZERO => {
                (binding, trusted_until)
            }
            answer => {
                // Who does not wait any more need not know.
                let _ = reply.map(|reply| reply.send(NameOutcome::Answered(Box::new(answer))));
                return;
            }
        };
        self.own(reply, binding, until);
    }

    fn own(&mut self, reply: Option<oneshot::Sender<NameOutcome>>, binding: Binding, until: Mono) {
        self.trust.set(until);
        let name = binding.name.clone();
        let token = binding.token;
        let owned = Arc::new(Owned::new(binding, self.trust.clone()));
        self.names.owned.insert(name.clone(), owned.clone());
        let told = reply.is_some_and(|reply| reply.send(NameOutcome::Owned(owned)).is_ok());
        if !told {
            // The caller no longer waits: give it back at once.
            let ops = [unwatched_drop(name, token)].into();
            self.machine.handle(self.time.now(), Input::Bind { ops });
        }
    }

    pub(super) fn on_names_lost(&mut self, names: Vec<(Name, Token)>, reason: LostReason) {
        if reason != LostReason::Resigned {
            let count = names.len();
            tracing::warn!(target: "tenure", count, ?reason, "names were lost");
        }
        for (name, token) in names {
            if self.names.owned.get(&name).is_none_or(|owned| owned.token() != token) {
                continue;
            }
            if let Some(owned) = self.names.owned.remove(&name) {
                owned.end(reason);
            }
        }
    }
}

/// No caller has ticket 0.
fn unwatched_drop(name: Name, token: Token) -> NameOp {
    NameOp { ticket: 0, name, wish: NameWish::Drop { token }, fence: None }
}
