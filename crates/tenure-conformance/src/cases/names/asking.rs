//! What the cases ask of names, and what they look at.

use std::ops::Deref;
use std::time::Duration;

use tenure_core::{
    Bind, BindAnswer, BindOp, Binding, Bindings, Name, NamesView, Rev, Value, WhichNames,
};
use tenure_store::NameTraits;

use crate::actor::Actor;
use crate::case::{ensure, same};
use crate::harness::ask_again_in;
use crate::world::World;
use crate::{CaseFailure, Outcome};

/// How often an operation is repeated that was not decided.
const TRIES: usize = 100;

/// A name that is surely good.
pub(super) fn name(text: &str) -> Outcome<Name> {
    Ok(Name::new(text)?)
}

/// A value that tells it from others.
pub(super) fn value(text: &str) -> Outcome<Value> {
    Ok(Value::at("10.0.0.7:9000")?.with_index([("role", text)])?.with_data(text)?)
}

/// A binding without what time takes from it.
pub(super) fn plain(binding: &Binding) -> Binding {
    Binding { remaining: Duration::ZERO, ..binding.clone() }
}

/// The binding, where the operation had to be done.
pub(super) fn bound(answer: BindAnswer) -> Outcome<Binding> {
    match answer {
        BindAnswer::Bound(binding) => Ok(binding),
        other => Err(CaseFailure::new(format!("it must be bound: {other:?}"))),
    }
}

/// The binding, where the name had to be taken already.
pub(super) fn taken(answer: BindAnswer) -> Outcome<Binding> {
    match answer {
        BindAnswer::Taken(binding) => Ok(binding),
        other => Err(CaseFailure::new(format!("it must be taken: {other:?}"))),
    }
}

/// What is there instead, where the binding had to be gone.
pub(super) fn gone(answer: BindAnswer) -> Outcome<Option<Binding>> {
    match answer {
        BindAnswer::Gone(binding) => Ok(binding),
        other => Err(CaseFailure::new(format!("it must be gone: {other:?}"))),
    }
}

fn is_undecided(answer: &BindAnswer) -> bool {
    matches!(answer, BindAnswer::Busy(_) | BindAnswer::Unknown(_))
}

/// A member that asks for names.
pub(crate) struct Owner(Actor);

impl Deref for Owner {
    type Target = Actor;

    fn deref(&self) -> &Actor {
        &self.0
    }
}

impl Owner {
    /// Everything in one request. Where something was not decided, as a row that is held at
    /// the moment, all of it is asked again, under the same nonces (Q10).
    pub(super) async fn bind(&self, bind: &Bind) -> Outcome<Bindings> {
        for _ in 0..TRIES {
            let bindings = self.store.bind(&self.ns, bind).await?;
            let Bindings::Answered(answers) = &bindings else { return Ok(bindings) };
            let found = answers.len();
            let expected = bind.ops.len();
            ensure!(found == expected, "{found} answers to {expected} operations");
            if !answers.iter().any(is_undecided) {
                return Ok(bindings);
            }
            ask_again_in(Duration::from_millis(5)).await;
        }
        Err(CaseFailure::new(format!("never decided: {bind:?}")))
    }

    pub(super) fn binds(&self, ops: impl IntoIterator<Item = BindOp>) -> Bind {
        Bind::new(self.me.clone(), self.ttl, ops)
    }

    /// Operations of a live member.
    pub(super) async fn ops(
        &self,
        ops: impl IntoIterator<Item = BindOp>,
    ) -> Outcome<Vec<BindAnswer>> {
        answered(self.bind(&self.binds(ops)).await?)
    }

    /// One operation of a live member.
    pub(super) async fn op(&self, op: BindOp) -> Outcome<BindAnswer> {
        Ok(self.ops([op]).await?.remove(0))
    }

    /// One operation of a caller that is no member.
    pub(super) async fn unnamed(&self, op: BindOp) -> Outcome<BindAnswer> {
        Ok(answered(self.bind(&Bind::anonymous([op])).await?)?.remove(0))
    }

    /// A new attempt to take a name.
    pub(super) fn taking(&self, text: &str) -> Outcome<BindOp> {
        Ok(BindOp::take(name(text)?, self.next_nonce(), value(text)?))
    }

