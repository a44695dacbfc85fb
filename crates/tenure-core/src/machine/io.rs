//! What goes into the machine and what comes out of it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::{
    Binding, ElectionName, ElectionView, Failed, Hint, Incarnation, MemberId, MemberRef, Mono,
    Name, Note, Priority, Reply, Request, Rev, Seq, Term, TermNumber, TermRef, Token, Value,
};

/// The number of a request. The reply carries it back; a reply with a number
/// that is no longer awaited is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(super) u64);

impl RequestId {
    /// The number, for traces.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// What of a store's capabilities the machine goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreTraits {
    /// The store notifies of changes within milliseconds.
    pub native_watch: bool,
    /// The most bids or releases in one request.
    pub batch: usize,
    /// Whether all but a heartbeat is done in several steps, one after the other,
    /// each of which may take a request's whole time.
    pub in_steps: bool,
    /// A release can elect the heir in the same step: see [`Release::confirm_within`].
    ///
    /// [`Release::confirm_within`]: crate::Release::confirm_within
    pub elects_heirs: bool,
}

/// What the machine is fed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// The time it asked to be woken at has come, or may have.
    Wake,
    /// Become a member, even without standing for anything.
    Join,
    /// Stand for an election until it is won, once, or withdrawn.
    Stand {
        /// The election.
        election: ElectionName,
        /// How much to be preferred.
        priority: Priority,
    },
    /// Stand for many elections at once, so that they are bid for together: in
    /// as few requests as the store's batch allows. One by one, the first would
    /// be on its way before the machine is given the second.
    StandForAll {
        /// The elections.
        elections: Vec<ElectionName>,
        /// How much to be preferred, in each.
        priority: Priority,
    },
    /// Stop standing. If the election was won meanwhile this is a resignation.
    Withdraw {
        /// The election.
        election: ElectionName,
    },
    /// Give a term up now: the work has stopped.
    Resign {
        /// The election.
        election: ElectionName,
        /// The term; another one is left alone.
        number: TermNumber,
        /// The candidate to hand over to.
        to: Option<MemberId>,
    },
    /// Ask this member's own leadership to stop, drain and release.
    StopLeading {
        /// The election.
        election: ElectionName,
        /// The term; another one is left alone.
        number: TermNumber,
        /// The candidate to hand over to, whether or not the work stops in time.
        to: Option<MemberId>,
    },
    /// Take, change and drop names for this member. What is asked for while a request is on
    /// its way goes together in the next one.
    Bind {
        /// What, in order.
        ops: Vec<NameOp>,
    },
    /// The caller no longer waits for the answer to this operation. A take that is on its way is
    /// dropped when it was bound.
    WithdrawName {
        /// The name.
        name: Name,
        /// The operation.
        ticket: u64,
    },
    /// The work under a name that was lost has stopped: nothing keeps it any more.
    LetGoOfName {
        /// The name.
        name: Name,
        /// The binding that was lost.
        token: Token,
    },
    /// A read shows that the store does not have these bindings, which it had: it was
    /// rolled back, or an operator changed it by hand.
    NamesForgotten {
        /// The names, with their tokens.
        names: Vec<(Name, Token)>,
    },
    /// A read shows these names bound to a life of this member. Those that no caller asked for
    /// are dropped: a late copy of a request bound them.
    NamesFound {
        /// The life that they are bound to.
        life: Incarnation,
        /// The names, with their tokens.
        names: Vec<(Name, Token)>,
    },
    /// A reply to a request.
    Reply {
        /// The request's number.
        id: RequestId,
        /// The answer, or that there was none.
        result: Box<Result<Reply, Failed>>,
    },
    /// A hint from the store.
    Hint(Hint),
    /// Stop everything in order: ask the work to stop, drain, release, leave.
    Shutdown,
}

/// What the machine gives out, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Carry this to the store.
    Send(Outgoing),
    /// Tell the application.
    Event(Event),
}

/// A request on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outgoing {
    /// Its number.
    pub id: RequestId,
    /// What to ask.
    pub request: Request,
    /// When the machine stops waiting for the reply. Cancel it by then.
    pub deadline: Mono,
}

