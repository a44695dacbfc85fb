//! What operators ask.

use core::time::Duration;

use super::purge::{Purge, Purged};
use crate::{ElectionName, MemberId, MemberRef, Note, TermNumber};

/// An operator's request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Amend {
    /// Ask the holder to step down (rule E5).
    StepDown {
        /// The election.
        election: ElectionName,
        /// The term it is meant for; `None` means the present one.
        number: Option<TermNumber>,
        /// The candidate to hand over to.
        to: Option<MemberId>,
        /// Why.
        reason: Note,
        /// Who asks.
        by: Note,
    },
    /// Elect no member anew (rule E6).
    Pause {
        /// The election.
        election: ElectionName,
        /// Why.
        reason: Note,
        /// Who asks.
        by: Note,
    },
    /// Lift a pause.
    Resume {
        /// The election.
        election: ElectionName,
        /// Who asks.
        by: Note,
    },
    /// End a member.
    Evict {
        /// The id of the member.
        member: MemberId,
        /// `false`: its heartbeats are answered *ended* from now on, and what
        /// it holds becomes free when its ttl has run out, as after a crash.
        /// `true`: what it holds becomes free now, although the member may
        /// believe in its terms for the rest of its ttl: **two may lead at
        /// once**, and only the fence tells them apart.
        now: bool,
        /// Who asks.
        by: Note,
    },
    /// Say that the store was restored, rolled back or copied, and may have
    /// forgotten terms that it gave out (rule M6). Its era rises: the next
    /// number of every election, of every namespace where the store has one era
    /// for all, jumps (see [`Era`](crate::Era)). No leader is disturbed.
    Restored {
        /// Who asks.
        by: Note,
    },
    /// Take one bounded step in forgetting what is no longer used.
    Purge(Purge),
}

impl Amend {
    /// Asks the present holder to step down, for any successor.
    ///
    /// ```
    /// use tenure_core::{Amend, ElectionName, Note};
    ///
    /// let election = ElectionName::new("nightly")?;
    /// let ask = Amend::step_down(election, Note::new("upgrade"), Note::new("ops"));
    /// assert!(matches!(ask, Amend::StepDown { number: None, to: None, .. }));
    /// # Ok::<(), tenure_core::BadName>(())
    /// ```
    #[must_use]
    pub const fn step_down(election: ElectionName, reason: Note, by: Note) -> Self {
        Self::StepDown { election, number: None, to: None, reason, by }
    }

    /// Pauses an election.
    #[must_use]
    pub const fn pause(election: ElectionName, reason: Note, by: Note) -> Self {
        Self::Pause { election, reason, by }
    }

    /// Lifts a pause.
    #[must_use]
    pub const fn resume(election: ElectionName, by: Note) -> Self {
        Self::Resume { election, by }
    }

    /// Ends a member; what it holds becomes free when its ttl has run out.
    #[must_use]
    pub const fn evict(member: MemberId, by: Note) -> Self {
        Self::Evict { member, now: false, by }
    }

    /// Ends a member and frees what it holds now, although **two may lead at once**.
    #[must_use]
    pub const fn evict_now(member: MemberId, by: Note) -> Self {
        Self::Evict { member, now: true, by }
    }

    /// Says that the store was restored.
    #[must_use]
    pub const fn restored(by: Note) -> Self {
        Self::Restored { by }
    }
}

/// The answer to an [`Amend`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Amended {
    /// Done, or asked; the term or member it went to.
    Done {
        /// The term concerned, where there is one.
        number: Option<TermNumber>,
        /// The member concerned, where there is one.
        member: Option<MemberRef>,
        /// What was left of that member's ttl.
        remaining: Duration,
    },
    /// It was so already; nothing was changed.
    Unchanged,
    /// The election is vacant, so that no member can step down.
    Vacant,
    /// The term named is not the present one.
    Superseded {
        /// The present one.
        number: TermNumber,
    },
    /// The successor named is not a live candidate that may lead.
    NoSuchCandidate,
    /// No live member goes by that id.
    NoSuchMember,
    /// The era has risen.
    Restored {
        /// From this one.
        before: u64,
        /// To this one.
        after: u64,
    },
    /// What a step of a purge removed, and where to go on.
    Purged(Purged),
}
