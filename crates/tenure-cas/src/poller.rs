//! Following by looking again and again.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{
    ElectionName, Hint, Incarnation, MemberId, Mono, Namespace, Pause, StepDown, TermNumber,
};
use tokio::time::Sleep;

use crate::cells::Cells;
use crate::judge::{Hold, Judge};
use crate::reader::Reader;
use crate::record::election::ElectionRecord;
use crate::record::member::MemberRecord;
use crate::seen::Seen;
use tenure_store::{Followed, Following, Result};

/// What of an election is worth a hint. Heartbeats are not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digest {
    number: TermNumber,
    /// Who holds it and lives, by the observer's rule.
    holder: Option<Incarnation>,
    paused: Option<Pause>,
    step_down: Option<StepDown>,
    heir: Option<MemberId>,
}

/// Looks at elections at a jittered pace, and says what is new.
///
/// A store that was asked for elections by name follows those: what is held
/// is looked at when its holder's ttl is over, and that only if no member that waits
/// for it has looked by then; what is vacant or paused, at every turn. A store
/// that was asked for none follows all of the namespace, by listing it.
///
/// This is the one verb that needs a timer, and so a tokio runtime.
#[derive(Debug)]
pub(crate) struct Poller {
    cells: Arc<Cells>,
    ns: Namespace,
    digests: Option<HashMap<ElectionName, Digest>>,
    queue: VecDeque<Hint>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// When what this process holds itself was last looked at.
    checked_own: Option<Mono>,
    /// Whether the last look failed: whatever happened meanwhile is one hint.
    failed: bool,
    jitter: u64,
}

impl Poller {
    pub(crate) fn new(cells: Arc<Cells>, ns: Namespace) -> Self {
        let jitter = cells.options.seed;
        let queue = VecDeque::from([Hint::Anything]);
        let digests = None;
        let sleep = None;
        let checked_own = None;
        Self { cells, ns, digests, queue, sleep, checked_own, failed: false, jitter }
    }

