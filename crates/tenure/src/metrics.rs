//! A small hook for measurements, and a ready adapter behind the `metrics`
//! feature.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
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

/// How many measurements may wait for the hook.
const KEPT: usize = 4096;

/// The way to the application's hook, if it has one.
#[derive(Debug)]
pub(crate) struct Hook(Option<SyncSender<Metric>>);

impl Hook {
    /// Starts the hook's thread, which ends with this.
    pub(crate) fn start(
        metrics: Option<Arc<dyn Metrics>>,
        namespace: Namespace,
    ) -> std::io::Result<Self> {
        let Some(metrics) = metrics else { return Ok(Self(None)) };
        let (give, take) = sync_channel::<Metric>(KEPT);
        std::thread::Builder::new().name("tenure-metrics".into()).spawn(move || {
            for metric in take {
                let recorded =
                    catch_unwind(AssertUnwindSafe(|| metrics.record(&namespace, &metric)));
                if recorded.is_err() {
                    tracing::error!(target: "tenure", ?metric, "the metrics hook panicked");
                }
            }
        })?;
        Ok(Self(Some(give)))
    }

    /// Passes a measurement on. It never waits: what does not fit is dropped.
    pub(crate) fn record(&self, metric: Metric) {
        if let Some(give) = &self.0 {
            let _ = give.try_send(metric);
        }
    }
}

#[cfg(feature = "metrics")]
mod recorder;

#[cfg(feature = "metrics")]
pub use recorder::MetricsRecorder;
