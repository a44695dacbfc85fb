//! Giving back: releases.

use alloc::vec::Vec;
use core::time::Duration;

use crate::{ElectionName, MemberId, MemberRef, ReleaseCause, Term, TermNumber, Told};

/// Gives terms back, or stops standing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// Who.
    pub member: MemberRef,
    /// What.
    pub items: Vec<ReleaseItem>,
    /// How long each vacancy is kept for its preferred candidate.
    pub heir_grace: Duration,
    /// How long an heir has to confirm the term that it inherits; zero elects no heir. If
    /// it is not zero, the heir is elected in the same step, where the store can do that
    /// ([`StoreTraits::elects_heirs`](crate::StoreTraits)) and the heir allows it
    /// ([`Join::inherits`](crate::Join::inherits)). The heir then holds a new term for this long,
    /// or for as long as its reservation lasts if it was named as the successor. Once it has named
    /// the term in a heartbeat, or has bid for it, the term is like any other. If the heir is
    /// dead, the term lapses as a reservation does.
    pub confirm_within: Duration,
    /// See [`Claim::seen`](crate::Claim::seen). A release that elects an heir gives out a number,
    /// too: a store that was rolled back raises its era before that.
    pub seen: Told,
}

impl Release {
    /// Gives these up. No vacancy is kept for a preferred candidate, nothing is handed
    /// over, and nothing was seen.
    ///
    /// ```
    /// use tenure_core::{
    ///     ElectionName, Incarnation, MemberId, MemberRef, Release, ReleaseItem, TermNumber, TermRef,
    /// };
    ///
    /// let member = MemberRef::new(MemberId::new("web-1")?, Incarnation::from_u128(1));
    /// let term = TermRef::new(ElectionName::new("nightly")?, TermNumber::new(7));
    /// let candidacy = ElectionName::new("weekly")?;
    /// let items = [ReleaseItem::term(term), ReleaseItem::candidacy(candidacy)];
    /// assert_eq!(Release::new(member, items).items.len(), 2);
    /// # Ok::<(), tenure_core::BadName>(())
    /// ```
    #[must_use]
    pub fn new(member: MemberRef, items: impl IntoIterator<Item = ReleaseItem>) -> Self {
        let items = items.into_iter().collect();
        let heir_grace = Duration::ZERO;
        let confirm_within = Duration::ZERO;
        Self { member, items, heir_grace, confirm_within, seen: Told::NOTHING }
    }

    /// Keeps each vacancy: see [`Release::heir_grace`].
    #[must_use]
    pub fn with_heir_grace(self, heir_grace: Duration) -> Self {
        Self { heir_grace, ..self }
    }

    /// Has the heirs elected in the same step: see [`Release::confirm_within`].
    #[must_use]
    pub fn with_confirm_within(self, confirm_within: Duration) -> Self {
        Self { confirm_within, ..self }
    }

    /// Says what was seen: see [`Release::seen`].
    #[must_use]
    pub fn with_seen(self, seen: impl Into<Told>) -> Self {
        Self { seen: seen.into(), ..self }
    }
}

/// One election of a [`Release`]. The member's candidacy in it ends too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseItem {
    /// The election.
    pub election: ElectionName,
    /// Exactly this term (rule E1); `None` only ends the candidacy.
    pub number: Option<TermNumber>,
    /// Why, for the journal.
    pub cause: ReleaseCause,
    /// The candidate to keep the vacancy for, and how long, instead of the
    /// preferred one.
    pub successor: Option<(MemberId, Duration)>,
}

impl ReleaseItem {
    /// Gives back exactly this term: a resignation.
    #[must_use]
    pub fn term(term: TermRef) -> Self {
        let number = Some(term.number);
        Self { election: term.election, number, cause: ReleaseCause::Resigned, successor: None }
    }

    /// Stops standing for this election, and gives back no term.
    #[must_use]
    pub fn candidacy(election: ElectionName) -> Self {
        Self { election, number: None, cause: ReleaseCause::Resigned, successor: None }
    }

    /// For another cause.
    #[must_use]
    pub fn with_cause(self, cause: ReleaseCause) -> Self {
        Self { cause, ..self }
    }

    /// Keeps the vacancy for this candidate, for this long.
    #[must_use]
    pub fn with_successor(self, successor: MemberId, kept_for: Duration) -> Self {
        Self { successor: Some((successor, kept_for)), ..self }
    }
}

/// One term, named exactly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermRef {
    /// The election.
    pub election: ElectionName,
    /// The term.
    pub number: TermNumber,
}

impl TermRef {
    /// The term of `election` with this number.
    #[must_use]
    pub const fn new(election: ElectionName, number: TermNumber) -> Self {
        Self { election, number }
    }
}

impl From<&Term> for TermRef {
    fn from(term: &Term) -> Self {
        Self { election: term.election.clone(), number: term.number }
    }
}
