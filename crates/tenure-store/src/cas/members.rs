//! Members: who lives, who stands for what, who comes next.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{
    Candidate, ElectionName, Incarnation, MemberId, MemberRef, MemberView, Mono, Namespace,
    Priority, Timestamp,
};

use super::handle::{ATTEMPTS, Handle, too_busy};
use super::record::{ElectionRecord, MemberRecord};
use super::register::Removed;
use super::seen::Seen;
use crate::{ErrorKind, Result};

/// Whether a life goes on.
#[derive(Debug)]
pub(super) enum Life {
    /// It does, with this record.
    Live(Seen<MemberRecord>),
    /// It is over (rule M1).
    Over {
        /// Whether another life has taken its place.
        superseded: bool,
    },
}

/// What must hold of a member for an edit of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// That it lives and may act.
    Life,
    /// Only that the record is of this very life.
    Record,
}

/// One candidate, with all that ranks it.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) member: MemberRef,
    pub(super) priority: Priority,
    order: u64,
    waiting: Duration,
}

impl Standing {
    /// Smaller comes first: higher priority, then longer waiting.
    fn rank(&self) -> (Reverse<Priority>, u64, &MemberId) {
        (Reverse(self.priority), self.order, &self.member.id)
    }
}

impl Handle {
    /// What is left, for others, of a member's ttl.
    pub(super) fn member_left(&self, seen: &Seen<MemberRecord>) -> Duration {
        self.left(seen.since, seen.record.ttl_ns)
    }

    /// Judges whether `who` may act, by what was seen of its record.
    fn life(&self, key: &str, who: &MemberRef, seen: Option<Seen<MemberRecord>>) -> Life {
        let Some(seen) = seen else { return Life::Over { superseded: false } };
        let superseded = seen.record.incarnation != who.incarnation;
        let ttl = seen.record.ttl_ns;
        if superseded || seen.record.condemned || self.own_ran_out(key, who.incarnation, &seen, ttl)
        {
            return Life::Over { superseded };
        }
        Life::Live(seen)
    }

    /// Whether `who` may act, by a fresh look. One whose life is over is
    /// remembered, so that it does not come back.
    pub(super) async fn look_at_life(&self, ns: &Namespace, who: &MemberRef) -> Result<Life> {
        let key = self.keys.member(ns, &who.id);
        let seen = self.load(&key).await?;
        let life = self.life(&key, who, seen);
        if let Life::Over { .. } = life {
            self.memory().ended(&key, who.incarnation);
        }
        Ok(life)
    }

    /// Changes the record of exactly this life. `edit` says whether it changed
    /// anything; `renews` whether the write is a heartbeat. What is known is
    /// tried first, so that in the usual case this is a single swap.
    pub(super) async fn edit_member(
        &self,
        ns: &Namespace,
        who: &MemberRef,
        need: Need,
        renews: bool,
        mut edit: impl FnMut(&mut MemberRecord) -> bool,
    ) -> Result<Life> {
        let key = self.keys.member(ns, &who.id);
        let mut seen = self.known::<MemberRecord>(&key);
        for attempt in 0..=ATTEMPTS {
            let life = match need {
                Need::Life => self.life(&key, who, seen),
                Need::Record => match seen {
                    Some(seen) if seen.record.incarnation == who.incarnation => Life::Live(seen),
                    other => Life::Over { superseded: other.is_some() },
                },
            };
            let Life::Live(current) = life else {
                if attempt == 0 {
                    // Only what was known says so: look before believing it.
                    seen = self.load(&key).await?;
                    continue;
                }
                if need == Need::Life {
                    self.memory().ended(&key, who.incarnation);
                }
                return Ok(life);
            };
            let mut record = (*current.record).clone();
            if !edit(&mut record) {
                return Ok(Life::Live(current));
            }
            if renews {
                record.beat = record.beat.wrapping_add(1);
            }
            let renewed = renews.then_some(who.incarnation);
            if let Some(written) = self.swap(&key, Some(&current), record, renewed).await? {
                return Ok(Life::Live(written));
            }
            seen = self.load(&key).await?;
        }
        Err(too_busy(&key))
    }

    /// Makes this member look: something is asked of it. Only a courtesy, since
    /// it will find out by itself; so nothing fails if this does.
    pub(super) async fn nudge(&self, ns: &Namespace, id: &MemberId) {
        let key = self.keys.member(ns, id);
        let Ok(Some(seen)) = self.load::<MemberRecord>(&key).await else { return };
        let who = seen.record.member();
        let raise = |record: &mut MemberRecord| {
            record.attention = record.attention.wrapping_add(1);
            true
        };
        let _ = self.edit_member(ns, &who, Need::Record, false, raise).await;
    }

    /// Makes sure that the members were listed after `then`. Records that
    /// cannot be read are left out: they are in nobody's way.
    pub(super) async fn refresh_members(&self, ns: &Namespace, then: Mono) -> Result<()> {
        let prefix = self.keys.members(ns);
        let now = self.now();
        if self.memory().listed(&prefix).is_some_and(|listed| listed > then) {
            return Ok(());
        }
        let listed = self.register.list(&prefix).await?;
        let listed: Vec<_> =
            listed.into_iter().filter(|listed| self.keys.is_member(ns, &listed.key)).collect();
        let loads = listed.iter().map(|listed| self.load_listed::<MemberRecord>(listed)).collect();
        for loaded in self.all(loads).await {
            match loaded {
                Err(error) if error.kind() != ErrorKind::Foreign => return Err(error),
                _ => {}
            }
        }
        let keys: BTreeSet<String> = listed.into_iter().map(|listed| listed.key).collect();
        self.memory().note_listing(&prefix, &keys, now);
        Ok(())
    }

