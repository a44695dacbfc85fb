//! The rows of a namespace, and how the rules reach them.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_core::{
    ElectionName, Entry, Era, Incarnation, MemberId, MemberRef, Mono, Name, Nonce, Pause, Priority,
    Profile, Rev, Seq, StepDown, TermNumber, Timestamp, Token, Value, WhichNames,
};

/// The moment at which a step happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// By the clock that judges, read no earlier than the rows are locked (rule M2).
    pub now: Mono,
    /// By the wall clock; for people.
    pub wall: Timestamp,
}

/// A member: one life under an id, with one heartbeat for all it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberRow {
    /// Which life of which member.
    pub member: MemberRef,
    /// What it publishes.
    pub profile: Profile,
    /// The ttl that it wrote last (rule M3).
    pub ttl: Duration,
    /// When that ttl runs out, on the clock of [`Moment::now`].
    pub until: Mono,
    /// When it joined; for people.
    pub joined_at: Timestamp,
    /// Rises whenever an operator or another member asks something of it.
    pub attention: u64,
    /// Evicted, but what it holds stays its own until its ttl has run out.
    pub condemned: bool,
    /// Whether it may be elected as an heir: see [`Join::inherits`](tenure_core::Join::inherits).
    pub inherits: bool,
    /// How many terms it holds.
    pub holds: u32,
}

impl MemberRow {
    /// What is left of its ttl.
    #[must_use]
    pub fn remaining(&self, now: Mono) -> Duration {
        self.until.since(now)
    }

    /// Whether its ttl has not run out.
    #[must_use]
    pub fn is_live(&self, now: Mono) -> bool {
        now < self.until
    }
}

/// An election. It is kept for as long as it has a number, so that numbers never go
/// back (H5); a purge that removes it leaves a [`ForgottenRow`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElectionRow {
    /// Its name.
    pub name: ElectionName,
    /// The newest number ever given out.
    pub number: TermNumber,
    /// In which era that number was given.
    pub era: u64,
    /// The last winner and the newest of its attempts, whether or not the term stands.
    pub won: Option<(Incarnation, Nonce)>,
    /// The holder of the term. A holder whose life has no row holds nothing: the term is
    /// void (rule M5).
    pub holder: Option<Held>,
    /// A step-down asked of the present term.
    pub step_down: Option<StepDown>,
    /// Set while no member may be newly elected.
    pub paused: Option<Pause>,
    /// The candidate that the vacancy is kept for.
    pub reserved: Option<Reserved>,
    /// When a term of it last began or ended. Only a purge goes by it.
    pub changed_at: Timestamp,
}

/// The holder of an election, under its present number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// Which life of which member.
    pub member: MemberRef,
    /// When it was elected; for people.
    pub elected_at: Timestamp,
    /// Whether the term was handed over, and won by no bid. Means nothing once the era
    /// is a later one than the election's.
    pub handed: bool,
    /// Until when the term stands although its holder has not confirmed it. Means
    /// nothing once the era is a later one than the election's.
    pub lapses: Option<Mono>,
}

/// A vacancy that is kept for one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reserved {
    /// The candidate.
    pub member: MemberId,
    /// Until when.
    pub until: Mono,
}

impl ElectionRow {
    /// An election that never had a candidate.
    #[must_use]
    pub fn new(name: ElectionName) -> Self {
        Self {
            name,
            number: TermNumber::NONE,
            era: 0,
            won: None,
            holder: None,
            step_down: None,
            paused: None,
            reserved: None,
            changed_at: Timestamp::default(),
        }
    }

    /// Whether exactly this life holds it (rule E1).
    #[must_use]
    pub fn is_held_by(&self, member: &MemberRef) -> bool {
        self.holder.as_ref().is_some_and(|held| held.member == *member)
    }
}

/// One member's candidacy in one election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CandidacyRow {
    /// The election.
    pub election: ElectionName,
    /// Which life of which member.
    pub member: MemberRef,
    /// How much it is preferred.
    pub priority: Priority,
    /// The journal's place of its beginning: it orders candidates without comparing
    /// clocks.
    pub stood: Seq,
    /// When it began.
    pub since: Mono,
}

/// A name that is bound. A name whose owner's life has no row is void: no answer
/// shows it, and it is free (rule M5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NameRow {
    /// The name.
    pub name: Name,
    /// The revision at which it was taken.
    pub token: Token,
    /// The revision of its last change.
    pub rev: Rev,
    /// Which life owns it; `None` if it has no owner.
    pub owner: Option<MemberRef>,
    /// The life that took or changed it last, if a member did.
    pub by: Option<Incarnation>,
    /// The attempt by which that was done.
    pub nonce: Nonce,
    /// What is published with it.
    pub value: Value,
    /// When it was taken; for people.
    pub bound_at: Timestamp,
}

