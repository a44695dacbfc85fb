//! What the server measures, as `/metrics` shows it.
//!
//! Elections are told apart by a label up to [`ELECTIONS`] of them; the rest are `other`, so
//! that no number of elections makes the answer grow without end.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tenure::measures::{Metric, Metrics};
use tenure::{ElectionName, Namespace};

use crate::App;
use crate::board::Seen;

/// How many elections have a label of their own.
const ELECTIONS: usize = 1_000;

type Float = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfElection {
    namespace: String,
    election: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLoss {
    namespace: String,
    election: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfNamespace {
    namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfVerb {
    namespace: String,
    verb: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfBuild {
    version: &'static str,
}

/// All measurements.
#[derive(Debug)]
pub(crate) struct Measured {
    registry: Registry,
    leader: Family<OfElection, Gauge>,
    term: Family<OfElection, Float>,
    trust: Family<OfElection, Float>,
    vacant: Family<OfElection, Gauge>,
    paused: Family<OfElection, Gauge>,
    won: Family<OfElection, Counter>,
    lost: Family<OfLoss, Counter>,
    margin: Family<OfNamespace, Histogram, fn() -> Histogram>,
    requests: Family<OfVerb, Histogram, fn() -> Histogram>,
    errors: Family<OfVerb, Counter>,
    contact: Family<OfNamespace, Float>,
    members: Family<OfNamespace, Gauge>,
    sessions: Gauge,
    clients: Arc<Gauge>,
    events: Counter,
    /// The elections that have a label of their own.
    known: Mutex<HashSet<String>>,
    /// Held while what the store holds is counted.
    scrape: Mutex<()>,
}

fn seconds() -> Histogram {
    // From a third of a millisecond to the longest trust there is.
    let bounds =
        [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 30.0, 60.0];
    Histogram::new(bounds)
}

impl Measured {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("tenure");
        let build = Family::<OfBuild, Gauge>::default();
        build.get_or_create(&OfBuild { version: env!("CARGO_PKG_VERSION") }).set(1);
        registry.register("build_info", "The version of this server", build);
        let mut measured = Self {
            registry: Registry::default(),
            leader: Family::default(),
            term: Family::default(),
            trust: Family::default(),
            vacant: Family::default(),
            paused: Family::default(),
            won: Family::default(),
            lost: Family::default(),
            margin: Family::new_with_constructor(seconds),
            requests: Family::new_with_constructor(seconds),
            errors: Family::default(),
            contact: Family::default(),
            members: Family::default(),
            sessions: Gauge::default(),
            clients: Arc::default(),
            events: Counter::default(),
            known: Mutex::default(),
            scrape: Mutex::default(),
        };
        measured.describe(&mut registry);
        measured.registry = registry;
        measured
    }

    fn describe(&self, to: &mut Registry) {
        to.register(
            "leader",
            "1 while a member of this server leads the election, 0 while it stands for it",
            self.leader.clone(),
        );
        to.register("term", "The number of the last term that was led here", self.term.clone());
        to.register_with_unit(
            "trust_remaining",
            "How much longer the term that is led here may be trusted",
            Unit::Seconds,
            self.trust.clone(),
        );
        to.register("election_vacant", "1 while the election has no leader", self.vacant.clone());
        to.register("election_paused", "1 while no member is newly elected", self.paused.clone());
        to.register("elections_won", "Terms that were won here", self.won.clone());
        to.register("leaderships_lost", "Terms that ended here, by reason", self.lost.clone());
        to.register_with_unit(
            "renew_margin",
            "What was left of the trust when it was renewed; near zero, terms are about to be lost",
            Unit::Seconds,
            self.margin.clone(),
        );
        to.register_with_unit(
            "store_request_duration",
            "How long requests to the store took",
            Unit::Seconds,
            self.requests.clone(),
        );
        to.register("store_errors", "Requests to the store that failed", self.errors.clone());
        to.register_with_unit(
            "store_last_contact_timestamp",
            "When the store last answered, by this machine's clock, since 1970",
            Unit::Seconds,
            self.contact.clone(),
        );
        to.register("members", "Live members of the namespace", self.members.clone());
        to.register("sessions", "Sessions of clients that are not over", self.sessions.clone());
        to.register("sse_clients", "Clients that follow events", Gauge::clone(&self.clients));
        to.register("sse_entries", "Journal entries that clients were told", self.events.clone());
    }

    /// A client that follows events; it counts until it is dropped.
    pub(crate) fn event_client(&self) -> Client {
        self.clients.inc();
        Client { clients: self.clients.clone(), events: self.events.clone() }
    }

    fn of(&self, namespace: &Namespace, election: &ElectionName) -> OfElection {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let name = election.as_str();
        let has_label = known.contains(name) || known.len() < ELECTIONS;
        if has_label && !known.contains(name) {
            known.insert(name.to_owned());
        }
        let election = if has_label { name.to_owned() } else { "other".to_owned() };
        OfElection { namespace: namespace.to_string(), election }
    }

    /// What may come is there before it comes: a counter that appears with its first event has no
    /// increase by which an alert could tell.
    fn begin_at_zero(&self, labels: &OfElection) {
        use tenure_api::Loss::{DrainTimeout, RolledBack, Superseded, TrustEnded};
        drop(self.won.get_or_create(labels));
        for loss in [TrustEnded, DrainTimeout, Superseded, RolledBack] {
            let OfElection { namespace, election } = labels.clone();
            let reason = loss.as_str();
            drop(self.lost.get_or_create(&OfLoss { namespace, election, reason }));
        }
    }

    /// The text of `/metrics`, with what the store was seen to hold.
    pub(crate) fn encode(&self, app: &App, seen: Option<&Seen>) -> String {
        // Two at once would both count.
        let _scrape = self.scrape.lock().unwrap_or_else(PoisonError::into_inner);
        let ns = app.tenure.namespace();
        let namespace = || OfNamespace { namespace: ns.to_string() };
        self.sessions.set(as_gauge(app.sessions.count()));
        self.leader.clear();
        self.trust.clear();
        for (election, left) in app.stands.standing().into_iter().chain(app.sessions.standing()) {
            let labels = self.of(ns, &election);
            let leader = self.leader.get_or_create(&labels);
            // Several may stand here for one election.
            leader.set(leader.get().max(i64::from(left.is_some())));
            self.begin_at_zero(&labels);
            if let Some(left) = left {
                self.trust.get_or_create(&labels).set(left.as_secs_f64());
            }
        }
        if let Some(seen) = seen {
            self.members.get_or_create(&namespace()).set(as_gauge(seen.snapshot.members.len()));
            self.vacant.clear();
            self.paused.clear();
            for view in &seen.snapshot.elections {
                let labels = self.of(ns, &view.election);
                let vacant = app.board.aged(seen, view).is_ok_and(|view| view.holder.is_none());
                self.vacant.get_or_create(&labels).inc_by(i64::from(vacant));
                self.paused.get_or_create(&labels).inc_by(i64::from(view.paused.is_some()));
            }
        }
        if let Some(ago) = app.tenure.status().last_success {
            let now = std::time::SystemTime::now();
            let now = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let at = now.saturating_sub(ago).as_secs_f64();
            self.contact.get_or_create(&namespace()).set(at);
        }
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

fn as_gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Metrics for Measured {
    fn record(&self, namespace: &Namespace, metric: &Metric) {
        let ns = || namespace.to_string();
        match metric {
            Metric::Elected { election, number } => {
                let labels = self.of(namespace, election);
                self.won.get_or_create(&labels).inc();
                // Exact up to 2^53; later numbers are off by less than one in 2^52.
                #[allow(clippy::cast_precision_loss)]
                self.term.get_or_create(&labels).set(number.get() as f64);
            }
            Metric::Lost { election, reason, .. } => {
                let labels = self.of(namespace, election);
                let OfElection { namespace, election } = labels;
                let reason = tenure_api::Loss::from(*reason).as_str();
                self.lost.get_or_create(&OfLoss { namespace, election, reason }).inc();
            }
            Metric::Renewed { margin_left } => {
                let left = margin_left.as_secs_f64();
                self.margin.get_or_create(&OfNamespace { namespace: ns() }).observe(left);
            }
            Metric::Request { verb, latency, failed } => {
                let labels = OfVerb { namespace: ns(), verb: verb.name() };
                self.requests.get_or_create(&labels).observe(latency.as_secs_f64());
                self.errors.get_or_create(&labels).inc_by(u64::from(*failed));
            }
            _ => {}
        }
    }
}

/// A client that follows events.
#[derive(Debug)]
pub(crate) struct Client {
    clients: Arc<Gauge>,
    events: Counter,
}

impl Client {
    /// It is told of so many entries.
    pub(crate) fn told(&self, entries: usize) {
        self.events.inc_by(entries as u64);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.clients.dec();
    }
}
