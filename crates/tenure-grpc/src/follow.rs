//! The task that keeps a channel's route: it reads an observer, looks at the store, takes hints,
//! and publishes what calls go by.
//!
//! # What must stay true
//!
//! - Nothing but this task changes the route, and every change goes through
//!   [`Routing`], which says who may be called.
//! - One look is under way at a time. Looks that calls ask for are at least [`PACE`] apart, so
//!   that a thousand refusals, or forged ones, cost the store a few reads.
//! - A look that fails is made again with growing pauses; no failure ends the task. It ends with
//!   the channel, or when the member that observes is shut down: then calls say so.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tenure::store::BootClock;
use tenure::views::{ElectionView, MemberView, Profile};
use tenure::{Mono, Observed, Observer};
use tokio::sync::{Notify, mpsc};

use crate::channel::Prewarm;
use crate::config::ServiceConfig;
use crate::connection::Connections;
use crate::header::Refusal;
use crate::route::Route;
use crate::routing::Routing;
use crate::source::Watched;

/// The least time between two looks that calls have asked for.
const PACE: Duration = Duration::from_millis(20);
/// The longest pause after a look that failed.
const LONGEST: Duration = Duration::from_secs(1);

/// What calls go by.
pub(crate) enum Present {
    /// No leader is known, and which term was the last.
    Vacant(u64),
    /// There is a leader.
    Led(Arc<Route>),
    /// Nothing is followed any more.
    Closed,
}

/// What the task and the calls share.
pub(crate) struct Shared {
    pub(crate) election: String,
    pub(crate) present: ArcSwap<Present>,
    /// The present has changed.
    pub(crate) changed: Notify,
    /// A look is wanted.
    pub(crate) look: Notify,
    pub(crate) refusals: mpsc::Sender<Refusal>,
    pub(crate) config: ArcSwap<ServiceConfig>,
}

impl Shared {
    pub(crate) fn new(election: String) -> (Arc<Self>, mpsc::Receiver<Refusal>) {
        // What does not fit is a hint lost, which changes nothing but latency.
        let (refusals, taken) = mpsc::channel(16);
        let shared = Self {
            election,
            present: ArcSwap::from_pointee(Present::Vacant(0)),
            changed: Notify::new(),
            look: Notify::new(),
            refusals,
            config: ArcSwap::default(),
        };
        (Arc::new(shared), taken)
    }

    fn publish(&self, present: Present) {
        self.present.store(Arc::new(present));
        self.changed.notify_waiters();
    }
}

/// What a look has found.
struct Found {
    asked: Mono,
    view: ElectionView,
    members: Option<Vec<MemberView>>,
}

/// The task.
pub(crate) struct Follower {
    pub(crate) shared: Arc<Shared>,
    pub(crate) watched: Watched,
    pub(crate) observer: Observer,
    pub(crate) refusals: mpsc::Receiver<Refusal>,
    pub(crate) connections: Connections,
    pub(crate) prewarm: Prewarm,
    pub(crate) routing: Routing,
    pub(crate) complaints: HashSet<String>,
    /// Whether the store has said something new of those that may lead next.
    pub(crate) rewarm: bool,
}

impl Follower {
    pub(crate) async fn run(mut self) {
        let mut looking: Option<tokio::task::JoinHandle<tenure::Result<Found>>> = None;
        let mut next_look = Some(BootClock::read());
        let mut last_look = None::<Mono>;
        let mut failures = 0;
        let mut prompted = false;
        loop {
            let now = BootClock::read();
            if looking.is_none() && next_look.is_some_and(|at| at <= now) {
                let members = !matches!(self.prewarm, Prewarm::None) || self.routing.is_hinted();
                looking = Some(tokio::spawn(look(self.watched.clone(), members || prompted)));
                last_look = Some(now);
                next_look = None;
                prompted = false;
            }
            let due = next_look.filter(|_| looking.is_none());
            tokio::select! {
                biased;
                seen = self.observer.next() => {
                    let Some(seen) = seen else { break };
                    if self.observed(seen.observed) {
                        next_look = Some(BootClock::read());
                    }
                }
                found = answered(&mut looking) => {
                    looking = None;
                    failures = self.answered(found, failures);
                    let pause = (PACE * 2u32.saturating_pow(failures.min(8))).min(LONGEST);
                    let again = BootClock::read() + pause;
                    let planned = self.routing.look_at().filter(|_| failures == 0);
                    let failed = (failures > 0).then_some(again);
                    // What was asked for meanwhile is due as well.
                    next_look = [planned, failed, next_look].into_iter().flatten().min();
                }
                Some(refusal) = self.refusals.recv() => {
                    prompted |= refusal.hint.is_some();
                    self.refused(&refusal);
                    next_look = sooner(next_look, last_look);
                }
                () = self.shared.look.notified() => next_look = sooner(next_look, last_look),
                () = sleep_until(due) => {}
            }
            self.publish();
        }
        self.shared.publish(Present::Closed);
    }

    /// Whether a look is wanted after this.
    fn observed(&mut self, observed: Observed) -> bool {
        match observed {
            Observed::Leads { term, profile } => {
                let id = term.member.id.as_str();
                self.routing.leads(BootClock::read(), term.number.get(), id, profile);
                true
            }
            Observed::Vacant { number } => {
                self.routing.vacant(number.get());
                false
            }
            // Whom it is to hand over to: the heir to be prewarmed.
            Observed::StepDownAsked { .. } => !matches!(self.prewarm, Prewarm::None),
            Observed::Skipped => true,
            _ => false,
        }
    }

