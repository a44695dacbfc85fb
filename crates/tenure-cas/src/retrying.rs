//! A register that repeats what is safe to repeat.
//!
//! A verb of a [`CasStore`](crate::CasStore) is several requests, one after the
//! other, and fails with any of them. On a line that loses three requests in ten
//! hardly one verb in ten comes through, and beginning again from the start
//! is no better. So each request is repeated by itself, a few times, before
//! the verb is given up.
//!
//! # What may be repeated
//!
//! - A look and a listing change nothing: always.
//! - A write of which it is known that it was not applied: always.
//! - A write that **may have been applied** is never sent again blindly. It is
//!   looked at first. If the cell holds the very bytes that were written, it was
//!   applied. If the cell is still as it was expected to be, it was not, and the
//!   same write goes out again: the first one may yet arrive, but both expect the
//!   same version, so that one of them finds it taken, and then it is looked at
//!   once more. Anything else is a conflict, and the loser looks who won.
//! - What is denied, invalid or foreign will be so again: never.
//!
//! Writes of several cells at once are one write: applied if all cells hold their bytes, not
//! applied if none has changed.
//!
//! An error that is left over says that the write may have been applied if *any*
//! of the attempts may have been.
//!
//! # How often
//!
//! Repeats are paced by one pace for the whole register, however many requests
//! fail at once: a service that throttles is asked more slowly, never at once
//! again. A request that would wait too long for its turn is given up and left
//! to the machine, which has a back-off of its own.
//!
//! That is no [`Backoff`](tenure_store::Backoff), which paces one caller alone and makes
//! its pauses shorter at random: a service that throttles is never asked sooner than it
//! has to be.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::Mono;

use crate::register::{
    AllSwapped, Batches, Expect, Listed, Loaded, Register, Removed, Swapped, Version, Watching,
    Write,
};
use tenure_store::{Clock, Error, ErrorKind, Result};

/// How a [`Retrying`] register repeats.
///
/// ```
/// use std::time::Duration;
/// let repeats = tenure_cas::Repeats::within(Duration::from_secs(2));
/// assert!(repeats.gap >= Duration::from_millis(250), "under four a second");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// How far apart two repeats of one register are at least, and the pause
    /// before the first repeat of a request, which doubles with each.
    pub gap: Duration,
    /// No repeat of a request begins later than this after the request.
    pub within: Duration,
}

impl Repeats {
    /// Under four a second, and none later than `limit` after the request.
    #[must_use]
    pub fn within(limit: Duration) -> Self {
        Self { gap: Duration::from_millis(300), within: limit }
    }
}

/// A register that repeats what is safe to repeat: see the
/// [module](crate::retrying) for what that is.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tenure_cas::{CasOptions, CasStore, MemoryRegister, Repeats, Retrying};
/// use tenure_store::BootClock;
///
/// let register = Arc::new(MemoryRegister::new());
/// let clock = Arc::new(BootClock);
/// let repeats = Repeats::within(Duration::from_secs(2));
/// let register = Arc::new(Retrying::new(register, clock.clone(), repeats));
/// let store = CasStore::new(register, clock, CasOptions::default())?;
/// # drop(store);
/// # Ok::<(), tenure_store::Error>(())
/// ```
///
/// A pause needs a timer, and so a tokio runtime.
#[derive(Debug)]
pub struct Retrying {
    inner: Arc<dyn Register>,
    clock: Arc<dyn Clock>,
    repeats: Repeats,
    turns: Mutex<Turns>,
}

/// Whose turn it is to repeat.
#[derive(Debug)]
struct Turns {
    /// Before when no repeat may begin.
    next: Mono,
    /// What spreads the repeats of many processes.
    jitter: u64,
}

/// One request and its repeats.
struct Trial<'r> {
    register: &'r Retrying,
    started: Mono,
    pause: Duration,
    /// Whether an attempt may have been applied.
    unclear: bool,
}

/// The same for writes of several cells.
enum FoundAll {
    Applied(Vec<Version>),
    NotApplied,
    Another,
}

/// What a look at a write that may have been applied found.
enum Found {
    Applied(Version),
    NotApplied,
    Another,
}

impl Retrying {
    /// Repeats for `inner`, by `clock`.
    pub fn new(inner: Arc<dyn Register>, clock: Arc<dyn Clock>, repeats: Repeats) -> Self {
        let turns = Turns { next: Mono::ZERO, jitter: RandomState::new().hash_one(0u8) };
        Self { inner, clock, repeats, turns: Mutex::new(turns) }
    }

    fn trial(&self) -> Trial<'_> {
        let started = self.clock.now();
        let pause = self.repeats.gap;
        Trial { register: self, started, pause, unclear: false }
    }

    /// When a repeat may begin that is to wait for `pause`, and up to a quarter
    /// longer so that many do not come in step; `None` if that is after `latest`.
    fn turn(&self, now: Mono, pause: Duration, latest: Mono) -> Option<Mono> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.jitter = turns.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let thousandths = u32::try_from((turns.jitter >> 33) % 250).unwrap_or(0);
        let turn = (now + pause + pause / 1_000 * thousandths).max(turns.next);
        if turn > latest {
            return None;
        }
        turns.next = turn + self.repeats.gap;
        Some(turn)
    }
}

