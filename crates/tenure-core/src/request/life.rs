//! Being a member: join and heartbeat.

use alloc::vec::Vec;
use core::time::Duration;

use super::TermRef;
use crate::{Incarnation, MemberRef, Profile, Seq, StepDown, Told};

/// Asks to become a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Join {
    /// The life that begins.
    pub member: MemberRef,
    /// How long it lives after each heartbeat.
    pub ttl: Duration,
    /// What it publishes.
    pub profile: Profile,
    /// Whether an older life of the same id that holds nothing may be ended to
    /// make room. A member that was itself superseded asks without it, so that
    /// two processes with one id cannot push each other out for ever.
    pub supersede: bool,
    /// Whether it looks as soon as it is told of a change, so that a term may be
    /// handed to it: see [`Release::hand_over`](crate::Release::hand_over).
    pub takes_over: bool,
    /// See [`Claim::seen`](crate::Claim::seen).
    pub seen: Told,
}

impl Join {
    /// Asks for `member` to be let in for `ttl`, in the place of an older life of the
    /// same id that holds nothing. It publishes nothing, and no term is handed to it.
    ///
    /// ```
    /// use core::time::Duration;
    /// use tenure_core::{Incarnation, Join, MemberId, MemberRef, Profile};
    ///
    /// let member = MemberRef::new(MemberId::new("web-1")?, Incarnation::from_u128(1));
    /// let profile = Profile::new(["10.0.0.7:8080"], b"")?;
    /// let join = Join::new(member, Duration::from_secs(10)).with_profile(profile);
    /// assert!(join.supersede && !join.takes_over);
    /// # Ok::<(), tenure_core::BadName>(())
    /// ```
    #[must_use]
    pub fn new(member: MemberRef, ttl: Duration) -> Self {
        let profile = Profile::default();
        Self { member, ttl, profile, supersede: true, takes_over: false, seen: Told::NOTHING }
    }

    /// Publishes this.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Says whether an older life may be ended: see [`Join::supersede`].
    #[must_use]
    pub fn with_supersede(self, supersede: bool) -> Self {
        Self { supersede, ..self }
    }

    /// Says whether a term may be handed to it: see [`Join::takes_over`].
    #[must_use]
    pub fn with_takes_over(self, takes_over: bool) -> Self {
        Self { takes_over, ..self }
    }

    /// Says what was seen: see [`Claim::seen`](crate::Claim::seen).
    #[must_use]
    pub fn with_seen(self, seen: impl Into<Told>) -> Self {
        Self { seen: seen.into(), ..self }
    }
}

/// The answer to a [`Join`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Joined {
    /// The member is in; also the answer when this very life was in already.
    In {
        /// See [`Beat::Alive`].
        attention: u64,
        /// The journal position.
        seq: Seq,
    },
    /// Another life of the same id is there and may not be ended yet.
    Taken {
        /// Which one.
        by: Incarnation,
        /// What is left of its ttl.
        remaining: Duration,
    },
}

/// Says that a member lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Heartbeat {
    /// Which life of which member.
    pub member: MemberRef,
    /// How long it lives from now on.
    pub ttl: Duration,
    /// The terms that were handed over to it and that it takes on by this: see
    /// [`Release::hand_over`](crate::Release::hand_over). Everything else that it holds is renewed unnamed.
    pub held: Vec<TermRef>,
}

impl Heartbeat {
    /// Says that `member` lives for `ttl` from now on. It names no term.
    #[must_use]
    pub fn new(member: MemberRef, ttl: Duration) -> Self {
        Self { member, ttl, held: Vec::new() }
    }

    /// Takes on these terms: see [`Heartbeat::held`].
    #[must_use]
    pub fn with_held(self, held: Vec<TermRef>) -> Self {
        Self { held, ..self }
    }
}

/// The answer to a [`Heartbeat`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Beat {
    /// The member lives, for its ttl from a moment after the request was sent.
    Alive {
        /// Rises by one whenever somebody else asks something of this member: a
        /// step-down of a term it holds, a vacancy kept for it by name. It rises by far when
        /// an era begins: see [`Era::calls`](crate::Era::calls).
        attention: u64,
        /// How many terms the store believes the member holds; `None` where the
        /// store cannot say for one heartbeat.
        holds: Option<u32>,
        /// The journal position, by which a lost hint is made up for;
        /// [`Seq::START`] from a store whose hints cannot be lost unnoticed.
        seq: Seq,
        /// An answer for each term named, from a store that hands over.
        terms: Vec<TermBeat>,
    },
    /// This life is over (rule M1). Join anew.
    Ended {
        /// Whether another life of the same id has taken its place.
        superseded: bool,
    },
}

/// The answer for one term that a heartbeat named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TermBeat {
    /// The term.
    pub term: TermRef,
    /// What became of it.
    pub outcome: TermOutcome,
}

/// What became of one term that a heartbeat named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TermOutcome {
    /// It is renewed with the member, from a moment after the request was sent.
    Renewed {
        /// A step-down asked of it.
        step_down: Option<StepDown>,
    },
    /// It belongs to nobody or to somebody else: it is lost.
    Lost,
}
