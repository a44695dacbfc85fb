//! The elections that the server itself stands for: for an application beside it that asks
//! `/leader` whether it may work.
//!
//! Each answer may be trusted for as long as it says (W1), by an application that says nothing
//! back. So a term is kept, however it ends, until everything that was granted has ended
//! ([`Grants`]), and one that is to be given up is kept for the whole drain (E4).
//!
//! # Interleavings
//!
//! - **A grant while the server is asked to stop.** Grants and the mark that ends them are under
//!   one lock: a grant is either before the mark, and waited for, or not given.
//! - **A loss**: the member keeps the term as it does for a session's client.
//! - **The server stops while an election is campaigned for.** The campaign is given up; if it
//!   was won in that moment, nothing was granted under it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::session::Grants;
use tenure::{Election, ElectionName, Leadership, Mono, Stopping, Tenure};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::kept::Kept;
use crate::listen::stopped;

type Held = Mutex<HashMap<ElectionName, Option<Reign>>>;

/// A term that the server itself leads.
#[derive(Debug)]
struct Reign {
    leadership: Leadership,
    grants: Grants,
    /// Nothing is granted any more.
    closed: bool,
}

/// The elections that the server itself stands for.
#[derive(Debug, Default)]
pub(crate) struct Stands {
    held: Arc<Held>,
    tasks: tokio::sync::Mutex<JoinSet<()>>,
}

/// What the server itself does about an election.
#[derive(Debug, Default)]
pub(crate) struct Own {
    pub(crate) stands: bool,
    pub(crate) term: Option<u64>,
    pub(crate) remaining: Duration,
    pub(crate) until: Option<Mono>,
}

impl Stands {
    /// Stands for each, until `stop` turns true or the member is shut down.
    pub(crate) async fn begin(
        &self,
        tenure: &Tenure,
        names: &[String],
        stop: &watch::Sender<bool>,
    ) -> Result<(), tenure::Error> {
        let mut tasks = self.tasks.lock().await;
        for name in names {
            let election = tenure.election(name);
            let name = election.name()?.clone();
            lock(&self.held).insert(name.clone(), None);
            let one = One { tenure: tenure.clone(), election, name, held: self.held.clone() };
            tasks.spawn(one.stand(stop.subscribe()));
        }
        Ok(())
    }

    /// Returns when all have been given up, after `stop` has turned true.
    pub(crate) async fn ended(&self) {
        let mut tasks = self.tasks.lock().await;
        while tasks.join_next().await.is_some() {}
    }

    /// What the server itself does about an election at this instant, and for how long an
    /// answer that says so may be trusted.
    pub(crate) fn look(&self, tenure: &Tenure, election: &ElectionName, grants: bool) -> Own {
        let mut held = lock(&self.held);
        let Some(reign) = held.get_mut(election) else { return Own::default() };
        let stands = true;
        let Some(reign) = reign else { return Own { stands, ..Own::default() } };
        let until = reign.leadership.trusted_until();
        let now = tenure.now();
        if reign.closed || reign.leadership.is_stopping() || now >= until {
            return Own { stands, ..Own::default() };
        }
        let term = Some(reign.leadership.token());
        let remaining = until.since(now);
        if grants {
            reign.grants.give(now, remaining);
        }
        Own { stands, term, remaining, until: Some(until) }
    }

    /// The elections that are stood for; of those that are led, for how much longer that may be
    /// trusted.
    pub(crate) fn standing(&self) -> Vec<(ElectionName, Option<Duration>)> {
        let held = lock(&self.held);
        let left = |reign: &Option<Reign>| {
            let led = reign.as_ref().filter(|reign| reign.leadership.is_current());
            led.map(|reign| reign.leadership.remaining())
        };
        held.iter().map(|(name, reign)| (name.clone(), left(reign))).collect()
    }
}

fn lock(held: &Held) -> MutexGuard<'_, HashMap<ElectionName, Option<Reign>>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One election that the server stands for.
struct One {
    tenure: Tenure,
    election: Election,
    name: ElectionName,
    held: Arc<Held>,
}

impl One {
    /// Leads one term after the other.
    async fn stand(self, mut stop: watch::Receiver<bool>) {
        loop {
            let won = tokio::select! {
                won = self.election.campaign() => won,
                () = stopped(&mut stop) => return,
            };
            match won {
                Ok(leadership) => self.reign(leadership, &mut stop).await,
                Err(tenure::Error::ShutDown) => return,
                Err(error) => {
                    let election = &self.name;
                    tracing::error!(%error, %election, "the server cannot stand for an election");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// One term, until it is trusted no longer.
    async fn reign(&self, leadership: Leadership, stop: &mut watch::Receiver<bool>) {
        let kept = Kept::new(leadership.clone(), &self.tenure);
        let grants = Grants::new(self.tenure.settings().drift_ppm());
        let reign = Reign { leadership: leadership.clone(), grants, closed: false };
        lock(&self.held).insert(self.name.clone(), Some(reign));
        let ended = tokio::select! {
            ended = leadership.stopping() => ended,
            () = stopped(stop) => {
                // Refused only by a member that is gone, which has ended the reign.
                let _ = leadership.stop();
                leadership.stopping().await
            }
        };
        let granted = self.close();
        let drained = match ended {
            Stopping::Asked { drain_until, .. } => drain_until,
            _ => Mono::ZERO,
        };
        tokio::select! {
            _ = leadership.lost() => {}
            () = self.reached(drained.max(granted)) => {}
        }
        self.reached(granted).await;
        lock(&self.held).insert(self.name.clone(), None);
        kept.release().await;
    }

    /// Nothing is granted from here on. Gives the moment at which all that was has ended.
    fn close(&self) -> Mono {
        let mut held = lock(&self.held);
        let Some(Some(reign)) = held.get_mut(&self.name) else { return Mono::ZERO };
        reign.closed = true;
        reign.grants.over_at()
    }

    async fn reached(&self, at: Mono) {
        // A timer may be early by a little, and one of a host that was suspended is late.
        while self.tenure.now() < at {
            tokio::time::sleep(self.tenure.until(at)).await;
        }
    }
}
