//! All sessions of a server, and the members that they are led by.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use tenure::session::Session;
use tenure::{ElectionName, Leadership, MemberId, Mono, SettingsBuilder, Tenure};
use tokio::sync::watch;

use super::task::{self, Shared, State, View};
use crate::measured::Measured;
use crate::problem::{Answer, Problem};

/// How a client asks for a session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// The client's id; one is made up if it is left out.
    #[serde(default)]
    pub(crate) id: Option<String>,
    /// How long the client may be silent, and how long its member lives without a heartbeat.
    #[serde(default)]
    pub(crate) ttl_ms: Option<u64>,
    /// How long the client may take to stop when it is asked to.
    #[serde(default)]
    pub(crate) drain_ms: Option<u64>,
    /// As of any candidate; 0 never leads.
    #[serde(default)]
    pub(crate) priority: Option<u16>,
    /// Where the client can be reached.
    #[serde(default)]
    pub(crate) endpoints: Vec<String>,
    /// What the client publishes.
    #[serde(default)]
    pub(crate) metadata: String,
}

/// A session that can be asked for its state.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) election: ElectionName,
    pub(crate) member: Tenure,
    shared: Shared,
    /// When the term was given back: the session may be forgotten one ttl later.
    ended: watch::Sender<Option<Mono>>,
}

impl Entry {
    /// A beat: proof of life, then news, or the state after `wait`.
    pub(crate) async fn beat(&self, seen: u64, wait: Duration) -> View {
        let heard = self.shared.lock().heard(self.member.now());
        let view = self.shared.view();
        if !heard || seen != view.seen || wait.is_zero() {
            return view;
        }
        // An answer that comes late leaves little of the trust that it grants.
        let most = match &view.state {
            State::Leading(leadership) | State::Stopping { leadership, .. } => {
                (self.ttl() / 4).min(leadership.remaining() / 4)
            }
            State::Waiting | State::Over { .. } => self.ttl() / 2,
        };
        self.shared.news(seen, wait.min(most)).await
    }

    /// How much longer the client may trust in its term, and until which moment of this
    /// machine's boot-time clock (W1, W3). Nothing if the session is over.
    pub(crate) fn grant(&self, view: &View) -> (Duration, Option<Mono>) {
        let leadership = match &view.state {
            State::Leading(leadership) | State::Stopping { leadership, .. } => leadership,
            State::Waiting | State::Over { .. } => return (Duration::ZERO, None),
        };
        let until = leadership.trusted_until();
        let now = self.member.now();
        let span = self.shared.lock().grant(now, until);
        (span, (!span.is_zero()).then(|| now + span))
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.shared.lock().ttl()
    }

    /// The client has stopped.
    pub(crate) fn resign(&self) {
        self.shared.resign();
    }

    pub(crate) fn state(&self) -> View {
        self.shared.view()
    }

    /// Returns when the session is over and its term is given back.
    pub(crate) async fn given_back(&self) {
        // The sender lives as long as we do.
        let _ = self.ended.subscribe().wait_for(Option::is_some).await;
    }

    fn leadership(&self) -> Option<Leadership> {
        match self.shared.view().state {
            State::Leading(leadership) | State::Stopping { leadership, .. } => Some(leadership),
            State::Waiting | State::Over { .. } => None,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.shared.view().state, State::Over { .. })
    }
}

/// The members of clients, each for as long as it has a session.
type Members = HashMap<MemberId, (NewSession, Tenure, usize)>;

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// The server's own member, on whose connection the others run.
    server: Tenure,
    measured: Arc<Measured>,
    most: usize,
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    /// Held while a member is made or given up, so that one id has one.
    members: tokio::sync::Mutex<Members>,
    closed: AtomicBool,
}

impl Sessions {
    pub(crate) fn new(server: Tenure, measured: Arc<Measured>, most: usize) -> Self {
        Self {
            server,
            measured,
            most,
            entries: Mutex::default(),
            members: tokio::sync::Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are not over.
    pub(crate) fn count(&self) -> usize {
        self.entries().values().filter(|entry| !entry.is_over()).count()
    }

    pub(crate) fn find(&self, key: &str) -> Answer<Arc<Entry>> {
        self.entries().get(key).cloned().ok_or_else(|| {
            Problem::new(
                StatusCode::GONE,
                "no_session",
                "there is no such session",
                "the session is over and forgotten, or was begun at another server",
            )
            .remedy("trust nothing that it granted, and begin another")
        })
    }

    /// Whether a client leads this election through this server and is not asked to stop, and
    /// its number.
    pub(crate) fn leads(&self, election: &ElectionName) -> Option<u64> {
        let entries = self.entries();
        let mut here = entries.values().filter(|entry| entry.election == *election);
        here.find_map(|entry| match entry.shared.view().state {
            State::Leading(leadership) if leadership.is_current() => Some(leadership.token()),
            _ => None,
        })
    }

    /// What clients lead through this server, and for how much longer it may be trusted.
    pub(crate) fn leading(&self) -> Vec<(ElectionName, Duration)> {
        let entries = self.entries();
        let led = entries.values().filter_map(|entry| entry.leadership());
        led.map(|led| (led.term().election.clone(), led.remaining())).collect()
    }

    /// Whether a client stands for this election through this server.
    pub(crate) fn stands(&self, election: &ElectionName) -> bool {
        self.entries().values().any(|entry| entry.election == *election && !entry.is_over())
    }

    /// Begins a session: the client is a candidate from now on.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        election: ElectionName,
        asked: NewSession,
    ) -> Answer<Arc<Entry>> {
        self.room()?;
        let id = match &asked.id {
            Some(id) => MemberId::new(id).map_err(tenure::Error::from)?,
            None => MemberId::new(format!("{}-{}", self.server.id(), &key()[..8]))
                .map_err(tenure::Error::from)?,
        };
        let mut members = self.members.lock().await;
        self.stands_not_yet(&election, &id)?;
        let member = match members.get_mut(&id) {
            Some((other, member, users)) => {
                same(other, &asked, &id)?;
                *users += 1;
                member.clone()
            }
            None => {
                let member = self.join(&id, &asked).await?;
                members.insert(id.clone(), (asked.clone(), member.clone(), 1));
                member
            }
        };
        drop(members);
        let settings = member.settings();
        let session = Session::new(member.now(), settings.ttl(), settings.drift_ppm());
        let entry = Arc::new(Entry {
            key: key(),
            election,
            member,
            shared: Shared::new(session),
            ended: watch::Sender::new(None),
        });
        self.entries().insert(entry.key.clone(), entry.clone());
        let run = carry(self.clone(), entry.clone(), asked.priority.unwrap_or(100));
        tokio::spawn(run);
        Ok(entry)
    }

    fn room(&self) -> Answer<()> {
        self.forget();
        if self.closed.load(Ordering::Acquire) {
            return Err(tenure::Error::ShutDown.into());
        }
        if self.count() < self.most {
            return Ok(());
        }
        let what = format!("this server keeps {} sessions, the most that it may", self.most);
        let title = "there are too many sessions";
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", title, what)
            .remedy("raise --max-sessions, or begin it at another server")
            .retry_after(Duration::from_secs(5)))
    }

