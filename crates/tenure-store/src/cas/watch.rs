//! Following by looking again and again.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{
    ElectionName, Hint, Incarnation, MemberId, Namespace, Pause, StepDown, TermNumber,
};
use tokio::time::Sleep;

use super::handle::Handle;
use super::record::ElectionRecord;
use super::seen::Seen;
use crate::{Followed, Following, Result};

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

/// Polls every election of a namespace at a jittered pace. A record that has
/// not changed moves no content.
///
/// This is the one verb that needs a timer, and so a tokio runtime.
#[derive(Debug)]
pub(super) struct Poller {
    handle: Arc<Handle>,
    ns: Namespace,
    digests: Option<HashMap<ElectionName, Digest>>,
    queue: VecDeque<Hint>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Whether the last look failed: whatever happened meanwhile is one hint.
    failed: bool,
    jitter: u64,
}

impl Poller {
    pub(super) fn new(handle: Arc<Handle>, ns: Namespace) -> Self {
        let jitter = handle.options.seed;
        let queue = VecDeque::from([Hint::Anything]);
        Self { handle, ns, digests: None, queue, sleep: None, failed: false, jitter }
    }

    /// The next pause: the pace, made up to a quarter shorter, so that many
    /// followers do not look in step.
    fn pause(&mut self) -> Duration {
        self.jitter = self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pace = self.handle.options.poll;
        let thousandths = u32::try_from((self.jitter >> 33) % 250).unwrap_or(0);
        pace - pace / 1_000 * thousandths
    }

    fn digest(&self, seen: &Seen<ElectionRecord>) -> Digest {
        let record = &seen.record;
        Digest {
            number: record.number(),
            holder: self.handle.holder(seen).map(|h| h.member.incarnation),
            paused: record.pause(),
            step_down: record.step_down(),
            heir: record.reserved.as_ref().map(|r| r.member.clone()),
        }
    }

    /// One look at everything; notes what is news. The first one only notes,
    /// since [`Hint::Anything`] was given before it.
    async fn look(&mut self) -> Result<()> {
        let elections = self.handle.load_elections(&self.ns).await?;
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
        }
        self.digests = Some(digests);
        Ok(())
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
                self.look().await.inspect_err(|_| self.failed = true)?;
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
            let looked = self.look().await;
            self.sleep = None;
            looked.inspect_err(|_| self.failed = true)?;
        }
    }
}
