//! Looking: snapshots, which never write.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::params;
use tenure_core::{
    Candidate, ElectionView, Entry, Happening, Holder, MemberRef, MemberView, Query, Reservation,
    Snapshot, Which,
};

use crate::error::Outcome;
use crate::journal;
use crate::rows::{Election, Member};
use crate::txn::Txn;

/// How soon a bidder asks again whether the work of a member that is over has
/// ended. The kernel tells it sooner; this is in case it does not.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl Txn<'_> {
    /// A consistent snapshot.
    pub(crate) fn read(&self, query: &Query) -> Outcome<Snapshot> {
        let elections = self.asked_for(&query.which)?;
        let history = self.history(query, &elections)?;
        let views = elections
            .into_iter()
            .map(|election| self.view(election, query.asker.as_ref(), query.candidates))
            .collect::<Outcome<_>>()?;
        let members = if query.members { self.live_members()? } else { Vec::new() };
        Ok(Snapshot { seq: self.seq(), elections: views, members, history })
    }

    fn asked_for(&self, which: &Which) -> Outcome<Vec<Election>> {
        match which {
            Which::Nothing => Ok(Vec::new()),
            Which::All => {
                let sql = include_str!("../sql/election_all.sql");
                self.all(sql, params![self.ns], Election::read)
            }
            Which::Named(names) => names.iter().map(|name| self.election(name)).collect(),
            Which::HeldBy(life) => {
                let mut held = self.held_by(*life)?;
                // All of them are held by one member: one look decides.
                let Some(holder) = held.first().and_then(|e| e.holder.clone()) else {
                    return Ok(held);
                };
                if self.recorded(&holder)?.and_then(|m| self.remaining(&m)).is_none() {
                    held.clear();
                }
                Ok(held)
            }
        }
    }

    /// One election as it stands.
    pub(crate) fn view(
        &self,
        election: Election,
        asker: Option<&MemberRef>,
        list_candidates: bool,
    ) -> Outcome<ElectionView> {
        let holder = self.holder(&election)?;
        let reserved = self.kept_for(&election)?;
        let ahead = match asker {
            Some(asker) => self.ahead(&election, asker)?,
            None => 0,
        };
        let candidates = if list_candidates { self.candidates(&election)? } else { Vec::new() };
        Ok(ElectionView {
            number: election.number,
            step_down: election.step_down.filter(|_| holder.is_some()),
            holder,
            paused: election.paused,
            reserved: reserved.map(|(member, remaining)| Reservation { member, remaining }),
            ahead,
            candidates,
            election: election.name,
        })
    }

    /// The holder, unless its ttl has run out: observers see vacancy (rule N3). A
    /// bidder is told to wait a little longer if somebody still works for it.
    fn holder(&self, election: &Election) -> Outcome<Option<Holder>> {
        let Some(holder) = &election.holder else { return Ok(None) };
        let Some(row) = self.recorded(holder)? else { return Ok(None) };
        let still = || self.at_work(&row).then_some(LOOK_AGAIN);
        let Some(remaining) = self.remaining(&row).or_else(still) else { return Ok(None) };
        Ok(Some(Holder {
            member: row.member,
            profile: row.profile,
            elected_at: election.elected_at,
            ttl: row.ttl,
            remaining,
            unconfirmed: false,
        }))
    }

    /// How many candidates that may lead come before the one who asks.
    fn ahead(&self, election: &Election, asker: &MemberRef) -> Outcome<u32> {
        let standing = self.standing(&election.name)?;
        let Some(own) = standing.iter().position(|s| s.member.member == *asker) else {
            return Ok(0);
        };
        let holder = election.holder.as_ref();
        let before = standing[..own].iter();
        let before = before.filter(|s| s.priority.may_lead() && Some(&s.member.member) != holder);
        Ok(u32::try_from(before.count()).unwrap_or(u32::MAX))
    }

    /// The live candidates, the preferred first, the holder and those that
    /// never lead among them.
    fn candidates(&self, election: &Election) -> Outcome<Vec<Candidate>> {
        let standing = self.standing(&election.name)?.into_iter();
        let candidates = standing.map(|s| Candidate {
            member: s.member.member.clone(),
            priority: s.priority,
            waiting: self.judge.elapsed(&s.boot, s.since),
        });
        Ok(candidates.collect())
    }

    fn live_members(&self) -> Outcome<Vec<MemberView>> {
        let rows =
            self.all(include_str!("../sql/member_all.sql"), params![self.ns], Member::read)?;
        let live = rows.into_iter().filter_map(|row| {
            let remaining = self.remaining(&row)?;
            Some(MemberView {
                member: row.member,
                profile: row.profile,
                ttl: row.ttl,
                remaining,
                joined_at: row.joined_at,
                holds: row.holds,
            })
        });
        Ok(live.collect())
    }

    /// The newest entries about the elections asked for, oldest first, with the end
    /// of each life that was elected there: its terms ended with it.
    fn history(&self, query: &Query, elections: &[Election]) -> Outcome<Vec<Entry>> {
        if query.history == 0 {
            return Ok(Vec::new());
        }
        if query.which == Which::All {
            return journal::newest(self.db, self.ns, None, query.history);
        }
        let names: BTreeSet<_> = elections.iter().map(|e| &e.name).collect();
        let mut entries = Vec::new();
        for name in names {
            entries.extend(journal::newest(self.db, self.ns, Some(name), query.history)?);
        }
        let elected = entries.iter().filter_map(|entry| match &entry.what {
            Happening::Elected { term } => Some(term.member.incarnation),
            _ => None,
        });
        let elected: BTreeSet<_> = elected.collect();
        for life in elected {
            entries.extend(self.end_entry(life)?);
        }
        entries.sort_by_key(|entry| entry.seq);
        let surplus = entries.len().saturating_sub(query.history);
        Ok(entries.split_off(surplus))
    }
}