    fn refused(&mut self, refusal: &Refusal) {
        self.routing.refused(refusal.to);
        if let Some(hint) = &refusal.hint {
            let taken = self.routing.hint(BootClock::read(), hint);
            tracing::debug!(target: "tenure", election = %self.shared.election,
                term = hint.number, endpoint = %hint.endpoint, ?taken, "a hint");
        }
    }

    /// Takes a look's answer; how many looks in a row have failed.
    fn answered(&mut self, found: tenure::Result<Found>, failures: u32) -> u32 {
        match found {
            Ok(Found { asked, view, members }) => {
                if let Some(members) = members {
                    self.routing.members(asked, &members);
                    self.rewarm = true;
                }
                self.routing.looked(asked, &view);
                0
            }
            Err(error) => {
                tracing::debug!(target: "tenure", election = %self.shared.election, %error,
                    "a look for the leader failed; it is made again");
                failures.saturating_add(1)
            }
        }
    }

    /// Tells calls what has changed.
    fn publish(&mut self) {
        let now = BootClock::read();
        let present = self.shared.present.load_full();
        let led = match &*present {
            Present::Led(route) => Some(route),
            _ => None,
        };
        let Some(leader) = self.routing.route(now).cloned() else {
            let number = self.routing.seen();
            if !matches!(&*present, Present::Vacant(said) if *said == number) {
                self.shared.publish(Present::Vacant(number));
            }
            return;
        };
        if let Some(route) = led.filter(|r| r.number == leader.number && r.leader == leader.id) {
            let lived = route.lives(now);
            route.lives_until(leader.until);
            if !lived {
                self.shared.changed.notify_waiters();
            }
            // Not with each hint and refusal: an heir that cannot be reached is tried once a look.
            if std::mem::take(&mut self.rewarm) {
                self.warm(&route.connections.clone());
            }
            return;
        }
        self.take_config(&leader.profile);
        let (connections, wrong) = self.connections.to(leader.profile.endpoints());
        for why in &wrong {
            self.complain(why);
        }
        connections.iter().take(1).for_each(|connection| connection.warm());
        let route = Route::new(leader.number, leader.id, leader.until, connections, &wrong);
        let connections = route.connections.clone();
        self.shared.publish(Present::Led(Arc::new(route)));
        self.warm(&connections);
    }

    /// Connects to those that may lead next, and closes what is of no use any more.
    fn warm(&mut self, of_route: &[Arc<crate::connection::Connection>]) {
        let most = match self.prewarm {
            Prewarm::None => 0,
            Prewarm::Heir => 1,
            Prewarm::Candidates(most) => most,
        };
        let next: Vec<Profile> = self.routing.next().take(most).cloned().collect();
        let mut kept = of_route.to_vec();
        for profile in next {
            let (connections, _) = self.connections.to(profile.endpoints());
            connections.iter().take(1).for_each(|connection| connection.warm());
            kept.extend(connections);
        }
        self.connections.keep(&kept);
    }

    /// The service config of a new leader; the last one stays through a vacancy.
    fn take_config(&mut self, profile: &Profile) {
        let config = match ServiceConfig::of_metadata(profile.metadata()) {
            Ok(config) => config.unwrap_or_default(),
            Err(why) => {
                self.complain(&format!("the leader's service config is not used: {why}"));
                ServiceConfig::default()
            }
        };
        if !config.ignored.is_empty() {
            let ignored = config.ignored.join(", ");
            self.complain(&format!("of the leader's service config this is not used: {ignored}"));
        }
        self.shared.config.store(Arc::new(config));
    }

    /// Says what is wrong with a leader's profile, once.
    fn complain(&mut self, what: &str) {
        // Profiles come from others: however many they are, they fill no memory.
        if self.complaints.len() < 64 && self.complaints.insert(what.to_owned()) {
            tracing::warn!(target: "tenure", election = %self.shared.election, "{what}");
        }
    }
}

/// When the next look is due, if one is wanted as soon as the pace allows.
fn sooner(planned: Option<Mono>, last: Option<Mono>) -> Option<Mono> {
    let at = last.map_or(Mono::ZERO, |last| last + PACE);
    Some(planned.map_or(at, |planned| planned.min(at)))
}

async fn look(watched: Watched, with_members: bool) -> tenure::Result<Found> {
    let asked = BootClock::read();
    if !with_members {
        return Ok(Found { asked, view: watched.view().await?, members: None });
    }
    let mut snapshot = watched.snapshot().await?;
    let view = snapshot.elections.pop().ok_or(tenure::Error::ShutDown)?;
    Ok(Found { asked, view, members: Some(snapshot.members) })
}

/// The answer of the look that is under way; never, if none is.
async fn answered(
    looking: &mut Option<tokio::task::JoinHandle<tenure::Result<Found>>>,
) -> tenure::Result<Found> {
    match looking {
        Some(task) => task.await.unwrap_or(Err(tenure::Error::ShutDown)),
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<Mono>) {
    match at {
        Some(at) => tokio::time::sleep(at.since(BootClock::read())).await,
        None => std::future::pending().await,
    }
}