/// Where the names of a namespace stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct NamesRow {
    /// The revision of the newest change.
    pub rev: Rev,
    /// In which era that was.
    pub era: u64,
    /// What changed after a revision can be told of this one and later ones.
    pub kept_from: Rev,
}

/// What a namespace keeps of the elections that were purged: no number of theirs comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ForgottenRow {
    /// No number that was forgotten is above this one.
    pub number: TermNumber,
    /// In which era that was so.
    pub era: u64,
}

/// Rows of one namespace, to be read at one moment.
///
/// A store reads a row when it is asked for it, and no other: a rule asks only for what it
/// touches. Each method says which index answers it, so that a request costs the same
/// whatever else the namespace holds.
///
/// Rows are of one consistent state. What an accessor cannot read is its `Error`; the
/// rules pass it on, and nothing of the step may be kept then.
pub trait ReadRows {
    /// What can go wrong in reading or writing a row.
    type Error;

    /// The member that goes by this id, whether or not it is live. Key: the id.
    fn member(&self, id: &MemberId) -> Result<Option<MemberRow>, Self::Error>;

    /// Every member, by id.
    fn members(&self) -> Result<Vec<MemberRow>, Self::Error>;

    /// Every member that holds nothing, by id.
    fn idle_members(&self) -> Result<Vec<MemberRow>, Self::Error>;

    /// Whether the store can prove that the member's process is dead (rule M4).
    fn is_proven_dead(&self, member: &MemberRow) -> Result<bool, Self::Error>;

    /// Whether processes are known to work under the member, dead or alive: then others
    /// do not end it.
    fn is_at_work(&self, member: &MemberRow) -> Result<bool, Self::Error>;

    /// An election. Key: the name.
    fn election(&self, name: &ElectionName) -> Result<Option<ElectionRow>, Self::Error>;

    /// Every election, by name.
    fn elections(&self) -> Result<Vec<ElectionRow>, Self::Error>;

    /// Elections by name, those after one if it is given, `most` of them at most. Key: the
    /// name.
    fn elections_after(
        &self,
        after: Option<&ElectionName>,
        most: usize,
    ) -> Result<Vec<ElectionRow>, Self::Error>;

    /// What is kept of the elections that were purged.
    fn forgotten(&self) -> Result<ForgottenRow, Self::Error>;

    /// The elections whose holder is this life, by name. Key: the holder's life.
    fn elections_held_by(&self, life: Incarnation) -> Result<Vec<ElectionRow>, Self::Error>;

    /// The candidacy of a member, of whichever life. Key: the election and the id.
    fn candidacy(
        &self,
        election: &ElectionName,
        id: &MemberId,
    ) -> Result<Option<CandidacyRow>, Self::Error>;

    /// The candidacies in an election whose very life has a row, with that row, in any
    /// order. Key: the election.
    fn candidates(
        &self,
        election: &ElectionName,
    ) -> Result<Vec<(CandidacyRow, MemberRow)>, Self::Error>;

    /// Whether an election has any candidacy, also of a life that is over.
    fn has_candidates(&self, election: &ElectionName) -> Result<bool, Self::Error>;

    /// The elections that this very life stands for, `most` of them at most. Key: the
    /// life.
    fn candidacies_of(
        &self,
        member: &MemberRef,
        most: usize,
    ) -> Result<Vec<ElectionName>, Self::Error>;

    /// Some life that is over and still has candidacies or names.
    fn remains(&self) -> Result<Option<MemberRef>, Self::Error>;

    /// Where the names stand.
    fn names(&self) -> Result<NamesRow, Self::Error>;

    /// A name, whether or not its owner lives. Key: the name.
    fn name(&self, name: &Name) -> Result<Option<NameRow>, Self::Error>;

    /// The names that were asked for, in their order, whether or not their owners live.
    /// Keys: the name, the owner's life, the revision.
    fn names_asked(&self, which: &WhichNames) -> Result<Vec<NameRow>, Self::Error>;

    /// Names in their order, after one if it is given, `most` of them at most.
    fn names_after(&self, after: Option<&Name>, most: usize) -> Result<Vec<NameRow>, Self::Error>;

    /// The names that were dropped after this revision, each once, by name. Key: the
    /// revision.
    fn names_gone(&self, since: Rev) -> Result<Vec<Name>, Self::Error>;

    /// The names of this very life, `most` of them at most. Key: the owner's life.
    fn names_of(&self, life: &MemberRef, most: usize) -> Result<Vec<Name>, Self::Error>;