/// What the application is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The member is in the store, in this life.
    Joined {
        /// Which life.
        member: MemberRef,
    },
    /// The id is in use by another life, which may not be ended yet.
    IdTaken {
        /// Which one.
        by: Incarnation,
        /// When it will be repeated.
        retry_at: Mono,
    },
    /// This life of the member is over; it will join anew if it still stands
    /// for anything.
    MemberEnded {
        /// Which life.
        member: MemberRef,
        /// Whether another process uses the same id.
        superseded: bool,
    },
    /// The store has forgotten what it told before: it was restored from a backup,
    /// rolled back, or its place was taken by a copy that lacks the last writes
    /// (rule M6). What was led is lost, and the next bid lets numbers jump. Told
    /// once, until the store has caught up.
    RolledBack {
        /// The newest known place in the journal.
        seen: Seq,
        /// The place it has now.
        found: Seq,
    },
    /// Trust in everything that is held now reaches to this moment, and no further.
    Trusted {
        /// Until when.
        until: Mono,
        /// What was left of the trust before.
        margin_left: core::time::Duration,
    },
    /// An election was won.
    Elected {
        /// The term.
        term: Term,
        /// Until when it may be trusted, for now.
        trusted_until: Mono,
    },
    /// The work is to stop; the term is renewed while it drains (rule E4).
    Stopping {
        /// The election.
        election: ElectionName,
        /// The term.
        number: TermNumber,
        /// Why.
        reason: StopReason,
        /// When the patience ends.
        drain_until: Mono,
    },
    /// The term is no longer led. All that may still come for it is
    /// [`Event::GivenBack`].
    Lost {
        /// The election.
        election: ElectionName,
        /// The term.
        number: TermNumber,
        /// Why.
        reason: LostReason,
    },
    /// The store has confirmed that a term which was lost before is given back,
    /// or the life it belonged to is over: nothing keeps it any more.
    GivenBack {
        /// The election.
        election: ElectionName,
        /// The term.
        number: TermNumber,
    },
    /// An operation on a name was answered.
    NameAnswered {
        /// Which operation.
        ticket: u64,
        /// What came of it.
        answer: NameAnswer,
    },
    /// These names are no longer this member's, all at once. The work under each says with
    /// [`Input::LetGoOfName`] that it has stopped; otherwise it has the margin to stop in.
    NamesLost {
        /// The names, with their tokens.
        names: Vec<(Name, Token)>,
        /// Why.
        reason: LostReason,
    },
    /// The member no longer stands for this election.
    Withdrawn {
        /// The election.
        election: ElectionName,
    },
    /// What a candidate learnt of an election it waits for.
    Standby {
        /// What it learnt.
        view: Box<ElectionView>,
    },
    /// The member has left, or gave up leaving in time; the machine is done.
    Left {
        /// Whether the store confirmed it.
        confirmed: bool,
    },
}

/// One operation on a name, as [`Input::Bind`] asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NameOp {
    /// Tells the answer to it from others: see [`Event::NameAnswered`].
    pub ticket: u64,
    /// The name.
    pub name: Name,
    /// What to do with it.
    pub wish: NameWish,
    /// The term that the member must hold for it to happen.
    pub fence: Option<TermRef>,
}

/// What to do with a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NameWish {
    /// Take it for this life, if it is free.
    Take {
        /// What is published with it.
        value: Value,
    },
    /// Bind it without an owner, if it is free: it outlives this member.
    Post {
        /// What is published with it.
        value: Value,
    },
    /// Change its value.
    Change {
        /// Exactly this binding.
        token: Token,
        /// Exactly this revision of it, if one is given.
        expect: Option<Rev>,
        /// What is published from now on.
        value: Value,
    },
    /// Change the value of a name that has no owner.
    Repost {
        /// Exactly this binding.
        token: Token,
        /// Exactly this revision of it.
        expect: Rev,
        /// What is published from now on.
        value: Value,
    },
    /// Drop it. It is lost for this member at once, before the store is asked.
    Drop {
        /// Exactly this binding.
        token: Token,
    },
}

/// What came of an operation on a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NameAnswer {
    /// It is bound to this life, or its value was changed.
    Bound {
        /// The binding.
        binding: Binding,
        /// Of a take: until when it may be trusted, for now.
        trusted_until: Mono,
    },
    /// It is another's, or this member's by an earlier operation.
    Taken(Binding),
    /// It was dropped; or there is no such binding any more, but this one.
    Gone(Option<Binding>),
    /// This member does not hold the term that was named as the fence, or it is not the
    /// newest. Nothing changed.
    Fenced {
        /// The newest number of that election.
        newest: TermNumber,
    },
    /// The member shuts down, and takes nothing any more.
    ShutDown,
}

/// Why a leader is asked to stop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// An operator asked it to step down.
    Asked {
        /// Why.
        reason: Note,
        /// Who asked.
        by: Note,
        /// The candidate it hands over to.
        to: Option<MemberId>,
    },
    /// The process is shutting down, or gave the election up.
    Shutdown,
}

/// Why a term was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// Given up by the holder.
    Resigned,
    /// Given up because it was asked to step down, after the work had stopped.
    SteppedDown,
    /// Asked to stop, it did not drain in time.
    DrainTimeout,
    /// Trust ran out before the store confirmed a renewal (rule T3).
    TrustEnded,
    /// The store says the term is over: the member was ended, or the term
    /// belongs to another member.
    Superseded,
    /// The store has forgotten what it told before, and the term may be among it:
    /// see [`Event::RolledBack`].
    RolledBack,
}
