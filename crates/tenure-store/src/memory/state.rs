//! What one namespace remembers, and the questions asked of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tenure_core::{
    ElectionName, EndCause, Entry, Era, Happening, Incarnation, MemberId, MemberRef, Mono, Nonce,
    Pause, Priority, Profile, ReleaseCause, Seq, StepDown, Term, TermNumber, Timestamp,
};

use super::journal::{DEFAULT_BOUND, Journal};

/// How many candidacies of ended lives one step clears away at most.
const SWEPT: usize = 64;

/// One namespace in memory, without a clock, a lock or a task: every verb takes
/// the time and happens at once. [`MemoryStore`](crate::MemoryStore) puts it
/// behind the [`Store`](crate::Store) contract; a simulator steps it directly.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::*;
/// use tenure_store::MemoryState;
///
/// let mut state = MemoryState::new();
/// let (now, wall) = (Mono::from_millis(5), Timestamp::default());
/// let member = MemberRef::new(MemberId::new("web-1").unwrap(), Incarnation::from_u128(1));
/// let (ttl, profile) = (Duration::from_secs(10), Profile::default());
/// let (supersede, takes_over) = (true, true);
/// let join = Join { member: member.clone(), ttl, profile, supersede, takes_over, seen: Seq::START };
/// assert!(matches!(state.join(now, wall, &join), Joined::In { .. }));
///
/// let beat = Heartbeat { member, ttl, held: vec![] };
/// assert!(matches!(state.heartbeat(now + ttl / 2, &beat), Beat::Alive { .. }));
/// assert!(matches!(state.heartbeat(now + ttl * 2, &beat), Beat::Ended { .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryState {
    pub(super) members: BTreeMap<MemberId, Member>,
    pub(super) elections: BTreeMap<ElectionName, Election>,
    pub(super) journal: Journal,
    /// Lives that ended, with the candidacies they left behind. Nobody reads
    /// those; each step clears away a few.
    remains: VecDeque<(MemberRef, BTreeSet<ElectionName>)>,
    /// Where numbers stand, since this took over from an original it may lack the end of.
    pub(super) era: Era,
}

/// A member: one life under an id, with one heartbeat for all it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) member: MemberRef,
    pub(super) profile: Profile,
    pub(super) ttl: Duration,
    /// The last heartbeat, join or win.
    pub(super) beaten: Mono,
    pub(super) joined_at: Timestamp,
    pub(super) attention: u64,
    /// Evicted, but what it holds stays its own until its ttl has run out.
    pub(super) condemned: bool,
    /// Whether a term may be handed to it.
    pub(super) takes_over: bool,
    /// How many terms it holds.
    pub(super) holds: u32,
    /// The elections it stands for.
    pub(super) stands: BTreeSet<ElectionName>,
}

/// An election. It is kept for as long as it has a number, so that numbers
/// never go back (H5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Election {
    pub(super) number: TermNumber,
    /// In which era its number was given.
    pub(super) era: u64,
    /// Who won last and by which attempt, whether or not the term still stands.
    pub(super) won: Option<(Incarnation, Nonce)>,
    pub(super) holder: Option<Held>,
    pub(super) step_down: Option<StepDown>,
    pub(super) paused: Option<Pause>,
    pub(super) reserved: Option<Reserved>,
    pub(super) candidates: BTreeMap<MemberId, Candidacy>,
}

/// Who holds an election, under its present number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) member: MemberRef,
    pub(super) elected_at: Timestamp,
    /// Whether the term was handed over, and won by no bid.
    pub(super) handed: bool,
    /// Set while it was handed over and not taken on: until when it stands.
    pub(super) lapses: Option<Mono>,
}

/// A vacancy that is kept for one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reserved {
    pub(super) member: MemberId,
    pub(super) until: Mono,
}

/// What becomes of a vacancy; by default nothing.
#[derive(Debug, Default)]
pub(super) struct Keep<'a> {
    /// The candidate it is kept for, and how long, instead of the preferred one.
    pub(super) successor: Option<&'a (MemberId, Duration)>,
    pub(super) grace: Duration,
    /// See [`Release::hand_over`](tenure_core::Release::hand_over).
    pub(super) hand_over: Duration,
}

/// Who is next, how long a vacancy is kept for it, and how long a term that is
/// handed to it stands without a word from it.
struct Heir {
    id: MemberId,
    grace: Duration,
    unconfirmed: Duration,
}

