//! A handle on the register: loading, swapping and judging, which every verb is
//! made of.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tenure_core::{Incarnation, Mono, widened};

use super::keys::Keys;
use super::options::CasOptions;
use super::record::{ElectionRecord, Record, decode, encode};
use super::register::{Expect, Listed, Loaded, Register, Swapped};
use super::seen::{Memory, Seen};
use crate::{Clock, Error, ErrorKind, Result};

/// How often a verb begins again because the record it was about changed under
/// its hands. Everybody who loses such a race lost it to a write that was
/// applied, so that all together always get on.
pub(super) const ATTEMPTS: usize = 16;

/// What a [`CasStore`](super::CasStore) and those who follow it share.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) register: Arc<dyn Register>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) options: CasOptions,
    pub(super) keys: Keys,
    memory: Mutex<Memory>,
}

impl Handle {
    pub(super) fn new(
        register: Arc<dyn Register>,
        clock: Arc<dyn Clock>,
        options: CasOptions,
    ) -> Self {
        let keys = Keys::new(&options.prefix);
        Self { register, clock, options, keys, memory: Mutex::new(Memory::default()) }
    }

    /// What this handle remembers. Never held while waiting for anything.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Mono {
        self.clock.now()
    }

    /// What was last seen under this key, without looking.
    pub(super) fn known<R: Record>(&self, key: &str) -> Option<Seen<R>> {
        R::table(&mut self.memory()).get(key)
    }

    /// Looks. Content is moved only if it is not known yet.
    pub(super) async fn load<R: Record>(&self, key: &str) -> Result<Option<Seen<R>>> {
        let known = self.known::<R>(key);
        match self.register.load(key, known.as_ref().map(|k| &k.version)).await? {
            Loaded::Absent => {
                R::forget(key, &mut self.memory());
                Ok(None)
            }
            Loaded::Unchanged if known.is_some() => Ok(known),
            Loaded::Unchanged => Err(Error::new(
                ErrorKind::Internal,
                format!("the register calls {key} unchanged, although no version of it was known"),
            )
            .remedy("report this as a defect of the register")),
            Loaded::Found { bytes, version } => {
                let record: R = decode(key, &bytes)?;
                // The clock is read after the answer arrived: what was written
                // while the request was under way must not look older than it
                // is.
                let now = self.now();
                let mut memory = self.memory();
                record.remember(key, &mut memory, now);
                Ok(Some(R::table(&mut memory).found(key, version, record, now)))
            }
        }
    }

    /// Looks at a cell that was just listed; what the listing shows to be
    /// unchanged needs no look of its own.
    pub(super) async fn load_listed<R: Record>(&self, listed: &Listed) -> Result<Option<Seen<R>>> {
        let known = self.known::<R>(&listed.key);
        match known {
            Some(known) if listed.version.as_ref() == Some(&known.version) => Ok(Some(known)),
            _ => self.load(&listed.key).await,
        }
    }

    /// Replaces exactly what was seen; `None` if it has changed since. A write
    /// that `renews` a life of this handle's own is remembered by its start.
    pub(super) async fn swap<R: Record>(
        &self,
        key: &str,
        seen: Option<&Seen<R>>,
        mut record: R,
        renews: Option<Incarnation>,
    ) -> Result<Option<Seen<R>>> {
        let revision = record.revision();
        *revision = revision.wrapping_add(1);
        let bytes = encode(key, &record)?;
        let expect = seen.map_or(Expect::Absent, |s| Expect::Version(s.version.clone()));
        let started = self.now();
        // Noted before it is sent: if the answer is lost and the write was
        // applied all the same, this is when it began. What is known already is
        // older, and stays until the answer is there.
        let first = renews.filter(|life| self.memory().attempts(key, *life, started));
        let swapped = self.register.swap(key, expect, bytes).await;
        let version = match swapped {
            Ok(Swapped::Stored(version)) => version,
            Err(error) if error.may_have_applied() => return Err(error),
            lost => {
                if let Some(life) = first {
                    self.memory().gave_up(key, life);
                }
                return lost.map(|_| None);
            }
        };
        // Whoever trusts in this write counts from its start or from before it,
        // so the start is early enough for those who wait for it to run out.
        let known = seen.filter(|s| s.record.stamp() == record.stamp());
        let since = known.map_or(started, |s| s.since);
        let mut memory = self.memory();
        record.remember(key, &mut memory, started);
        if let Some(life) = renews {
            memory.wrote(key, life, started);
        }
        let seen = Seen { version, record: Arc::new(record), since };
        Ok(Some(R::table(&mut memory).put(key, seen)))
    }

    /// What is left, for others, of a ttl whose sign of life is known since
    /// then: the observer's rule.
    pub(super) fn left(&self, since: Mono, ttl: Duration) -> Duration {
        let wide = widened(ttl, self.options.drift_ppm);
        wide.saturating_sub(self.now().since(since))
    }

    /// What is left, for others, of the holder's ttl; zero if there is none.
    pub(super) fn holder_left(&self, seen: &Seen<ElectionRecord>) -> Duration {
        let ttl = seen.record.holder.as_ref().map(|h| h.ttl_ns);
        ttl.map_or(Duration::ZERO, |ttl| self.left(seen.since, ttl))
    }

    /// Whether a life of this handle's own may not renew this record any more:
    /// its ttl has passed since it began to write it last, or, if that was
    /// through another handle, since it was first seen here (rule M1).
    pub(super) fn own_ran_out<R: Record>(
        &self,
        key: &str,
        life: Incarnation,
        seen: &Seen<R>,
        ttl: Duration,
    ) -> bool {
        let started = self.memory().written(key, life).unwrap_or(seen.since);
        self.now().since(started) >= ttl
    }

    /// Runs these at once, but not more than a few at a time, and gives their
    /// answers in order.
    pub(super) async fn all<F: Future>(&self, work: Vec<F>) -> Vec<F::Output> {
        stream::iter(work).buffered(self.options.concurrency.max(1)).collect().await
    }
}

/// Every attempt met a change by somebody else.
pub(super) fn too_busy(key: &str) -> Error {
    let what = format!("the record {key} changed {ATTEMPTS} times while it was being written");
    Error::new(ErrorKind::Busy, what).remedy("try again")
}

/// Marks an error that came after something was written already.
pub(super) fn partly<T>(wrote: bool, result: Result<T>) -> Result<T> {
    result.map_err(|error| if wrote { error.maybe_applied() } else { error })
}
