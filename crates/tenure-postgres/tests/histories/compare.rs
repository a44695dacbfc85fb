//! What two answers have to have in common, and in what they may differ:
//!
//! - **Wall times** are for people. What is left of a time is compared in whole units.
//! - **Numbers** are the same until an era begins, and then go by each side's clock: the
//!   n-th term of an election is compared with the n-th, and both jump, or neither does.
//! - **The order of entries** that one step wrote: PostgreSQL makes what is new in a claim
//!   first. Of each election, and of each member, the order is the same.
//! - **An election that a claim names twice** is answered for the last bid: the contract says so.
//! - **The views of a claim** show what its last bid left: a later bid may be a heartbeat of
//!   the member that holds what an earlier one did not win.
//! - **A heartbeat** may leave out the place in the journal.
//! - **A candidate's look** at what it holds may leave out the profile and the place in
//!   the journal.
//! - **The holder among the candidates** may have stood since its term began: it waits for
//!   nothing.
//! - **A name of a life whose ttl has run out** may be told as gone or as bound for a
//!   moment more: PostgreSQL ends all whom a request ends before it answers the first part.
//! - **After a rollback** the specification no longer knows how a life ended, and
//!   PostgreSQL still does.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{
    Amended, Beat, Bindings, Candidate, Claimed, Claims, ElectionName, ElectionView, EndCause,
    Entry, Era, Happening, Joined, NamesView, Profile, ReleaseCause, Seq, Snapshot, Term,
    TermNumber, TermOutcome, Timestamp, Which,
};

use crate::names::{self, Revs};
use crate::steps::Number;
use crate::world::{Asked, UNIT};

/// What a side answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Join(Joined),
    Beat(Beat),
    Claim(Claims),
    /// With the election that it is about.
    Amend(Option<ElectionName>, Amended),
    Read(Snapshot),
    /// With the election of its fence.
    Bind(Option<ElectionName>, Bindings),
    Names(NamesView),
    Nothing,
}

/// The numbers that each election gave out, in their order, on both sides.
#[derive(Default)]
pub struct Numbers(BTreeMap<ElectionName, Vec<Pair>>);

#[derive(Clone, Copy)]
struct Pair {
    spec: TermNumber,
    ours: TermNumber,
}

