//! Names: each is a record of its own, and its owner's life hangs on the owner's member
//! record, as a term does.
//!
//! A bind loads the names and their owners, then swaps each name, then loads the floor, then
//! raises the caller's heartbeat by a swap, and only then answers. What could give a name to
//! two owners, or a token out twice, and what prevents it:
//!
//! - **A late swap of an ended owner.** A looks at its own record and lives; B ends A and
//!   takes the name; A's swap of the name arrives. It names the version that A saw, and B's
//!   swap has replaced that one: it conflicts. If no other has taken the name, A's swap lands
//!   in the record of a life that is over: it is void, and the next taker gets it. A is never
//!   told that it owns the name, since its heartbeat comes after the swap and finds the life
//!   ended.
//! - **A take from a silent owner races with its heartbeat.** B ends A by a swap of the
//!   version of A's member record in which A was silent (rule M2), and swaps the name only
//!   after that. The heartbeat first: B's swap conflicts, B finds a live owner and answers
//!   `Taken`. B first: the heartbeat conflicts and is answered `Ended`, before B owns
//!   anything.
//! - **A token comes back.** T finds that the name has no record, and the floor at 4. C takes
//!   it under 5, changes it up to 7 and drops it; the record of the drop is collected: the
//!   floor is raised to 7 or more, and then the record is removed. T's creation lands, since
//!   the name has no record again, under 5. So **T looks at the floor again after its swap**:
//!   every record that was removed before T's creation had raised the floor before that, so
//!   that the second look shows 7, and T takes the next number in place of 5 before it
//!   answers. The same look is made after a take over a record that is there, which may be
//!   one that such a taker left behind when it died before its second look.
//! - **The second look is interrupted.** The name is bound under a number that no caller was
//!   told. Its caller repeats its nonce, and the repeat looks at the floor unless this
//!   observer knows that it was looked at. One that comes after the caller's life takes the
//!   name from a life that is over. Until then a reader may be shown that number.
//! - **A nonce is repeated after a lost answer.** The record has the caller's life and the
//!   nonce: the same binding again, and a heartbeat of this request (rules E2, Q5). A repeated
//!   drop finds a dropped name, or another token: `Gone`.
//! - **Supersede.** A takes its first name; a newcomer of A's id loaded A's record before,
//!   which says that A holds nothing, and replaces it. A's heartbeat conflicts, and A is
//!   told `Ended`; the name hangs on a life that the new record lists as over. The heartbeat
//!   first: it says that A holds something, and the newcomer's swap conflicts. No listing is
//!   asked.
//! - **A collection races with a taker.** Only a record that was dropped, or whose owner is
//!   proven over, is removed, and only in exactly that version: a taker that was first has
//!   replaced it.
//! - **A life ends that owned names.** Its member record stays as the proof that they are
//!   void, also when it leaves. Without the proof takers would have to wait out the ttl.

mod floor;
mod memory;
mod op;
mod read;

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Bind, BindAnswer, BindOp, Bindings, Name, Namespace, To, What};
use tenure_store::{Error, ErrorKind, Result};

pub(crate) use self::floor::Floor;
pub(crate) use self::memory::BindingMemory;
use self::op::{Asked, Became, Done};
pub(crate) use self::read::NameReader;
use self::read::{FoundName, hangs_on};
use crate::cells::{ATTEMPTS, Cells, partly};
use crate::lives::Lives;
use crate::members::{Edit, Life, Members};
use crate::outcomes::{graver, is_passing, none_for_good};
use crate::reader::{Reader, holder_not_loaded};
use crate::record::member::MemberRecord;
use crate::record::name::NameRecord;
use crate::seen::Seen;

/// A bind, as far as it has come.
struct Going {
    /// The names as they are by now.
    found: BTreeMap<Name, Result<FoundName>>,
    /// Whether anything was written.
    wrote: bool,
    /// What failed on its way.
    failed: Option<Error>,
}

impl Going {
    /// The result of one name. A request that failed, and may succeed when it is repeated, leaves
    /// its name open; any other error fails the whole bind.
    fn passed(&mut self, result: Result<Done>) -> Result<Done> {
        match result {
            Err(error) if is_passing(&error) => {
                self.failed = Some(graver(self.failed.take(), error));
                Ok(Done::open())
            }
            result => result,
        }
    }
}

