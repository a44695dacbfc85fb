//! C9, C10: a vacancy is kept for the right heir (the successor named, or else
//! the live candidate of the highest priority and the longest wait), and while
//! it is, nobody else is elected.

use std::collections::BTreeMap;
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
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    life: Incarnation,
    priority: Priority,
    since: Mono,
}

impl Heirs {
    fn entry(&mut self, store: Mono, by: Option<&Request>, entry: &Entry) -> Result<(), String> {
        match &entry.what {
            Happening::Stood { election, member, priority } => {
                let candidates = self.candidates.entry(election.clone()).or_default();
                let stood = candidates.get(&member.id).filter(|c| c.life == member.incarnation);
                let since = stood.map_or(store, |c| c.since);
                let (life, priority) = (member.incarnation, *priority);
                candidates.insert(member.id.clone(), Candidate { life, priority, since });
            }
            Happening::Left { member } | Happening::Ended { member, .. } => {
                let elections: Vec<_> = self.candidates.keys().cloned().collect();
                for election in elections {
                    self.withdraw(&election, member);
                }
            }
            Happening::Released { election, member, cause, heir, .. } => {
                let (named, grace) = granted(by, election, *cause);
                let expected = self.expected(store, election, &member.id, named, grace);
                if expected.as_ref().map(|(id, _)| id) != heir.as_ref() {
                    return Err(format!("{election} is kept for {heir:?}, not for {expected:?}"));
                }
                self.kept.remove(election);
                if let Some((heir, grace)) = expected {
                    self.kept.insert(election.clone(), (heir, store + grace));
                }
            }
            Happening::Elected { term } => {
                if let Some((heir, until)) = self.kept.remove(&term.election)
                    && store < until
                    && heir != term.member.id
                    && self.members.lives(store, &heir)
                {
                    let (member, election) = (&term.member, &term.election);
                    return Err(format!("{member} was elected to {election}, kept for {heir}"));
                }
            }
            _ => {}
        }
        Ok(())
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
        holder: &MemberId,
        named: Option<(MemberId, Duration)>,
        grace: Duration,
    ) -> Option<(MemberId, Duration)> {
        let candidates = self.candidates.get(election).into_iter().flatten();
        let able = candidates.filter(|(id, c)| {
            let member = MemberRef::new((*id).clone(), c.life);
            c.priority.may_lead() && *id != holder && self.members.is_live(store, &member)
        });
        let mut able: Vec<_> = able.collect();
        able.sort_by_key(|(id, c)| (std::cmp::Reverse(c.priority), c.since, (*id).clone()));
        let named = named.filter(|(id, _)| able.iter().any(|(able, _)| *able == id));
        let heir = named.or_else(|| Some((able.first()?.0.clone(), grace)))?;
        (!heir.1.is_zero()).then_some(heir)
    }
}

/// The successor a request names for a vacancy, and its grace for anybody else.
fn granted(
    by: Option<&Request>,
    election: &ElectionName,
    cause: ReleaseCause,
) -> (Option<(MemberId, Duration)>, Duration) {
    match by {
        Some(Request::Release(release)) => {
            let item = release.items.iter().find(|i| i.election == *election && i.number.is_some());
            (item.and_then(|i| i.successor.clone()), release.heir_grace)
        }
        Some(Request::Claim(claim)) if matches!(cause, ReleaseCause::Ended(_)) => {
            (None, claim.heir_grace)
        }
        _ => (None, Duration::ZERO),
    }
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
        for entry in written {
            self.entry(store, by, entry)?;
        }
        // What lives wrongly is for another invariant to say.
        let _ = self.members.see(now, fact);
        Ok(())
    }
}