impl Numbers {
    /// Takes up what was elected since the last time.
    pub fn learn(&mut self, spec: &[Entry], ours: &[Entry]) -> Result<(), String> {
        let mut elected: BTreeMap<_, (Vec<_>, Vec<_>)> = BTreeMap::new();
        for term in spec.iter().filter_map(elected_term) {
            elected.entry(&term.election).or_default().0.push(term.number);
        }
        for term in ours.iter().filter_map(elected_term) {
            elected.entry(&term.election).or_default().1.push(term.number);
        }
        for (name, (spec, ours)) in elected {
            if spec.len() != ours.len() {
                return Err(format!("{name:?} was won {spec:?} by the rules, {ours:?} here"));
            }
            for (spec, ours) in spec.into_iter().zip(ours) {
                self.follow(name, Pair { spec, ours })?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, name: &ElectionName, next: Pair) -> Result<(), String> {
        let known = self.0.entry(name.clone()).or_default();
        let none = Pair { spec: TermNumber::NONE, ours: TermNumber::NONE };
        let last = known.last().copied().unwrap_or(none);
        let spec = next.spec.get() - last.spec.get();
        let ours = next.ours.get().checked_sub(last.ours.get());
        // Numbers go on by one, by more where an election is founded above what was forgotten,
        // or jump by at least what an era is worth.
        let sound = match ours {
            Some(1) => spec == 1,
            Some(step) if step < Era::JUMP => step > 1 && step == spec,
            Some(step) => step >= Era::JUMP && spec >= Era::JUMP,
            None => false,
        };
        known.push(next);
        sound.then_some(()).ok_or_else(|| {
            let rules = (last.spec, next.spec);
            format!("{name:?} goes on {:?} by the rules, {:?} here", rules, (last.ours, next.ours))
        })
    }

    /// PostgreSQL's number for one of the specification's.
    pub fn ours(&self, name: &ElectionName, spec: TermNumber) -> TermNumber {
        self.pairs(name).find(|pair| pair.spec == spec).map_or(spec, |pair| pair.ours)
    }

    fn spec(&self, name: &ElectionName, ours: TermNumber) -> TermNumber {
        self.pairs(name).find(|pair| pair.ours == ours).map_or(ours, |pair| pair.spec)
    }

    fn pairs(&self, name: &ElectionName) -> impl DoubleEndedIterator<Item = &Pair> {
        self.0.get(name).into_iter().flatten()
    }

    /// A number of the specification's that a request names.
    pub fn named(&self, name: &ElectionName, number: Number) -> TermNumber {
        let mut newest = self.pairs(name).rev().map(|pair| pair.spec);
        let found = match number {
            Number::Newest => newest.next(),
            Number::Former => newest.nth(1),
            Number::Wrong => newest.next().map(|number| TermNumber::new(number.get() + 7)),
        };
        found.unwrap_or(TermNumber::new(1))
    }
}

fn elected_term(entry: &Entry) -> Option<&Term> {
    match &entry.what {
        Happening::Elected { term, .. } => Some(term),
        _ => None,
    }
}

/// Whether both sides say the same; or else what each says.
pub fn alike(
    (numbers, revs): (&Numbers, &Revs),
    forgot: bool,
    spec: Answer,
    ours: Answer,
) -> Result<(), String> {
    let same = |_: &ElectionName, number| number;
    let spec = Plain { number: &same, rev: &|rev| rev, forgot }.answer(spec);
    let translated = |name: &ElectionName, number| numbers.spec(name, number);
    let ours = Plain { number: &translated, rev: &|rev| revs.spec(rev), forgot }.answer(ours);
    if spec == ours {
        return Ok(());
    }
    let rules = spec.lines();
    let here = ours.lines();
    let only = |these: &[String], others: &[String]| -> String {
        these
            .iter()
            .filter(|line| !others.contains(line))
            .map(|line| format!("  {line}\n"))
            .collect()
    };
    Err(format!("by the rules\n{}PostgreSQL\n{}", only(&rules, &here), only(&here, &rules)))
}

impl Answer {
    /// A line for each part that can differ by itself.
    fn lines(&self) -> Vec<String> {
        match self {
            Answer::Read(snapshot) => {
                let seq = [format!("{:?}", snapshot.seq)].into_iter();
                let elections = snapshot.elections.iter().map(|view| format!("{view:?}"));
                let members = snapshot.members.iter().map(|member| format!("{member:?}"));
                let history = snapshot.history.iter().map(|entry| format!("{entry:?}"));
                seq.chain(elections).chain(members).chain(history).collect()
            }
            Answer::Claim(Claims::Answered(answers)) => {
                answers.iter().map(|answer| format!("{answer:?}")).collect()
            }
            other => vec![format!("{other:?}")],
        }
    }

    /// Without what this request may leave unanswered.
    pub fn leaving_out(mut self, asked: &Asked) -> Self {
        match (&mut self, asked) {
            (Answer::Claim(Claims::Answered(answers)), Asked::Claim(claim)) => {
                for (place, bid) in claim.bids.iter().enumerate() {
                    let again = claim.bids[place + 1..].iter();
                    if again.map(|later| &later.election).any(|name| *name == bid.election) {
                        answers[place] = Claimed::Unknown(bid.election.clone());
                    }
                }
                for view in answers.iter_mut().filter_map(held) {
                    if let Some(own) = view.holder.as_mut().filter(|h| h.member == claim.member) {
                        own.ttl = Duration::ZERO;
                        own.remaining = Duration::ZERO;
                    }
                }
            }
            (Answer::Beat(Beat::Alive { seq, .. }), _) => *seq = Seq::START,
            (Answer::Read(snapshot), Asked::Read(query)) => {
                let asker = query.asker.as_ref().map(|asker| asker.incarnation);
                let named = matches!(query.which, Which::Named(_));
                if named && asker.is_some_and(|life| snapshot.elections[0].is_held_by(life)) {
                    snapshot.seq = Seq::START;
                    for holder in snapshot.elections.iter_mut().filter_map(|e| e.holder.as_mut()) {
                        holder.profile = Profile::default();
                    }
                }
            }
            _ => {}
        }
        self
    }
}

/// An era calls its members by the floor of its numbers, which goes by the clock of each side:
/// that it called is what both say. The machine asks no more of it ([`tenure_core::Era::calls`]).
fn called(attention: &mut u64) {
    *attention = (*attention).min(1 << 20);
}

fn held(claimed: &mut Claimed) -> Option<&mut ElectionView> {
    match claimed {
        Claimed::Held(view) => Some(view),
        _ => None,
    }
}

/// Takes away in what answers may differ.
struct Plain<'a> {
    number: &'a dyn Fn(&ElectionName, TermNumber) -> TermNumber,
    rev: &'a dyn Fn(u64) -> u64,
    forgot: bool,
}

impl Plain<'_> {
    fn answer(&self, mut answer: Answer) -> Answer {
        match &mut answer {
            Answer::Join(Joined::Taken { remaining, .. }) => round(remaining),
            Answer::Join(Joined::In { attention, .. }) => called(attention),
            Answer::Amend(election, Amended::Done { number, remaining, .. }) => {
                round(remaining);
                if let Some((election, number)) = election.as_ref().zip(number.as_mut()) {
                    *number = (self.number)(election, *number);
                }
            }
            Answer::Amend(Some(election), Amended::Superseded { number }) => {
                *number = (self.number)(election, *number);
            }
            Answer::Beat(Beat::Alive { attention, terms, .. }) => {
                called(attention);
                for beat in terms {
                    let name = beat.term.election.clone();
                    beat.term.number = (self.number)(&name, beat.term.number);
                    if let TermOutcome::Renewed { step_down: Some(asked) } = &mut beat.outcome {
                        asked.number = (self.number)(&name, asked.number);
                    }
                }
            }
            Answer::Claim(Claims::Answered(answers)) => {
                answers.iter_mut().for_each(|claimed| self.claimed(claimed));
            }
            Answer::Read(snapshot) => self.snapshot(snapshot),
            Answer::Bind(Some(election), Bindings::Fenced { newest }) => {
                *newest = (self.number)(election, *newest);
            }
            Answer::Bind(_, Bindings::Answered(answers)) => {
                for answer in answers {
                    names::plain(answer, self.rev);
                }
            }
            Answer::Names(view) => names::plain_view(view, self.rev),
            _ => {}
        }
        answer
    }

