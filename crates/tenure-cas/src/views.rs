//! What a caller is shown. Reading never writes.

use std::time::Duration;

use tenure_core::{
    ElectionName, ElectionView, Entry, Examined, Holder, Incarnation, MemberRef, MemberView,
    Namespace, Query, Reservation, Seq, Snapshot, Timestamp, Which,
};
use tenure_store::Result;

use crate::candidates::candidate;
use crate::cells::Cells;
use crate::parts::Parts;
use crate::record::candidacies::CandidaciesRecord;
use crate::record::election::ElectionRecord;
use crate::record::member::MemberRecord;
use crate::seen::Seen;

type Named = (ElectionName, Option<Seen<ElectionRecord>>);

/// Views of elections and members, and snapshots of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Views<'a> {
    parts: Parts<'a>,
}

impl<'a> Views<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self { parts: Parts::new(cells, ns) }
    }
}

impl Views<'_> {
    /// See [`Store::read`](tenure_store::Store::read). Each election is of one moment;
    /// several of them are of moments close together, because a register has no
    /// snapshot of many cells.
    pub(crate) async fn read(&self, query: &Query) -> Result<Snapshot> {
        let begun = self.parts.cells.step();
        if query.candidates || query.members || query.which == Which::All {
            self.parts.reader.refresh_members(self.parts.cells.now()).await?;
        } else if query.asker.is_some() {
            self.parts
                .reader
                .refresh_members(self.parts.cells.now() - self.parts.cells.options.listing_age)
                .await?;
        }
        let mut every = Vec::new();
        if query.members || !matches!(query.which, Which::Nothing | Which::Named(_)) {
            every = self.parts.reader.load_every_election().await?;
            if let (Which::HeldBy(life), false) = (&query.which, query.members) {
                every.retain(|s| s.record.holder.as_ref().is_some_and(|h| h.incarnation == *life));
            }
            self.parts.reader.load_holders_of(every.iter(), begun).await?;
        }
        let asked = self.asked_for(&query.which, &every).await?;
        for (name, seen) in &asked {
            if let Some(kept) = seen.as_ref().and_then(|s| s.record.reserved.as_ref()) {
                self.parts.candidates.heir_stands(name, &kept.member).await?;
            }
        }
        let asker = query.asker.as_ref();
        let view = |(name, seen): &Named| self.view(name, seen.as_ref(), asker, query.candidates);
        let holders: Vec<Incarnation> =
            every.iter().filter_map(|s| Some(self.holder(s)?.member.incarnation)).collect();
        let live = if query.members { self.parts.judge.live_members() } else { Vec::new() };
        Ok(Snapshot {
            seq: Seq::START,
            elections: asked.iter().map(view).collect(),
            members: live.iter().map(|(m, left)| member_view(m, *left, &holders)).collect(),
            history: history(&asked, query.history),
            examined: query.examine.then(Examined::default),
        })
    }

    async fn asked_for(&self, which: &Which, every: &[Seen<ElectionRecord>]) -> Result<Vec<Named>> {
        let named = |s: &Seen<ElectionRecord>| (s.record.election.clone(), Some(s.clone()));
        let names = match which {
            Which::Nothing => return Ok(Vec::new()),
            Which::HeldBy(life) => {
                let held = |s: &&Seen<ElectionRecord>| {
                    self.holder(s).is_some_and(|h| h.member.incarnation == *life)
                };
                return Ok(every.iter().filter(held).map(named).collect());
            }
            Which::All => {
                let mut all: Vec<Named> = every.iter().map(named).collect();
                all.extend(self.only_stood_for(&all));
                all.sort_by(|a, b| a.0.cmp(&b.0));
                return Ok(all);
            }
            Which::Named(names) => names,
        };
        self.parts.reader.remember_names(names);
        let found = self.parts.reader.load_named(names).await?;
        Ok(names.iter().cloned().zip(found).collect())
    }

    /// Elections that have a candidate and were never won: they have no
    /// record of their own yet.
    fn only_stood_for(&self, recorded: &[Named]) -> Vec<Named> {
        let live = self.parts.judge.live_members();
        let stands = live.iter().filter_map(|(m, _)| {
            let key = self.parts.cells.keys.standing(self.parts.ns, &m.record.member);
            let known = self.parts.cells.known::<CandidaciesRecord>(&key)?;
            (known.record.incarnation == m.record.incarnation).then_some(known)
        });
        let names = stands.flat_map(|s| s.record.elections.keys().cloned().collect::<Vec<_>>());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names.dedup();
        names.retain(|name| !recorded.iter().any(|(known, _)| known == name));
        names.into_iter().map(|name| (name, None)).collect()
    }

    /// One election as it stands; as vacant with number 0 if it was never won.
    pub(crate) fn view(
        &self,
        name: &ElectionName,
        seen: Option<&Seen<ElectionRecord>>,
        asker: Option<&MemberRef>,
        list_candidates: bool,
    ) -> ElectionView {
        let mut view = ElectionView::vacant(name.clone());
        if let Some(seen) = seen {
            view.number = seen.record.number();
            view.holder = self.holder(seen);
            if let (Some(_), Some(holder)) = (asker, &mut view.holder) {
                holder.remaining = self.remaining_for_asker(&holder.member, holder.remaining);
            }
            view.paused = seen.record.pause();
            view.step_down = seen.record.step_down().filter(|_| view.holder.is_some());
            view.reserved = self.reservation(seen);
        }
        let holder = view.holder.as_ref().map(|holder| &holder.member);
        view.ahead = asker.map_or(0, |asker| self.parts.candidates.ahead(name, holder, asker));
        if list_candidates {
            view.candidates =
                self.parts.candidates.standing(name, seen).into_iter().map(candidate).collect();
        }
        view
    }

    /// The holder, unless its ttl has run out: observers see vacancy (rule N3).
    pub(crate) fn holder(&self, seen: &Seen<ElectionRecord>) -> Option<Holder> {
        let held = seen.record.holder.as_ref()?;
        let remaining = self.parts.judge.hold(&seen.record).left();
        let key = self.parts.cells.keys.member(self.parts.ns, &held.member);
        let stated = self.parts.cells.known::<MemberRecord>(&key);
        let stated = stated.filter(|m| m.record.incarnation == held.incarnation);
        (!remaining.is_zero()).then(|| Holder {
            member: held.member(),
            profile: held.profile.clone(),
            elected_at: held.elected_at(),
            ttl: stated.map_or(held.ttl_ns, |m| m.record.ttl_ns),
            remaining,
            unconfirmed: false,
        })
    }

    /// What a waiting member is told: not when the ttl is over, if it had better look
    /// again sooner.
    fn remaining_for_asker(&self, holder: &MemberRef, left: Duration) -> Duration {
        let known = self
            .parts
            .cells
            .known::<MemberRecord>(&self.parts.cells.keys.member(self.parts.ns, &holder.id));
        let shown = known.filter(|member| member.record.shows(holder.incarnation));
        shown.map_or(left, |member| self.parts.judge.load_again_in(&member).min(left))
    }

    /// For whom the vacancy is kept, as far as is known without looking: not
    /// for a candidate that is known to be gone.
    pub(crate) fn reservation(&self, seen: &Seen<ElectionRecord>) -> Option<Reservation> {
        let kept = seen.record.reserved.as_ref()?;
        let remaining = kept.grace_ns.saturating_sub(self.parts.cells.now().since(seen.since));
        let stands = self.parts.candidates.known_to_stand(&seen.record.election, &kept.member);
        (stands && !remaining.is_zero())
            .then(|| Reservation { member: kept.member.clone(), remaining })
    }
}

/// The newest entries of each election's short history, oldest first, one
/// election after the other: without a journal there is no order between them.
fn history(asked: &[Named], most: usize) -> Vec<Entry> {
    let records = asked.iter().filter_map(|(_, seen)| seen.as_ref());
    let mut entries: Vec<Entry> = records.flat_map(|s| s.record.entries()).collect();
    entries.drain(..entries.len().saturating_sub(most));
    entries
}

/// A member, as a view shows it.
pub(crate) fn member_view(
    seen: &Seen<MemberRecord>,
    remaining: Duration,
    holders: &[Incarnation],
) -> MemberView {
    let record = &seen.record;
    let holds = holders.iter().filter(|life| **life == record.incarnation).count();
    MemberView {
        member: record.member(),
        profile: record.profile.clone(),
        ttl: record.ttl_ns,
        remaining,
        joined_at: Timestamp::from_unix_millis(record.joined_at_ms),
        holds: u32::try_from(holds).unwrap_or(u32::MAX),
    }
}
