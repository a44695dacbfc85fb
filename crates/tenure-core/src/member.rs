//! Members: one running process each, as the store knows it.

use core::fmt;

use crate::{MemberId, Profile};

/// A random 128-bit number, made fresh each time a member joins. It tells one
/// life of a member from the next and from a namesake's.
///
/// ```
/// let life = tenure_core::Incarnation::from_u128(0x2a);
/// assert_eq!(life.to_string(), "0000000000000000000000000000002a");
/// assert_eq!("2a".parse(), Ok(life));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(u128);

impl Incarnation {
    /// The incarnation with these bits.
    pub const fn from_u128(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits.
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::str::FromStr for Incarnation {
    type Err = core::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

/// One life of one member: what every request names, so that nothing meant for
/// one life can touch another (rule E1).
///
/// ```
/// use tenure_core::{Incarnation, MemberId, MemberRef};
/// let member = MemberRef::new(MemberId::new("web-1").unwrap(), Incarnation::from_u128(1));
/// assert_eq!(member.id.as_str(), "web-1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberRef {
    /// The id the user chose.
    pub id: MemberId,
    /// Which of its lives.
    pub incarnation: Incarnation,
}

impl MemberRef {
    /// This life of the member called `id`.
    pub const fn new(id: MemberId, incarnation: Incarnation) -> Self {
        Self { id, incarnation }
    }
}

impl fmt::Display for MemberRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:08x}", self.id, self.incarnation.0 >> 96)
    }
}

/// A live member, as a snapshot shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberView {
    /// Which life of which member.
    pub member: MemberRef,
    /// What it publishes.
    pub profile: Profile,
    /// The ttl it wrote.
    pub ttl: core::time::Duration,
    /// What is left of that ttl.
    pub remaining: core::time::Duration,
    /// When it joined, by the store's wall clock; for people.
    pub joined_at: crate::Timestamp,
    /// How many terms it holds.
    pub holds: u32,
}
