//! The register as one observer uses it: load and swap, of which every verb is made,
//! with a memory of what was seen and when.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tenure_core::{Incarnation, Mono};

#[cfg(not(feature = "__lab"))]
use crate::decisions::Decisions;
use crate::keys::Keys;
use crate::memory::Memory;
#[cfg(feature = "__lab")]
use crate::mutation::Breakable as Decisions;
use crate::options::CasOptions;
use crate::record::{Record, decode, encode};
use crate::register::{Expect, Listed, Loaded, Register, Swapped};
use crate::seen::{Exchange, Seen};
use tenure_store::{Clock, Error, ErrorKind, Result};

/// How often a verb begins again because another write changed its record first. Each
/// such conflict means that some other write was applied, so that all observers together
/// make progress.
pub(crate) const ATTEMPTS: usize = 16;

/// What a [`CasStore`](crate::CasStore) and its followers share.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) register: Arc<dyn Register>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: CasOptions,
    pub(crate) keys: Keys,
    /// Tells this observer's clock from every other.
    pub(crate) clock_id: u64,
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

impl Cells {
    pub(crate) fn new(
        register: Arc<dyn Register>,
        clock: Arc<dyn Clock>,
        options: CasOptions,
    ) -> Self {
        Self {
            keys: Keys::new(&options.prefix),
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
                let at = self.exchange(sent);
                let mut memory = self.memory();
                record.remember(key, &mut memory, at.answered);
                Ok(Some(R::table(&mut memory).found(key, version, record, at)))
            }
        }
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
            _ => self.load(&listed.key).await,
        }
    }

    /// Replaces exactly what was seen; `None` if it has changed since. A write
    /// that renews a life of this observer's own is remembered by its start.
    pub(crate) async fn swap<R: Record>(
        &self,
        key: &str,
        seen: Option<&Seen<R>>,
        mut record: R,
        started: Mono,
        renews: Option<Renews>,
    ) -> Result<Option<Seen<R>>> {
        let revision = record.revision();
        *revision = revision.wrapping_add(1);
        let bytes = encode(key, &record)?;
        let expect = seen.map_or(Expect::Absent, |s| Expect::Version(s.version.clone()));
        // Noted before it is sent: if the answer is lost and the write was
        // applied all the same, this is when it began. What is known already is
        // older, and stays until the answer is there.
        let first = renews.filter(|r| self.memory().attempts(key, r.life, started, r.asked));
        let swapped = self.register.swap(key, expect, bytes).await;
        let version = match swapped {
            Ok(Swapped::Stored(version)) => version,
            Err(error) if error.may_have_applied() => return Err(error),
            lost => {
                if let Some(renews) = first {
                    self.memory().gave_up(key, renews.life);
                }
                return lost.map(|_| None);
            }
        };
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
        let seen = Seen { version, record, since, rhythm, sights, looked, step };
        Ok(Some(R::table(&mut memory).put(key, seen)))
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