    fn stands_not_yet(&self, election: &ElectionName, id: &MemberId) -> Answer<()> {
        let entries = self.entries();
        let other = entries.values().find(|entry| {
            entry.election == *election && entry.member.id() == id && !entry.is_over()
        });
        let Some(other) = other else { return Ok(()) };
        let left = other.shared.lock().silent_at().since(other.member.now());
        let what = format!("{id} stands for {election} already, in another session");
        let title = "it stands already";
        Err(Problem::new(StatusCode::CONFLICT, "already_standing", title, what)
            .remedy("give each process an id of its own; a session that is silent ends by itself")
            .retry_after(left))
    }

    async fn join(&self, id: &MemberId, asked: &NewSession) -> Answer<Tenure> {
        if id == self.server.id() {
            let what = format!("{id} is the server's own id");
            let title = "the id is taken";
            let problem = Problem::new(StatusCode::CONFLICT, "already_standing", title, what);
            return Err(problem.remedy("give each process an id of its own"));
        }
        let span = |millis: u64| Duration::from_millis(millis);
        let ttl = asked.ttl_ms.map_or(self.server.settings().ttl(), span);
        let mut settings = SettingsBuilder::ttl(ttl);
        if let Some(drain) = asked.drain_ms {
            settings = settings.drain(span(drain));
        }
        let beside = self.server.member_in(self.server.namespace().as_str());
        let mut builder = beside.id(id.as_str()).settings(settings).metrics(self.measured.clone());
        for endpoint in &asked.endpoints {
            builder = builder.endpoint(endpoint);
        }
        Ok(builder.metadata(asked.metadata.as_bytes()).connect().await?)
    }

    /// Drops sessions that have been over for longer than their ttl.
    fn forget(&self) {
        let now = self.server.now();
        self.entries().retain(|_, entry| {
            let ended = *entry.ended.borrow();
            ended.is_none_or(|at| now < at + entry.ttl())
        });
    }

    /// Asks every client to stop, and returns when all have, or their drain is over.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let members: Vec<Tenure> =
            self.members.lock().await.values().map(|(_, member, _)| member.clone()).collect();
        let leaving = members.iter().map(Tenure::shutdown);
        futures_util::future::join_all(leaving).await;
    }
}

/// Carries a session to its end, and gives its member up with the last of its sessions.
async fn carry(all: Arc<Sessions>, entry: Arc<Entry>, priority: u16) {
    task::run(&entry.shared, &entry.member, entry.election.as_str(), priority).await;
    let mut members = all.members.lock().await;
    let id = entry.member.id();
    let last = members.get_mut(id).is_some_and(|(_, _, users)| {
        *users -= 1;
        *users == 0
    });
    if last {
        members.remove(id);
        // A session that begins under this id meanwhile waits for the line above only: the
        // store tells its life from this one.
        drop(members);
        let _ = entry.member.shutdown().await;
    }
    let now = entry.member.now();
    entry.ended.send_replace(Some(now));
}

fn same(known: &NewSession, asked: &NewSession, id: &MemberId) -> Answer<()> {
    let plain = |session: &NewSession| NewSession { priority: None, ..session.clone() };
    if plain(known) == plain(asked) {
        return Ok(());
    }
    let what = format!("{id} has another session, with other endpoints, metadata or timings");
    let title = "the id is in use";
    Err(Problem::new(StatusCode::CONFLICT, "other_profile", title, what)
        .remedy("begin all sessions of a process alike, or give it another id"))
}

/// What nobody can guess: a client that has it speaks for the session.
fn key() -> String {
    let mut bytes = [0_u8; 16];
    // Without random numbers nothing here can be kept apart.
    if getrandom::fill(&mut bytes).is_err() {
        tracing::error!("the system gives no random numbers");
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
