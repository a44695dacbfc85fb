//! Binding names: requests, and what is answered.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::TermRef;
use crate::{Binding, MAX_VALUE, MemberRef, Name, Nonce, Rev, TermNumber, Token, Told, Value};

/// Takes, changes and drops names, all in one step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bind {
    /// Who. Without a member, only names that have no owner can be changed.
    pub member: Option<MemberRef>,
    /// The ttl that begins with a [`BindAnswer::Bound`] to the caller's life, which counts
    /// as a heartbeat.
    pub ttl: Duration,
    /// The term that the caller must hold for any of this to happen.
    pub fence: Option<TermRef>,
    /// What, in order. At most as many as the store's batch limit.
    pub ops: Vec<BindOp>,
    /// See [`Claim::seen`](crate::Claim::seen).
    pub seen: Told,
    /// The newest revision of names that the caller has seen. A store that has not reached it
    /// was rolled back: it raises its era in this same step, before it gives out any token,
    /// [above](crate::Era::above) that revision (rule M6). Names are not in the journal, so that [`seen`](Self::seen) cannot tell.
    pub known: Rev,
}

impl Bind {
    /// What `member` takes, changes and drops.
    ///
    /// ```
    /// use core::time::Duration;
    /// use tenure_core::{Bind, BindOp, Incarnation, MemberId, MemberRef, Name, Nonce, Value};
    ///
    /// let member = MemberRef::new(MemberId::new("web-1")?, Incarnation::from_u128(1));
    /// let op = BindOp::take(Name::new("user/42")?, Nonce::new(1), Value::at("10.0.0.7:9000")?);
    /// let bind = Bind::new(member, Duration::from_secs(10), [op]);
    /// assert_eq!(bind.check(), Ok(()));
    /// # Ok::<(), tenure_core::BadName>(())
    /// ```
    #[must_use]
    pub fn new(member: MemberRef, ttl: Duration, ops: impl IntoIterator<Item = BindOp>) -> Self {
        Self { member: Some(member), ttl, ..Self::anonymous(ops) }
    }

    /// What a caller that need not be a member takes, changes and drops. The names have no
    /// owner, and the nonces are drawn at random.
    #[must_use]
    pub fn anonymous(ops: impl IntoIterator<Item = BindOp>) -> Self {
        Self {
            member: None,
            ttl: Duration::ZERO,
            fence: None,
            ops: ops.into_iter().collect(),
            seen: Told::NOTHING,
            known: Rev::START,
        }
    }

    /// Only while the caller holds this term: see [`Bind::fence`].
    #[must_use]
    pub fn with_fence(self, term: TermRef) -> Self {
        Self { fence: Some(term), ..self }
    }

    /// Says what was seen of elections and of names: see [`Bind::seen`] and
    /// [`Bind::known`].
    #[must_use]
    pub fn with_seen(self, seen: impl Into<Told>, known: Rev) -> Self {
        Self { seen: seen.into(), known, ..self }
    }

    /// Refuses what no store can do. A store calls it before anything else.
    pub fn check(&self) -> Result<(), BadBind> {
        if self.member.is_none() && self.fence.is_some() {
            return Err(BadBind::Fence);
        }
        self.ops.iter().try_for_each(|op| self.check_op(op))
    }

    fn check_op(&self, op: &BindOp) -> Result<(), BadBind> {
        let (What::Take { to: To::Life, value } | What::Change { of: To::Life, value, .. }) =
            &op.what
        else {
            return Ok(());
        };
        if self.member.is_none() {
            return Err(BadBind::Life { name: op.name.clone() });
        }
        let len = value.data().len();
        if len > MAX_VALUE {
            return Err(BadBind::Data { name: op.name.clone(), len });
        }
        Ok(())
    }
}

/// Why a [`Bind`] was refused as it stands. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadBind {
    /// A fence without a member that could hold the term.
    Fence,
    /// A name for the life of a member, without a member.
    Life {
        /// The name.
        name: Name,
    },
    /// More data than the value of a name that a life owns may have.
    Data {
        /// The name.
        name: Name,
        /// How many bytes.
        len: usize,
    },
}

impl fmt::Display for BadBind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadBind::Fence => f.write_str(
                "a fence was given without a member: only a member can hold the term; name it",
            ),
            BadBind::Life { name } => write!(
                f,
                "the name {name:?} cannot be bound to a life without a member: name the member, \
                 or bind it without an owner"
            ),
            BadBind::Data { name, len } => write!(
                f,
                "the value of {name:?} has {len} bytes of data: the limit is {MAX_VALUE} bytes \
                 for a name that a member owns"
            ),
        }
    }
}

impl core::error::Error for BadBind {}

/// One change of one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindOp {
    /// The name.
    pub name: Name,
    /// The attempt this belongs to. Nonces of one life only rise, over all names.
    pub nonce: Nonce,
    /// What to do.
    pub what: What,
}

