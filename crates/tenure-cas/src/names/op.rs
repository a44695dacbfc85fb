//! One operation on one name: what it does, and the swap that decides.

use serde_json::Map;
use tenure_core::{Bind, BindOp, Incarnation, MemberRef, Namespace, To, Token, What};
use tenure_rules::op::{Does, does};
use tenure_store::Result;

use super::Binds;
use super::read::{FoundName, hangs_on};
use crate::cells::{ATTEMPTS, Cells, too_busy};
use crate::judge::Hold;
use crate::reader::first_of;
use crate::record::name::{BoundRecord, NameRecord, OwnerRecord};
use crate::seen::Seen;

/// One bind on its way.
pub(super) struct Asked<'a> {
    pub(super) bind: &'a Bind,
    /// The caller's life, with the key of its member's record.
    life: Option<(String, Incarnation)>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(cells: &Cells, ns: &Namespace, bind: &'a Bind) -> Self {
        let life = bind.member.as_ref().map(|m| (cells.keys.member(ns, &m.id), m.incarnation));
        Self { bind, life }
    }

    fn caller(&self) -> Option<&MemberRef> {
        self.bind.member.as_ref()
    }

    /// Whose a name is that this record shows.
    fn owner(&self, record: &NameRecord) -> Option<&(String, Incarnation)> {
        record.owner().and(self.life.as_ref())
    }
}

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    /// The name is bound as asked, once its number is checked and the caller's heartbeat is
    /// raised.
    Bound,
    /// The name is taken.
    Taken,
    /// The binding that was meant is not there.
    Gone,
    /// The name was dropped.
    Dropped,
    /// Not known: its requests failed.
    Open,
}

/// An operation that was done, and the name as it is after it.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) became: Became,
    pub(super) seen: FoundName,
    /// Whether it wrote anything.
    pub(super) wrote: bool,
    /// Whether the number was found above the floor, or needs not be.
    checked: bool,
}

impl Done {
    pub(super) fn open() -> Self {
        Self { became: Became::Open, seen: None, wrote: false, checked: true }
    }

    fn new(became: Became, seen: FoundName) -> Self {
        Self { became, seen, ..Self::open() }
    }

    pub(super) fn is_unchecked(&self) -> bool {
        self.became == Became::Bound && !self.checked
    }

    pub(super) fn number(&self) -> u64 {
        self.seen.as_ref().map_or(0, |seen| seen.record.rev)
    }

    /// Whether this life owns the name now.
    pub(super) fn is_bound_to(&self, caller: &MemberRef) -> bool {
        let owner = self.seen.as_ref().and_then(|seen| seen.record.owner());
        self.became == Became::Bound
            && owner.is_some_and(|owner| owner.incarnation == caller.incarnation)
    }
}

