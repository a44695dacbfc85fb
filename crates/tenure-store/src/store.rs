//! The contract.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Entry, Failed, Heartbeat, Hint, Join,
    Joined, MemberRef, NamesView, Namespace, Query, Release, Reply, Request, Seq, Snapshot,
    WhichNames,
};

use crate::{Capabilities, Result};

/// A place where elections are kept.
///
/// # The model
///
/// A namespace has **members**, **elections**, **candidacies**, **names** and a
/// **journal**. What each verb does to them is specified by the functions of
/// [`tenure_rules`], which are written to be read.
///
/// A member is *live* while it has not been ended and less than the ttl it
/// wrote last has passed since its last heartbeat, its join or its last win, by
/// the judge's clock ([`Capabilities::judge`]). A member *condemned*
/// by [`Amend::Evict`] lives on for others until its ttl has run out, but is
/// itself answered `Ended` from then on.
///
/// # What every verb must guarantee
///
/// - **Atomic.** It happens entirely or not at all, at one moment between the
///   request and the answer, together with its journal entries.
/// - **Honest about failure.** An [`Error`](crate::Error) whose
///   `may_have_applied` is false promises that nothing was and nothing will be
///   written. If that cannot be promised, it is true (rule E2).
/// - **Late is harmless.** A request that arrives twice, or long after its
///   caller gave up, does what these rules say and nothing more. Everything
///   that changes a member or a term names the incarnation (rule E1).
/// - **Cancel-safe.** A future that is dropped counts as a lost answer.
/// - **Durable.** What [`claim`](Self::claim) and [`release`](Self::release)
///   answered survives a crash of the store. Numbers never go back.
/// - **Quiet.** Losing a race is an answer. A verb that changes nothing writes
///   nothing.
/// - **Isolated.** Nothing of one namespace is seen in, or changed by, another.
///
/// # Ending a member
///
/// A member is ended by [`join`](Self::join), [`claim`](Self::claim) or
/// [`amend`](Self::amend), no later than in the atomic step in which something it
/// held is given away (rule M2). A store that can prove the member's process dead
/// may end it before its ttl has run out (rule M4).
///
/// Ending costs the same whatever the member held (rule M5). It removes the member
/// and journals one [`Ended`](tenure_core::Happening) (`Left` if the member left).
/// Its terms and candidacies are void from that moment: no answer shows them, they
/// keep no bid from winning, and no late request of the ended life touches them. A
/// term that is void is *written off* by the next bid for its election: the store
/// journals its `Released`, with the cause of the life's end as far as the journal
/// has it, and keeps the vacancy for an heir for the grace that this bid states.
/// Candidacies that are void are cleared away in bounded steps.
///
/// The names of an ended life are void in the same way. No request writes that down name by
/// name: no answer shows them, any member may take them, and they are cleared away in bounded
/// steps.
///
/// # Names
///
/// A name is bound to one life, or without an owner, under a **token**. Every change of a name has
/// a **revision** of its own; a token is the revision at which the name was taken. Revisions
/// of a namespace only rise and none is used again: not after a drop, a crash, a restart or
/// a new era (rule M6), so that a dropped name leaves no row behind. Names are not in the
/// journal; followers are told by [`Hint::Names`] that some changed.
///
/// A store that decides each name by requests of its own counts revisions for each name
/// alone, and says so: [`NameTraits::since`](crate::NameTraits::since) is false. There the
/// revisions of one name rise over its whole history, those of two names cannot be compared,
/// the bindings of an answer are of moments close together, and no client is told that names
/// changed.
///
/// # Vacancies
///
/// When a term ends, the vacancy is kept for an **heir** for the grace the
/// request states: the successor named, or else the live candidate that may
/// lead with the highest priority and, among equals, the longest wait; never
/// the member that gave the term up. While the reservation lasts and the heir
/// lives, no other member wins. A grace of zero reserves nothing.
///
/// # Handing over
///
/// A store that says so ([`Capabilities::elects_heirs`]) elects the heir in the
/// step of the [`release`](Self::release) itself, if the release asks for it
/// ([`Release::confirm_within`]), the heir joined with
/// [`inherits`](tenure_core::Join::inherits), the election is not paused,
/// and nothing else keeps a new term from beginning. The journal then has
/// `Released` without an heir, followed by `Elected`; a follower of hints is told
/// of the election, not of a vacancy.
///
/// Such a term is *unconfirmed*: it stands for as long as the release says, or
/// for as long as the named successor was to be waited for; its holder's
/// `remaining` is no more than that. It is confirmed by a
/// [`heartbeat`](Self::heartbeat) that names it and by any bid of the holder that
/// may lead. Once the time is over nothing revives it: it is shown as a vacancy,
/// and the first bid of another that finds it so ends it, as `Abandoned`, with the
/// candidacy of the heir that did not take it on; so does a bid of its own that wins.
/// Until then it may be given back, and is counted among what its holder holds.
/// A member that reads that it holds such a term may lead for what is left of
/// it, counted from before it asked: until then no other member wins, even if the
/// store crashes and comes back.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug {
    /// Makes a member.
    ///
    /// - This very incarnation is a live member already → `In`, as if for the
    ///   first time (a repeated request).
    /// - Another incarnation of the id is there: if it is not live, or is proven
    ///   dead, it is ended; if it lives, holds nothing and `supersede` is set,
    ///   it is ended ([`EndCause::Superseded`](tenure_core::EndCause)); else the
    ///   answer is `Taken` and nothing changes.
    /// - An incarnation that was ended never comes back by a repeated join
    ///   where the store can still tell, nor does one that is condemned: the
    ///   answer is `Taken` by that same incarnation, and the caller makes a new
    ///   one. The store need not be able to tell for ever, since a member that
    ///   does not beat is gone after its ttl.
    ///
    /// Suite: `members`.
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined>;

    /// Renews a live member for the ttl stated; answers `Ended` for any other
    /// and for a condemned one, and never revives it (rule M1).
    ///
    /// It renews everything that the member holds: as long as the member lives,
    /// no other takes any of it. A store that cannot hand a term over ignores `held`
    /// and answers with no terms. One that can answers for each term named, and
    /// confirms none that is not held by exactly this incarnation under exactly
    /// this number.
    ///
    /// Suite: `heartbeat`, `handover`.
    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat>;

    /// Ends the caller's own life, as [`EndCause`](tenure_core::EndCause)-less
    /// `Left`: releases everything this incarnation holds and only that, and
    /// its candidacies. Nothing happens if it is not a member.
    ///
    /// Suite: `members`.
    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()>;

    /// Stands for elections and wins those that are free, each bid on its own.
    ///
    /// If the caller is not a live member, or is condemned, the answer is
    /// `Ended` and nothing changes. Otherwise, for each bid in order:
    ///
    /// 1. If the caller holds a term that was handed over to it, confirmed or not,
    ///    and whose time is not over, and the priority may lead: `Won`, with that
    ///    term, which is confirmed. No bid won it, so that any is answered with it,
    ///    however late it comes. The candidacy is recorded as below.
    ///    Else, if this incarnation was the last to win the election, the nonce tells
    ///    what the bid is. The nonce it won with: a repeated request, `Won` with
    ///    the same term if it still holds it (rule E2), else `Held`. An older
    ///    nonce: a late copy, `Held`. Neither touches the candidacy.
    /// 2. The candidacy is recorded, or its priority changed; its beginning is
    ///    kept if it stood already.
    /// 3. A holder other than the caller that is not live, or is proven dead, is
    ///    ended (rule M2). A term whose holder was ended is written off (rule M5). An
    ///    unconfirmed term of another whose time is over is ended.
    /// 4. If the election is not paused, the priority may lead, and it is either
    ///    vacant and not reserved for another who lives, or held by the caller
    ///    itself under an older nonce: the number rises and the caller holds it,
    ///    `Won`. A reservation is used up; an older term of the caller's own is
    ///    journalled as `Abandoned` first.
    /// 5. Else `Held` with the view, `ahead` filled in.
    ///
    /// Of several bids for one election in a claim only the last answer says what became of
    /// the election: an earlier one may be of any moment of the step.
    ///
    /// A store that decides each bid by requests of its own answers `Unknown` for
    /// a bid whose requests failed while others' did not; if all failed, that is
    /// an error.
    ///
    /// A `Won` counts as a heartbeat with the claim's ttl in the same step, also
    /// when it repeats an earlier one: trust is counted from this request. It
    /// confirms the term.
    ///
    /// Suite: `claim`, `contention`, `faults`.
    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims>;

    /// Ends the caller's candidacies in the elections named, and the terms
    /// named if they are held by exactly this incarnation under exactly this
    /// number (rule E1). Anything else is left alone without a word: a repeated
    /// or late release changes nothing. An item that names a term not held so is
    /// such a late one; it does not end a candidacy begun since.
    ///
    /// Suite: `release`, `handover`.
    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()>;

    /// Takes, changes and drops names, all in one step, each operation on its own and in
    /// order (rule Q1).
    ///
    /// If the caller names a member that is not live or is condemned, the answer is `Ended`.
    /// If it names a fence and does not hold exactly that term, which is the newest of its
    /// election and has not lapsed, the answer is `Fenced`. Either way nothing changes (Q2).
    /// Otherwise, for each operation:
    ///
    /// - **Take** (Q3): the nonce with which this caller wrote the name last is a repeated
    ///   request: `Bound` with the same binding. If the name is bound to a life that is not
    ///   live, or is proven dead, that life is ended (rule M2). A name that is not bound, or
    ///   whose life is over, is `Bound` under a new token. Any other is `Taken`, with its
    ///   binding: also one that the same life owns, by another attempt.
    /// - **Change** and **Drop** (Q4): if the name has exactly this token and is the caller's,
    ///   or has no owner, and the revision is the one expected, the value changes under
    ///   a new revision and the same token (`Bound`), or the name is free (`Gone(None)`). A
    ///   change repeated by its nonce is `Bound`, an older one of the same life `Gone`. Else
    ///   `Gone` with the binding that is there.
    ///
    /// A `Bound` to the caller's life counts as a heartbeat with the ttl of the request, also
    /// when it repeats an earlier one (Q5). A name that an open transaction holds is
    /// `Busy`: the request waits for nothing while it keeps others waiting (Q10).
    ///
    /// A store that decides each name by requests of its own answers `Unknown` for an
    /// operation whose requests failed while others' did not, and for those after it on the
    /// same name; if all failed, that is an error.
    ///
    /// A store without names answers with an error: [`Capabilities::accepts`].
    ///
    /// Suite: `names`.
    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings>;

    /// The names asked for, all of one moment, with the revision of that moment. A binding
    /// whose owner is not live is not shown; looking never writes.
    ///
    /// [`WhichNames::Since`] gives every name that changed after the revision, as it stands
    /// now, the names that are gone, and the lives that own names. If the revision is older
    /// than what the store can still tell, of an earlier era, or ahead of the store's, all
    /// names are given, and `whole` says so (Q8).
    ///
    /// Suite: `names`.
    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView>;

    /// An operator's request, from a caller that need not be a member.
    ///
    /// `StepDown` with a number other than the present term's is `Superseded`;
    /// of a vacant election `Vacant`; a successor that is not a live candidate
    /// that may lead is `NoSuchCandidate`. A newer request replaces an older
    /// one. It ends with its term. It raises the holder's attention.
    ///
    /// Suite: `amend`.
    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended>;

    /// A consistent snapshot with its journal position. The history of elections
    /// has the end of each life that was elected there. A holder or member that
    /// is not live is not shown (rule N3: observers see vacancy); looking never
    /// writes. A condemned holder is shown until its ttl has run out.
    ///
    /// Suite: `read`.
    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot>;

    /// Entries of the journal after a place, oldest first, as many as suit the store and
    /// at least one if there are any. A place that the journal does not have, because it
    /// was trimmed or because a store that was rolled back ends before it, is answered
    /// with the place to go on from. A store without a journal has no entries.
    ///
    /// Suite: `follow`.
    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page>;

    /// Follows a namespace from now on. Reads no journal entries that were not asked for,
    /// beyond what it needs to know the hints: a reader of entries asks
    /// [`journal`](Self::journal) for them when the journal has grown.
    ///
    /// Suite: `follow`.
    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>>;

    /// What this store can and cannot do.
    ///
    /// Suite: `capabilities`.
    fn capabilities(&self) -> Capabilities;
}

