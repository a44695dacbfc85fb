//! Looking: snapshots, which never write.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{
    Candidate, ElectionName, ElectionView, Entry, Happening, Holder, MemberRef, MemberView, Mono,
    Query, Reservation, Snapshot, Which,
};

use super::state::{Election, MemoryState};

impl MemoryState {
    /// A consistent snapshot; see [`Store::read`](crate::Store::read).
    #[must_use]
    pub fn read(&self, now: Mono, query: &Query) -> Snapshot {
        let names = self.asked_for(now, &query.which);
        let asker = query.asker.as_ref();
        let views = names.iter().map(|name| self.view(now, name, asker, query.candidates));
        Snapshot {
            seq: self.seq(),
            elections: views.collect(),
            members: if query.members { self.live_members(now) } else { Vec::new() },
            history: self.history(query, &names),
        }
    }

    fn asked_for(&self, now: Mono, which: &Which) -> Vec<ElectionName> {
        match which {
            Which::Nothing => Vec::new(),
            Which::All => self.elections.keys().cloned().collect(),
            Which::Named(names) => names.clone(),
            Which::HeldBy(incarnation) => {
                let held = self.elections.iter().filter(|(_, election)| {
                    self.holder(now, election).is_some_and(|h| h.member.incarnation == *incarnation)
                });
                held.map(|(name, _)| name.clone()).collect()
            }
        }
    }

    /// One election as it stands; as vacant with number 0 if nobody ever stood.
    pub(super) fn view(
        &self,
        now: Mono,
        name: &ElectionName,
        asker: Option<&MemberRef>,
        list_candidates: bool,
    ) -> ElectionView {
        let Some(election) = self.elections.get(name) else {
            return ElectionView::vacant(name.clone());
        };
        let holder = self.holder(now, election);
        ElectionView {
            election: name.clone(),
            number: election.number,
            step_down: election.step_down.clone().filter(|_| holder.is_some()),
            holder,
            paused: election.paused.clone(),
            reserved: self.kept_for(now, election),
            ahead: asker.map_or(0, |asker| self.ahead(now, election, asker)),
            candidates: if list_candidates { self.standing(now, election) } else { Vec::new() },
        }
    }

    /// The holder, unless its ttl has run out, or what it was handed has lapsed:
    /// observers see vacancy (rule N3).
    fn holder(&self, now: Mono, election: &Election) -> Option<Holder> {
        let held = election.holder.as_ref().filter(|_| !election.has_lapsed(now))?;
        let unconfirmed = election.unconfirmed(now);
        let member = self.recorded(&held.member).filter(|m| m.is_live(now))?;
        Some(Holder {
            member: held.member.clone(),
            profile: member.profile.clone(),
            elected_at: held.elected_at,
            ttl: member.ttl,
            remaining: member.remaining(now).min(unconfirmed.unwrap_or(Duration::MAX)),
            unconfirmed: unconfirmed.is_some(),
        })
    }

    fn kept_for(&self, now: Mono, election: &Election) -> Option<Reservation> {
        let kept = self.reservation(now, election)?;
        Some(Reservation { member: kept.member.clone(), remaining: kept.until.since(now) })
    }

    /// How many candidates that may lead come before the one who asks.
    fn ahead(&self, now: Mono, election: &Election, asker: &MemberRef) -> u32 {
        let Some(own) = election.candidates.get(&asker.id) else { return 0 };
        if own.incarnation != asker.incarnation {
            return 0;
        }
        let rank = (std::cmp::Reverse(own.priority), own.since, &asker.id);
        let before = self.ranked(now, election).into_iter().filter(|id| {
            let other = election.candidates.get(id);
            other.is_some_and(|c| (std::cmp::Reverse(c.priority), c.since, id) < rank)
        });
        u32::try_from(before.count()).unwrap_or(u32::MAX)
    }

    /// The live candidates, the preferred first, the holder and those that
    /// never lead among them.
    fn standing(&self, now: Mono, election: &Election) -> Vec<Candidate> {
        let standing = election.candidates.iter().filter(|(id, c)| self.stands(now, id, c));
        let mut candidates: Vec<_> = standing
            .map(|(id, c)| Candidate {
                member: MemberRef::new(id.clone(), c.incarnation),
                priority: c.priority,
                waiting: now.since(c.since),
            })
            .collect();
        candidates.sort_by_key(|c| {
            (std::cmp::Reverse(c.priority), std::cmp::Reverse(c.waiting), c.member.id.clone())
        });
        candidates
    }

    fn live_members(&self, now: Mono) -> Vec<MemberView> {
        let live = self.members.values().filter(|m| m.is_live(now));
        let views = live.map(|m| MemberView {
            member: m.member.clone(),
            profile: m.profile.clone(),
            ttl: m.ttl,
            remaining: m.remaining(now),
            joined_at: m.joined_at,
            holds: m.holds,
        });
        views.collect()
    }

    /// The newest entries about the elections asked for, oldest first, with the end
    /// of each life that was elected there: its terms ended with it.
    fn history(&self, query: &Query, names: &[ElectionName]) -> Vec<Entry> {
        if query.history == 0 {
            return Vec::new();
        }
        let all = query.which == Which::All;
        let about = |e: &Entry| e.what.election().is_some_and(|n| names.contains(n));
        let elected = self.journal.entries().filter(|e| about(e)).filter_map(|e| match &e.what {
            Happening::Elected { term } => Some(&term.member),
            _ => None,
        });
        let elected: BTreeSet<_> = elected.collect();
        let concerned = |e: &&Entry| match &e.what {
            _ if all => true,
            Happening::Left { member } | Happening::Ended { member, .. } => {
                elected.contains(member)
            }
            _ => about(e),
        };
        let newest = self.journal.entries().rev().filter(concerned).take(query.history);
        let mut newest: Vec<_> = newest.cloned().collect();
        newest.reverse();
        newest
    }
}
