//! Looking, which never writes.

use std::time::Duration;

use tenure_core::{
    ElectionName, ElectionView, Entry, Holder, Incarnation, MemberRef, Namespace, Query,
    Reservation, Seq, Snapshot, Which,
};

use super::election::ElectionRecord;
use super::handle::Handle;
use super::member::{MemberRecord, StandingRecord};
use super::members::member_view;
use super::seen::Seen;
use super::standing::candidate;
use tenure_store::{Error, ErrorKind, Result};

type Named = (ElectionName, Option<Seen<ElectionRecord>>);

impl Handle {
    /// See [`Store::read`](tenure_store::Store::read). Each election is of one moment;
    /// several of them are of moments close together, because a register has no
    /// snapshot of many cells.
    pub(super) async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        let begun = self.step();
        if query.candidates || query.members || query.which == Which::All {
            self.refresh_members(ns, self.now()).await?;
        } else if query.asker.is_some() {
            self.refresh_members(ns, self.now() - self.options.listing_age).await?;
        }
        let mut every = Vec::new();
        if query.members || !matches!(query.which, Which::Nothing | Which::Named(_)) {
            every = self.load_elections(ns).await?;
            if let (Which::HeldBy(life), false) = (&query.which, query.members) {
                every.retain(|s| s.record.holder.as_ref().is_some_and(|h| h.incarnation == *life));
            }
            self.look_at_holders_of(ns, every.iter(), begun).await?;
        }
        let asked = self.asked_for(ns, &query.which, &every).await?;
        for (name, seen) in &asked {
            if let Some(kept) = seen.as_ref().and_then(|s| s.record.reserved.as_ref()) {
                self.heir_stands(ns, name, &kept.member).await?;
            }
        }
        let asker = query.asker.as_ref();
        let view =
            |(name, seen): &Named| self.view(ns, name, seen.as_ref(), asker, query.candidates);
        let holders: Vec<Incarnation> =
            every.iter().filter_map(|s| Some(self.holder(ns, s)?.member.incarnation)).collect();
        let live = if query.members { self.live_members(ns) } else { Vec::new() };
        Ok(Snapshot {
            seq: Seq::START,
            elections: asked.iter().map(view).collect(),
            members: live.iter().map(|(m, left)| member_view(m, *left, &holders)).collect(),
            history: history(&asked, query.history),
        })
    }

    async fn asked_for(
        &self,
        ns: &Namespace,
        which: &Which,
        every: &[Seen<ElectionRecord>],
    ) -> Result<Vec<Named>> {
        let named = |s: &Seen<ElectionRecord>| (s.record.election.clone(), Some(s.clone()));
        let names = match which {
            Which::Nothing => return Ok(Vec::new()),
            Which::HeldBy(life) => {
                let held = |s: &&Seen<ElectionRecord>| {
                    self.holder(ns, s).is_some_and(|h| h.member.incarnation == *life)
                };
                return Ok(every.iter().filter(held).map(named).collect());
            }
            Which::All => {
                let mut all: Vec<Named> = every.iter().map(named).collect();
                all.extend(self.only_stood_for(ns, &all));
                all.sort_by(|a, b| a.0.cmp(&b.0));
                return Ok(all);
            }
            Which::Named(names) => names,
        };
        self.name(ns, names);
        let looks = self.look_closely_at(ns, names).await?;
        Ok(names.iter().cloned().zip(looks).collect())
    }

    /// Elections that somebody stands for and nobody ever won: they have no
    /// record of their own yet.
    fn only_stood_for(&self, ns: &Namespace, recorded: &[Named]) -> Vec<Named> {
        let live = self.live_members(ns);
        let stands = live.iter().filter_map(|(m, _)| {
            let key = self.keys.standing(ns, &m.record.member);
            let known = self.known::<StandingRecord>(&key)?;
            (known.record.incarnation == m.record.incarnation).then_some(known)
        });
        let names = stands.flat_map(|s| s.record.elections.keys().cloned().collect::<Vec<_>>());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names.dedup();
        names.retain(|name| !recorded.iter().any(|(known, _)| known == name));
        names.into_iter().map(|name| (name, None)).collect()
    }

    /// One election as it stands; as vacant with number 0 if nobody ever won it.
    pub(super) fn view(
        &self,
        ns: &Namespace,
        name: &ElectionName,
        seen: Option<&Seen<ElectionRecord>>,
        asker: Option<&MemberRef>,
        list_candidates: bool,
    ) -> ElectionView {
        let mut view = ElectionView::vacant(name.clone());
        if let Some(seen) = seen {
            view.number = seen.record.number();
            view.holder = self.holder(ns, seen);
            if let (Some(_), Some(holder)) = (asker, &mut view.holder) {
                holder.remaining = self.look_again_in(ns, &holder.member, holder.remaining);
            }
            view.paused = seen.record.pause();
            view.step_down = seen.record.step_down().filter(|_| view.holder.is_some());
            view.reserved = self.reservation(ns, seen);
        }
        let holder = view.holder.as_ref().map(|h| &h.member.id);
        view.ahead = asker.map_or(0, |asker| self.ahead(ns, name, holder, asker));
        if list_candidates {
            view.candidates = self.standing(ns, name, seen).into_iter().map(candidate).collect();
        }
        view
    }

    /// The holder, unless its ttl has run out: observers see vacancy (rule N3).
    pub(super) fn holder(&self, ns: &Namespace, seen: &Seen<ElectionRecord>) -> Option<Holder> {
        let held = seen.record.holder.as_ref()?;
        let remaining = self.hold(ns, &seen.record).left();
        let key = self.keys.member(ns, &held.member);
        let stated = self.known::<MemberRecord>(&key);
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

    /// What one who waits is told: not when the ttl is over, if it had better look
    /// again sooner.
    fn look_again_in(&self, ns: &Namespace, holder: &MemberRef, left: Duration) -> Duration {
        let known = self.known::<MemberRecord>(&self.keys.member(ns, &holder.id));
        let shown = known.filter(|member| member.record.shows(holder.incarnation));
        shown.map_or(left, |member| self.look_in(&member).min(left))
    }

    /// For whom the vacancy is kept, as far as is known without looking: not
    /// for one who is known to be gone.
    pub(super) fn reservation(
        &self,
        ns: &Namespace,
        seen: &Seen<ElectionRecord>,
    ) -> Option<Reservation> {
        let kept = seen.record.reserved.as_ref()?;
        let remaining = kept.grace_ns.saturating_sub(self.now().since(seen.since));
        let stands = self.known_to_stand(ns, &seen.record.election, &kept.member);
        (stands && !remaining.is_zero())
            .then(|| Reservation { member: kept.member.clone(), remaining })
    }

    pub(super) fn check_batch(&self, what: &str, count: usize) -> Result<()> {
        let limit = self.options.batch;
        if count <= limit {
            return Ok(());
        }
        let what = format!("{count} {what} were sent in one request: the limit is {limit}");
        Err(Error::new(ErrorKind::Invalid, what).remedy("split the request"))
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
