//! U1, U3, U4, Q3, Q4 where the store judges: the names are what the answers said, and nothing
//! else.
//!
//! The bindings are worked out here from what was asked and answered alone:
//!
//! - a take that is answered *bound* finds the name free, or its owner ended, in this step at
//!   the latest (U1, U3), and draws a token above all that the name ever had (U2); the winning
//!   attempt again is answered with the same binding (E2);
//! - a take that is answered *taken* names the owner there is, and that one lives (U7, U8);
//! - a change or a drop has an effect if it names exactly the binding of its own life (U4);
//! - nothing else changes a name: each consistent read shows what these answers leave, less
//!   what hangs on lives that are over (U5).

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    Beat, Bind, BindAnswer, BindOp, Binding, Bindings, Claimed, Claims, Happening, Incarnation,
    Joined, MemberRef, Mono, Name, Nonce, Reply, Request, Token, What,
};

use super::{Invariant, binds, entries};
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug, Default)]
pub(super) struct NamesAnswered {
    rows: BTreeMap<Name, Row>,
    /// The highest token that each name ever had.
    highest: BTreeMap<Name, Token>,
    /// Until when each life is kept, by the store's clock.
    kept: BTreeMap<Incarnation, Mono>,
    over: BTreeSet<Incarnation>,
    /// Whether the store applies whole requests.
    judged: bool,
}

#[derive(Clone, Debug)]
struct Row {
    owner: MemberRef,
    token: Token,
    /// Of the attempt that wrote it last.
    nonce: Nonce,
}

impl Row {
    fn is(&self, binding: &Binding) -> bool {
        self.token == binding.token && binding.owner.as_ref() == Some(&self.owner)
    }
}

impl NamesAnswered {
    fn is_live(&self, store: Mono, member: &MemberRef) -> bool {
        let life = &member.incarnation;
        !self.over.contains(life) && self.kept.get(life).is_some_and(|until| store < *until)
    }

    fn keep(&mut self, store: Mono, request: &Request, reply: &Reply) {
        let (member, ttl) = match (request, reply) {
            (Request::Join(join), Reply::Join(Joined::In { .. })) => (&join.member, join.ttl),
            (Request::Heartbeat(beat), Reply::Heartbeat(Beat::Alive { .. })) => {
                (&beat.member, beat.ttl)
            }
            (Request::Claim(claim), Reply::Claim(Claims::Answered(answers)))
                if answers.iter().any(|answer| matches!(answer, Claimed::Won(_))) =>
            {
                (&claim.member, claim.ttl)
            }
            (Request::Bind(Bind { member: Some(member), ttl, .. }), Reply::Bind(bindings))
                if binds(bindings, member) =>
            {
                (member, *ttl)
            }
            _ => return,
        };
        self.kept.insert(member.incarnation, store + ttl);
    }