/// Taking, changing and dropping names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binds<'a> {
    cells: &'a Cells,
    ns: &'a Namespace,
    reader: Reader<'a>,
    members: Members<'a>,
    lives: Lives<'a>,
    names: NameReader<'a>,
    floor: Floor<'a>,
}

impl<'a> Binds<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self {
            cells,
            ns,
            reader: Reader::new(cells, ns),
            members: Members::new(cells, ns),
            lives: Lives::new(cells, ns),
            names: NameReader::new(cells, ns),
            floor: Floor::new(cells, ns),
        }
    }
}

impl Binds<'_> {
    /// See [`Store::bind`](tenure_store::Store::bind). An operation whose own requests fail
    /// on their way stays open, and with it those that follow on the same name; the others
    /// go on.
    pub(crate) async fn bind(&self, bind: &Bind) -> Result<Bindings> {
        if let Some(superseded) = self.is_over(bind).await? {
            return Ok(Bindings::Ended { superseded });
        }
        let asked = Asked::new(self.cells, self.ns, bind);
        let mut going = Going { found: self.load(bind).await?, wrote: false, failed: None };
        let mut done: Vec<Done> = bind.ops.iter().map(|_| Done::open()).collect();
        for wave in waves(&bind.ops) {
            let part = self.wave(&asked, &wave, &mut going).await;
            for (index, result) in wave.iter().zip(partly(going.wrote, part)?) {
                done[*index] = result;
            }
        }
        let wrote = going.wrote;
        if let Some(error) = going.failed
            && done.iter().all(|done| done.became == Became::Open)
        {
            return Err(error);
        }
        self.note_drops(&asked, &done);
        if let Some(superseded) = partly(wrote, self.confirm(&asked, &done).await)? {
            return Ok(Bindings::Ended { superseded });
        }
        self.floor.collect().await;
        let answers = bind.ops.iter().zip(done).map(|(op, done)| self.answer(op, done));
        Ok(Bindings::Answered(answers.collect()))
    }

    /// Whether the caller's life is over, and if so whether another has taken its place. If
    /// nothing follows that raises its heartbeat, what is known of its record will not do.
    async fn is_over(&self, bind: &Bind) -> Result<Option<bool>> {
        let Some(caller) = &bind.member else { return Ok(None) };
        let owns = |op: &BindOp| {
            let What::Take { to, .. } = &op.what else { return false };
            *to == To::Life
        };
        let life = match bind.ops.iter().all(owns) {
            true => self.members.load_life(caller).await?,
            false => self.members.load_life_now(caller).await?,
        };
        Ok(match life {
            Life::Live(_) => None,
            Life::Over { superseded } => Some(superseded),
        })
    }

    /// The names that are asked for, their owners, and a floor if none is known. Fails before
    /// anything is written if one of them cannot be read.
    async fn load(&self, bind: &Bind) -> Result<BTreeMap<Name, Result<FoundName>>> {
        let begun = self.cells.step();
        let names: BTreeSet<&Name> = bind.ops.iter().map(|op| &op.name).collect();
        let keys: Vec<_> = names.iter().map(|name| self.cells.keys.name(self.ns, name)).collect();
        let loads = keys.iter().map(|key| self.cells.load::<NameRecord>(key)).collect();
        let mut found = none_for_good(self.cells.all(loads).await)?;
        let seen: Vec<Seen<NameRecord>> = found.iter().flatten().flatten().cloned().collect();
        let failed = self.reader.load_lives(hangs_on(&seen), begun).await;
        for name in &mut found {
            let Ok(Some(seen)) = name else { continue };
            let owner = seen.record.owner().map(|owner| &owner.member);
            if let Some((_, error)) = failed.iter().find(|(id, _)| Some(id) == owner) {
                *name = Err(holder_not_loaded(error));
            }
        }
        if bind.ops.iter().any(|op| matches!(op.what, What::Take { .. })) {
            self.floor.load_once().await?;
        }
        Ok(names.into_iter().cloned().zip(found).collect())
    }

    /// Does operations on different names at once; then looks at the floor, once for all.
    async fn wave(
        &self,
        asked: &Asked<'_>,
        wave: &[usize],
        going: &mut Going,
    ) -> Result<Vec<Done>> {
        let ops: Vec<&BindOp> = wave.iter().map(|index| &asked.bind.ops[*index]).collect();
        let work = ops.iter().map(|op| {
            let name = going.found.remove(&op.name).unwrap_or(Ok(None));
            async move { self.op(asked, op, name?).await }
        });
        let results = self.cells.all(work.collect()).await;
        going.wrote |= results.iter().flatten().any(|done| done.wrote);
        let mut done = Vec::with_capacity(ops.len());
        for result in results {
            done.push(going.passed(result)?);
        }
        self.look_again(asked, &ops, &mut done, going).await?;
        for (op, done) in ops.iter().zip(&done) {
            let left = match &done.became {
                Became::Open => Err(unknown(&op.name)),
                _ => Ok(done.seen.clone()),
            };
            going.found.insert(op.name.clone(), left);
        }
        Ok(done)
    }

    /// The second look at the floor: a name that was taken under a number which is not above
    /// it gets the next one. If the floor cannot be loaded, those operations stay open.
    async fn look_again(
        &self,
        asked: &Asked<'_>,
        ops: &[&BindOp],
        done: &mut [Done],
        going: &mut Going,
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let due: Vec<usize> = (0..ops.len()).filter(|i| done[*i].is_unchecked()).collect();
            if due.is_empty() {
                return Ok(());
            }
            let floor = match self.floor.load().await {
                Ok(floor) => self.cells.decide.floor(floor),
                Err(error) => {
                    going.passed(Err(error.maybe_applied()))?;
                    break;
                }
            };
            let below = |i: &usize| done[*i].number() <= floor;
            let (low, high): (Vec<usize>, Vec<usize>) = due.into_iter().partition(below);
            for i in high {
                self.note_above(asked, ops[i], &mut done[i]);
            }
            let again = low.iter().map(|i| self.renumber(asked, ops[*i], done[*i].seen.clone()));
            let again = self.cells.all(again.collect()).await;
            for (i, result) in low.into_iter().zip(again) {
                done[i] = going.passed(result)?;
            }
        }
        done.iter_mut().filter(|done| done.is_unchecked()).for_each(|done| *done = Done::open());
        Ok(())
    }

    /// Raises the heartbeat of a member that has just been bound a name: only if that is written
    /// is anything its own (see the module). Gives how its life is over, if it is.
    async fn confirm(&self, asked: &Asked<'_>, done: &[Done]) -> Result<Option<bool>> {
        let Some(caller) = &asked.bind.member else { return Ok(None) };
        if !done.iter().any(|done| done.is_bound_to(caller)) {
            if done.iter().any(|done| matches!(done.became, Became::Dropped)) {
                self.members.say_nothing_left(caller).await;
            }
            return Ok(None);
        }
        let ttl = asked.bind.ttl;
        let renew = |record: &mut MemberRecord| {
            record.ttl_ns = ttl;
            record.holds = record.holds.won(self.cells.clock_id);
            record.names = true;
            self.cells.decide.confirms_bindings()
        };
        Ok(match self.members.edit(caller, Edit::Beat(ttl), renew).await? {
            Life::Live(_) => None,
            Life::Over { superseded } => Some(superseded),
        })
    }

    fn answer(&self, op: &BindOp, done: Done) -> BindAnswer {
        let shown = done.seen.as_ref().and_then(|seen| match done.became {
            Became::Gone => self.names.binding(seen),
            _ => self.names.shown(seen),
        });
        match (done.became, shown) {
            (Became::Bound, Some(binding)) => BindAnswer::Bound(binding),
            (Became::Taken, Some(binding)) => BindAnswer::Taken(binding),
            (Became::Gone, binding) => BindAnswer::Gone(binding),
            (Became::Dropped, _) => BindAnswer::Gone(None),
            _ => BindAnswer::Unknown(op.name.clone()),
        }
    }
}

/// What an operation before this one on the same name came to.
fn unknown(name: &Name) -> Error {
    let what = format!("what became of the name {name:?} a moment ago is not known");
    Error::new(ErrorKind::Busy, what).remedy("try again").maybe_applied()
}

/// The operations in parts, each with every name at most once: what follows on a name waits
/// for what was asked before.
fn waves(ops: &[BindOp]) -> Vec<Vec<usize>> {
    let mut waves: Vec<Vec<usize>> = Vec::new();
    let mut seen: BTreeMap<&Name, usize> = BTreeMap::new();
    for (index, op) in ops.iter().enumerate() {
        let wave = seen.entry(&op.name).or_default();
        if *wave == waves.len() {
            waves.push(Vec::new());
        }
        waves[*wave].push(index);
        *wave += 1;
    }
    waves
}
