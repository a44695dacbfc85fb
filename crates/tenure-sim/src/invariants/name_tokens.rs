//! U2: tokens of a name rise, over its whole history, on every store.
//!
//! Judged by what members were answered: no token of a name is given to two attempts, and an
//! attempt that was begun after a token was acknowledged gets a higher one.

use std::collections::BTreeMap;

use tenure_core::{
    BindAnswer, Bindings, Incarnation, Input, Name, Nonce, Reply, Request, Token, What,
};

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

type Attempt = (Incarnation, Nonce);
type Take = (Attempt, Name);

#[derive(Debug, Default)]
pub(super) struct NameTokens {
    /// The highest token of each name in any answer.
    highest: BTreeMap<Name, Token>,
    /// Whom each token was given to.
    given: BTreeMap<(Name, Token), Attempt>,
    /// The highest token that was known when each attempt was first sent.
    begun: BTreeMap<Take, Token>,
    /// The takes of a request.
    sent: BTreeMap<(Who, u64), Vec<Option<Take>>>,
}

impl NameTokens {
    fn answered(&mut self, take: &Take, token: Token) -> Result<(), String> {
        let (attempt, name) = take;
        let before = self.given.insert((name.clone(), token), *attempt);
        if let Some(other) = before.filter(|other| other != attempt) {
            return Err(format!("{name}#{token} was given to {other:?} and to {attempt:?}"));
        }
        let known = self.begun.get(take).copied().unwrap_or_default();
        if token <= known {
            return Err(format!("{name}#{token} was given after {name}#{known} had been"));
        }
        let highest = self.highest.entry(name.clone()).or_default();
        *highest = token.max(*highest);
        Ok(())
    }
}

impl Invariant for NameTokens {
    fn name(&self) -> &'static str {
        "tokens of a name rise"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Sent { who, id, request: Request::Bind(bind), .. } => {
                let Some(life) = bind.member.as_ref().map(|m| m.incarnation) else {
                    return Ok(());
                };
                let takes = bind.ops.iter().map(|op| {
                    let take = matches!(op.what, What::Take { .. });
                    take.then(|| ((life, op.nonce), op.name.clone()))
                });
                let takes: Vec<_> = takes.collect();
                for take in takes.iter().flatten() {
                    let known = self.highest.get(&take.1).copied().unwrap_or_default();
                    self.begun.entry(take.clone()).or_insert(known);
                }
                self.sent.insert((*who, *id), takes);
            }
            Fact::Fed { who, input: Input::Reply { id, result }, .. } => {
                let takes = self.sent.remove(&(*who, id.get())).unwrap_or_default();
                let Ok(Reply::Bind(Bindings::Answered(answers))) = &**result else {
                    return Ok(());
                };
                for (take, answer) in takes.iter().zip(answers) {
                    if let (Some(take), BindAnswer::Bound(binding)) = (take, answer) {
                        self.answered(take, binding.token)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