    fn bind(&mut self, store: Mono, bind: &Bind, bindings: &Bindings) -> Result<(), String> {
        let (Some(caller), Bindings::Answered(answers)) = (&bind.member, bindings) else {
            return Ok(());
        };
        for (op, answer) in bind.ops.iter().zip(answers) {
            match &op.what {
                What::Take { .. } => self.take(store, caller, op, answer)?,
                What::Change { token, .. } => self.change(caller, op, *token, answer)?,
                What::Drop { token } => self.drop(caller, op, *token, answer)?,
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        store: Mono,
        caller: &MemberRef,
        op: &BindOp,
        answer: &BindAnswer,
    ) -> Result<(), String> {
        let name = &op.name;
        let row = self.rows.get(&op.name);
        let again = row.is_some_and(|row| row.owner == *caller && row.nonce == op.nonce);
        match answer {
            BindAnswer::Bound(binding) if again => match row.is_some_and(|row| row.is(binding)) {
                true => Ok(()),
                false => Err(format!("{caller} took {name} again and got another: {binding:?}")),
            },
            BindAnswer::Bound(binding) => {
                let owner = row.map(|row| &row.owner);
                if let Some(owner) = owner.filter(|owner| !self.over.contains(&owner.incarnation)) {
                    return Err(format!("{name} was taken by {caller} from {owner}, not ended"));
                }
                if self.highest.get(name).is_some_and(|highest| binding.token <= *highest) {
                    let token = binding.token;
                    return Err(format!("{caller} took {name} under {token}, not a higher token"));
                }
                self.highest.insert(name.clone(), binding.token);
                let row = Row { owner: caller.clone(), token: binding.token, nonce: op.nonce };
                self.rows.insert(name.clone(), row);
                Ok(())
            }
            BindAnswer::Taken(binding) => {
                let stands = row.filter(|row| row.is(binding) && self.is_live(store, &row.owner));
                match stands.filter(|_| !again) {
                    Some(_) => Ok(()),
                    None => Err(format!("{caller} was told that {name} is taken: {binding:?}")),
                }
            }
            other => Err(format!("{caller} took {name} and was told {other:?}")),
        }
    }

    fn callers_row(&self, caller: &MemberRef, name: &Name, token: Token) -> Option<&Row> {
        self.rows.get(name).filter(|row| row.owner == *caller && row.token == token)
    }

    fn change(
        &mut self,
        caller: &MemberRef,
        op: &BindOp,
        token: Token,
        answer: &BindAnswer,
    ) -> Result<(), String> {
        let name = &op.name;
        let own = self.callers_row(caller, &op.name, token).cloned();
        match (answer, own) {
            (BindAnswer::Bound(binding), Some(row)) if row.is(binding) => {
                self.rows.insert(name.clone(), Row { nonce: op.nonce, ..row });
                Ok(())
            }
            // An older attempt than the last.
            (BindAnswer::Gone(_), Some(row)) if op.nonce < row.nonce => Ok(()),
            (BindAnswer::Gone(_), None) => Ok(()),
            (answer, own) => Err(format!(
                "{caller} changed {name}#{token} and was told {answer:?}; its own: {own:?}"
            )),
        }
    }

    fn drop(
        &mut self,
        caller: &MemberRef,
        op: &BindOp,
        token: Token,
        answer: &BindAnswer,
    ) -> Result<(), String> {
        let name = &op.name;
        let own = self.callers_row(caller, &op.name, token).cloned();
        match (answer, own) {
            (BindAnswer::Gone(None), Some(_)) => {
                self.rows.remove(name);
                Ok(())
            }
            (BindAnswer::Gone(_), None) => Ok(()),
            (answer, own) => Err(format!(
                "{caller} dropped {name}#{token} and was told {answer:?}; its own: {own:?}"
            )),
        }
    }

    /// What a read shows is what the answers left.
    fn read(&self, store: Mono, live: &[Binding]) -> Result<(), String> {
        for (name, row) in &self.rows {
            let shown = live.iter().find(|binding| binding.name == *name);
            match (self.is_live(store, &row.owner), shown) {
                (true, Some(binding)) if row.is(binding) => {}
                (false, None) => {}
                (_, shown) => {
                    return Err(format!("{name} is shown as {shown:?}; by the answers {row:?}"));
                }
            }
        }
        match live.iter().find(|binding| !self.rows.contains_key(&binding.name)) {
            Some(binding) => Err(format!("{binding:?} is shown; no request was answered that")),
            None => Ok(()),
        }
    }
}

impl Invariant for NamesAnswered {
    fn name(&self) -> &'static str {
        "the names are what the answers said"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        for entry in entries(fact) {
            if let Happening::Ended { member, .. } | Happening::Left { member, .. } = &entry.what {
                self.over.insert(member.incarnation);
            }
        }
        match fact {
            Fact::Applied { store, request, reply: Ok(reply), .. } => {
                self.judged = true;
                if let (Request::Bind(bind), Reply::Bind(bindings)) = (request, reply) {
                    self.bind(*store, bind, bindings)?;
                }
                self.keep(*store, request, reply);
                Ok(())
            }
            Fact::Bindings { store, live } if self.judged => self.read(*store, live),
            _ => Ok(()),
        }
    }
}
