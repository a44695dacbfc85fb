//! How a life ends: it leaves, an operator ends it, or it was silent for its ttl. The
//! last is the first half of a take-over (rule M2).

use tenure_core::{EndCause, MemberRef, ReleaseCause};
use tenure_store::{ErrorKind, Result};

use super::Lives;
use crate::cells::{ATTEMPTS, too_busy};
use crate::judge::{HangsOn, Hold};
use crate::members::{Edit, Life};
use crate::record::election::ElectionRecord;
use crate::record::member::{EndedLife, MemberRecord};
use crate::seen::Seen;

impl Lives<'_> {
    /// Ends a silent life, on exactly the version in which it was silent. `false`
    /// if the record has changed since: it may live after all.
    async fn end_silent(&self, key: &str, seen: &Seen<MemberRecord>) -> Result<bool> {
        let mut record = (*seen.record).clone();
        // An operator asked for this end earlier, and waited for the ttl as all do: it is
        // told as an eviction.
        let condemned = record.condemned;
        record.ended = Some(if condemned { EndedLife::Evicted } else { EndedLife::Expired });
        let ended =
            self.parts.cells.swap(key, Some(seen), record, self.parts.cells.now(), None).await?;
        // A heartbeat, or the same end by another: the next look at what is known must see
        // which.
        if ended.is_none() {
            self.parts.cells.load::<MemberRecord>(key).await?;
        }
        Ok(ended.is_some())
    }

    /// Makes sure that a life whose record is missing cannot go on: puts a mark in its
    /// place, on which its next heartbeat conflicts. The mark of another observer does as
    /// well, and so does a record that cannot be read, since no heartbeat can replace it.
    async fn mark_missing(&self, on: &HangsOn) -> Result<()> {
        let key = self.parts.cells.keys.member(self.parts.ns, &on.life.id);
        let mark = MemberRecord::missing(&on.life, on.ttl);
        if self.parts.cells.swap(&key, None, mark, self.parts.cells.now(), None).await?.is_none() {
            match self.parts.cells.load::<MemberRecord>(&key).await {
                Err(error) if error.kind() != ErrorKind::Foreign => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// What the term of this record hangs on, after its holder was ended if it was
    /// silent for its ttl, or marked if its record is missing (rule M2).
    pub(crate) async fn settle(&self, record: &ElectionRecord) -> Result<Hold> {
        match &record.holder {
            Some(holder) => self.settle_life(&holder.hangs_on()).await,
            None => Ok(Hold::Vacant),
        }
    }

    /// The same, of whatever hangs on this life. The end is a swap of the very version in
    /// which the life was silent: a heartbeat in flight either lands first, and then this
    /// conflicts and finds a live one, or it conflicts itself and is told that the life is
    /// over.
    pub(crate) async fn settle_life(&self, on: &HangsOn) -> Result<Hold> {
        let key = self.parts.cells.keys.member(self.parts.ns, &on.life.id);
        let life = on.life.incarnation;
        if let Hold::Unproven { absent: true, .. } = self.parts.judge.hold_on(on) {
            self.mark_missing(on).await?;
            let now = self.parts.cells.now();
            let marked = self.parts.cells.known::<MemberRecord>(&key);
            if marked.is_none_or(|seen| !seen.record.shows(life)) {
                // What was waited before the mark proves nothing: until it was there, a
                // heartbeat in flight could have made the record anew.
                let mut memory = self.parts.cells.memory();
                memory.nothing_missing(&key, life);
                memory.is_missing(&key, life, now);
            }
        }
        for _ in 0..ATTEMPTS {
            match self.parts.cells.decide.hold(self.parts.judge.hold_on(on)) {
                Hold::Silent(seen) => {
                    self.end_silent(&key, &seen).await?;
                }
                settled => return Ok(settled),
            }
        }
        Err(too_busy(&key))
    }

    /// Ends the life of `who` in one swap of its record, and with it everything it
    /// holds; then clears its elections and records away. Says whether there was such a
    /// life.
    pub(crate) async fn end(&self, who: &MemberRef, how: EndedLife) -> Result<bool> {
        let end = |record: &mut MemberRecord| {
            record.condemned |= how == EndedLife::Evicted;
            record.ended = Some(how);
            true
        };
        if let Life::Over { .. } = self.parts.members.edit(who, Edit::Note, end).await? {
            return Ok(false);
        }
        let cause = match how {
            EndedLife::Left => ReleaseCause::Left,
            EndedLife::Evicted => ReleaseCause::Ended(EndCause::Evicted),
            EndedLife::Expired | EndedLife::Missing => ReleaseCause::Ended(EndCause::Expired),
        };
        // If it fails, the next bid or join does it: the life is over without it.
        let _ = self.clear_away(who, cause).await;
        Ok(true)
    }
}
