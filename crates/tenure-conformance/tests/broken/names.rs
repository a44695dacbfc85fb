//! Defects in names.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tenure_core::{
    Bind, BindAnswer, BindOp, Binding, Bindings, Heartbeat, MAX_VALUE, MemberRef, Name, NamesView,
    Namespace, Nonce, Rev, To, Token, Value, What, WhichNames,
};
use tenure_store::{Result, Store};

use crate::defect::Defect;
use crate::store::Broken;

/// What a broken store remembers of names besides the sound one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remembered {
    /// Each name as it was bound last, until it is dropped.
    bindings: Arc<Mutex<HashMap<Name, Binding>>>,
    /// Lives that lost a name and were not told.
    spared: Arc<Mutex<HashSet<MemberRef>>>,
}

impl Broken {
    /// Whether a life that is over is to be answered as if it lived.
    pub(crate) fn is_spared(&self, member: &MemberRef) -> bool {
        self.names.spared.lock().expect("no panic").contains(member)
    }

    pub(crate) async fn bind_oddly(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        let bind = &self.odd(bind);
        self.before_bind(ns, bind).await?;
        let bindings = match self.defect {
            Defect::UnlimitedBatch => self.bind_in_parts(ns, bind).await?,
            _ => self.inner.bind(ns, bind).await?,
        };
        let Bindings::Answered(mut answers) = bindings else { return Ok(bindings) };
        for (op, answer) in bind.ops.iter().zip(&mut answers) {
            self.remember(op, answer);
            self.answer_oddly(bind, op, answer);
        }
        let lost = answers.iter().any(|answer| matches!(answer, BindAnswer::Taken(_)));
        if let Some(member) = bind.member.clone().filter(|_| lost && self.is(Defect::TakenBeats)) {
            let beat = Heartbeat { member, ttl: bind.ttl, held: Vec::new() };
            self.inner.heartbeat(ns, &beat).await?;
        }
        if self.is(Defect::AnswersBackwards) {
            answers.reverse();
        }
        Ok(Bindings::Answered(answers))
    }

    /// The request, as a broken store takes it.
    fn odd(&self, bind: &Bind) -> Bind {
        let mut bind = bind.clone();
        match self.defect {
            Defect::IgnoresFences => bind.fence = None,
            Defect::ForgetsWhatBindsSaw => bind.known = Rev::START,
            Defect::BoundIsNoHeartbeat => {
                bind.ttl = bind.member.as_ref().and_then(|m| self.ttl_of(m)).unwrap_or(bind.ttl);
            }
            _ => {}
        }
        let is_member = bind.member.is_some();
        for op in &mut bind.ops {
            match (self.defect, &mut op.what) {
                (Defect::IgnoresNameNonces, _) => op.nonce = Nonce::new(1_000 + self.counted()),
                (Defect::OwnsWhatItPosts, What::Take { to, value })
                    if is_member && value.data().len() <= MAX_VALUE =>
                {
                    *to = To::Life;
                }
                (Defect::TextValues, What::Take { value, .. } | What::Change { value, .. }) => {
                    *value = as_text(value);
                }
                _ => {}
            }
        }
        bind
    }

    /// What a broken store does before it looks at a request.
    async fn before_bind(&self, ns: &Namespace, bind: &Bind) -> Result<()> {
        if self.is(Defect::JournalsNames) {
            self.trace(ns).await?;
        }
        let drops = |what: &What| match self.defect {
            Defect::GivesNamesTwice => matches!(what, What::Take { .. }),
            Defect::DropsAnyToken => matches!(what, What::Drop { .. }),
            _ => false,
        };
        for op in bind.ops.iter().filter(|op| drops(&op.what)) {
            let named = WhichNames::Named(vec![op.name.clone()]);
            let Some(found) = self.inner.names(ns, &named).await?.bindings.pop() else { continue };
            let drop = BindOp::drop(found.name, Nonce::new(self.counted()), found.token);
            let taken = Bind { member: found.owner, ..Bind::anonymous([drop]) };
            self.inner.bind(ns, &taken).await?;
        }
        Ok(())
    }