/// A store that is shared.
pub type SharedStore = Arc<dyn Store>;

/// A part of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// The entries that follow, in order, none skipped; none if there are none yet.
    Entries(Vec<Entry>),
    /// The journal has no such place. Entries up to and including this one are not to be
    /// had: take a snapshot and go on from there.
    Trimmed(Seq),
}

/// A namespace that is being followed.
#[async_trait]
pub trait Following: Send + fmt::Debug {
    /// Waits for what comes next. Cancel-safe: nothing is lost when the future
    /// is dropped. After an error the same call may be made again; it goes on
    /// where it was, and what happened meanwhile is delivered.
    async fn next(&mut self) -> Result<Followed>;
}

/// Something followed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Followed {
    /// A hint, as soon as it is known. [`Hint::Anything`] comes first, and after every
    /// reconnect (H13); the journal may have grown, too, then.
    Hint(Hint),
    /// The journal has grown, up to this place as far as is known. It comes after the
    /// hints that the entries amount to, and may stand for several changes. Like a hint
    /// it only causes a look: the place may be wrong.
    Grown(Seq),
}

/// Carries a machine's request to a store.
pub async fn perform(store: &dyn Store, ns: &Namespace, request: &Request) -> Result<Reply> {
    Ok(match request {
        Request::Join(join) => Reply::Join(store.join(ns, join).await?),
        Request::Heartbeat(beat) => Reply::Heartbeat(store.heartbeat(ns, beat).await?),
        Request::Leave(member) => {
            store.leave(ns, member).await?;
            Reply::Leave
        }
        Request::Claim(claim) => Reply::Claim(store.claim(ns, claim).await?),
        Request::Release(release) => {
            store.release(ns, release).await?;
            Reply::Release
        }
        Request::Bind(bind) => Reply::Bind(store.bind(ns, bind).await?),
        Request::Read(query) => Reply::Read(store.read(ns, query).await?),
    })
}

/// A result, as the machine takes it.
pub fn to_machine(result: Result<Reply>) -> std::result::Result<Reply, Failed> {
    result.map_err(|error| Failed::from(&error))
}
