//! Taking, changing and dropping names.
//!
//! What could give a name to two owners, or a token out twice, and what prevents it:
//!
//! - A takes a name and is stopped; its ttl runs out; B takes the name; A's heartbeat
//!   arrives. B's step ended A's life before it took the name (rule M2), so that the heartbeat
//!   is answered `Ended`, and A's trust ended before its ttl did (rule T1).
//! - A drops a name, its answer is lost, B takes the name, A repeats the drop. The drop names
//!   A's token; B's binding has another (rule E1).
//! - A takes a name, the answer is lost, A takes it again. The nonce is the same: the same
//!   binding is answered (rule E2). A copy of an older request has a lower nonce, and changes
//!   nothing.
//! - Two tasks of one process take one name. Each has a nonce of its own: the second is
//!   answered `Taken`, by its own process.
//! - A name is dropped and its row removed; another takes it. The token is the revision, which
//!   the namespace counts, not the name: it is higher than every other (rule M6).

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use tenure_core::{
    Bind, BindAnswer, BindOp, Binding, Bindings, MemberRef, Rev, TermNumber, TermRef, To, Value,
    What,
};

use crate::op::{Does, does};
use crate::rows::{EraCause, Moment, NameRow, NamesRow, WriteRows};
use crate::step::Step;

/// For how many revisions it can be told which names were dropped.
const GONE_KEPT: u64 = 16_384;

/// How many names that were dropped long ago a step forgets, besides one for each operation.
const FORGOTTEN: usize = 64;

/// Takes, changes and drops names.
pub fn bind<R: WriteRows>(rows: &mut R, at: Moment, bind: &Bind) -> Result<Bindings, R::Error> {
    Step::run(rows, at, |step| {
        if let Some(member) = &bind.member {
            // M1: one that is not live binds nothing.
            if step.view().acting(member)?.is_none() {
                return Ok(Bindings::Ended { superseded: step.view().superseded(member)? });
            }
            step.catch_up(bind.seen)?;
            step.catch_up_names(bind.known)?;
        }
        // Before the first operation, since it stands for all of them: nothing is written
        // under a term that is over.
        if let Some(newest) = step.fenced(bind)? {
            return Ok(Bindings::Fenced { newest });
        }
        let mut answers = step.operate(bind)?;
        // Being bound counts as a heartbeat, also when it repeats an earlier answer.
        // Only what is bound to the caller: a loss renews nothing (Q5).
        if let Some(member) = bind.member.as_ref().filter(|member| is_owner(&answers, member)) {
            step.rows.renew_member(member, at.now, bind.ttl)?;
            for binding in answers.iter_mut().filter_map(owned_by(member)) {
                binding.remaining = bind.ttl;
            }
        }
        step.sweep()?;
        Ok(Bindings::Answered(answers))
    })
}

fn is_owner(answers: &[BindAnswer], member: &MemberRef) -> bool {
    let owned = |answer: &BindAnswer| match answer {
        BindAnswer::Bound(binding) => binding.owner.as_ref() == Some(member),
        _ => false,
    };
    answers.iter().any(owned)
}

/// The binding of an answer, if this life owns it: what is left of it was renewed with the
/// life.
fn owned_by(member: &MemberRef) -> impl Fn(&mut BindAnswer) -> Option<&mut Binding> {
    move |answer| match answer {
        BindAnswer::Bound(binding)
        | BindAnswer::Taken(binding)
        | BindAnswer::Gone(Some(binding)) => {
            Some(binding).filter(|binding| binding.owner.as_ref() == Some(member))
        }
        _ => None,
    }
}

