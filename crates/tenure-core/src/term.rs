//! Terms: one reign each, with the number that fences.

use core::fmt;

use crate::{ElectionName, MemberRef, Timestamp};

/// The number of a term: **the fencing token**.
///
/// It rises by at least one with every acquisition, including one by the same
/// member, and is never used again.
///
/// ```
/// use tenure_core::TermNumber;
/// assert!(TermNumber::NONE < TermNumber::new(1));
/// assert_eq!(TermNumber::new(7).next().get(), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TermNumber(u64);

impl TermNumber {
    /// Before any term: the election has never been won.
    pub const NONE: TermNumber = TermNumber(0);

    /// The term with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, to hand to whatever checks the fence.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number that follows.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for TermNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One reign: who, over what, under which number, since when.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The election.
    pub election: ElectionName,
    /// The fencing token.
    pub number: TermNumber,
    /// The holder, in exactly this life.
    pub member: MemberRef,
    /// When it was won, by the store's wall clock; for people.
    pub elected_at: Timestamp,
}

/// Identifies one attempt to win one term. A claim that is repeated because its
/// answer was lost carries the same nonce and gets the same term back (rule
/// E2); a new attempt takes a higher one. Nonces of one incarnation only rise.
///
/// ```
/// use tenure_core::Nonce;
/// assert!(Nonce::new(1) < Nonce::new(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nonce(u64);

impl Nonce {
    /// The nonce with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// How much a candidate is preferred. The highest live one is offered a vacancy
/// first; [`Priority::NEVER`] stands by and never leads.
///
/// ```
/// use tenure_core::Priority;
/// assert_eq!(Priority::default().get(), 100);
/// assert!(!Priority::NEVER.may_lead());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u16);

impl Priority {
    /// Never leads.
    pub const NEVER: Priority = Priority(0);

    /// The priority `level`; higher is preferred, 0 never leads.
    pub const fn new(level: u16) -> Self {
        Self(level)
    }

    /// The level.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Whether a candidate of this priority may lead at all.
    pub const fn may_lead(self) -> bool {
        self.0 > 0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_as_they_were_given() {
        assert_eq!(TermNumber::new(7).get(), 7);
        assert_eq!(Nonce::new(7).get(), 7);
        assert_eq!(Priority::new(7).get(), 7);
    }
}