/// One member's standing in one election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Candidacy {
    pub(super) incarnation: Incarnation,
    pub(super) priority: Priority,
    pub(super) since: Mono,
}

impl Default for MemoryState {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryState {
    /// An empty namespace, whose journal keeps 10,000 entries.
    #[must_use]
    pub fn new() -> Self {
        Self::keeping(DEFAULT_BOUND)
    }

    /// An empty namespace, whose journal keeps `bound` entries.
    #[must_use]
    pub fn keeping(bound: usize) -> Self {
        Self {
            members: BTreeMap::new(),
            elections: BTreeMap::new(),
            journal: Journal::bounded(bound),
            remains: VecDeque::new(),
            era: Era::START,
        }
    }

    /// What a copy does that takes over from an original whose last writes it
    /// may lack: a new [`Era`] begins, so that numbers which were given out and
    /// forgotten stay below the next one. The holder of a term goes on holding it, also
    /// of one that was handed over: that it was taken on may be among what is lacking.
    /// That it was given back may be too: a bid of its holder begins a new one, as
    /// everywhere else.
    pub fn promote(&mut self, wall: Timestamp) {
        self.era = self.era.raised(wall);
        for holder in self.elections.values_mut().filter_map(|e| e.holder.as_mut()) {
            holder.lapses = None;
            holder.handed = false;
        }
        // Whoever leads looks whether its term is among what is lacking.
        for member in self.members.values_mut() {
            member.attention += 1 << 20;
        }
    }

    /// A member has heard of more than the journal has: what it heard of was
    /// forgotten (rule M6). In the same step in which that is found out, and
    /// before any number is given out.
    pub(super) fn catch_up(&mut self, wall: Timestamp, seen: Seq) {
        if self.journal.last() < seen {
            self.journal.go_on_after(seen);
            self.promote(wall);
        }
    }

    /// The place of the newest journal entry.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.journal.last()
    }

    /// How often this took over, was said to be restored, or was found to have
    /// forgotten something: each time numbers jump.
    #[must_use]
    pub fn era(&self) -> Era {
        self.era
    }

    /// Every journal entry after `position`; an error with the newest place no
    /// longer kept, if some of them are gone.
    pub fn entries_after(&self, position: Seq) -> Result<Vec<Entry>, Seq> {
        self.journal.after(position)
    }

    /// A member that others must reckon with, under any incarnation.
    pub(super) fn live(&self, now: Mono, id: &MemberId) -> Option<&Member> {
        self.members.get(id).filter(|m| m.is_live(now))
    }

    /// Exactly this life, if it may still act for itself: live, not condemned.
    pub(super) fn acting(&mut self, now: Mono, member: &MemberRef) -> Option<&mut Member> {
        let found = self.members.get_mut(&member.id)?;
        (found.member == *member && found.is_live(now) && !found.condemned).then_some(found)
    }

    /// Exactly this life, live or not, as long as nobody ended it.
    pub(super) fn recorded(&self, member: &MemberRef) -> Option<&Member> {
        self.members.get(&member.id).filter(|m| m.member == *member)
    }

    /// Whether another life goes by this one's id.
    pub(super) fn superseded(&self, member: &MemberRef) -> bool {
        self.members.get(&member.id).is_some_and(|m| m.member != *member)
    }

    /// How many terms this life holds.
    pub(super) fn holds(&self, member: &MemberRef) -> u32 {
        self.recorded(member).map_or(0, |m| m.holds)
    }