impl<R: WriteRows> Step<'_, R> {
    /// Does each operation, in order.
    pub(crate) fn operate(&mut self, bind: &Bind) -> Result<Vec<BindAnswer>, R::Error> {
        // As they are written, not as they are in the present era: `finish` compares the two.
        let seen = self.rows.names()?;
        let mut binding = Binder { names: self.names_now()?, step: self, bind };
        let mut answers = Vec::with_capacity(bind.ops.len());
        for op in &bind.ops {
            answers.push(binding.answer(op)?);
        }
        let names = binding.names;
        self.finish(seen, names, bind.ops.len())?;
        Ok(answers)
    }

    /// Where the names stand in the present era.
    fn names_now(&self) -> Result<NamesRow, R::Error> {
        let names = self.rows.names()?;
        let era = self.rows.era()?;
        let rev = names.rev.reached(names.era, era);
        // What an earlier era changed last may be forgotten: no reader is told what changed
        // since a revision of it.
        let kept_from = if names.era == era.count() { names.kept_from } else { rev };
        Ok(NamesRow { rev, era: era.count(), kept_from })
    }

    /// The caller has seen a revision that this store has not reached: what it saw was
    /// forgotten (rule M6).
    fn catch_up_names(&mut self, known: Rev) -> Result<(), R::Error> {
        if self.names_now()?.rev >= known {
            return Ok(());
        }
        self.raise(known.get(), EraCause::Seen)
    }

    /// The newest number of the fence's election, unless the caller holds exactly that term.
    fn fenced(&self, bind: &Bind) -> Result<Option<TermNumber>, R::Error> {
        let (Some(fence), Some(member)) = (&bind.fence, &bind.member) else { return Ok(None) };
        let TermRef { election, number } = fence;
        let election = self.view().election(election)?;
        let is_held = election.number == *number && election.is_held_by(member);
        // A term that was handed over and not taken on in time has lapsed, although the row
        // still names its holder.
        let stands = is_held && !self.view().has_lapsed(&election)?;
        Ok((!stands).then_some(election.number))
    }

    /// Writes where the names stand, if it changed, and forgets what was dropped long ago.
    fn finish(&mut self, seen: NamesRow, mut names: NamesRow, ops: usize) -> Result<(), R::Error> {
        if names.rev == seen.rev.reached(seen.era, self.rows.era()?) {
            return Ok(());
        }
        // Told by revisions, not by a count of what was dropped: a count would cost a look.
        let before = Rev::new(names.rev.get().saturating_sub(GONE_KEPT));
        names.kept_from = names.kept_from.max(before);
        self.rows.forget_gone(before, FORGOTTEN + ops)?;
        self.rows.put_names(&names)
    }
}

/// The binding of a live caller, or of one that names no member, in one step.
struct Binder<'s, 'a, R> {
    step: &'s mut Step<'a, R>,
    bind: &'s Bind,
    names: NamesRow,
}

impl<R: WriteRows> Binder<'_, '_, R> {
    fn answer(&mut self, op: &BindOp) -> Result<BindAnswer, R::Error> {
        let found = self.step.rows.name(&op.name)?;
        match (does(found.as_ref(), self.caller(), op), &found) {
            (Does::Repeats, Some(row)) => Ok(BindAnswer::Bound(self.binding(row)?)),
            (Does::Takes, _) => self.take(op),
            // Its owner is ended first if it is not live.
            (Does::TakesFrom(owner), _) if self.step.end_if_dead(owner)? => self.take(op),
            (Does::TakesFrom(_) | Does::IsTaken, Some(row)) => {
                Ok(BindAnswer::Taken(self.binding(row)?))
            }
            (Does::Changes(value), Some(row)) => self.change(row, op, value),
            (Does::Drops, Some(row)) => self.drop(row),
            _ => self.gone(found),
        }
    }

    fn caller(&self) -> Option<&MemberRef> {
        self.bind.member.as_ref()
    }

    fn next_rev(&mut self) -> Rev {
        self.names.rev = self.names.rev.next();
        self.names.rev
    }

    /// Q3: the name is free.
    fn take(&mut self, op: &BindOp) -> Result<BindAnswer, R::Error> {
        let What::Take { to, value } = &op.what else { return Ok(BindAnswer::Gone(None)) };
        let rev = self.next_rev();
        let row = NameRow {
            name: op.name.clone(),
            token: rev.token(),
            rev,
            owner: self.caller().filter(|_| *to == To::Life).cloned(),
            by: self.caller().map(|caller| caller.incarnation),
            nonce: op.nonce,
            value: value.clone(),
            bound_at: self.step.at.wall,
        };
        self.step.rows.put_name(&row)?;
        Ok(BindAnswer::Bound(self.binding(&row)?))
    }

    /// Q4: the binding is exactly the one that is meant.
    fn change(
        &mut self,
        row: &NameRow,
        op: &BindOp,
        value: &Value,
    ) -> Result<BindAnswer, R::Error> {
        let rev = self.next_rev();
        let by = self.caller().map(|caller| caller.incarnation);
        let row = NameRow { rev, by, nonce: op.nonce, value: value.clone(), ..row.clone() };
        self.step.rows.put_name(&row)?;
        Ok(BindAnswer::Bound(self.binding(&row)?))
    }

    fn drop(&mut self, row: &NameRow) -> Result<BindAnswer, R::Error> {
        // A drop has a revision, too: those that ask what changed since are told of it.
        let rev = self.next_rev();
        self.step.rows.remove_name(&row.name)?;
        self.step.rows.add_gone(rev, &row.name)?;
        Ok(BindAnswer::Gone(None))
    }

    /// What is there instead.
    fn gone(&self, found: Option<NameRow>) -> Result<BindAnswer, R::Error> {
        let Some(row) = found else { return Ok(BindAnswer::Gone(None)) };
        let is_void = match &row.owner {
            Some(owner) => self.step.view().recorded(owner)?.is_none(),
            None => false,
        };
        Ok(BindAnswer::Gone(if is_void { None } else { Some(self.binding(&row)?) }))
    }

    fn binding(&self, row: &NameRow) -> Result<Binding, R::Error> {
        self.step.view().binding(row)
    }
}
