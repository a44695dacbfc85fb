//! All sessions of a server, and the members that they are led by.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use http::StatusCode;
use tenure::session::Session;
use tenure::{ElectionName, MemberId, Tenure};
use tokio::sync::watch;

use super::begin::NewSession;
use super::entry::Entry;
use super::index::Index;
use super::key;
use super::task::{self, Shared, State};
use crate::measured::Measured;
use crate::problem::{Answer, Problem};

/// The members of clients, each for as long as it has a session.
type Members = HashMap<MemberId, Kept>;

/// The member of a client.
#[derive(Debug)]
struct Kept {
    asked: NewSession,
    member: Tenure,
    sessions: usize,
}

/// What one election shows of the sessions of this server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Here {
    /// The term of a client that leads at this instant and is not asked to stop.
    pub(crate) leads: Option<u64>,
    /// Whether any stands.
    pub(crate) stands: bool,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// The server's own member, on whose connection the others run.
    server: Tenure,
    measured: Arc<Measured>,
    most: usize,
    index: Mutex<Index>,
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
            index: Mutex::default(),
            members: tokio::sync::Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are there: their terms are not given back.
    pub(crate) fn count(&self) -> usize {
        self.index().count()
    }

    pub(crate) fn find(&self, key: &str) -> Answer<Arc<Entry>> {
        let found = self.index().find(key);
        found.ok_or_else(|| {
            Problem::new(
                StatusCode::GONE,
                "no_session",
                "there is no such session",
                "the session is over and forgotten, or was begun at another server",
            )
            .remedy("trust nothing that it granted, and begin another")
        })
    }

    /// What clients of this server do about an election at this instant.
    pub(crate) fn here(&self, election: &ElectionName) -> Here {
        let index = self.index();
        let all = index.of(election);
        let leads = |entry: &Arc<Entry>| match entry.state().state {
            State::Leading(leadership) if leadership.is_current() => Some(leadership.token()),
            _ => None,
        };
        Here { leads: all.iter().find_map(leads), stands: all.iter().any(|entry| !entry.is_over()) }
    }

    /// The elections that clients stand for or lead through this server; of those that are led,
    /// for how much longer that may be trusted.
    pub(crate) fn standing(&self) -> Vec<(ElectionName, Option<Duration>)> {
        let index = self.index();
        let all = index.live().filter(|entry| !entry.is_over());
        all.map(|entry| {
            let state = entry.state().state;
            let led = state.leadership().filter(|leadership| leadership.is_current());
            (entry.election.clone(), led.map(|leadership| leadership.remaining()))
        })
        .collect()
    }

    /// Begins a session: the client is a candidate from now on.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        election: ElectionName,
        asked: NewSession,
    ) -> Answer<Arc<Entry>> {
        let key = key()?;
        let id = match &asked.id {
            Some(id) => MemberId::new(id).map_err(tenure::Error::from)?,
            None => MemberId::new(format!("{}-{}", self.server.id(), &self::key()?[..8]))
                .map_err(tenure::Error::from)?,
        };
        // One session of a client after the other, so that they share a member.
        let mut members = self.members.lock().await;
        self.room()?;
        self.stands_not_yet(&election, &id)?;
        let member = match members.get_mut(&id) {
            Some(kept) => {
                asked.is_like(&kept.asked, &id)?;
                kept.sessions += 1;
                kept.member.clone()
            }
            None => {
                let member = self.join(&id, &asked).await?;
                let kept = Kept { asked: asked.clone(), member: member.clone(), sessions: 1 };
                members.insert(id.clone(), kept);
                member
            }
        };
        let settings = member.settings();
        let session = Session::new(member.now(), settings.ttl(), settings.drift_ppm());
        let entry = Arc::new(Entry {
            key,
            election,
            member,
            shared: Shared::new(session),
            ended: watch::Sender::new(None),
        });
        self.index().insert(entry.clone());
        drop(members);
        let run = carry(self.clone(), entry.clone(), asked.priority.unwrap_or(100));
        tokio::spawn(run);
        Ok(entry)
    }

    fn room(&self) -> Answer<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(tenure::Error::ShutDown.into());
        }
        let mut index = self.index();
        index.forget(self.server.now());
        if index.count() < self.most {
            return Ok(());
        }
        let what = format!("this server keeps {} sessions, the most that it may", self.most);
        let title = "there are too many sessions";
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", title, what)
            .remedy("raise --max-sessions, or begin it at another server")
            .retry_after(Duration::from_secs(5)))
    }

    /// A session whose client is silent stands, too, until its term is given back.
    fn stands_not_yet(&self, election: &ElectionName, id: &MemberId) -> Answer<()> {
        let index = self.index();
        let Some(other) = index.of_client(election, id) else { return Ok(()) };
        let now = other.member.now();
        let mut session = other.shared.lock();
        let from = match session.is_over(now) {
            true => session.release_from(),
            false => session.silent_at(),
        };
        let what = format!("{id} stands for {election} already, in another session");
        let title = "it stands already";
        Err(Problem::new(StatusCode::CONFLICT, "already_standing", title, what)
            .remedy("give each process an id of its own; a session that is silent ends by itself")
            .retry_after(from.since(now).max(Duration::from_secs(1))))
    }

    async fn join(&self, id: &MemberId, asked: &NewSession) -> Answer<Tenure> {
        if id == self.server.id() {
            let what = format!("{id} is the server's own id");
            let title = "the id is taken";
            let problem = Problem::new(StatusCode::CONFLICT, "already_standing", title, what);
            return Err(problem.remedy("give each process an id of its own"));
        }
        let timings = asked.timings(self.server.settings())?;
        let beside = self.server.member_in(self.server.namespace().as_str());
        let mut builder = beside.id(id.as_str()).settings(timings).metrics(self.measured.clone());
        for endpoint in &asked.endpoints {
            builder = builder.endpoint(endpoint);
        }
        Ok(builder.metadata(asked.metadata.as_bytes()).connect().await?)
    }

    /// Asks every client to stop, and returns when all have, or what they were granted is over.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let members: Vec<Tenure> =
            self.members.lock().await.values().map(|kept| kept.member.clone()).collect();
        let leaving = members.iter().map(Tenure::shutdown);
        futures_util::future::join_all(leaving).await;
    }

    /// The same, without waiting: the members go on by themselves.
    pub(crate) fn abandon(&self) {
        self.closed.store(true, Ordering::Release);
        for entry in self.index().live() {
            // The first poll tells the member's own loop.
            let _ = entry.member.shutdown().now_or_never();
        }
    }
}

/// Carries a session to its end, and gives its member up with the last of its sessions.
async fn carry(all: Arc<Sessions>, entry: Arc<Entry>, priority: u16) {
    let election = entry.election.as_str();
    let confirmed = task::run(&entry.shared, &entry.member, election, priority).await;
    let last = {
        let mut members = all.members.lock().await;
        let id = entry.member.id();
        let last = members.get_mut(id).is_some_and(|kept| {
            kept.sessions -= 1;
            kept.sessions == 0
        });
        if last {
            members.remove(id);
        }
        let until = entry.member.now() + entry.ttl();
        all.index().end(&entry, until, all.most);
        last
    };
    entry.ended.send_replace(Some(confirmed));
    if last {
        // A session that begins under this id meanwhile is another life: the store tells it
        // from this one.
        let _ = entry.member.shutdown().await;
    }
}