    /// Who holds an election, unless the term ended with its holder's life (rule
    /// M5).
    pub(super) fn reigning<'a>(&self, election: &'a Election) -> Option<&'a Held> {
        election.holder.as_ref().filter(|held| self.recorded(&held.member).is_some())
    }

    /// Those who could lead if the election were vacant, the preferred first:
    /// live, not condemned, of a priority that may lead; by priority, then by
    /// how long they have waited. The holder waits for nothing.
    pub(super) fn ranked(&self, now: Mono, election: &Election) -> Vec<MemberId> {
        let mut ranked: Vec<_> = election
            .candidates
            .iter()
            .filter(|(id, c)| c.priority.may_lead() && self.stands(now, id, c))
            .filter(|(id, _)| self.reigning(election).is_none_or(|h| h.member.id != **id))
            .collect();
        ranked.sort_by_key(|(id, c)| (std::cmp::Reverse(c.priority), c.since, (*id).clone()));
        ranked.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// Whether a candidacy belongs to a member that lives and may act.
    pub(super) fn stands(&self, now: Mono, id: &MemberId, candidacy: &Candidacy) -> bool {
        self.live(now, id)
            .is_some_and(|m| m.member.incarnation == candidacy.incarnation && !m.condemned)
    }

    /// The heir for whom a vacancy is still kept: the time has not run out, and
    /// the heir lives.
    pub(super) fn reservation<'a>(
        &self,
        now: Mono,
        election: &'a Election,
    ) -> Option<&'a Reserved> {
        let kept = election.reserved.as_ref()?;
        (now < kept.until && self.live(now, &kept.member).is_some()).then_some(kept)
    }

    /// Ends a member (rule M2). No heartbeat in flight finds it alive from here on.
    pub(super) fn end(&mut self, wall: Timestamp, member: &MemberRef, cause: EndCause) {
        self.journal.write(wall, Happening::Ended { member: member.clone(), cause });
        self.remove(member);
    }

    /// Removes a member, at the same cost whatever it held (rule M5). Its terms and
    /// candidacies are void with its life: nobody reads them any more. A term is
    /// written off by [`settle`](Self::settle) when somebody bids for it.
    pub(super) fn remove(&mut self, member: &MemberRef) {
        if let Some(removed) = self.members.remove(&member.id)
            && !removed.stands.is_empty()
        {
            self.remains.push_back((removed.member, removed.stands));
        }
        self.sweep();
    }

    /// Clears away candidacies of ended lives, a bounded number in each step.
    pub(super) fn sweep(&mut self) {
        for _ in 0..SWEPT {
            let Some((member, stood)) = self.remains.front_mut() else { return };
            let member = member.clone();
            let name = stood.pop_first();
            if stood.is_empty() {
                self.remains.pop_front();
            }
            let Some(name) = name else { continue };
            if let Some(election) = self.elections.get_mut(&name) {
                election.withdraw(&member);
            }
            self.forget_if_unused(&name);
        }
    }

    /// Writes off a term that ended with its holder's life, and keeps the vacancy
    /// for its heir. The cause is the life's, for as long as the journal has it.
    pub(super) fn settle(
        &mut self,
        now: Mono,
        wall: Timestamp,
        name: &ElectionName,
        grace: Duration,
    ) {
        let holder = self.elections.get(name).and_then(|e| e.holder.as_ref());
        let void = holder.filter(|held| self.recorded(&held.member).is_none());
        let Some(known) = void.map(|held| self.journal.end_of(&held.member)) else { return };
        let cause = known.unwrap_or(ReleaseCause::Ended(EndCause::Expired));
        self.vacate(now, wall, name, cause, &Keep { grace, ..Keep::default() });
    }

    /// Ends a candidacy of a member.
    pub(super) fn withdraw(&mut self, name: &ElectionName, member: &MemberRef) {
        if let Some(election) = self.elections.get_mut(name) {
            election.withdraw(member);
        }
        if let Some(found) = self.members.get_mut(&member.id).filter(|m| m.member == *member) {
            found.stands.remove(name);
        }
    }

    /// Makes an election vacant and keeps the vacancy for its heir, or hands it
    /// over to the heir at once.
    pub(super) fn vacate(
        &mut self,
        now: Mono,
        wall: Timestamp,
        name: &ElectionName,
        cause: ReleaseCause,
        keep: &Keep<'_>,
    ) {
        let Some(election) = self.elections.get(name) else { return };
        let Some(holder) = election.holder.as_ref().map(|h| h.member.clone()) else { return };
        // Ranked while the holder is still there, so that it is not its own heir.
        let heir = self.heir(now, election, keep);
        let handed = heir.as_ref().and_then(|heir| self.handed_to(election, heir, keep));
        let kept = heir.filter(|h| handed.is_none() && !h.grace.is_zero());
        let Some(election) = self.elections.get_mut(name) else { return };
        let number = election.number;
        election.holder = None;
        election.step_down = None;
        election.reserved = kept.map(|h| Reserved { member: h.id, until: now + h.grace });
        let heir = election.reserved.as_ref().map(|r| r.member.clone());
        if let Some(heir) = heir.as_ref().and_then(|id| self.members.get_mut(id)) {
            heir.attention += 1;
        }
        if let Some(holder) = self.members.get_mut(&holder.id).filter(|m| m.member == holder) {
            holder.holds -= 1;
        }
        let election = name.clone();
        let what = Happening::Released { election, number, member: holder, cause, heir };
        self.journal.write(wall, what);
        if let Some((heir, grace)) = handed {
            self.elect(wall, name, heir, None, Some(now + grace));
        }
    }

    /// Who is next: the successor named if it is there to take over, or else
    /// whoever is preferred.
    fn heir(&self, now: Mono, election: &Election, keep: &Keep<'_>) -> Option<Heir> {
        let ranked = self.ranked(now, election);
        let named = keep.successor.filter(|(id, _)| ranked.contains(id));
        if let Some((id, grace)) = named {
            return Some(Heir { id: id.clone(), grace: *grace, unconfirmed: *grace });
        }
        let id = ranked.into_iter().next()?;
        Some(Heir { id, grace: keep.grace, unconfirmed: keep.hand_over })
    }

    /// The heir's life and how long the term stands without a word from it, if
    /// the election goes to it at once: it is not paused (rule E6), and both
    /// sides want it.
    fn handed_to(
        &self,
        election: &Election,
        heir: &Heir,
        keep: &Keep<'_>,
    ) -> Option<(MemberRef, Duration)> {
        let wanted = !keep.hand_over.is_zero() && !heir.unconfirmed.is_zero();
        let member = self.members.get(&heir.id).filter(|member| member.takes_over)?;
        (wanted && election.paused.is_none()).then(|| (member.member.clone(), heir.unconfirmed))
    }

    /// Begins a new term, with a number never used before (H5, H6). A
    /// reservation is used up.
    pub(super) fn elect(
        &mut self,
        wall: Timestamp,
        name: &ElectionName,
        member: MemberRef,
        nonce: Option<Nonce>,
        lapses: Option<Mono>,
    ) -> Term {
        let era = self.era;
        let election = self.elections.entry(name.clone()).or_default();
        election.number = era.number_after(election.number, election.era);
        election.era = era.count();
        election.won_by(&member, nonce.unwrap_or_default());
        let handed = nonce.is_none();
        election.holder = Some(Held { member: member.clone(), elected_at: wall, handed, lapses });
        election.step_down = None;
        election.reserved = None;
        let (number, elected_at) = (election.number, wall);
        if let Some(holder) = self.members.get_mut(&member.id) {
            holder.holds += 1;
        }
        let term = Term { election: name.clone(), number, member, elected_at };
        self.journal.write(wall, Happening::Elected { term: term.clone() });
        term
    }

    /// Drops an election that nobody ever won, stands for or has paused (H27).
    pub(super) fn forget_if_unused(&mut self, name: &ElectionName) {
        if self.elections.get(name).is_some_and(|e| *e == Election::default()) {
            self.elections.remove(name);
        }
    }
}

