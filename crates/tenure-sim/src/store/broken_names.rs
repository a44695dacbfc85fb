//! Stores that break a rule of names: binds and their answers, bent on the way.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    Bind, BindAnswer, BindOp, Binding, Bindings, Incarnation, Mono, Name, Nonce, Reply, Request,
    Timestamp, Token, What, WhichNames,
};

use super::SimStore;
use crate::mutation::StoreRule;

/// What a store that breaks a rule of names remembers for it.
#[derive(Debug, Default)]
pub(super) struct BrokenNames {
    /// Lives that were ended because another took a name of theirs.
    pub(super) bereft: BTreeSet<Incarnation>,
    /// How many revisions the drops of each name are to be made up for.
    dropped: BTreeMap<Name, u64>,
    nonces: u64,
}

impl BrokenNames {
    pub(super) fn bind(
        &mut self,
        rule: StoreRule,
        store: &mut SimStore,
        at: (Mono, Timestamp),
        bind: &Bind,
    ) -> Reply {
        let mut bind = bind.clone();
        match rule {
            StoreRule::DropNotScoped => drop_anything(store, at, &bind),
            StoreRule::TakesNotRepeated => bind.ops.iter_mut().for_each(|op| self.renew(op)),
            StoreRule::TokensReused => bind.ops.iter_mut().for_each(|op| self.ask(op)),
            _ => {}
        }
        let before = bound(store, at.0);
        let mut reply = store.properly(at.0, at.1, &Request::Bind(bind.clone()));
        if rule != StoreRule::TokensReused {
            return reply;
        }
        if let Reply::Bind(Bindings::Answered(answers)) = &mut reply {
            for (op, answer) in bind.ops.iter().zip(answers) {
                self.tell(answer);
                self.count(op, &before, answer);
            }
        }
        reply
    }

    /// Another nonce than the caller's.
    fn renew(&mut self, op: &mut BindOp) {
        if let What::Take { .. } = op.what {
            self.nonces += 1;
            op.nonce = Nonce::new(self.nonces);
        }
    }

    fn more(&self, name: &Name) -> u64 {
        self.dropped.get(name).copied().unwrap_or(0)
    }

    /// The token that the store has, for the one that it gave.
    fn ask(&self, op: &mut BindOp) {
        let more = self.more(&op.name);
        if let What::Change { token, .. } | What::Drop { token } = &mut op.what {
            *token = Token::new(token.get() + more);
        }
    }

    /// What a read says of it.
    pub(super) fn show(&self, rule: StoreRule, live: &mut [Binding]) {
        if rule == StoreRule::TokensReused {
            live.iter_mut().for_each(|binding| self.retell(binding));
        }
    }

    fn retell(&self, binding: &mut Binding) {
        let less = self.more(&binding.name);
        binding.token = Token::new(binding.token.get().saturating_sub(less).max(1));
    }

    /// The token that the store says it gave: no higher than before the name was dropped.
    fn tell(&self, answer: &mut BindAnswer) {
        let (BindAnswer::Bound(binding)
        | BindAnswer::Taken(binding)
        | BindAnswer::Gone(Some(binding))) = answer
        else {
            return;
        };
        self.retell(binding);
    }

    fn count(&mut self, op: &BindOp, before: &[Binding], answer: &BindAnswer) {
        let What::Drop { token } = op.what else { return };
        let was_there = before.iter().any(|b| b.name == op.name && b.token == token);
        if was_there && matches!(answer, BindAnswer::Gone(None)) {
            // The drop had a revision of its own, too.
            *self.dropped.entry(op.name.clone()).or_default() += 2;
        }
    }
}

fn bound(store: &SimStore, now: Mono) -> Vec<Binding> {
    store.bindings(now, &WhichNames::Prefix(String::new()))
}

/// Drops what is there under the names that are to be dropped, in the name of its owner.
fn drop_anything(store: &mut SimStore, (now, wall): (Mono, Timestamp), bind: &Bind) {
    for op in bind.ops.iter().filter(|op| matches!(op.what, What::Drop { .. })) {
        let there = bound(store, now).into_iter().find(|binding| binding.name == op.name);
        let Some((owner, token)) = there.and_then(|b| Some((b.owner?, b.token))) else { continue };
        let drop = BindOp::drop(op.name.clone(), op.nonce, token);
        store.properly(now, wall, &Request::Bind(Bind::new(owner, bind.ttl, [drop])));
    }
}
