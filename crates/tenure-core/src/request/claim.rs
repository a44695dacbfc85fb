//! Bidding: claims, and what is answered.

use alloc::vec::Vec;
use core::time::Duration;

use crate::{ElectionName, ElectionView, MemberRef, Nonce, Priority, Term, Told};

/// Stands for elections, and wins those that are free.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Who.
    pub member: MemberRef,
    /// The ttl that begins with a win, which counts as a heartbeat.
    pub ttl: Duration,
    /// For what. At most as many as the store's batch limit.
    pub bids: Vec<Bid>,
    /// How long a vacancy that this claim uncovers (by ending an expired
    /// holder) is kept for its preferred candidate.
    pub heir_grace: Duration,
    /// What the caller has seen. A store that has forgotten some of it was rolled back: it
    /// raises its era in this same step, before it gives out any number (rule M6).
    pub seen: Told,
}

impl Claim {
    /// Bids for these elections. No vacancy is kept for an heir, and nothing was
    /// seen.
    ///
    /// ```
    /// use core::time::Duration;
    /// use tenure_core::{Bid, Claim, ElectionName, Incarnation, MemberId, MemberRef, Nonce};
    ///
    /// let member = MemberRef::new(MemberId::new("web-1")?, Incarnation::from_u128(1));
    /// let bid = Bid::new(ElectionName::new("nightly")?, Nonce::new(1));
    /// let claim = Claim::new(member, Duration::from_secs(10), [bid]);
    /// assert_eq!(claim.bids.len(), 1);
    /// # Ok::<(), tenure_core::BadName>(())
    /// ```
    #[must_use]
    pub fn new(member: MemberRef, ttl: Duration, bids: impl IntoIterator<Item = Bid>) -> Self {
        let bids = bids.into_iter().collect();
        Self { member, ttl, bids, heir_grace: Duration::ZERO, seen: Told::NOTHING }
    }

    /// Keeps a vacancy that it uncovers: see [`Claim::heir_grace`].
    #[must_use]
    pub fn with_heir_grace(self, heir_grace: Duration) -> Self {
        Self { heir_grace, ..self }
    }

    /// Says what was seen: see [`Claim::seen`].
    #[must_use]
    pub fn with_seen(self, seen: impl Into<Told>) -> Self {
        Self { seen: seen.into(), ..self }
    }
}

/// One bid of a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bid {
    /// The election.
    pub election: ElectionName,
    /// How much the candidate is preferred; 0 stands by and never wins.
    pub priority: Priority,
    /// The attempt this belongs to.
    pub nonce: Nonce,
}

impl Bid {
    /// An attempt to win this election, with the usual priority.
    #[must_use]
    pub fn new(election: ElectionName, nonce: Nonce) -> Self {
        Self { election, priority: Priority::default(), nonce }
    }

    /// With another priority.
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }
}

/// The answer to a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Claims {
    /// One answer for each bid, in order.
    Answered(Vec<Claimed>),
    /// This life is over (rule M1). Join anew.
    Ended {
        /// Whether another life of the same id has taken its place.
        superseded: bool,
    },
}

/// The answer to one [`Bid`]. Losing is an answer, not an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
// Not boxed: a claim is answered `Held` far more often than `Won`.
#[allow(clippy::large_enum_variant)]
pub enum Claimed {
    /// Won, under this term; also the answer to a repeated winning bid. It
    /// counts as a heartbeat with the claim's ttl.
    Won(Term),
    /// Not won: the view says who holds the election, or that it is paused or
    /// kept for another. The candidacy stands.
    Held(ElectionView),
    /// It could not be found out this time, and the bid may have won: the next
    /// one repeats its nonce (rule E2). Only from stores that decide each bid by
    /// requests of its own, of which some may fail.
    Unknown(ElectionName),
}