    async fn bind_in_parts(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        let mut all = Vec::new();
        for ops in bind.ops.chunks(self.inner.capabilities().batch) {
            match self.inner.bind(ns, &Bind { ops: ops.to_vec(), ..bind.clone() }).await? {
                Bindings::Answered(answers) => all.extend(answers),
                other => return Ok(other),
            }
        }
        Ok(Bindings::Answered(all))
    }

    fn remember(&self, op: &BindOp, answer: &BindAnswer) {
        let mut bindings = self.names.bindings.lock().expect("no panic");
        match (answer, &op.what) {
            (BindAnswer::Bound(binding), _) => {
                let before = bindings.insert(op.name.clone(), binding.clone());
                let before = before.and_then(|before| before.owner);
                if self.is(Defect::SparesExpiredOwners) && before != binding.owner {
                    self.names.spared.lock().expect("no panic").extend(before);
                }
            }
            (BindAnswer::Gone(None), What::Drop { .. }) => {
                bindings.remove(&op.name);
            }
            _ => {}
        }
    }

    fn answer_oddly(&self, bind: &Bind, op: &BindOp, answer: &mut BindAnswer) {
        match (self.defect, &mut *answer, &op.what) {
            (Defect::ResetsTokens, BindAnswer::Bound(binding), What::Change { .. }) => {
                binding.token = binding.rev.token();
            }
            (Defect::ReusesTokens, BindAnswer::Bound(binding), _) => binding.token = Token::new(1),
            (Defect::AnswersOlderNonces, BindAnswer::Taken(binding), _)
                if binding.owner == bind.member =>
            {
                *answer = BindAnswer::Bound(binding.clone());
            }
            _ => {}
        }
    }

    pub(crate) async fn names_oddly(
        &self,
        ns: &Namespace,
        which: &WhichNames,
    ) -> Result<NamesView> {
        let all = WhichNames::Prefix(String::new());
        let mut view = match (self.defect, which) {
            (Defect::OwnedByAll, WhichNames::OwnedBy(_)) => self.inner.names(ns, &all).await?,
            (Defect::LikePrefixes, WhichNames::Prefix(prefix)) => {
                let pattern: Vec<char> = prefix.chars().collect();
                let mut view = self.inner.names(ns, &all).await?;
                let text = |binding: &Binding| binding.name.as_str().chars().collect::<Vec<_>>();
                view.bindings.retain(|binding| is_like(&pattern, &text(binding)));
                view
            }
            (Defect::AlwaysWhole, WhichNames::Since(_)) => {
                let view = self.inner.names(ns, &WhichNames::Since(Rev::START)).await?;
                NamesView { whole: true, gone: Vec::new(), ..view }
            }
            _ => self.inner.names(ns, which).await?,
        };
        match self.defect {
            Defect::ForgetsDrops => view.gone.clear(),
            Defect::ForgetsOwners => view.owners.clear(),
            Defect::NeverWhole => view.whole = false,
            Defect::NamesOutliveTheirLife if *which == all => {
                let bindings = self.names.bindings.lock().expect("no panic");
                view.bindings = bindings.values().cloned().collect();
                view.bindings.sort_by(|a, b| a.name.cmp(&b.name));
            }
            _ => {}
        }
        Ok(view)
    }
}

fn as_text(value: &Value) -> Value {
    let text = String::from_utf8_lossy(value.data()).into_owned();
    let data: Vec<u8> = text.into_bytes().into_iter().take(value.data().len()).collect();
    value.clone().with_data(data).expect("no longer than before")
}

/// Whether a text begins like a pattern of SQL.
fn is_like(pattern: &[char], text: &[char]) -> bool {
    match (pattern.first(), text.first()) {
        (None, _) => true,
        (Some('%'), _) => (0..=text.len()).any(|skip| is_like(&pattern[1..], &text[skip..])),
        (Some(wanted), Some(found)) => {
            (*wanted == '_' || wanted == found) && is_like(&pattern[1..], &text[1..])
        }
        (Some(_), None) => false,
    }
}