    /// A new attempt to bind a name without an owner.
    pub(super) fn posting(&self, text: &str) -> Outcome<BindOp> {
        Ok(BindOp::post(name(text)?, self.next_nonce(), value(text)?))
    }

    /// A change of a binding to another value.
    pub(super) fn changing(&self, binding: &Binding, text: &str) -> Outcome<BindOp> {
        let name = binding.name.clone();
        let token = binding.token;
        Ok(BindOp::change(name, self.next_nonce(), token, value(text)?))
    }

    pub(super) fn dropping(&self, binding: &Binding) -> BindOp {
        BindOp::drop(binding.name.clone(), self.next_nonce(), binding.token)
    }

    /// Takes a name, which must be free.
    pub(super) async fn take(&self, text: &str) -> Outcome<Binding> {
        bound(self.op(self.taking(text)?).await?)
    }

    /// Takes a name in vain.
    pub(super) async fn refused(&self, text: &str) -> Outcome<Binding> {
        taken(self.op(self.taking(text)?).await?)
    }

    /// Names, as this member sees them: where the observer judges, by what it saw before.
    pub(super) async fn names(&self, which: &WhichNames) -> Outcome<NamesView> {
        Ok(self.store.names(&self.ns, which).await?)
    }

    /// Every name that is bound, as this member sees it.
    pub(super) async fn bound(&self) -> Outcome<Vec<Binding>> {
        let all = self.names(&WhichNames::Prefix(String::new())).await?;
        Ok(all.bindings.iter().map(plain).collect())
    }

    /// Drops a name of its own.
    pub(super) async fn let_go(&self, binding: &Binding) -> Outcome {
        let left = gone(self.op(self.dropping(binding)).await?)?;
        ensure!(left.is_none(), "nothing is left of what was dropped: {left:?}");
        Ok(())
    }
}

pub(super) fn answered(bindings: Bindings) -> Outcome<Vec<BindAnswer>> {
    match bindings {
        Bindings::Answered(answers) => Ok(answers),
        other => Err(CaseFailure::new(format!("a live member must be answered: {other:?}"))),
    }
}

impl World<'_> {
    /// A member that lives longer than the case.
    pub(super) async fn owner(&self, id: &str) -> Outcome<Owner> {
        Ok(Owner(self.member(id).await?))
    }

    /// A new life that has not joined yet, and so can look on while others end.
    pub(super) async fn coming(&self, id: &str) -> Outcome<Owner> {
        Ok(Owner(self.life(id).await?))
    }

    /// What the store can do with names; nothing, if it keeps none.
    pub(super) async fn name_traits(&self) -> Option<NameTraits> {
        self.capabilities().await.names
    }

    pub(super) async fn names(&self, which: &WhichNames) -> Outcome<NamesView> {
        Ok(self.store().await.names(&self.ns, which).await?)
    }

    pub(super) async fn since(&self, rev: Rev) -> Outcome<NamesView> {
        self.names(&WhichNames::Since(rev)).await
    }

    /// Every name that is bound.
    pub(super) async fn bound(&self) -> Outcome<Vec<Binding>> {
        let all = self.names(&WhichNames::Prefix(String::new())).await?;
        Ok(all.bindings.iter().map(plain).collect())
    }

    /// The revision that the names have reached. A store that cannot tell what changed since
    /// a revision has none.
    pub(super) async fn rev(&self) -> Outcome<Rev> {
        let rev = self.names(&WhichNames::Named(Vec::new())).await?.rev;
        let has_one = self.name_traits().await.is_some_and(|traits| traits.since);
        ensure!(has_one || rev == Rev::START, "a revision that nothing can be asked by: {rev}");
        Ok(rev)
    }

    /// Checks that the names have reached exactly this revision, where there is one.
    pub(super) async fn has_reached(&self, rev: Rev, what: &str) -> Outcome {
        let has_one = self.name_traits().await.is_some_and(|traits| traits.since);
        same!(self.rev().await?, if has_one { rev } else { Rev::START }, what);
        Ok(())
    }
}
