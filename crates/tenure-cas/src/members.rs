//! Members: who lives, and how its record is changed.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{
    EndCause, Incarnation, MemberId, MemberRef, MemberView, Mono, Namespace, ReleaseCause,
    Timestamp,
};

use super::election::ElectionRecord;
use super::handle::{ATTEMPTS, Handle, Renews, partly, too_busy};
use super::keys::Keys;
use super::member::{EndedLife, Holds, MemberRecord, StandingRecord};
use super::record::Record;
use super::register::Removed;
use super::seen::Seen;
use tenure_store::{ErrorKind, Result};

/// How many elections are looked at for nothing but tidying up.
const FEW: usize = 1_000;

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

/// What an edit of a member's record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// A heartbeat of a life that must still be allowed one, for this ttl.
    Beat(Duration),
    /// A note on the record of this very life, whoever makes it.
    Note,
}

impl Handle {
    /// Judges whether `who` may act, by what was seen of its record.
    fn life(&self, key: &str, who: &MemberRef, seen: Option<Seen<MemberRecord>>) -> Life {
        let Some(seen) = seen else { return Life::Over { superseded: false } };
        let superseded = seen.record.incarnation != who.incarnation;
        let over = seen.record.ended.is_some() || seen.record.condemned;
        if superseded || over || self.own_ran_out(key, who.incarnation, &seen) {
            return Life::Over { superseded };
        }
        Life::Live(seen)
    }

    /// Whether `who` may act. What is known of its own record will do if it is
    /// not older than [`CasOptions::listing_age`](super::CasOptions::listing_age):
    /// whatever a life that is over does next fails on that record. One whose
    /// life is over is remembered, so that it does not come back.
    pub(super) async fn look_at_life(&self, ns: &Namespace, who: &MemberRef) -> Result<Life> {
        let key = self.keys.member(ns, &who.id);
        let fresh =
            |seen: &Seen<MemberRecord>| self.now().since(seen.looked) < self.options.listing_age;
        let known = self.known::<MemberRecord>(&key).filter(fresh);
        if let live @ Life::Live(_) = self.life(&key, who, known) {
            return Ok(live);
        }
        let life = self.life(&key, who, self.load(&key).await?);
        if let Life::Over { .. } = life {
            self.memory().ended(&key, who.incarnation);
        }
        Ok(life)
    }

    /// Changes the record of exactly this life; `edit` says whether it changed
    /// anything. What is known is tried first, so that in the usual case this is
    /// a single swap.
    pub(super) async fn edit_member(
        &self,
        ns: &Namespace,
        who: &MemberRef,
        what: Edit,
        mut edit: impl FnMut(&mut MemberRecord) -> bool,
    ) -> Result<Life> {
        let key = self.keys.member(ns, &who.id);
        let mut seen = self.known::<MemberRecord>(&key);
        for attempt in 0..=ATTEMPTS {
            let life = match what {
                Edit::Beat(_) => self.life(&key, who, seen),
                Edit::Note => match seen {
                    Some(seen) if seen.record.shows(who.incarnation) => Life::Live(seen),
                    other => Life::Over {
                        superseded: other.is_some_and(|s| s.record.incarnation != who.incarnation),
                    },
                },
            };
            let Life::Live(current) = life else {
                if attempt == 0 {
                    // Only what was known says so: look before believing it.
                    seen = self.load(&key).await?;
                    continue;
                }
                if let Edit::Beat(_) = what {
                    self.memory().ended(&key, who.incarnation);
                }
                return Ok(life);
            };
            let mut record = (*current.record).clone();
            if !edit(&mut record) {
                return Ok(Life::Live(current));
            }
            // Whatever was given back and could not be said yet is said with the
            // next write, whichever it is.
            record.changes = record.changes.max(self.memory().changes(who.incarnation));
            if self.memory().has_nothing_left(&key, who.incarnation) {
                record.holds = record.holds.nothing_left(self.clock_id);
            }
            let started = self.now();
            let renews = self.renew(what, started, &mut record);
            if let Some(written) = self.swap(&key, Some(&current), record, started, renews).await? {
                return Ok(Life::Live(written));
            }
            seen = self.load(&key).await?;
        }
        Err(too_busy(&key))
    }

    /// Makes a write a heartbeat, if it is one: it counts from its start, on the
    /// clock of this handle.
    fn renew(&self, what: Edit, started: Mono, record: &mut MemberRecord) -> Option<Renews> {
        let Edit::Beat(asked) = what else { return None };
        record.beat = record.beat.wrapping_add(1);
        record.clock = self.clock_id;
        record.elapsed_ns = started.since(Mono::ZERO);
        Some(Renews { life: record.incarnation, asked })
    }

