//! The record of one member: whether its life goes on, and how the record is changed.

use std::time::Duration;

use tenure_core::{MemberId, MemberRef, Mono, Namespace};
use tenure_store::Result;

use crate::cells::{ATTEMPTS, Cells, Renews, too_busy};
use crate::judge::Judge;
use crate::record::member::{Holds, MemberRecord};
use crate::seen::Seen;

/// Whether a life goes on.
#[derive(Debug)]
pub(crate) enum Life {
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
pub(crate) enum Edit {
    /// A heartbeat of a life that must still be allowed one, for this ttl.
    Beat(Duration),
    /// A note on the record of this very life, made by any process.
    Note,
}

/// Members' records: heartbeats, and notes on them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members<'a> {
    cells: &'a Cells,
    ns: &'a Namespace,
    judge: Judge<'a>,
}

impl<'a> Members<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self { cells, ns, judge: Judge::new(cells, ns) }
    }
}

impl Members<'_> {
    /// Judges whether `who` may act, by what was seen of its record.
    fn life(&self, key: &str, who: &MemberRef, seen: Option<Seen<MemberRecord>>) -> Life {
        let Some(seen) = seen else { return Life::Over { superseded: false } };
        let superseded = seen.record.incarnation != who.incarnation;
        let over = seen.record.ended.is_some() || seen.record.condemned;
        if superseded || over || self.judge.own_ran_out(key, who.incarnation, &seen) {
            return Life::Over { superseded };
        }
        Life::Live(seen)
    }

    /// Whether `who` may act. What is known of its own record will do if it is
    /// not older than [`CasOptions::listing_age`](crate::CasOptions::listing_age):
    /// whatever a life that is over does next fails on that record. One whose
    /// life is over is remembered, so that it does not come back.
    pub(crate) async fn load_life(&self, who: &MemberRef) -> Result<Life> {
        let key = self.cells.keys.member(self.ns, &who.id);
        let fresh = |seen: &Seen<MemberRecord>| {
            self.cells.now().since(seen.looked) < self.cells.options.listing_age
        };
        let known = self.cells.known::<MemberRecord>(&key).filter(fresh);
        // That it lives is believed; that it is over only of the record as it is now, since
        // the caller would give everything up for it.
        if let live @ Life::Live(_) = self.life(&key, who, known) {
            return Ok(live);
        }
        self.load_life_now(who).await
    }

    /// Whether `who` may act, by its record as it is now: for one whose next step fails on
    /// no record of its own.
    pub(crate) async fn load_life_now(&self, who: &MemberRef) -> Result<Life> {
        let key = self.cells.keys.member(self.ns, &who.id);
        let life = self.life(&key, who, self.cells.load(&key).await?);
        if let Life::Over { .. } = life {
            self.cells.memory().ended(&key, who.incarnation);
        }
        Ok(life)
    }

    /// Changes the record of exactly this life; `edit` says whether it changed
    /// anything. What is known is tried first, so that in the usual case this is
    /// a single swap.
    pub(crate) async fn edit(
        &self,
        who: &MemberRef,
        what: Edit,
        mut edit: impl FnMut(&mut MemberRecord) -> bool,
    ) -> Result<Life> {
        let key = self.cells.keys.member(self.ns, &who.id);
        let mut seen = self.cells.known::<MemberRecord>(&key);
        // One attempt more than elsewhere, since the first goes by what is known.
        for attempt in 0..=ATTEMPTS {
            let life = match what {
                // A note renews nothing, and may be written to a life that must not renew.
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
                    seen = self.cells.load(&key).await?;
                    continue;
                }
                if let Edit::Beat(_) = what {
                    self.cells.memory().ended(&key, who.incarnation);
                }
                return Ok(life);
            };
            let Some((record, started, renews)) = self.edited(&key, who, what, &current, &mut edit)
            else {
                return Ok(Life::Live(current));
            };
            if let Some(written) =
                self.cells.swap(&key, Some(&current), record, started, renews).await?
            {
                return Ok(Life::Live(written));
            }
            seen = self.cells.load(&key).await?;
        }
        Err(too_busy(&key))
    }

    /// The record as `edit` leaves it, when its write begins, and what it renews; `None` if
    /// nothing was changed.
    pub(crate) fn edited(
        &self,
        key: &str,
        who: &MemberRef,
        what: Edit,
        current: &Seen<MemberRecord>,
        edit: &mut impl FnMut(&mut MemberRecord) -> bool,
    ) -> Option<(MemberRecord, Mono, Option<Renews>)> {
        let mut record = (*current.record).clone();
        if !edit(&mut record) {
            return None;
        }
        // Whatever was given back and could not be said yet is said with the
        // next write, whichever it is.
        record.changes = record.changes.max(self.cells.memory().changes(who.incarnation));
        if self.cells.memory().has_nothing_left(key, who.incarnation) {
            record.holds = record.holds.nothing_left(self.cells.clock_id);
            // Lives before this one may have owned names too.
            record.names &= record.holds != Holds::Nothing || !record.past.is_empty();
        }
        // T1 for the store's side: what is renewed counts from before the swap is sent.
        let started = self.cells.now();
        let renews = self.renew(what, started, &mut record);
        Some((record, started, renews))
    }

    /// The record of this life as it is known, if it may beat by that.
    pub(crate) fn known_to_live(&self, who: &MemberRef) -> Option<Seen<MemberRecord>> {
        let key = self.cells.keys.member(self.ns, &who.id);
        match self.life(&key, who, self.cells.known::<MemberRecord>(&key)) {
            Life::Live(seen) => Some(seen),
            Life::Over { .. } => None,
        }
    }

    /// Makes a write a heartbeat, if it is one: it counts from its start, on the
    /// clock of this observer.
    fn renew(&self, what: Edit, started: Mono, record: &mut MemberRecord) -> Option<Renews> {
        let Edit::Beat(asked) = what else { return None };
        record.beat = record.beat.wrapping_add(1);
        record.clock = self.cells.clock_id;
        record.elapsed_ns = started.since(Mono::ZERO);
        Some(Renews { life: record.incarnation, asked })
    }

    /// Notes that something is about to be given back. It is noted before, because
    /// the caller may stop waiting for the answer at any moment, and the write
    /// be applied all the same: then the next heartbeat says it.
    pub(crate) fn note_change(&self, who: &MemberRef) {
        let told = self.announced_changes(who);
        self.cells.memory().gives_back(who.incarnation, told);
    }

    /// Whether something was given back, or may have been, that is not said yet.
    pub(crate) fn owes_announcement(&self, who: &MemberRef) -> bool {
        let told = self.announced_changes(who);
        self.cells.memory().changes(who.incarnation) > told
    }

    /// What this life has said last, as far as is known.
    fn announced_changes(&self, who: &MemberRef) -> u64 {
        let known = self.cells.known::<MemberRecord>(&self.cells.keys.member(self.ns, &who.id));
        let known = known.filter(|seen| seen.record.incarnation == who.incarnation);
        known.map_or(0, |seen| seen.record.changes)
    }

    /// Says that something was given back: followers look at their elections only
    /// when it is. If that fails, the next heartbeat says it.
    pub(crate) async fn announce_change(&self, who: &MemberRef) {
        self.note_change(who);
        let change = |record: &mut MemberRecord| {
            record.changes = record.changes.wrapping_add(1);
            true
        };
        let _ = self.edit(who, Edit::Note, change).await;
    }

    /// Writes into a member's record that this life holds nothing any more, where the record says
    /// otherwise and this observer knows that it is out of date. A newcomer of the same id reads
    /// it there. If the write fails, the member's next heartbeat says the same.
    pub(crate) async fn say_nothing_left(&self, who: &MemberRef) {
        let key = self.cells.keys.member(self.ns, &who.id);
        if !self.cells.memory().has_nothing_left(&key, who.incarnation) {
            return;
        }
        let says_otherwise = |record: &mut MemberRecord| {
            record.holds.nothing_left(self.cells.clock_id) != record.holds
        };
        let _ = self.edit(who, Edit::Note, says_otherwise).await;
    }

    /// Makes this member look: something is asked of it.
    pub(crate) async fn raise_attention(&self, id: &MemberId) -> Result<()> {
        self.raise_attention_by(id, |before| before.wrapping_add(1)).await
    }

    /// The same, to what `raised` makes of it.
    pub(crate) async fn raise_attention_by(
        &self,
        id: &MemberId,
        raised: impl Fn(u64) -> u64,
    ) -> Result<()> {
        let key = self.cells.keys.member(self.ns, id);
        let Some(seen) = self.cells.load::<MemberRecord>(&key).await? else { return Ok(()) };
        let raise = |record: &mut MemberRecord| {
            record.attention = raised(record.attention);
            true
        };
        self.edit(&seen.record.member(), Edit::Note, raise).await?;
        Ok(())
    }
}