impl Binds<'_> {
    /// One operation on the name as it was found: decides, swaps, and begins again with what
    /// it finds after a conflict.
    pub(super) async fn op(
        &self,
        asked: &Asked<'_>,
        op: &BindOp,
        found: FoundName,
    ) -> Result<Done> {
        let key = self.cells.keys.name(self.ns, &op.name);
        let mut seen = found;
        for _ in 0..ATTEMPTS {
            let row = seen.as_ref().and_then(|seen| seen.record.row());
            let (record, became) = match does(row.as_ref(), asked.caller(), op) {
                Does::Repeats => return Ok(self.repeated(asked, &key, op, seen)),
                Does::Takes => (self.taken(asked, &key, op, seen.as_ref())?, Became::Bound),
                // Rule M2: a silent owner is ended first, and only then is its name taken.
                Does::TakesFrom(_) if self.is_over_by_now(seen.as_ref()).await? => {
                    (self.taken(asked, &key, op, seen.as_ref())?, Became::Bound)
                }
                Does::TakesFrom(_) | Does::IsTaken => return Ok(Done::new(Became::Taken, seen)),
                Does::Changes(_) => (self.changed(asked, &key, op, seen.as_ref())?, Became::Bound),
                Does::Drops => (dropped(op, seen.as_ref()), Became::Dropped),
                Does::IsGone => return Ok(Done::new(Became::Gone, seen)),
            };
            let checked = !matches!(op.what, What::Take { .. });
            let now = self.cells.now();
            if let Some(written) = self.cells.swap(&key, seen.as_ref(), record, now, None).await? {
                return Ok(Done { became, seen: Some(written), wrote: true, checked });
            }
            // Another write was first: a rival's, or that of this very operation in an
            // earlier attempt.
            seen = self.load_again(&key).await?;
        }
        Err(too_busy(&key))
    }

    /// Loads a name and its owner.
    async fn load_again(&self, key: &str) -> Result<FoundName> {
        let begun = self.cells.step();
        let seen = self.cells.load::<NameRecord>(key).await?;
        let found: Vec<_> = seen.iter().cloned().collect();
        let failed = self.reader.load_lives(hangs_on(&found), begun).await;
        first_of(failed)?;
        Ok(seen)
    }

    /// Whether the owner's life is over, after it was ended if it was silent.
    async fn is_over_by_now(&self, seen: Option<&Seen<NameRecord>>) -> Result<bool> {
        let Some(on) = seen.and_then(|seen| seen.record.hangs_on()) else { return Ok(false) };
        if self.cells.decide.takes_names_of_silent(&self.names.hold(&on)) {
            return Ok(true);
        }
        Ok(matches!(self.lives.settle_life(&on).await?, Hold::Over(_)))
    }

    /// An operation that was done before. What it took was perhaps never compared with the
    /// floor.
    fn repeated(&self, asked: &Asked<'_>, key: &str, op: &BindOp, seen: FoundName) -> Done {
        let known = seen.as_ref().is_some_and(|seen| {
            let token = seen.record.token().unwrap_or_default();
            let owner = asked.owner(&seen.record);
            self.cells.memory().binding.was_above(owner, key, token)
        });
        let checked = known || !matches!(op.what, What::Take { .. });
        Done { checked, ..Done::new(Became::Bound, seen) }
    }

    fn taken(
        &self,
        asked: &Asked<'_>,
        key: &str,
        op: &BindOp,
        seen: Option<&Seen<NameRecord>>,
    ) -> Result<NameRecord> {
        let mut record =
            seen.map_or_else(|| NameRecord::free(op.name.clone()), |seen| (*seen.record).clone());
        let What::Take { to, value } = &op.what else { return Ok(record) };
        let number = self.floor.next_number(key, record.rev, asked.bind.known)?;
        let owner = asked.caller().filter(|_| *to == To::Life);
        record.bound = Some(BoundRecord {
            token: number,
            owner: owner.map(|owner| OwnerRecord::new(owner, asked.bind.ttl)),
            by: asked.caller().map(|caller| caller.incarnation),
            nonce: op.nonce.get(),
            value: value.clone(),
            bound_at_ms: self.cells.clock.wall().unix_millis(),
            other: Map::new(),
        });
        Ok(record.numbered(number))
    }

    fn changed(
        &self,
        asked: &Asked<'_>,
        key: &str,
        op: &BindOp,
        seen: Option<&Seen<NameRecord>>,
    ) -> Result<NameRecord> {
        let mut record =
            seen.map_or_else(|| NameRecord::free(op.name.clone()), |seen| (*seen.record).clone());
        let What::Change { value, .. } = &op.what else { return Ok(record) };
        record.rev = self.floor.next_number(key, record.rev, asked.bind.known)?;
        if let Some(bound) = &mut record.bound {
            bound.by = asked.caller().map(|caller| caller.incarnation);
            bound.nonce = op.nonce.get();
            bound.value = value.clone();
        }
        Ok(record)
    }

    /// Gives a name the next number: the one that it was taken under is not above the floor.
    pub(super) async fn renumber(
        &self,
        asked: &Asked<'_>,
        op: &BindOp,
        found: FoundName,
    ) -> Result<Done> {
        let key = self.cells.keys.name(self.ns, &op.name);
        if let Some(seen) = &found {
            let number = self.floor.next_number(&key, seen.record.rev, asked.bind.known)?;
            let record = (*seen.record).clone().numbered(number);
            let now = self.cells.now();
            if let Some(written) = self.cells.swap(&key, Some(seen), record, now, None).await? {
                let done = Done::new(Became::Bound, Some(written));
                return Ok(Done { wrote: true, checked: false, ..done });
            }
        }
        let again = self.load_again(&key).await?;
        Ok(Done { wrote: true, ..self.op(asked, op, again).await? })
    }

    /// Remembers that the number of what was taken is above the floor.
    pub(super) fn note_above(&self, asked: &Asked<'_>, op: &BindOp, done: &mut Done) {
        done.checked = true;
        let Some(record) = done.seen.as_ref().map(|seen| &seen.record) else { return };
        let key = self.cells.keys.name(self.ns, &op.name);
        let token = record.token().unwrap_or_default();
        self.cells.memory().binding.is_above(asked.owner(record), &key, token);
    }

    /// Remembers what is not the caller's any more, also where an earlier attempt dropped it
    /// and its answer was lost.
    pub(super) fn note_drops(&self, asked: &Asked<'_>, done: &[Done]) {
        for (op, done) in asked.bind.ops.iter().zip(done) {
            let What::Drop { token } = &op.what else { continue };
            if matches!(done.became, Became::Dropped | Became::Gone) {
                self.forget(asked, op, *token);
            }
        }
    }

    fn forget(&self, asked: &Asked<'_>, op: &BindOp, token: Token) {
        let key = self.cells.keys.name(self.ns, &op.name);
        let mut memory = self.cells.memory();
        memory.binding.is_gone(asked.life.as_ref(), &key, token);
        memory.binding.is_gone(None, &key, token);
    }
}

/// The small record that a dropped name leaves.
fn dropped(op: &BindOp, seen: Option<&Seen<NameRecord>>) -> NameRecord {
    let mut record =
        seen.map_or_else(|| NameRecord::free(op.name.clone()), |seen| (*seen.record).clone());
    record.bound = None;
    record
}
