//! The register as one observer uses it: load and swap, of which every verb is made,
//! with a memory of what was seen and when.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tenure_core::{Incarnation, Mono, Namespace};

#[cfg(not(feature = "__lab"))]
use crate::decisions::Decisions;
use crate::keys::Keys;
use crate::memory::Memory;
#[cfg(feature = "__lab")]
use crate::mutation::Breakable as Decisions;
use crate::options::CasOptions;
use crate::record::election::ElectionRecord;
use crate::record::member::MemberRecord;
use crate::record::{Record, decode, encode};
use crate::register::{AllSwapped, Expect, Listed, Loaded, Register, Swapped, Version, Write};
use crate::seen::{Exchange, Seen};
use tenure_store::{Clock, Error, ErrorKind, Result};

/// How often a verb begins again because another write changed its record first. Each
/// such conflict means that some other write was applied, so that all observers together
/// make progress.
pub(crate) const ATTEMPTS: usize = 16;

/// How many turns of a follower a look at what the register tells of may wait.
const TOLD_TURNS: u32 = 10;

/// What a [`CasStore`](crate::CasStore) and its followers share.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) register: Arc<dyn Register>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: CasOptions,
    pub(crate) keys: Keys,
    /// Tells this observer's clock from every other.
    pub(crate) clock_id: u64,
    /// Whether the register tells of changes. That does not depend on what is watched.
    pub(crate) tells: bool,
    memory: Mutex<Memory>,
    steps: AtomicU64,
    pub(crate) decide: Decisions,
}

/// A write that is a heartbeat of this observer's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renews {
    pub(crate) life: Incarnation,
    /// The ttl that was asked for.
    pub(crate) asked: Duration,
}

/// One record that is to replace what was seen.
#[derive(Debug)]
pub(crate) struct Swap<'a, R> {
    pub(crate) key: &'a str,
    pub(crate) seen: Option<&'a Seen<R>>,
    pub(crate) record: R,
    pub(crate) started: Mono,
    pub(crate) renews: Option<Renews>,
}

impl<R: Record> Swap<'_, R> {
    /// The write of it, under the next count.
    fn write(&mut self) -> Result<Write> {
        let revision = self.record.revision();
        *revision = revision.wrapping_add(1);
        let bytes = encode(self.key, &self.record)?;
        let expect = self.seen.map_or(Expect::Absent, |s| Expect::Version(s.version.clone()));
        Ok(Write { key: self.key.to_owned(), expect: Some(expect), bytes })
    }
}

impl Cells {
    pub(crate) fn new(
        register: Arc<dyn Register>,
        clock: Arc<dyn Clock>,
        options: CasOptions,
    ) -> Self {
        Self {
            keys: Keys::new(&options.prefix),
            tells: register.watch(&[]).is_some(),
            clock_id: RandomState::new().hash_one(0u8),
            memory: Mutex::new(Memory::default()),
            steps: AtomicU64::new(0),
            decide: Decisions::sound(),
            register,
            clock,
            options,
        }
    }

    /// What this observer remembers. Never held while waiting for anything.
    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Mono {
        self.clock.now()
    }

