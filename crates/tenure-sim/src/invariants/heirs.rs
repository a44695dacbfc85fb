//! C9, C10: a vacancy is kept for the right heir (the successor named, or else
//! the live candidate of the highest priority and the longest wait), and while
//! it is, no other member is elected. An heir that takes over is elected in the step
//! of the release itself, and has its time to take the term on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{
    ElectionName, Entry, Happening, Incarnation, MemberId, MemberRef, Mono, Priority, ReleaseCause,
    Request,
};

use super::members::Members;
use super::{Invariant, entries};
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug, Default)]
pub(super) struct Heirs {
    members: Members,
    candidates: BTreeMap<ElectionName, BTreeMap<MemberId, Candidate>>,
    kept: BTreeMap<ElectionName, (MemberId, Mono)>,
    /// Lives that a term may be handed to.
    takers: BTreeSet<Incarnation>,
    paused: BTreeSet<ElectionName>,
    /// What was handed over: to whom, and until when it stands at least.
    handed: BTreeMap<ElectionName, (MemberRef, Mono)>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    life: Incarnation,
    priority: Priority,
    since: Mono,
}

impl Heirs {
    fn entry(
        &mut self,
        store: Mono,
        by: Option<&Request>,
        entry: &Entry,
        next: Option<&Entry>,
    ) -> Result<(), String> {
        match &entry.what {
            Happening::Paused { election, .. } => {
                self.paused.insert(election.clone());
            }
            Happening::Resumed { election, .. } => {
                self.paused.remove(election);
            }
            Happening::Stood { election, member, priority, .. } => {
                let candidates = self.candidates.entry(election.clone()).or_default();
                let stood = candidates.get(&member.id).filter(|c| c.life == member.incarnation);
                let since = stood.map_or(store, |c| c.since);
                let life = member.incarnation;
                let priority = *priority;
                candidates.insert(member.id.clone(), Candidate { life, priority, since });
            }
            Happening::Left { member, .. } | Happening::Ended { member, .. } => {
                let elections: Vec<_> = self.candidates.keys().cloned().collect();
                for election in elections {
                    self.withdraw(&election, member);
                }
            }
            Happening::Released { election, member, cause, heir, .. } => {
                let lapsed = by.is_some_and(|by| lapses(by, member, *cause));
                if lapsed {
                    if self.handed.get(election).is_none_or(|(_, until)| store < *until) {
                        return Err(format!(
                            "{election} was taken from {member}, to whom it was handed, before its time"
                        ));
                    }
                    self.withdraw(election, member);
                }
                self.handed.remove(election);
                let (named, grace) = granted(by, election, *cause, lapsed);
                if let Some((heir, until)) =
                    self.handed_over(store, by, election, member, named.clone())
                {
                    self.kept.remove(election);
                    let elected = next.map(|next| &next.what);
                    return match elected {
                        Some(Happening::Elected { term, .. }) if term.member == heir => {
                            self.handed.insert(election.clone(), (heir, until));
                            Ok(())
                        }
                        _ => Err(format!("{election} was not handed over to {heir}: {elected:?}")),
                    };
                }
                let expected = self.expected(store, election, member, named, grace);
                if expected.as_ref().map(|(id, _)| id) != heir.as_ref() {
                    return Err(format!("{election} is kept for {heir:?}, not for {expected:?}"));
                }
                self.kept.remove(election);
                if let Some((heir, grace)) = expected {
                    self.kept.insert(election.clone(), (heir, store + grace));
                }
            }
            Happening::Elected { term, .. } => {
                if let Some((heir, until)) = self.kept.remove(&term.election)
                    && store < until
                    && heir != term.member.id
                    && self.members.lives(store, &heir)
                {
                    let member = &term.member;
                    let election = &term.election;
                    return Err(format!("{member} was elected to {election}, kept for {heir}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// To whom the election must go at once, and until when it must stand.
    fn handed_over(
        &self,
        store: Mono,
        by: Option<&Request>,
        election: &ElectionName,
        holder: &MemberRef,
        named: Option<(MemberId, Duration)>,
    ) -> Option<(MemberRef, Mono)> {
        let Some(Request::Release(release)) = by else { return None };
        if release.confirm_within.is_zero() || self.paused.contains(election) {
            return None;
        }
        let (heir, time) = self.expected(store, election, holder, named, release.confirm_within)?;
        let life = self.candidates.get(election)?.get(&heir)?.life;
        self.takers.contains(&life).then(|| (MemberRef::new(heir, life), store + time))
    }

    fn withdraw(&mut self, election: &ElectionName, member: &MemberRef) {
        let Some(candidates) = self.candidates.get_mut(election) else { return };
        if candidates.get(&member.id).is_some_and(|c| c.life == member.incarnation) {
            candidates.remove(&member.id);
            if self.kept.get(election).is_some_and(|(heir, _)| *heir == member.id) {
                self.kept.remove(election);
            }
        }
    }

    fn expected(
        &self,
        store: Mono,
        election: &ElectionName,
        holder: &MemberRef,
        named: Option<(MemberId, Duration)>,
        grace: Duration,
    ) -> Option<(MemberId, Duration)> {
        let candidates = self.candidates.get(election).into_iter().flatten();
        let able = candidates.filter(|(id, c)| {
            let member = MemberRef::new((*id).clone(), c.life);
            c.priority.may_lead() && member != *holder && self.members.is_live(store, &member)
        });
        let mut able: Vec<_> = able.collect();
        able.sort_by_key(|(id, c)| (std::cmp::Reverse(c.priority), c.since, (*id).clone()));
        let named = named.filter(|(id, _)| able.iter().any(|(able, _)| *able == id));
        let heir = named.or_else(|| Some((able.first()?.0.clone(), grace)))?;
        (!heir.1.is_zero()).then_some(heir)
    }
}

/// The successor a request names for a vacancy, and its grace for any other heir.
fn granted(
    by: Option<&Request>,
    election: &ElectionName,
    cause: ReleaseCause,
    lapsed: bool,
) -> (Option<(MemberId, Duration)>, Duration) {
    match by {
        Some(Request::Release(release)) => {
            let item = release.items.iter().find(|i| i.election == *election && i.number.is_some());
            (item.and_then(|i| i.successor.clone()), release.heir_grace)
        }
        Some(Request::Claim(claim))
            if lapsed || matches!(cause, ReleaseCause::Ended(_) | ReleaseCause::Left) =>
        {
            (None, claim.heir_grace)
        }
        _ => (None, Duration::ZERO),
    }
}

/// Whether a term ends by this request because its holder never took it on.
fn lapses(by: &Request, holder: &MemberRef, cause: ReleaseCause) -> bool {
    let other = matches!(by, Request::Claim(claim) if claim.member != *holder);
    other && cause == ReleaseCause::Abandoned
}

impl Invariant for Heirs {
    fn name(&self) -> &'static str {
        "a vacancy goes to its heir"
    }

    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        let (store, by) = match fact {
            Fact::Applied { store, request, .. } => (*store, Some(*request)),
            Fact::Amended { store, .. } => (*store, None),
            _ => return Ok(()),
        };
        let written = entries(fact);
        // A candidacy ends before its term is given back, or without one.
        if let Some(Request::Release(release)) = by {
            for item in &release.items {
                let exact = |e: &Entry| matches!(&e.what, Happening::Released { election, .. } if *election == item.election);
                if item.number.is_none() || written.iter().any(exact) {
                    self.withdraw(&item.election, &release.member);
                }
            }
        }
        // Who was renewed by a win lived when the vacancy was uncovered, so the
        // lives are those of before this request, without who ended in it.
        for (place, entry) in written.iter().enumerate() {
            self.entry(store, by, entry, written.get(place + 1))?;
        }
        if let Some(Request::Join(join)) = by.filter(|_| !written.is_empty())
            && join.inherits
        {
            self.takers.insert(join.member.incarnation);
        }
        // What lives wrongly is for another invariant to say.
        let _ = self.members.see(now, fact);
        Ok(())
    }
}
