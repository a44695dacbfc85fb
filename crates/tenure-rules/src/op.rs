//! What one operation on a name does to the name as it is found. Stores that judge and the
//! compare-and-swap family go by the same answer.

use tenure_core::{BindOp, MemberRef, Nonce, Rev, To, Token, Value, What};

use crate::rows::NameRow;

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does<'a> {
    /// The very attempt that wrote the name last: it is bound as it is (rule E2).
    Repeats,
    /// The name is free: it is taken.
    Takes,
    /// The name is taken if this life is over, which is to be made sure of first (rule M2).
    TakesFrom(&'a MemberRef),
    /// The name is another's, or of another attempt.
    IsTaken,
    /// The value is replaced by this one.
    Changes(&'a Value),
    /// The name is free from now on.
    Drops,
    /// The binding that is meant is not there (rule E1).
    IsGone,
}

/// What an operation of this caller does to the name as it was found (Q3, Q4).
///
/// ```
/// use tenure_core::{BindOp, Name, Nonce, Value};
/// use tenure_rules::op::{Does, does};
///
/// let op = BindOp::post(Name::new("notice")?, Nonce::new(1), Value::empty());
/// assert_eq!(does(None, None, &op), Does::Takes);
/// # Ok::<(), tenure_core::BadName>(())
/// ```
#[must_use]
pub fn does<'a>(
    found: Option<&'a NameRow>,
    caller: Option<&MemberRef>,
    op: &'a BindOp,
) -> Does<'a> {
    match &op.what {
        What::Take { to, .. } => takes(found, caller, op.nonce, *to),
        What::Change { of, token, expect, value } => {
            match found.filter(|row| row.is_own(caller, *token, Some(*of))) {
                Some(row) => changes(row, caller, op.nonce, *expect, value),
                None => Does::IsGone,
            }
        }
        What::Drop { token } => match found {
            Some(row) if row.is_own(caller, *token, None) => Does::Drops,
            _ => Does::IsGone,
        },
    }
}

fn takes<'a>(
    found: Option<&'a NameRow>,
    caller: Option<&MemberRef>,
    nonce: Nonce,
    to: To,
) -> Does<'a> {
    let Some(row) = found else { return Does::Takes };
    let wanted = caller.filter(|_| to == To::Life);
    if row.repeats(caller, nonce) && row.owner.as_ref() == wanted {
        return Does::Repeats;
    }
    row.owner.as_ref().map_or(Does::IsTaken, Does::TakesFrom)
}

fn changes<'a>(
    row: &NameRow,
    caller: Option<&MemberRef>,
    nonce: Nonce,
    expect: Option<Rev>,
    value: &'a Value,
) -> Does<'a> {
    if row.repeats(caller, nonce) {
        return Does::Repeats;
    }
    let is_late = caller.is_some() && row.is_by(caller) && nonce < row.nonce;
    if is_late || expect.is_some_and(|expect| expect != row.rev) {
        return Does::IsGone;
    }
    Does::Changes(value)
}

impl NameRow {
    fn is_by(&self, caller: Option<&MemberRef>) -> bool {
        self.by == caller.map(|caller| caller.incarnation)
    }

    /// Whether this very attempt wrote the row (rule E2).
    fn repeats(&self, caller: Option<&MemberRef>, nonce: Nonce) -> bool {
        self.is_by(caller) && self.nonce == nonce
    }

    /// Whether the row has exactly this token and the caller or no member owns it (rule E1);
    /// only of one kind, if one is named.
    fn is_own(&self, caller: Option<&MemberRef>, token: Token, of: Option<To>) -> bool {
        let is_own = match &self.owner {
            Some(owner) => Some(owner) == caller && of != Some(To::Unowned),
            None => of != Some(To::Life),
        };
        is_own && self.token == token
    }
}
