//! What the machine asks of a store, and what a store answers. The store
//! contract in `tenure-store` says what must hold for each.

use alloc::vec::Vec;
use core::time::Duration;

use crate::{
    ElectionName, ElectionView, Incarnation, MemberId, MemberRef, Nonce, Note, Priority, Profile,
    Query, ReleaseCause, Seq, Snapshot, StepDown, Term, TermNumber,
};

/// A request of the machine's, to be carried to the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Become a member.
    Join(Join),
    /// Say that the member lives.
    Heartbeat(Heartbeat),
    /// Stop being a member; releases everything held.
    Leave(MemberRef),
    /// Stand for elections, and win those that are free.
    Claim(Claim),
    /// Give terms back, or stop standing.
    Release(Release),
    /// Look.
    Read(Query),
}

/// A store's answer to the [`Request`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// To [`Request::Join`].
    Join(Joined),
    /// To [`Request::Heartbeat`].
    Heartbeat(Beat),
    /// To [`Request::Leave`].
    Leave,
    /// To [`Request::Claim`].
    Claim(Claims),
    /// To [`Request::Release`].
    Release,
    /// To [`Request::Read`].
    Read(Snapshot),
}

/// The request failed. What the machine needs to know of it is one thing only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failed {
    /// Whether the write may have been applied all the same (rule E2).
    pub may_have_applied: bool,
}

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
    /// handed to it: see [`Release::hand_over`].
    pub takes_over: bool,
    /// See [`Claim::seen`].
    pub seen: Seq,
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
    /// The terms it holds, for stores that cannot share one heartbeat among
    /// them. For those that can: the terms that were handed over to it and that
    /// it takes on by this, see [`Release::hand_over`].
    pub held: Vec<TermRef>,
}

/// One term, named exactly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermRef {
    /// The election.
    pub election: ElectionName,
    /// The term.
    pub number: TermNumber,
}

/// The answer to a [`Heartbeat`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Beat {
    /// The member lives, for its ttl from a moment after the request was sent.
    Alive {
        /// Rises whenever somebody else asks something of this member: a
        /// step-down of a term it holds, a vacancy kept for it by name.
        attention: u64,
        /// How many terms the store believes the member holds; `None` where the
        /// store cannot say for one heartbeat.
        holds: Option<u32>,
        /// The journal position, by which a lost hint is made up for;
        /// [`Seq::START`] from a store whose hints cannot be lost unnoticed.
        seq: Seq,
        /// An answer for each term named. What is not named is renewed too by a
        /// store that can share one heartbeat among all.
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
    /// It is renewed from a moment after the request was sent.
    Renewed {
        /// A step-down asked of it.
        step_down: Option<StepDown>,
    },
    /// It belongs to nobody or to somebody else: it is lost.
    Lost,
    /// It could not be found out this time; trust in it was not extended.
    Unknown,
}

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
    /// The newest place in the journal that the caller has heard of. A store
    /// whose journal ends before it was rolled back: it raises its era in this
    /// same step, before it gives out any number (rule M6).
    pub seen: Seq,
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

/// Gives terms back, or stops standing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// Who.
    pub member: MemberRef,
    /// What.
    pub items: Vec<ReleaseItem>,
    /// How long each vacancy is kept for its preferred candidate.
    pub heir_grace: Duration,
    /// If not zero, an election goes to its heir in the same step, where the
    /// store can do that ([`StoreTraits::hands_over`](crate::StoreTraits)) and
    /// the heir wants it ([`Join::takes_over`]). The heir then holds a new term,
    /// for this long (for as long as a successor who was named is waited for),
    /// and for good once it has named it in a heartbeat or bid for it. Nothing
    /// is lost if the heir is dead: the term lapses as a reservation does.
    pub hand_over: Duration,
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
    /// Let nobody be newly elected (rule E6).
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
    /// for all, jumps (see [`Era`](crate::Era)). Nobody who leads is disturbed.
    Restored {
        /// Who asks.
        by: Note,
    },
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
    /// Nobody holds the election, so nobody can step down.
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
}
