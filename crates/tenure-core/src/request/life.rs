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
    /// Whether a store may elect it as an heir, without a bid. For members that look as soon
    /// as they are told of a change: see
    /// [`Release::confirm_within`](crate::Release::confirm_within).
    pub inherits: bool,
    /// See [`Claim::seen`](crate::Claim::seen).
    pub seen: Told,
}

impl Join {
    /// Asks for `member` to be let in for `ttl`, in the place of an older life of the
    /// same id that holds nothing. It publishes nothing, and is never elected as an heir.
    ///
    /// ```
    /// use core::time::Duration;
    /// use tenure_core::{Incarnation, Join, MemberId, MemberRef, Profile};
    ///
    /// let member = MemberRef::new(MemberId::new("web-1")?, Incarnation::from_u128(1));
    /// let profile = Profile::new(["10.0.0.7:8080"], b"")?;
    /// let join = Join::new(member, Duration::from_secs(10)).with_profile(profile);
    /// assert!(join.supersede && !join.inherits);
    /// # Ok::<(), tenure_core::BadName>(())
    /// ```
    #[must_use]
    pub fn new(member: MemberRef, ttl: Duration) -> Self {
        let profile = Profile::default();
        Self { member, ttl, profile, supersede: true, inherits: false, seen: Told::NOTHING }
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

    /// Says whether it may be elected as an heir: see [`Join::inherits`].
    #[must_use]
    pub fn with_inherits(self, inherits: bool) -> Self {
        Self { inherits, ..self }
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
    /// The terms that it inherited and confirms by this: see
    /// [`Release::confirm_within`](crate::Release::confirm_within). Everything else that it
    /// holds is renewed unnamed.
    pub held: Vec<TermRef>,
}

impl Heartbeat {
    /// Says that `member` lives for `ttl` from now on. It names no term.
    #[must_use]
    pub fn new(member: MemberRef, ttl: Duration) -> Self {
        Self { member, ttl, held: Vec::new() }
    }

    /// Confirms these terms: see [`Heartbeat::held`].
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
        /// Rises by one whenever an operator or another member asks something of this one: a
        /// step-down of a term it holds, a vacancy kept for it by name. It rises by far when
        /// an era begins: see [`Era::calls`](crate::Era::calls).
        attention: u64,
        /// How many terms the store believes the member holds; `None` where the
        /// store cannot say for one heartbeat.
        holds: Option<u32>,
        /// The journal position, by which a lost hint is made up for;
        /// [`Seq::START`] from a store whose hints cannot be lost unnoticed.
        seq: Seq,
        /// An answer for each term named, from a store that elects heirs.
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
    /// The election is vacant or another member holds it: the term is lost.
    Lost,
}