    fn reader(&self) -> Reader<'_> {
        Reader::new(&self.cells, &self.ns)
    }

    fn judge(&self) -> Judge<'_> {
        Judge::new(&self.cells, &self.ns)
    }

    /// The next pause: the pace, made up to a quarter shorter, so that many
    /// followers do not look in step.
    fn pause(&mut self) -> Duration {
        self.jitter = self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pace = self.cells.options.poll;
        let thousandths = u32::try_from((self.jitter >> 33) % 250).unwrap_or(0);
        pace - pace / 1_000 * thousandths
    }

    fn digest(&self, seen: &Seen<ElectionRecord>) -> Digest {
        let record = &seen.record;
        Digest {
            number: record.number(),
            holder: self.holder(record),
            paused: record.pause(),
            step_down: record.step_down(),
            heir: record.reserved.as_ref().map(|r| r.member.clone()),
        }
    }

    /// Who holds it and is not known to be gone: silence is news only when it
    /// was looked for.
    fn holder(&self, record: &ElectionRecord) -> Option<Incarnation> {
        let holder = record.holder.as_ref()?.incarnation;
        let gone = match self.judge().hold(record) {
            Hold::Vacant | Hold::Over(_) => true,
            Hold::Silent(member) => self.judge().is_dead(&member),
            Hold::Live(_) | Hold::Unproven { .. } => false,
        };
        (!gone).then_some(holder)
    }

    /// One look; notes what is news. The first one only notes, since
    /// [`Hint::Anything`] was given before it.
    async fn poll(&mut self) -> Result<()> {
        let elections = match self.named() {
            Some(named) => {
                self.check_own(&named).await?;
                self.load_due(named).await?
            }
            None => {
                let begun = self.cells.step();
                let every = self.reader().load_every_election().await?;
                self.reader().load_holders_of(every.iter(), begun).await?;
                every
            }
        };
        let named = elections.iter().map(|s| (s.record.election.clone(), self.digest(s)));
        let digests: HashMap<_, _> = named.collect();
        if std::mem::take(&mut self.failed) {
            self.queue.push_back(Hint::Anything);
        } else if let Some(before) = &self.digests {
            for (name, digest) in &digests {
                if before.get(name) != Some(digest) {
                    self.queue.push_back(hint(name.clone(), digest));
                }
            }
            let removed = before.keys().filter(|name| !digests.contains_key(*name));
            self.queue.extend(removed.cloned().map(Hint::Election));
        }
        self.digests = Some(digests);
        Ok(())
    }

    /// The elections that this store was asked for by name, if any.
    fn named(&self) -> Option<Vec<ElectionName>> {
        let prefix = self.cells.keys.elections(&self.ns);
        let memory = self.cells.memory();
        let named = memory.named.range(prefix.clone()..).take_while(|k| k.starts_with(&prefix));
        let named: Vec<_> =
            named.filter_map(|key| self.cells.keys.election_of(&self.ns, key)).collect();
        (!named.is_empty()).then_some(named)
    }

    /// Looks whether what this process holds is still there: its heartbeats do not
    /// touch it, and until it is noticed that it was removed by hand another may
    /// be elected beside. A few are looked at in each ttl, which costs less than a
    /// listing once in many; many are listed.
    async fn check_own(&mut self, named: &[ElectionName]) -> Result<()> {
        const FEW: usize = 4;
        const TTLS: u32 = 4;
        let own: Vec<_> =
            named.iter().filter_map(|name| Some((name, self.own_ttl(name)?))).collect();
        let Some(ttl) = own.iter().map(|(_, ttl)| *ttl).min() else { return Ok(()) };
        // The pace is shortened at random, so that a whole ttl would be every second
        // turn.
        let few = own.len() <= FEW;
        let pause = if few { ttl / 2 } else { ttl * TTLS };
        if self.checked_own.is_some_and(|then| self.cells.now().since(then) < pause) {
            return Ok(());
        }
        if few {
            let keys: Vec<_> =
                own.iter().map(|(name, _)| self.cells.keys.election(&self.ns, name)).collect();
            let reader = self.reader();
            let loads = keys.iter().map(|key| reader.load_election(key));
            self.cells.all(loads.collect()).await.into_iter().collect::<Result<Vec<_>>>()?;
        } else {
            self.reader().load_every_election().await?;
        }
        self.checked_own = Some(self.cells.now());
        let gone = own.into_iter().map(|(name, _)| name).filter(|name| {
            self.cells.known::<ElectionRecord>(&self.cells.keys.election(&self.ns, name)).is_none()
        });
        self.queue.extend(gone.cloned().map(Hint::Election));
        Ok(())
    }

    /// The ttl of an election that this process holds itself, as far as it knows.
    fn own_ttl(&self, name: &ElectionName) -> Option<Duration> {
        let key = self.cells.keys.election(&self.ns, name);
        let seen = self.cells.known::<ElectionRecord>(&key)?;
        let holder = seen.record.holder.as_ref()?;
        let key = self.cells.keys.member(&self.ns, &holder.member);
        self.cells.memory().written(&key, holder.incarnation).map(|_| holder.ttl_ns)
    }

    /// Looks at those that it is time to look at, and gives all that are known.
    async fn load_due(&self, named: Vec<ElectionName>) -> Result<Vec<Seen<ElectionRecord>>> {
        let due: Vec<_> = named.iter().filter(|name| self.is_due(name)).cloned().collect();
        for batch in due.chunks(self.cells.options.batch) {
            self.reader().load_changed(batch).await?;
        }
        let known = |name| self.cells.known(&self.cells.keys.election(&self.ns, name));
        Ok(named.iter().filter_map(known).collect())
    }

    /// A member that waits for a term looks by itself when the ttl is over, and is
    /// given a tenth of it to do so. What is asked of this process's own terms, it
    /// learns by its heartbeats.
    fn is_due(&self, name: &ElectionName) -> bool {
        let key = self.cells.keys.election(&self.ns, name);
        let Some(seen) = self.cells.known::<ElectionRecord>(&key) else { return true };
        let Some(holder) = &seen.record.holder else { return true };
        if seen.record.paused.is_some() {
            return true;
        }
        let key = self.cells.keys.member(&self.ns, &holder.member);
        if self.cells.memory().written(&key, holder.incarnation).is_some() {
            return false;
        }
        let pace = self.cells.options.poll_held;
        let looked = self.cells.known::<MemberRecord>(&key).map(|member| member.looked);
        if let (Some(pace), Some(looked)) = (pace, looked)
            && self.cells.now().since(looked) >= pace
        {
            return true;
        }
        match self.judge().hold(&seen.record) {
            Hold::Silent(member) => {
                let ttl = member.record.ttl_ns;
                let silent = self.cells.now().since(member.since);
                silent >= self.judge().patience(ttl) + ttl / 10
            }
            Hold::Live(_) | Hold::Unproven { .. } => false,
            Hold::Vacant | Hold::Over(_) => true,
        }
    }
}

fn hint(election: ElectionName, digest: &Digest) -> Hint {
    if digest.holder.is_none() && digest.paused.is_none() {
        return Hint::Vacant { election, heir: digest.heir.clone() };
    }
    Hint::Election(election)
}

#[async_trait]
impl Following for Poller {
    async fn next(&mut self) -> Result<Followed> {
        loop {
            if self.digests.is_none() && self.sleep.is_none() && !self.failed {
                // What the first hint makes others look at is what changes are
                // told against, so it is looked at first.
                self.poll().await.inspect_err(|_| self.failed = true)?;
            }
            if let Some(hint) = self.queue.pop_front() {
                return Ok(Followed::Hint(hint));
            }
            if self.sleep.is_none() {
                let pause = self.pause();
                self.sleep = Some(Box::pin(tokio::time::sleep(pause)));
            }
            if let Some(sleep) = &mut self.sleep {
                sleep.as_mut().await;
            }
            let looked = self.poll().await;
            self.sleep = None;
            looked.inspect_err(|_| self.failed = true)?;
        }
    }
}