    /// Notes that something is about to be given back. It is noted before, because
    /// whoever waits for the answer may stop waiting at any moment, and the write
    /// be applied all the same: then the next heartbeat says it.
    pub(super) fn note_change(&self, ns: &Namespace, who: &MemberRef) {
        let told = self.changes_told(ns, who);
        self.memory().gives_back(who.incarnation, told);
    }

    /// Whether something was given back, or may have been, that is not said yet.
    pub(super) fn owes_a_word(&self, ns: &Namespace, who: &MemberRef) -> bool {
        let told = self.changes_told(ns, who);
        self.memory().changes(who.incarnation) > told
    }

    /// What this life has said last, as far as is known.
    fn changes_told(&self, ns: &Namespace, who: &MemberRef) -> u64 {
        let known = self.known::<MemberRecord>(&self.keys.member(ns, &who.id));
        let known = known.filter(|seen| seen.record.incarnation == who.incarnation);
        known.map_or(0, |seen| seen.record.changes)
    }

    /// Says that something was given back: followers look at their elections only
    /// when it is. If that fails, the next heartbeat says it.
    pub(super) async fn tell_of_change(&self, ns: &Namespace, who: &MemberRef) {
        self.note_change(ns, who);
        let change = |record: &mut MemberRecord| {
            record.changes = record.changes.wrapping_add(1);
            true
        };
        let _ = self.edit_member(ns, who, Edit::Note, change).await;
    }

    /// Makes this member look: something is asked of it.
    pub(super) async fn nudge(&self, ns: &Namespace, id: &MemberId) -> Result<()> {
        let key = self.keys.member(ns, id);
        let Some(seen) = self.load::<MemberRecord>(&key).await? else { return Ok(()) };
        let raise = |record: &mut MemberRecord| {
            record.attention = record.attention.wrapping_add(1);
            true
        };
        self.edit_member(ns, &seen.record.member(), Edit::Note, raise).await?;
        Ok(())
    }

    /// Makes sure that the members were listed after `then`. Records that
    /// cannot be read are left out: they are in nobody's way.
    pub(super) async fn refresh_members(&self, ns: &Namespace, then: Mono) -> Result<()> {
        let prefix = self.keys.members(ns);
        let now = self.now();
        if self.memory().listed(&prefix).is_some_and(|listed| listed > then) {
            return Ok(());
        }
        self.refresh::<MemberRecord>(&prefix).await?;
        self.refresh::<StandingRecord>(&self.keys.standings(ns)).await?;
        self.memory().note_listing(&prefix, now);
        Ok(())
    }

    async fn refresh<R: Record>(&self, prefix: &str) -> Result<()> {
        let sent = self.now();
        let mut listed = self.register.list(prefix).await?;
        listed.retain(|listed| Keys::is_member(prefix, &listed.key));
        let loads = listed.iter().map(|listed| self.load_listed::<R>(listed, sent)).collect();
        for loaded in self.all(loads).await {
            match loaded {
                Err(error) if error.kind() != ErrorKind::Foreign => return Err(error),
                _ => {}
            }
        }
        let keys: BTreeSet<String> = listed.into_iter().map(|listed| listed.key).collect();
        R::table(&mut self.memory()).keep(prefix, &keys);
        Ok(())
    }

    /// The members not known to be dead, with what others may count on.
    pub(super) fn live_members(&self, ns: &Namespace) -> Vec<(Seen<MemberRecord>, Duration)> {
        let prefix = self.keys.members(ns);
        let known: Vec<_> = self.memory().members.below(&prefix).map(|(_, s)| s.clone()).collect();
        let live = known.into_iter().filter(|seen| !self.is_dead(seen));
        live.map(|seen| {
            let left = self.member_left(&seen);
            (seen, left)
        })
        .collect()
    }

    /// Ends the life of `who` in one swap of its record, and with it everything
    /// it holds; then tidies up. Says whether there was such a life.
    pub(super) async fn end(
        &self,
        ns: &Namespace,
        who: &MemberRef,
        how: EndedLife,
    ) -> Result<bool> {
        let end = |record: &mut MemberRecord| {
            record.condemned |= how == EndedLife::Evicted;
            record.ended = Some(how);
            true
        };
        if let Life::Over { .. } = self.edit_member(ns, who, Edit::Note, end).await? {
            return Ok(false);
        }
        let cause = match how {
            EndedLife::Left => ReleaseCause::Left,
            EndedLife::Evicted => ReleaseCause::Ended(EndCause::Evicted),
            EndedLife::Expired | EndedLife::Missing => ReleaseCause::Ended(EndCause::Expired),
        };
        // What is left undone here costs nobody anything: the life is over.
        let _ = self.tidy(ns, who, cause).await;
        Ok(true)
    }