impl Trial<'_> {
    /// Waits until the request may be repeated, or gives the error back if it may
    /// not.
    async fn again(&mut self, error: Error) -> Result<()> {
        self.unclear |= error.may_have_applied();
        let now = self.register.clock.now();
        let latest = self.started + self.register.repeats.within;
        let turn = match error.kind() {
            ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Busy => {
                self.register.turn(now, self.pause, latest)
            }
            _ => None,
        };
        let Some(turn) = turn else {
            return Err(if self.unclear { error.maybe_applied() } else { error });
        };
        self.pause *= 2;
        // Not at all where nothing is to be waited for: it needs no timer then.
        if turn > now {
            tokio::time::sleep(turn.since(now)).await;
        }
        Ok(())
    }

    /// Looks what became of a write, repeating that too.
    async fn find(&mut self, key: &str, expect: &Expect, bytes: &[u8]) -> Result<Found> {
        loop {
            match self.register.inner.load(key, None).await {
                Ok(Loaded::Found { bytes: found, version }) if found == bytes => {
                    return Ok(Found::Applied(version));
                }
                Ok(Loaded::Found { version, .. })
                    if *expect == Expect::Version(version.clone()) =>
                {
                    return Ok(Found::NotApplied);
                }
                Ok(Loaded::Absent) if *expect == Expect::Absent => return Ok(Found::NotApplied),
                Ok(_) => return Ok(Found::Another),
                Err(error) => self.again(error).await?,
            }
        }
    }

    /// The same for writes that were applied all or not at all. One that expects nothing
    /// tells nothing.
    async fn find_all(&mut self, writes: &[Write]) -> Result<FoundAll> {
        let mut versions = Vec::new();
        let mut untouched = 0;
        for write in writes {
            let any = Expect::Absent;
            let expect = write.expect.as_ref().unwrap_or(&any);
            match self.find(&write.key, expect, &write.bytes).await? {
                Found::Applied(version) => versions.push(version),
                Found::NotApplied => untouched += 1,
                Found::Another if write.expect.is_none() => untouched += 1,
                Found::Another => return Ok(FoundAll::Another),
            }
        }
        Ok(match versions.len() == writes.len() {
            true => FoundAll::Applied(versions),
            false if untouched == writes.len() => FoundAll::NotApplied,
            false => FoundAll::Another,
        })
    }
}

#[async_trait]
impl Register for Retrying {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        let mut trial = self.trial();
        loop {
            match self.inner.load(key, known).await {
                Err(error) => trial.again(error).await?,
                answer => return answer,
            }
        }
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        let mut trial = self.trial();
        loop {
            let conflict = match self.inner.swap(key, expect.clone(), bytes.clone()).await {
                Ok(Swapped::Conflict) if trial.unclear => true,
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    trial.again(error).await?;
                    false
                }
            };
            if !trial.unclear {
                continue;
            }
            match trial.find(key, &expect, &bytes).await? {
                Found::Applied(version) => return Ok(Swapped::Stored(version)),
                Found::NotApplied if !conflict => {}
                Found::NotApplied | Found::Another => return Ok(Swapped::Conflict),
            }
        }
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        let mut trial = self.trial();
        loop {
            match self.inner.remove(key, expect).await {
                // A removal that is sent again expects the same version, and one
                // that was applied is found gone.
                Err(error) => trial.again(error).await?,
                answer => return answer,
            }
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let mut trial = self.trial();
        loop {
            match self.inner.list(prefix).await {
                Err(error) => trial.again(error).await?,
                answer => return answer,
            }
        }
    }

    fn watch(&self, prefixes: &[String]) -> Option<Box<dyn Watching>> {
        // Its errors are told: a follower begins anew by itself.
        self.inner.watch(prefixes)
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.inner.batches().is_some().then_some(self as &dyn Batches)
    }
}

#[async_trait]
impl Batches for Retrying {
    fn most(&self) -> usize {
        self.inner.batches().map_or(1, Batches::most)
    }

    async fn swap_all(&self, writes: Vec<Write>) -> Result<AllSwapped> {
        let Some(batches) = self.inner.batches() else {
            let what = "the register does not write several cells at once";
            return Err(Error::new(ErrorKind::Internal, what).remedy("report this as a defect"));
        };
        let mut trial = self.trial();
        loop {
            let conflict = match batches.swap_all(writes.clone()).await {
                Ok(AllSwapped::Conflict) if trial.unclear => true,
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    trial.again(error).await?;
                    false
                }
            };
            if !trial.unclear {
                continue;
            }
            match trial.find_all(&writes).await? {
                FoundAll::Applied(versions) => return Ok(AllSwapped::Stored(versions)),
                FoundAll::NotApplied if !conflict => {}
                FoundAll::NotApplied | FoundAll::Another => return Ok(AllSwapped::Conflict),
            }
        }
    }
}

#[cfg(test)]
mod tests;
