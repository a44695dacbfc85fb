//! E2: an operation on a name whose answer was lost is repeated, not made anew: its nonce
//! stays until it is answered, so that what was done is not done twice. And a name that was taken
//! without a caller that was told, because none waited any more or the answer came too late, is
//! dropped before anything else is done with the name.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    BindAnswer, BindOp, Bindings, Event, Incarnation, Input, Name, NameAnswer, NameOp, NameWish,
    Nonce, Reply, Request, Token, What,
};

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

type Take = (Incarnation, Name, Nonce);

#[derive(Debug, Default)]
pub(super) struct RepeatedOperations {
    /// How many takes of each name every process was asked for.
    asked: BTreeMap<(Who, Name), u64>,
    /// The newest take that each life sent for a name.
    newest: BTreeMap<(Incarnation, Name), Newest>,
    sent: BTreeMap<(Who, u64), Vec<Take>>,
    /// The newest bind of each process: the answer to any other is not waited for, and what it
    /// says is not known to the member.
    newest_sent: BTreeMap<Who, u64>,
    /// The life of each process.
    lives: BTreeMap<Who, Incarnation>,
    /// What was bound to it without a caller that was told.
    unclaimed: BTreeMap<(Who, Name), (Nonce, Token)>,
    /// Of what a caller was told, or what was dropped: a copy of its answer says nothing new.
    known: BTreeSet<(Who, Name, Token)>,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    nonce: Nonce,
    asked: u64,
    answered: bool,
}

impl RepeatedOperations {
    fn take(
        &mut self,
        who: Who,
        life: Incarnation,
        name: &Name,
        nonce: Nonce,
    ) -> Result<(), String> {
        let asked = self.asked.get(&(who, name.clone())).copied().unwrap_or_default();
        let newest = Newest { nonce, asked, answered: false };
        let before = self.newest.get(&(life, name.clone())).copied();
        if before.is_some_and(|before| before.nonce == nonce) {
            return Ok(());
        }
        self.newest.insert((life, name.clone()), newest);
        match before.filter(|before| !before.answered && before.asked == asked) {
            Some(Newest { nonce: first, .. }) => Err(format!(
                "{who} took {name} by the attempt {nonce:?} before {first:?} was answered"
            )),
            None => Ok(()),
        }
    }
}

impl RepeatedOperations {
    fn bound(&mut self, who: Who, sent: &[Take], answers: &[BindAnswer]) {
        for binding in answers.iter().filter_map(|answer| match answer {
            BindAnswer::Bound(binding) => Some(binding),
            _ => None,
        }) {
            let known = (who, binding.name.clone(), binding.token);
            if let Some((life, name, nonce)) = sent.iter().find(|(_, n, _)| *n == binding.name)
                && self.lives.get(&who) == Some(life)
                && !self.known.contains(&known)
            {
                self.unclaimed.insert((who, name.clone()), (*nonce, binding.token));
            }
        }
    }

    /// The next that is done with a name of which no caller was told.
    fn next(&mut self, who: Who, op: &BindOp) -> Result<(), String> {
        let name = &op.name;
        if let What::Drop { token } = op.what {
            self.known.insert((who, name.clone(), token));
        }
        let Some((nonce, token)) = self.unclaimed.remove(&(who, name.clone())) else {
            return Ok(());
        };
        let drops = matches!(op.what, What::Drop { token: of } if of == token);
        // An answer that was not waited for any more says nothing: it is asked for again.
        if drops || op.nonce == nonce {
            return Ok(());
        }
        Err(format!("{who} was told of {name}#{token}, told no caller, and does not drop it"))
    }
}

impl Invariant for RepeatedOperations {
    fn name(&self) -> &'static str {
        "an operation on a name is repeated until it is answered"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Fed { who, input: Input::Bind { ops }, .. } => {
                for NameOp { name, wish, .. } in ops {
                    if let NameWish::Take { .. } = wish {
                        *self.asked.entry((*who, name.clone())).or_default() += 1;
                    }
                }
            }
            Fact::Sent { who, id, request: Request::Bind(bind), .. } => {
                let Some(member) = &bind.member else { return Ok(()) };
                self.newest_sent.insert(*who, *id);
                for op in &bind.ops {
                    self.next(*who, op)?;
                }
                let takes = bind.ops.iter().filter(|op| matches!(op.what, What::Take { .. }));
                for op in takes {
                    let life = member.incarnation;
                    let sent = self.sent.entry((*who, *id)).or_default();
                    sent.push((life, op.name.clone(), op.nonce));
                    self.take(*who, life, &op.name, op.nonce)?;
                }
            }
            Fact::Fed { who, input: Input::Reply { id, result }, .. } => {
                let sent = self.sent.remove(&(*who, id.get())).unwrap_or_default();
                let awaited = self.newest_sent.get(who) == Some(&id.get());
                if let Ok(Reply::Bind(Bindings::Answered(answers))) = &**result
                    && awaited
                {
                    self.bound(*who, &sent, answers);
                }
                let open = |name: &Name| {
                    match &**result {
                    Ok(Reply::Bind(Bindings::Answered(answers))) => answers.iter().any(|answer| {
                        matches!(answer, BindAnswer::Busy(of) | BindAnswer::Unknown(of) if of == name)
                    }),
                    Ok(Reply::Bind(_)) => false,
                    _ => true,
                }
                };
                for (life, name, nonce) in sent.into_iter().filter(|(_, name, _)| !open(name)) {
                    if let Some(newest) = self.newest.get_mut(&(life, name)) {
                        newest.answered |= newest.nonce == nonce;
                    }
                }
            }
            Fact::Told {
                who,
                event: Event::NameAnswered { answer: NameAnswer::Bound { binding, .. }, .. },
                ..
            } => {
                self.unclaimed.remove(&(*who, binding.name.clone()));
                self.known.insert((*who, binding.name.clone(), binding.token));
            }
            Fact::Told { who, event: Event::Joined { member }, .. } => {
                self.lives.insert(*who, member.incarnation);
            }
            // Tokens and attempts of the life before are worth nothing.
            Fact::Told { who, event: Event::MemberEnded { member, .. }, .. } => {
                self.lives.remove(who);
                self.unclaimed.retain(|(of, _), _| of != who);
                self.newest.retain(|(life, _), _| *life != member.incarnation);
            }
            _ => {}
        }
        Ok(())
    }
}