    /// Writes down in the elections of an ended life that they are vacant, and
    /// removes its records once nothing refers to them. Where there are very many
    /// elections that is left to whoever takes them: they are void with the life.
    async fn tidy(&self, ns: &Namespace, who: &MemberRef, cause: ReleaseCause) -> Result<()> {
        let few = self.load_few_elections(ns, FEW).await?;
        let Some(elections) = few else { return Ok(()) };
        // Of its own life, and of those that only its record proves to be over.
        let of_member = |s: &&Seen<ElectionRecord>| {
            s.record.holder.as_ref().is_some_and(|holder| holder.member == who.id)
        };
        let held: Vec<_> = elections.iter().filter(of_member).collect();
        let record = self.known::<MemberRecord>(&self.keys.member(ns, &who.id));
        for seen in held {
            let Some(holder) = seen.record.holder.as_ref().map(|holder| holder.member()) else {
                continue;
            };
            let ended = record.as_ref().and_then(|m| m.record.proves_over(holder.incarnation));
            let Some(ended) = ended else { return Ok(()) };
            let cause = if holder == *who { cause } else { ReleaseCause::Ended(ended) };
            self.vacate(ns, &seen.record.election, &holder, cause).await?;
        }
        self.remove_record::<StandingRecord>(&self.keys.standing(ns, &who.id), who).await?;
        self.remove_record::<MemberRecord>(&self.keys.member(ns, &who.id), who).await
    }

    /// Removes a record of exactly this life, if it is still there.
    async fn remove_record<R: Record>(&self, key: &str, who: &MemberRef) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let seen = self.load::<R>(key).await?;
            let of_this_life = |s: &Seen<R>| s.record.stamp().0 == who.incarnation.as_u128();
            let Some(seen) = seen.filter(of_this_life) else { return Ok(()) };
            if self.register.remove(key, &seen.version).await? == Removed::Gone {
                R::table(&mut self.memory()).forget(key);
                return Ok(());
            }
        }
        Err(too_busy(key))
    }

    /// Removes records of members that are long dead, a few at a time (H27), if
    /// no election refers to them: without the record, whoever wants such an
    /// election would have to wait. Whoever wins or joins does it in passing; if
    /// it fails, the next one does it. One that lives after all finds its record
    /// gone and is ended.
    ///
    /// Of one that held nothing its own record says so. For any other the elections are
    /// looked at: by one who joins, and only where there are not very many. To take a
    /// term over costs the same, whatever the dead one held (M5).
    pub(super) async fn collect(&self, ns: &Namespace, joins: bool) {
        const AT_ONCE: usize = 8;
        let now = self.now();
        let long_dead = |seen: &Seen<MemberRecord>| {
            self.is_dead(seen) && now.since(seen.since) >= seen.record.ttl_ns * 2
        };
        let prefix = self.keys.members(ns);
        let known: Vec<_> = self.memory().members.below(&prefix).map(|(_, s)| s.clone()).collect();
        let unheld = |seen: &Seen<MemberRecord>| {
            seen.record.holds == Holds::Nothing && seen.record.past.is_empty()
        };
        let dead = known.into_iter().filter(|seen| long_dead(seen) && (joins || unheld(seen)));
        let dead: Vec<_> = dead.take(AT_ONCE).collect();
        let mut elections = Vec::new();
        if !dead.iter().all(unheld) {
            let few = self.load_few_elections(ns, FEW).await;
            let Ok(Some(few)) = few else { return };
            elections = few;
        }
        for seen in dead {
            let who = seen.record.member();
            let id = |s: &Seen<ElectionRecord>| {
                s.record.holder.as_ref().is_some_and(|h| h.member == who.id)
            };
            if elections.iter().any(id) {
                continue;
            }
            let key = self.keys.member(ns, &who.id);
            if let Ok(Removed::Gone) = self.register.remove(&key, &seen.version).await {
                self.memory().members.forget(&key);
                let standing = self.keys.standing(ns, &who.id);
                let _ = partly(true, self.remove_record::<StandingRecord>(&standing, &who).await);
            }
        }
    }
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
