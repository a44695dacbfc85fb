//! What a store says of its elections when it is asked.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::{
    ElectionName, Entry, Examined, Incarnation, MemberId, MemberRef, MemberView, Note, Priority,
    Profile, Seq, TermNumber, Timestamp,
};

/// One election, as it stood at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElectionView {
    /// Its name.
    pub election: ElectionName,
    /// The newest number ever given out, whether or not that term still stands.
    pub number: TermNumber,
    /// Who holds it; `None` when it is vacant.
    pub holder: Option<Holder>,
    /// Set while no member may be newly elected (rule E6).
    pub paused: Option<Pause>,
    /// A step-down asked of the present term and not yet answered (rule E5).
    pub step_down: Option<StepDown>,
    /// For whom the vacancy is kept, and how much longer.
    pub reserved: Option<Reservation>,
    /// What keeps a vacancy from being won, as far as the store knows; `None` while
    /// a member holds the election. The answer to a bid knows it for certain. A read
    /// tells what can be seen without a lock that would itself be in the way of bids.
    pub held_up: Option<HeldUp>,
    /// How many live candidates that may lead come before the member that the read names:
    /// higher priority first, then longer waiting. The holder waits for nothing
    /// and is not counted, nor is a condemned member. 0 if the read
    /// names no member, or one that is not a candidate or holds the election.
    /// A store may stop counting at eight.
    pub ahead: u32,
    /// The live candidates in order of preference; filled only if the query
    /// asked for them.
    pub candidates: Vec<Candidate>,
}

impl ElectionView {
    /// An election that never had a candidate.
    pub fn vacant(election: ElectionName) -> Self {
        Self {
            election,
            number: TermNumber::NONE,
            holder: None,
            paused: None,
            step_down: None,
            reserved: None,
            held_up: None,
            ahead: 0,
            candidates: Vec::new(),
        }
    }

    /// What is left of a term that was handed over to exactly this life, and
    /// that it has not taken on yet.
    pub fn handed_to(&self, incarnation: Incarnation) -> Option<Duration> {
        let holder = self.holder.as_ref().filter(|h| h.member.incarnation == incarnation)?;
        holder.unconfirmed.then_some(holder.remaining)
    }

    /// Whether exactly this life of this member holds the election.
    pub fn is_held_by(&self, incarnation: Incarnation) -> bool {
        self.holder.as_ref().is_some_and(|h| h.member.incarnation == incarnation)
    }
}

/// Who holds an election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Which life of which member.
    pub member: MemberRef,
    /// What it publishes.
    pub profile: Profile,
    /// When it was elected, by the store's wall clock; for people.
    pub elected_at: Timestamp,
    /// The ttl the holder wrote (rule M3).
    pub ttl: Duration,
    /// What was left of it when the store answered. Count it on your own clock
    /// from the moment the answer arrived (rule T5). Of a term that was handed
    /// over and not yet taken on, it is no more than what that has left.
    pub remaining: Duration,
    /// Whether the term was handed over to it and it has not taken it on yet:
    /// see [`Release::confirm_within`](crate::Release::confirm_within).
    pub unconfirmed: bool,
}

/// A pause: no member is newly elected until it is lifted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Pause {
    /// Why.
    pub reason: Note,
    /// Who asked.
    pub by: Note,
}

/// A request to step down, meant for one term only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StepDown {
    /// The term it is meant for.
    pub number: TermNumber,
    /// Why.
    pub reason: Note,
    /// Who asked.
    pub by: Note,
    /// The candidate to hand over to, if one was named.
    pub to: Option<MemberId>,
}

/// A vacancy kept for one candidate for a short time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reservation {
    /// For whom.
    pub member: MemberId,
    /// How much longer, counted like [`Holder::remaining`].
    pub remaining: Duration,
}

/// What keeps a vacancy from being won. Printed, it says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeldUp {
    /// A transaction that is open in the database has fenced the last term, or locks
    /// its row.
    Transaction {
        /// The server's process that runs it, as the database numbers them, where that
        /// can be found out.
        process: Option<u32>,
    },
    /// Processes that worked for the last holder still run, although its life is over.
    Processes {
        /// The last holder.
        member: MemberRef,
    },
}