impl Member {
    /// Less than the ttl it wrote itself has passed (rule M3).
    pub(super) fn is_live(&self, now: Mono) -> bool {
        !self.remaining(now).is_zero()
    }

    /// What is left of that ttl.
    pub(super) fn remaining(&self, now: Mono) -> Duration {
        (self.beaten + self.ttl).since(now)
    }

    /// Why it is ended once its ttl has run out.
    pub(super) fn fate(&self) -> EndCause {
        if self.condemned { EndCause::Evicted } else { EndCause::Expired }
    }
}

impl Election {
    /// Remembers who won last, and the newest of its attempts.
    pub(super) fn won_by(&mut self, member: &MemberRef, nonce: Nonce) {
        let own = self.won.filter(|(winner, _)| *winner == member.incarnation);
        let newest = own.map_or(nonce, |(_, known)| known.max(nonce));
        self.won = Some((member.incarnation, newest));
    }

    /// What is left of a term that was handed over and not taken on; `None` for
    /// any other.
    pub(super) fn unconfirmed(&self, now: Mono) -> Option<Duration> {
        Some(self.holder.as_ref()?.lapses?.since(now))
    }

    /// Whether nobody took on in time what was handed over.
    pub(super) fn has_lapsed(&self, now: Mono) -> bool {
        self.unconfirmed(now).is_some_and(|left| left.is_zero())
    }

    /// Whether exactly this life holds it (rule E1).
    pub(super) fn is_held_by(&self, member: &MemberRef) -> bool {
        self.holder.as_ref().is_some_and(|h| h.member == *member)
    }

    /// Ends exactly this life's candidacy, and what was kept for it.
    pub(super) fn withdraw(&mut self, member: &MemberRef) {
        let stands = self.candidates.get(&member.id);
        if stands.is_some_and(|c| c.incarnation == member.incarnation) {
            self.candidates.remove(&member.id);
            self.reserved.take_if(|r| r.member == member.id);
        }
    }
}
