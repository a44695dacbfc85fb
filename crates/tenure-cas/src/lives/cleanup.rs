//! Removing records that nothing refers to any more. It is done in passing, in bounded
//! steps, and decides nothing: a life that is over is over without it.

use std::collections::BTreeSet;

use tenure_core::{MemberRef, ReleaseCause};
use tenure_store::Result;

use super::Lives;
use crate::cells::{ATTEMPTS, partly, too_busy};
use crate::memory::Memory;
use crate::record::Record;
use crate::record::candidacies::CandidaciesRecord;
use crate::record::election::ElectionRecord;
use crate::record::member::{Holds, MemberRecord};
use crate::record::name::NameRecord;
use crate::register::Removed;
use crate::seen::Seen;

/// How many elections are looked at for nothing but tidying up.
const FEW: usize = 1_000;

impl Lives<'_> {
    /// Writes down in the elections of an ended life that they are vacant, and
    /// removes its records once nothing refers to them. Where there are very many
    /// elections that is left to their next holders: they are void with the life.
    pub(super) async fn clear_away(&self, who: &MemberRef, cause: ReleaseCause) -> Result<()> {
        // Of its own life, and of those that only its record proves to be over.
        let of_member = |s: &Seen<ElectionRecord>| {
            s.record.holder.as_ref().is_some_and(|holder| holder.member == who.id)
        };
        // A listing may lag behind what this observer has written itself. A term that
        // it misses would be left without the record that proves it to be over.
        let prefix = self.parts.cells.keys.elections(self.parts.ns);
        let known = |memory: &Memory| -> Vec<Seen<ElectionRecord>> {
            let seen = memory.elections.below(&prefix).map(|(_, seen)| seen);
            seen.filter(|seen| of_member(seen)).take(FEW).cloned().collect()
        };
        let known = known(&self.parts.cells.memory());
        let few = self.parts.reader.load_up_to(FEW).await?;
        let Some(listed) = few else { return Ok(()) };
        let names: BTreeSet<_> = listed.iter().map(|s| s.record.election.clone()).collect();
        let unlisted = known.into_iter().filter(|s| !names.contains(&s.record.election));
        let held: Vec<_> = listed.into_iter().filter(of_member).chain(unlisted).collect();
        let record = self
            .parts
            .cells
            .known::<MemberRecord>(&self.parts.cells.keys.member(self.parts.ns, &who.id));
        for seen in held {
            let Some(holder) = seen.record.holder.as_ref().map(|holder| holder.member()) else {
                continue;
            };
            let ended = record.as_ref().and_then(|m| m.record.proves_over(holder.incarnation));
            // Not proven: the record stays, since without it a bidder for this term would
            // have to wait out a life that is over.
            let Some(ended) = ended else { return Ok(()) };
            let cause = if holder == *who { cause } else { ReleaseCause::Ended(ended) };
            self.releases.vacate(&seen.record.election, &holder, cause).await?;
        }
        self.remove_record::<CandidaciesRecord>(
            &self.parts.cells.keys.standing(self.parts.ns, &who.id),
            who,
        )
        .await?;
        if record.is_some_and(|seen| seen.record.names) && !self.clear_names_away(who).await {
            return Ok(());
        }
        // The member's record goes last: it is what proves that all the rest is void.
        self.remove_record::<MemberRecord>(
            &self.parts.cells.keys.member(self.parts.ns, &who.id),
            who,
        )
        .await
    }

    /// Removes the names of an ended life, if this observer knows all of them and they are
    /// not very many. Says whether none is left that only the member's record proves void.
    async fn clear_names_away(&self, who: &MemberRef) -> bool {
        let key = self.parts.cells.keys.member(self.parts.ns, &who.id);
        let knows_all = self.parts.cells.known::<MemberRecord>(&key).is_some_and(|seen| {
            let holds = seen.record.holds;
            seen.record.past.is_empty()
                && (holds == Holds::Nothing || holds == Holds::KnownTo(self.parts.cells.clock_id))
        });
        self.floor.collect_of(&(key, who.incarnation)).await && knows_all
    }

    /// Removes a record of exactly this life, if it is still there.
    async fn remove_record<R: Record>(&self, key: &str, who: &MemberRef) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let seen = self.parts.cells.load::<R>(key).await?;
            let of_this_life = |s: &Seen<R>| s.record.stamp().0 == who.incarnation.as_u128();
            let Some(seen) = seen.filter(of_this_life) else { return Ok(()) };
            if self.parts.cells.register.remove(key, &seen.version).await? == Removed::Gone {
                R::table(&mut self.parts.cells.memory()).forget(key);
                return Ok(());
            }
        }
        Err(too_busy(key))
    }

    /// Removes records of members that are long dead, a few at a time (H27), if
    /// no election refers to them: without the record, a bidder for such an
    /// election would have to wait. A win or a join does it in passing; if
    /// it fails, the next one does it. One that lives after all finds its record
    /// gone and is ended.
    ///
    /// Of one that held nothing its own record says so. For any other the elections are
    /// looked at: by a join, and only where there are not very many. To take a
    /// term over costs the same, whatever the dead one held (M5).
    pub(crate) async fn remove_long_dead(&self, joins: bool) {
        const AT_ONCE: usize = 8;
        let now = self.parts.cells.now();
        let long_dead = |seen: &Seen<MemberRecord>| {
            // Not as soon as it is dead: while the record is there, nothing has to be waited
            // out by those that take its terms.
            self.parts.judge.is_dead(seen) && now.since(seen.since) >= seen.record.ttl_ns * 2
        };
        let prefix = self.parts.cells.keys.members(self.parts.ns);
        let known: Vec<_> =
            self.parts.cells.memory().members.below(&prefix).map(|(_, s)| s.clone()).collect();
        let unheld = |seen: &Seen<MemberRecord>| {
            let names = seen.record.names;
            seen.record.holds == Holds::Nothing && seen.record.past.is_empty() && !names
        };
        let dead = known.into_iter().filter(|seen| long_dead(seen) && (joins || unheld(seen)));
        let dead: Vec<_> = dead.take(AT_ONCE).collect();
        let mut elections = Vec::new();
        if !dead.iter().all(unheld) {
            let few = self.parts.reader.load_up_to(FEW).await;
            let Ok(Some(few)) = few else { return };
            elections = few;
        }
        let mut names = None;
        if dead.iter().any(|seen| seen.record.names) {
            let Ok(few) = self.names.load_up_to(FEW).await else { return };
            names = few;
        }
        for seen in dead {
            let who = seen.record.member();
            let owns = |s: &Seen<NameRecord>| s.record.owner().is_some_and(|o| o.member == who.id);
            // Where there are very many names, the record stays.
            if seen.record.names && names.as_ref().is_none_or(|names| names.iter().any(owns)) {
                continue;
            }
            let id = |s: &Seen<ElectionRecord>| {
                s.record.holder.as_ref().is_some_and(|h| h.member == who.id)
            };
            if elections.iter().any(id) {
                continue;
            }
            let key = self.parts.cells.keys.member(self.parts.ns, &who.id);
            if let Ok(Removed::Gone) = self.parts.cells.register.remove(&key, &seen.version).await {
                self.parts.cells.memory().members.forget(&key);
                let standing = self.parts.cells.keys.standing(self.parts.ns, &who.id);
                let _ =
                    partly(true, self.remove_record::<CandidaciesRecord>(&standing, &who).await);
            }
        }
    }
}