impl fmt::Display for HeldUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transaction { process } => {
                f.write_str("an open transaction")?;
                if let Some(process) = process {
                    write!(f, " of the database's process {process}")?;
                }
                f.write_str(
                    " has fenced the last term: end it, and set idle_in_transaction_session_timeout",
                )
            }
            Self::Processes { member: MemberRef { id, .. } } => write!(
                f,
                "processes of the last leader, {id}, still run: end them, or let \
                 `tenure evict --now {id}` free the election while they run"
            ),
        }
    }
}

/// A member standing for an election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// Which life of which member.
    pub member: MemberRef,
    /// How much it is preferred.
    pub priority: Priority,
    /// How long it has been standing.
    pub waiting: Duration,
}

/// Which elections a query is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// None of them.
    Nothing,
    /// Every election of the namespace.
    All,
    /// These; one that does not exist is answered as vacant with number 0.
    Named(Vec<ElectionName>),
    /// Those that this life of a member holds.
    HeldBy(Incarnation),
}

/// What to read. All of an answer is of one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// Which elections.
    pub which: Which,
    /// Who asks: fills [`ElectionView::ahead`]. If it asks after one election and
    /// holds that, it wants to know for how long: its own profile and the place in
    /// the journal may be left out.
    pub asker: Option<MemberRef>,
    /// Whether to list the candidates.
    pub candidates: bool,
    /// Whether to list the live members.
    pub members: bool,
    /// How many of the newest journal entries to give, at most, among those
    /// that concern the elections asked for (all entries for [`Which::All`]).
    pub history: usize,
    /// Whether to say how the store itself is doing: [`Snapshot::examined`].
    pub examine: bool,
}

impl Query {
    /// These elections, and nothing else.
    pub fn elections(names: impl IntoIterator<Item = ElectionName>) -> Self {
        Self { which: Which::Named(names.into_iter().collect()), ..Self::nothing() }
    }

    /// Every election, with candidates and members.
    pub fn everything() -> Self {
        Self { which: Which::All, candidates: true, members: true, ..Self::nothing() }
    }

    /// The live members, and nothing else.
    pub fn members() -> Self {
        Self { members: true, ..Self::nothing() }
    }

    /// How the store itself is doing, and nothing else.
    pub fn examination() -> Self {
        Self { examine: true, ..Self::nothing() }
    }

    /// What a candidate asks that waits for one election, if this is that and nothing else:
    /// which one, and who asks. A store may answer it in fewer steps.
    ///
    /// ```
    /// use tenure_core::{ElectionName, Incarnation, MemberId, MemberRef, Query};
    ///
    /// let election = ElectionName::new("nightly")?;
    /// let asker = MemberRef::new(MemberId::new("web-1")?, Incarnation::from_u128(1));
    /// let query = Query { asker: Some(asker.clone()), ..Query::elections([election.clone()]) };
    /// assert_eq!(query.as_candidates(), Some((&election, &asker)));
    /// assert_eq!(Query { history: 1, ..query }.as_candidates(), None);
    /// # Ok::<(), tenure_core::BadName>(())
    /// ```
    pub fn as_candidates(&self) -> Option<(&ElectionName, &MemberRef)> {
        let Self { which, asker, candidates: false, members: false, history: 0, examine: false } =
            self
        else {
            return None;
        };
        match which {
            Which::Named(names) => names.first().filter(|_| names.len() == 1).zip(asker.as_ref()),
            _ => None,
        }
    }

    /// Only the journal position.
    pub fn nothing() -> Self {
        Self {
            which: Which::Nothing,
            asker: None,
            candidates: false,
            members: false,
            history: 0,
            examine: false,
        }
    }
}

/// A consistent answer to a [`Query`], with its place in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Snapshot {
    /// The journal position the answer reflects: everything up to it and
    /// nothing after it. Zero where the store keeps no journal, or leaves it out.
    pub seq: Seq,
    /// The elections asked for.
    pub elections: Vec<ElectionView>,
    /// The live members, if asked for.
    pub members: Vec<MemberView>,
    /// The newest journal entries, oldest first, if asked for.
    pub history: Vec<Entry>,
    /// What the store says of itself, if asked for. Of its own moment: it need not be
    /// that of the rest.
    pub examined: Option<Examined>,
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn a_query_asks_for_what_it_is_named_after() {
        let name = ElectionName::new("e").unwrap();
        let elections = Query::elections([name.clone()]);
        assert_eq!(elections, Query { which: Which::Named(vec![name]), ..Query::nothing() });
        let all = Query::everything();
        assert!(all.which == Which::All && all.candidates && all.members);
        let members = Query::members();
        assert!(members.which == Which::Nothing && !members.candidates && members.members);
    }
}