impl BindOp {
    /// Takes a name for the caller's life.
    #[must_use]
    pub fn take(name: Name, nonce: Nonce, value: Value) -> Self {
        Self { name, nonce, what: What::Take { to: To::Life, value } }
    }

    /// Takes a name without becoming its owner: it stays until it is dropped.
    #[must_use]
    pub fn post(name: Name, nonce: Nonce, value: Value) -> Self {
        Self { name, nonce, what: What::Take { to: To::Unowned, value } }
    }

    /// Changes the value of a name that the caller's life owns.
    #[must_use]
    pub fn change(name: Name, nonce: Nonce, token: Token, value: Value) -> Self {
        Self { name, nonce, what: What::Change { of: To::Life, token, expect: None, value } }
    }

    /// Changes the value of a name that has no owner, if its last change had exactly
    /// this revision.
    #[must_use]
    pub fn repost(name: Name, nonce: Nonce, token: Token, rev: Rev, value: Value) -> Self {
        let expect = Some(rev);
        Self { name, nonce, what: What::Change { of: To::Unowned, token, expect, value } }
    }

    /// Drops a name.
    #[must_use]
    pub fn drop(name: Name, nonce: Nonce, token: Token) -> Self {
        Self { name, nonce, what: What::Drop { token } }
    }
}

/// What becomes of a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// It is taken, if it is free.
    Take {
        /// Who owns it.
        to: To,
        /// What is published with it.
        value: Value,
    },
    /// Its value changes; its token stays.
    Change {
        /// Whose it is.
        of: To,
        /// Exactly this binding (rule E1).
        token: Token,
        /// Exactly this revision of it, if one is given.
        expect: Option<Rev>,
        /// What is published from now on.
        value: Value,
    },
    /// It is free again.
    Drop {
        /// Exactly this binding (rule E1).
        token: Token,
    },
}

/// Who owns a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum To {
    /// The caller's life: the name is free when that life ends.
    Life,
    /// No owner: the name stays until it is dropped.
    Unowned,
}

/// The answer to a [`Bind`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bindings {
    /// One answer for each operation, in order.
    Answered(Vec<BindAnswer>),
    /// The caller's life is over (rule M1). Nothing changed. Join anew.
    Ended {
        /// Whether another life of the same id has taken its place.
        superseded: bool,
    },
    /// The caller does not hold the term that was named as the fence, or it is not the
    /// newest. Nothing changed.
    Fenced {
        /// The newest number of that election.
        newest: TermNumber,
    },
}

/// The answer to one [`BindOp`]. Losing is an answer, not an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BindAnswer {
    /// It is bound as the operation wanted it; also the answer to a repeated operation.
    Bound(Binding),
    /// It is another's, or the caller's own by an earlier attempt.
    Taken(Binding),
    /// There is no such binding (any more): the answer to a drop, and to a change that came
    /// too late, with the binding that is there instead.
    Gone(Option<Binding>),
    /// An open transaction holds the name at this moment. Nothing changed; repeat it.
    Busy(Name),
    /// It could not be found out this time, and it may have been done: the next request
    /// repeats its nonce (rule E2).
    Unknown(Name),
}

impl BindAnswer {
    /// The binding that the answer is about, if there is one.
    #[must_use]
    pub fn binding(&self) -> Option<&Binding> {
        match self {
            BindAnswer::Bound(binding) | BindAnswer::Taken(binding) => Some(binding),
            BindAnswer::Gone(binding) => binding.as_ref(),
            BindAnswer::Busy(_) | BindAnswer::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;
    use crate::{ElectionName, Incarnation, MemberId};

    fn take(data: usize) -> BindOp {
        let value = Value::empty().with_data(vec![0; data]).unwrap();
        BindOp::take(Name::new("n").unwrap(), Nonce::new(1), value)
    }

    #[test]
    fn a_request_that_no_store_can_do_is_refused_with_the_reason() {
        let member = MemberRef::new(MemberId::new("m").unwrap(), Incarnation::from_u128(1));
        let bind = |data| Bind::new(member.clone(), Duration::from_secs(1), [take(data)]);
        assert_eq!(bind(MAX_VALUE).check(), Ok(()));
        let big = bind(MAX_VALUE + 1).check().unwrap_err().to_string();
        assert!(big.contains("4097 bytes") && big.contains("limit is 4096"), "{big}");
        let life = Bind::anonymous([take(0)]).check().unwrap_err().to_string();
        assert!(life.contains("bind it without an owner"), "{life}");
        let term = TermRef::new(ElectionName::new("e").unwrap(), TermNumber::new(1));
        let fence = Bind::anonymous([]).with_fence(term).check().unwrap_err().to_string();
        assert!(fence.contains("without a member"), "{fence}");
    }
}