    fn claimed(&self, claimed: &mut Claimed) {
        match claimed {
            Claimed::Won(term) => self.term(term),
            Claimed::Held(view) => self.view(view),
            Claimed::Unknown(_) => {}
        }
    }

    fn term(&self, term: &mut Term) {
        term.number = (self.number)(&term.election, term.number);
        term.elected_at = Timestamp::default();
    }

    fn view(&self, view: &mut ElectionView) {
        view.number = (self.number)(&view.election, view.number);
        if let Some(asked) = &mut view.step_down {
            asked.number = (self.number)(&view.election, asked.number);
        }
        if let Some(holder) = &mut view.holder {
            holder.elected_at = Timestamp::default();
            round(&mut holder.remaining);
        }
        if let Some(kept) = &mut view.reserved {
            round(&mut kept.remaining);
        }
        for candidate in &mut view.candidates {
            round(&mut candidate.waiting);
        }
        let holder = view.holder.as_ref().map(|holder| &holder.member);
        let holds = |candidate: &Candidate| Some(&candidate.member) == holder;
        for candidate in view.candidates.iter_mut().filter(|candidate| holds(candidate)) {
            candidate.waiting = Duration::ZERO;
        }
        view.candidates.sort_by_key(|candidate| !holds(candidate));
    }

    fn snapshot(&self, snapshot: &mut Snapshot) {
        snapshot.elections.iter_mut().for_each(|view| self.view(view));
        for member in &mut snapshot.members {
            member.joined_at = Timestamp::default();
            round(&mut member.remaining);
        }
        for entry in &mut snapshot.history {
            entry.at = Timestamp::default();
            entry.seq = Seq::START;
            self.entry(&mut entry.what);
        }
        // Stable: of each election, and of each member, the order stays.
        snapshot.history.sort_by_key(|entry| concerned(&entry.what));
    }

    fn entry(&self, what: &mut Happening) {
        match what {
            Happening::Elected { term, .. } => self.term(term),
            Happening::Released { election, number, cause, .. } => {
                *number = (self.number)(election, *number);
                if self.forgot && matches!(cause, ReleaseCause::Ended(_) | ReleaseCause::Left) {
                    *cause = ReleaseCause::Ended(EndCause::Expired);
                }
            }
            Happening::StepDownAsked { election, number, .. } => {
                *number = (self.number)(election, *number);
            }
            _ => {}
        }
    }
}

/// What an entry is about.
fn concerned(what: &Happening) -> String {
    match what {
        Happening::Joined { member, .. }
        | Happening::Left { member, .. }
        | Happening::Ended { member, .. } => format!("member {}", member.id),
        other => format!("election {:?}", other.election()),
    }
}

/// In whole units, since real time passes too.
pub fn round(left: &mut Duration) {
    let units = (*left + UNIT / 2).as_secs() / UNIT.as_secs();
    *left = UNIT * u32::try_from(units).unwrap();
}