    /// What decides the next number.
    fn era(&self) -> Result<Era, Self::Error>;

    /// The place of the newest journal entry.
    fn seq(&self) -> Seq;

    /// The journal entry that tells how this life ended, if it is still kept. Key: the
    /// life.
    fn end_of(&self, life: &MemberRef) -> Result<Option<Entry>, Self::Error>;

    /// The newest `most` journal entries, oldest first; of one election if it is named.
    /// Key: the election and the place.
    fn newest(
        &self,
        election: Option<&ElectionName>,
        most: usize,
    ) -> Result<Vec<Entry>, Self::Error>;
}

/// Rows of one namespace, to be changed in one atomic step.
///
/// A row that was written is what the next read of the same step finds.
pub trait WriteRows: ReadRows {
    /// Adds a member. Its ttl begins now.
    fn add_member(&mut self, row: &MemberRow) -> Result<(), Self::Error>;

    /// Writes a member's row, except for its ttl and when that runs out: only
    /// [`renew_member`](Self::renew_member) changes those.
    fn put_member(&mut self, row: &MemberRow) -> Result<(), Self::Error>;

    /// Lets a member live for this ttl from `now` on.
    fn renew_member(
        &mut self,
        member: &MemberRef,
        now: Mono,
        ttl: Duration,
    ) -> Result<(), Self::Error>;

    /// Removes the row of exactly this life.
    fn remove_member(&mut self, member: &MemberRef) -> Result<(), Self::Error>;

    /// Adds or replaces an election.
    fn put_election(&mut self, row: &ElectionRow) -> Result<(), Self::Error>;

    /// Writes what is kept of the elections that were purged.
    fn put_forgotten(&mut self, row: &ForgottenRow) -> Result<(), Self::Error>;

    /// Removes an election whose number is 0, or no higher than what was written by
    /// [`put_forgotten`](Self::put_forgotten) before.
    fn remove_election(&mut self, name: &ElectionName) -> Result<(), Self::Error>;

    /// Adds or replaces the candidacy of a member in an election.
    fn put_candidacy(&mut self, row: &CandidacyRow) -> Result<(), Self::Error>;

    /// Removes the candidacy of exactly this life, and says whether there was one.
    fn remove_candidacy(
        &mut self,
        election: &ElectionName,
        member: &MemberRef,
    ) -> Result<bool, Self::Error>;

    /// Writes where the names stand.
    fn put_names(&mut self, row: &NamesRow) -> Result<(), Self::Error>;

    /// Adds or replaces a name.
    fn put_name(&mut self, row: &NameRow) -> Result<(), Self::Error>;

    /// Removes a name.
    fn remove_name(&mut self, name: &Name) -> Result<(), Self::Error>;

    /// Remembers that a name was dropped at this revision.
    fn add_gone(&mut self, rev: Rev, name: &Name) -> Result<(), Self::Error>;

    /// Forgets names that were dropped before this revision, the oldest first, `most` of them
    /// at most, and says how many.
    fn forget_gone(&mut self, before: Rev, most: usize) -> Result<usize, Self::Error>;

    /// Remembers a life that is over and still has candidacies or names.
    fn add_remains(&mut self, member: &MemberRef) -> Result<(), Self::Error>;

    /// Forgets a life that has no candidacies and no names any more.
    fn remove_remains(&mut self, member: &MemberRef) -> Result<(), Self::Error>;

    /// Appends a journal entry, whose place follows [`seq`](ReadRows::seq).
    fn append(&mut self, entry: Entry) -> Result<(), Self::Error>;

    /// Forgets every journal entry. The place of the newest stays.
    fn forget_entries(&mut self) -> Result<(), Self::Error>;

    /// Lets the journal go on after this place. What it lacks up to there is told as
    /// entries that are no longer kept.
    fn go_on_after(&mut self, place: Seq) -> Result<(), Self::Error>;

    /// Begins this era, and raises the attention of every member by 2^20, so that it looks
    /// whether its term is among what was forgotten. When and why is kept for operators.
    fn begin_era(&mut self, era: Era, wall: Timestamp, cause: EraCause) -> Result<(), Self::Error>;
}

/// Why an era began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EraCause {
    /// An operator said that the store was restored.
    Restored,
    /// A member had seen more of the journal than the store has.
    Seen,
    /// A note beside the store says that it held more.
    Noted,
    /// A copy took over from its original.
    TookOver,
}

impl EraCause {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EraCause::Restored => "it was said to be restored",
            EraCause::Seen => "a member had seen more of the journal than the store has",
            EraCause::Noted => "the store has less than the note beside it says that it held",
            EraCause::TookOver => "a copy took over from its original",
        }
    }
}