    /// Counts what this observer does, for telling before from after where the
    /// clock shows the same.
    pub(crate) fn step(&self) -> u64 {
        self.steps.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn exchange(&self, sent: Mono) -> Exchange {
        // The clock is read after the answer arrived: what was written while the
        // request was under way must not look older than it is.
        let answered = self.now();
        let step = self.step();
        let drift_ppm = self.decide.anchor_drift(self.options.drift_ppm);
        Exchange { sent, answered, step, drift_ppm }
    }

    /// The step since which the register tells all that changes in the namespace, if it has
    /// told anything within that time.
    pub(crate) fn watched_since(&self, ns: &Namespace, within: Duration) -> Option<u64> {
        if !self.tells {
            return None;
        }
        let prefix = self.keys.namespace(ns);
        self.memory().watched_since(&prefix, self.now(), within)
    }

    /// How long a look at what the register tells of by itself may wait, where no ttl says
    /// it.
    pub(crate) fn told_pace(&self) -> Duration {
        self.options.poll * TOLD_TURNS
    }

    /// What was last seen under this key, without looking.
    pub(crate) fn known<R: Record>(&self, key: &str) -> Option<Seen<R>> {
        R::table(&mut self.memory()).get(key)
    }

    /// Looks. Content is moved only if it is not known yet.
    pub(crate) async fn load<R: Record>(&self, key: &str) -> Result<Option<Seen<R>>> {
        let known = self.known::<R>(key);
        let sent = self.now();
        match self.register.load(key, known.as_ref().map(|k| &k.version)).await? {
            Loaded::Absent => {
                R::table(&mut self.memory()).forget(key);
                Ok(None)
            }
            Loaded::Unchanged if known.is_some() => {
                let at = self.exchange(sent);
                Ok(R::table(&mut self.memory()).confirmed(key, at).or(known))
            }
            Loaded::Unchanged => Err(Error::new(
                ErrorKind::Internal,
                format!("the register calls {key} unchanged, although no version of it was known"),
            )
            .remedy("report this as a defect of the register")),
            Loaded::Found { bytes, version } => {
                let record: R = decode(key, &bytes)?;
                let may_lag = self.options.looks_lag;
                Ok(Some(self.found(key, version, record, sent, may_lag)))
            }
        }
    }

    /// Notes what was found in answer to a request that was sent then. Where that may lag,
    /// what is older than what is known is passed over: see `told.rs`.
    fn found<R: Record>(
        &self,
        key: &str,
        version: Version,
        record: R,
        sent: Mono,
        may_lag: bool,
    ) -> Seen<R> {
        let at = self.exchange(sent);
        let mut memory = self.memory();
        let is_believed = memory.conflicted.remove(key);
        let goes_back = may_lag && !is_believed && R::table(&mut memory).goes_back(key, &record);
        if self.decide.passes_over(goes_back)
            && let Some(known) = R::table(&mut memory).get(key)
        {
            return known;
        }
        record.remember(key, &mut memory, at.answered);
        R::table(&mut memory).found(key, version, record, at)
    }

    /// Notes what the register told by itself. `None` if only a look can tell whether it is
    /// newer than what is known: it is of another life.
    pub(crate) fn told<R: Record>(
        &self,
        key: &str,
        version: Version,
        bytes: &[u8],
    ) -> Result<Option<Seen<R>>> {
        let record: R = decode(key, bytes)?;
        let now = self.now();
        // No look was sent that could bound anything from below.
        let at = Exchange { sent: Mono::ZERO, ..self.exchange(now) };
        let mut memory = self.memory();
        let table = R::table(&mut memory);
        let known = table.get(key);
        if known.as_ref().is_some_and(|known| known.record.age().0 != record.age().0) {
            return Ok(None);
        }
        if self.decide.passes_over(table.goes_back(key, &record)) {
            return Ok(known);
        }
        record.remember(key, &mut memory, at.answered);
        Ok(Some(R::table(&mut memory).told(key, version, record, at)))
    }

    /// Looks at a cell that was listed in answer to a request sent at `sent`;
    /// what the listing shows to be unchanged needs no look of its own.
    pub(crate) async fn load_listed<R: Record>(
        &self,
        listed: &Listed,
        sent: Mono,
    ) -> Result<Option<Seen<R>>> {
        let known = self.known::<R>(&listed.key);
        match known {
            Some(known) if listed.version.as_ref() == Some(&known.version) => {
                let at = self.exchange(sent);
                Ok(R::table(&mut self.memory()).confirmed(&listed.key, at).or(Some(known)))
            }
            _ => match (&listed.version, &listed.bytes) {
                (Some(version), Some(bytes)) => {
                    let record: R = decode(&listed.key, bytes)?;
                    Ok(Some(self.found(&listed.key, version.clone(), record, sent, true)))
                }
                _ => self.load(&listed.key).await,
            },
        }
    }

    /// Replaces exactly what was seen; `None` if it has changed since. A write
    /// that renews a life of this observer's own is remembered by its start.
    pub(crate) async fn swap<R: Record>(
        &self,
        key: &str,
        seen: Option<&Seen<R>>,
        record: R,
        started: Mono,
        renews: Option<Renews>,
    ) -> Result<Option<Seen<R>>> {
        self.swap_beside(Swap { key, seen, record, started, renews }, Vec::new()).await
    }

    /// The same, with other writes in the same step, all or nothing.
    pub(crate) async fn swap_beside<R: Record>(
        &self,
        mut swap: Swap<'_, R>,
        beside: Vec<Write>,
    ) -> Result<Option<Seen<R>>> {
        let write = swap.write()?;
        let first = self.attempts(swap.key, swap.started, swap.renews);
        let swapped = self.write(write, beside).await;
        match self.settle(swap.key, swap.seen.is_some(), first, swapped)? {
            Some(versions) => Ok(versions.into_iter().next().map(|v| self.stored(swap, v))),
            None => Ok(None),
        }
    }

    /// Wins and the heartbeat that makes them wins, in one step (M2): at the moment of the
    /// swaps the life had not been ended. `None` if any of the records has changed since.
    pub(crate) async fn swap_wins(
        &self,
        mut wins: Vec<Swap<'_, ElectionRecord>>,
        mut beat: Swap<'_, MemberRecord>,
        beside: Vec<Write>,
    ) -> Result<Option<(Vec<Seen<ElectionRecord>>, Seen<MemberRecord>)>> {
        let write = beat.write()?;
        let mut others: Vec<Write> = wins.iter_mut().map(Swap::write).collect::<Result<_>>()?;
        others.extend(beside);
        let first = self.attempts(beat.key, beat.started, beat.renews);
        let swapped = self.write(write, others).await;
        // Which of the cells has changed is not told.
        if let Ok(None) = &swapped {
            let keys = wins.iter().filter(|win| win.seen.is_some()).map(|win| win.key.to_owned());
            self.memory().conflicted.extend(keys);
        }
        let Some(versions) = self.settle(beat.key, true, first, swapped)? else { return Ok(None) };
        let mut versions = versions.into_iter();
        let beaten = versions.next().map(|version| self.stored(beat, version));
        let won = wins.into_iter().zip(versions).map(|(win, version)| self.stored(win, version));
        let won = won.collect();
        Ok(beaten.map(|beaten| (won, beaten)))
    }

    /// Notes a heartbeat before it is sent: if the answer is lost and the write was
    /// applied all the same, this is when it began. What is known already is
    /// older, and stays until the answer is there.
    fn attempts(&self, key: &str, started: Mono, renews: Option<Renews>) -> Option<Renews> {
        renews.filter(|r| self.memory().attempts(key, r.life, started, r.asked))
    }

    /// The versions that these got; `None` if one was not as expected.
    async fn write(&self, write: Write, beside: Vec<Write>) -> Result<Option<Vec<Version>>> {
        let Some(batches) = self.register.batches().filter(|_| !beside.is_empty()) else {
            let Write { key, expect, bytes } = write;
            let swapped = self.register.swap(&key, expect.unwrap_or(Expect::Absent), bytes).await?;
            return Ok(match swapped {
                Swapped::Stored(version) => Some(vec![version]),
                Swapped::Conflict => None,
            });
        };
        let all = [vec![write], beside].concat();
        Ok(match batches.swap_all(all).await? {
            AllSwapped::Stored(versions) => Some(versions),
            AllSwapped::Conflict => None,
        })
    }

    /// What a write came to. One that was not applied leaves no trace.
    fn settle(
        &self,
        key: &str,
        replaces: bool,
        first: Option<Renews>,
        swapped: Result<Option<Vec<Version>>>,
    ) -> Result<Option<Vec<Version>>> {
        match swapped {
            Ok(Some(versions)) => Ok(Some(versions)),
            Err(error) if error.may_have_applied() => Err(error),
            lost => {
                let mut memory = self.memory();
                if let Some(renews) = first {
                    memory.gave_up(key, renews.life);
                }
                if replaces && lost.is_ok() {
                    memory.conflicted.insert(key.to_owned());
                }
                lost
            }
        }
    }

    /// Remembers what was written.
    fn stored<R: Record>(&self, swap: Swap<'_, R>, version: Version) -> Seen<R> {
        let Swap { key, seen, record, started, renews } = swap;
        // A member that trusts in this write counts from its start or from before it,
        // so the start is early enough for those who wait for it to run out.
        let known = seen.filter(|s| s.record.stamp() == record.stamp());
        let since = known.map_or(started, |s| s.since);
        let step = self.step();
        let mut memory = self.memory();
        record.remember(key, &mut memory, started);
        if let Some(Renews { life, asked }) = renews {
            memory.wrote(key, life, started, asked);
        }
        let record = Arc::new(record);
        let looked = started;
        let (rhythm, sights) = known.map_or((None, Vec::new()), |s| (s.rhythm, s.sights.clone()));
        let seen = Seen { version, record, since, rhythm, sights, looked, step, heard: step };
        R::table(&mut memory).put(key, seen)
    }

    pub(crate) fn check_batch(&self, what: &str, count: usize) -> Result<()> {
        let limit = self.options.batch;
        if count <= limit {
            return Ok(());
        }
        let what = format!("{count} {what} were sent in one request: the limit is {limit}");
        Err(Error::new(ErrorKind::Invalid, what).remedy("split the request"))
    }

    /// Runs these at once, but not more than a few at a time, and gives their
    /// answers in order.
    pub(crate) async fn all<F: Future>(&self, work: Vec<F>) -> Vec<F::Output> {
        stream::iter(work).buffered(self.options.concurrency.max(1)).collect().await
    }
}

/// Every attempt met a change by another process.
pub(crate) fn too_busy(key: &str) -> Error {
    let what = format!("the record {key} changed {ATTEMPTS} times while it was being written");
    Error::new(ErrorKind::Busy, what).remedy("try again")
}

/// Marks an error that came after something was written already.
pub(crate) fn partly<T>(wrote: bool, result: Result<T>) -> Result<T> {
    result.map_err(|error| if wrote { error.maybe_applied() } else { error })
}