    /// The members known to live, with what others may count on.
    pub(super) fn live_members(&self, ns: &Namespace) -> Vec<(Seen<MemberRecord>, Duration)> {
        let known = self.memory().members.below(&self.keys.members(ns));
        let judged = known.into_iter().map(|(_, seen)| {
            let left = self.member_left(&seen);
            (seen, left)
        });
        judged.filter(|(_, left)| !left.is_zero()).collect()
    }

    /// The live candidates known, the preferred first: the holder and those
    /// that never lead among them, the condemned not.
    pub(super) fn standing(&self, ns: &Namespace, election: &ElectionName) -> Vec<Standing> {
        let now = self.now();
        let live = self.live_members(ns);
        let memory = self.memory();
        let mut standing: Vec<_> = live
            .into_iter()
            .filter(|(seen, _)| !seen.record.condemned)
            .filter_map(|(seen, _)| {
                let candidacy = seen.record.candidacy(election)?;
                let key = self.keys.member(ns, &seen.record.member);
                let stood = memory.stood(&key, election).unwrap_or(now);
                let (priority, order) = (candidacy.priority(), candidacy.order);
                let member = seen.record.member();
                Some(Standing { member, priority, order, waiting: now.since(stood) })
            })
            .collect();
        standing.sort_by(|a, b| a.rank().cmp(&b.rank()));
        standing
    }

    /// Those who could lead if the election were vacant, the preferred first.
    pub(super) fn ranked(
        &self,
        ns: &Namespace,
        election: &ElectionName,
        holder: Option<&MemberId>,
    ) -> Vec<Standing> {
        let mut ranked = self.standing(ns, election);
        ranked.retain(|s| s.priority.may_lead() && Some(&s.member.id) != holder);
        ranked
    }

    /// How many candidates that may lead come before the one who asks, as far
    /// as is known.
    pub(super) fn ahead(
        &self,
        ns: &Namespace,
        election: &ElectionName,
        holder: Option<&MemberId>,
        asker: &MemberRef,
    ) -> u32 {
        let standing = self.standing(ns, election);
        let Some(own) = standing.iter().find(|s| s.member == *asker) else { return 0 };
        let ranked = self.ranked(ns, election, holder);
        let before = ranked.iter().filter(|s| s.rank() < own.rank()).count();
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// For whom a vacancy is to be kept: the successor named if it is there to
    /// take over, or else whoever is preferred, but never the one who gives the
    /// term up. No grace keeps it for nobody.
    pub(super) fn heir(
        &self,
        ns: &Namespace,
        record: &ElectionRecord,
        successor: Option<&(MemberId, Duration)>,
        grace: Duration,
    ) -> Option<(MemberId, Duration)> {
        let holder = record.holder.as_ref().map(|h| &h.member);
        let ranked = self.ranked(ns, &record.election, holder);
        let named = successor.filter(|(id, _)| ranked.iter().any(|s| s.member.id == *id)).cloned();
        let preferred = || Some((ranked.first()?.member.id.clone(), grace));
        named.or_else(preferred).filter(|(_, grace)| !grace.is_zero())
    }

    /// Whether the one for whom a vacancy is kept still stands for it.
    pub(super) async fn heir_stands(
        &self,
        ns: &Namespace,
        election: &ElectionName,
        heir: &MemberId,
    ) -> Result<bool> {
        let seen = self.load::<MemberRecord>(&self.keys.member(ns, heir)).await?;
        Ok(seen.is_some_and(|seen| {
            !seen.record.condemned
                && seen.record.candidacy(election).is_some()
                && !self.member_left(&seen).is_zero()
        }))
    }

    /// Removes the record of exactly this life, if it is still there.
    pub(super) async fn remove_member(&self, ns: &Namespace, who: &MemberRef) -> Result<()> {
        let key = self.keys.member(ns, &who.id);
        for _ in 0..ATTEMPTS {
            let seen = self.load::<MemberRecord>(&key).await?;
            let Some(seen) = seen.filter(|s| s.record.incarnation == who.incarnation) else {
                return Ok(());
            };
            if self.register.remove(&key, &seen.version).await? == Removed::Gone {
                self.memory().forget_member(&key);
                return Ok(());
            }
        }
        Err(too_busy(&key))
    }

    /// Removes records of members that are long dead, a few at a time (H27).
    /// Whoever wins or joins does it in passing; if it fails, the next one does
    /// it. One that lives after all finds its record gone and is ended.
    pub(super) async fn collect(&self, ns: &Namespace) {
        const AT_ONCE: usize = 8;
        let known = self.memory().members.below(&self.keys.members(ns));
        let now = self.now();
        let long_dead = |seen: &Seen<MemberRecord>| {
            self.member_left(seen).is_zero() && now.since(seen.since) >= seen.record.ttl_ns * 2
        };
        for (key, seen) in known.into_iter().filter(|(_, s)| long_dead(s)).take(AT_ONCE) {
            if let Ok(Removed::Gone) = self.register.remove(&key, &seen.version).await {
                self.memory().forget_member(&key);
            }
        }
    }
}

/// A candidate, as a view shows it.
pub(super) fn candidate(standing: Standing) -> Candidate {
    let Standing { member, priority, waiting, .. } = standing;
    Candidate { member, priority, waiting }
}

/// The next place in the queue for an election.
pub(super) fn next_order(members: &[(Seen<MemberRecord>, Duration)], name: &ElectionName) -> u64 {
    let orders = members.iter().filter_map(|(m, _)| m.record.candidacy(name)).map(|c| c.order);
    orders.max().unwrap_or(0).saturating_add(1)
}

/// A member, as a view shows it.
pub(super) fn member_view(
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
