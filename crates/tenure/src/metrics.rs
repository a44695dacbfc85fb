//! A small hook for measurements, and a ready adapter behind the `metrics`
//! feature.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{ElectionName, LostReason, Namespace, Request, TermNumber};

/// Takes measurements. It is called on a thread of its own, so that it cannot
/// delay a heartbeat (rule F2); one that cannot keep up misses some.
///
/// ```
/// use tenure::Namespace;
/// use tenure::measures::{Metric, Metrics};
///
/// #[derive(Debug)]
/// struct Count(std::sync::atomic::AtomicU64);
///
/// impl Metrics for Count {
///     fn record(&self, _namespace: &Namespace, metric: &Metric) {
///         if let Metric::Elected { .. } = metric {
///             self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Metrics: Send + Sync + fmt::Debug {
    /// Takes one measurement of a member of this namespace.
    fn record(&self, namespace: &Namespace, metric: &Metric);
}

/// One measurement.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Metric {
    /// This member stands for an election from now on, and does not lead it.
    Standing {
        /// The election.
        election: ElectionName,
    },
    /// This member leads from now on.
    Elected {
        /// The election.
        election: ElectionName,
        /// The term.
        number: TermNumber,
    },
    /// This member no longer leads.
    Lost {
        /// The election.
        election: ElectionName,
        /// The term.
        number: TermNumber,
        /// Why.
        reason: LostReason,
    },
    /// Trust was extended. `margin_left` is what was left of it before: when it
    /// nears zero, leaderships are about to be lost.
    Renewed {
        /// What was left.
        margin_left: Duration,
    },
    /// A request to the store came back or was given up.
    Request {
        /// Which kind.
        verb: Verb,
        /// How long it took.
        latency: Duration,
        /// Whether it failed.
        failed: bool,
    },
}

/// A kind of request to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Becoming a member.
    Join,
    /// Renewing.
    Heartbeat,
    /// Leaving.
    Leave,
    /// Bidding.
    Claim,
    /// Giving back.
    Release,
    /// Taking, changing and dropping names.
    Bind,
    /// Looking.
    Read,
}

impl Verb {
    pub(crate) fn of(request: &Request) -> Self {
        match request {
            Request::Join(_) => Verb::Join,
            Request::Heartbeat(_) => Verb::Heartbeat,
            Request::Leave(_) => Verb::Leave,
            Request::Claim(_) => Verb::Claim,
            Request::Release(_) => Verb::Release,
            Request::Bind(_) => Verb::Bind,
            Request::Read(_) => Verb::Read,
        }
    }

    /// The verb as a word, for labels and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verb::Join => "join",
            Verb::Heartbeat => "heartbeat",
            Verb::Leave => "leave",
            Verb::Claim => "claim",
            Verb::Release => "release",
            Verb::Bind => "bind",
            Verb::Read => "read",
        }
    }
}

/// How many measurements may wait for a hook.
const KEPT: usize = 4096;

/// The threads on which hooks are called, one for each hook that members of a connection have:
/// ten thousand members with one hook cost one thread and one queue.
#[derive(Debug, Default)]
pub(crate) struct Hooks(Mutex<Vec<Running>>);

/// A hook, and the way to its thread.
type Running = (Arc<dyn Metrics>, Weak<Relay>);

/// The way to a hook's thread, which ends with this.
#[derive(Debug)]
struct Relay(SyncSender<(Namespace, Metric)>);

impl Hooks {
    /// The way of a member to its hook. The hook's thread is started if no other member has it.
    pub(crate) fn of(
        &self,
        metrics: Option<Arc<dyn Metrics>>,
        namespace: Namespace,
    ) -> std::io::Result<Hook> {
        let Some(metrics) = metrics else { return Ok(Hook(None)) };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, relay)| relay.strong_count() > 0);
        let same = known.iter().find(|(hook, _)| Arc::ptr_eq(hook, &metrics));
        let running = same.and_then(|(_, relay)| relay.upgrade());
        let relay = match running {
            Some(relay) => relay,
            None => {
                let relay = Arc::new(Relay::start(metrics.clone())?);
                known.push((metrics, Arc::downgrade(&relay)));
                relay
            }
        };
        Ok(Hook(Some((namespace, relay))))
    }
}

impl Relay {
    fn start(metrics: Arc<dyn Metrics>) -> std::io::Result<Self> {
        let (give, take) = sync_channel::<(Namespace, Metric)>(KEPT);
        std::thread::Builder::new().name("tenure-metrics".into()).spawn(move || {
            for (namespace, metric) in take {
                let recorded =
                    catch_unwind(AssertUnwindSafe(|| metrics.record(&namespace, &metric)));
                if recorded.is_err() {
                    tracing::error!(target: "tenure", ?metric, "the metrics hook panicked");
                }
            }
        })?;
        Ok(Self(give))
    }
}

/// The way to the application's hook, if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Hook(Option<(Namespace, Arc<Relay>)>);

impl Hook {
    /// Passes a measurement on. It never waits: what does not fit is dropped.
    pub(crate) fn record(&self, metric: Metric) {
        if let Some((namespace, relay)) = &self.0 {
            let _ = relay.0.try_send((namespace.clone(), metric));
        }
    }
}

#[cfg(feature = "metrics")]
mod recorder;

#[cfg(feature = "metrics")]
pub use recorder::MetricsRecorder;
