//! One session, from the campaign to the release.
//!
//! What is granted, and when the term may be given back, is decided in [`tenure::session`]; this
//! carries it out. Whatever changes a session does so under its lock and then rings the bell;
//! the task asks [`Session::next`] again each time.
//!
//! # Interleavings
//!
//! - **The client dies while it leads.** No beat for the ttl: the session is over, nothing is
//!   granted any more, the term is renewed until what was granted has ended, then released (W4).
//! - **A beat on its way when the silence is noticed.** Both take the session's lock: either the
//!   beat comes first and the session lives, or it is answered *lost*.
//! - **The member loses the term**: its trust has ended, its drain is over, the store was rolled
//!   back. The state is *lost*, which wakes the waiting beat. The hold on the term is kept until
//!   the client says that it has stopped, or until what it was granted has ended; the member's
//!   settings make it wait for that.
//! - **The client says that it has stopped** (`resign`). It has ended its trust before it sent
//!   that, so that the term is released at once.
//! - **An operator asks for a step-down.** The state is *stopping*, the beat returns, the client
//!   drains and resigns. The drain bounds it, and what is granted meanwhile ends with it.
//! - **The server stops.** Its members are shut down: as a step-down of every session, within
//!   the drain.
//! - **The task is dropped**, with its runtime or by a panic. Nothing says that the client has
//!   stopped: the hold is not let go, and the member is told to shut down. So it drains, says
//!   *lost*, and waits as it does for a client that does not answer.
//! - **The server dies.** No member renews: the client's trust runs out before the member's ttl
//!   (W5). The server's members are never proven dead.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::session::{Next, Session};
use tenure::{Leadership, Mono, Stopping, Tenure};
use tokio::sync::{Notify, watch};

use crate::kept::Kept;

/// Where a session stands.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// It stands and does not lead.
    Waiting,
    /// It leads.
    Leading(Leadership),
    /// It leads, and is asked to stop.
    Stopping { leadership: Leadership, reason: String, drain_until: Mono },
    /// Its term is over, or it is.
    Over { term: Option<u64>, reason: String },
}

impl State {
    /// The term that is led.
    pub(crate) fn leadership(&self) -> Option<&Leadership> {
        match self {
            State::Leading(leadership) | State::Stopping { leadership, .. } => Some(leadership),
            State::Waiting | State::Over { .. } => None,
        }
    }
}

/// A state, and how many came before it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) seen: u64,
    pub(crate) state: State,
}

/// What a request and the task of a session share.
#[derive(Debug)]
pub(crate) struct Shared {
    session: Mutex<Session>,
    view: watch::Sender<View>,
    /// Something was done to the session that its task must see.
    bell: Notify,
}

const SILENT: &str = "the client was silent for the session's ttl";

impl Shared {
    pub(crate) fn new(session: Session) -> Self {
        let (view, _) = watch::channel(View { seen: 1, state: State::Waiting });
        Self { session: Mutex::new(session), view, bell: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn view(&self) -> View {
        self.view.borrow().clone()
    }

    /// A beat arrived: proof of life, unless it came too late.
    pub(crate) fn heard(&self, now: Mono) {
        if !self.lock().heard(now) {
            self.enter_over(SILENT);
        }
    }

    /// The state once it is another than the client has seen, or after `wait`.
    pub(crate) async fn news(&self, seen: u64, wait: Duration) -> View {
        let mut view = self.view.subscribe();
        let changed = view.wait_for(|view| view.seen != seen);
        // The sender lives as long as we do.
        if let Ok(Ok(view)) = tokio::time::timeout(wait, changed).await {
            return view.clone();
        }
        self.view()
    }

    /// The client has stopped, and trusts nothing any more.
    pub(crate) fn resign(&self) {
        self.lock().stopped();
        self.enter_over("the client resigned");
        self.bell.notify_one();
    }

    /// The client leads from now on, unless the session is over.
    fn won(&self, leadership: &Leadership) {
        self.lock().won();
        let leadership = leadership.clone();
        self.enter(|state| matches!(state, State::Waiting).then_some(State::Leading(leadership)));
    }

    fn asked_to_stop(&self, reason: String, drain_until: Mono) {
        self.lock().asked_to_stop(drain_until);
        self.enter(|state| {
            let leadership = state.leadership()?.clone();
            Some(State::Stopping { leadership, reason, drain_until })
        });
    }

    /// The session is over, for this reason unless it was over before.
    fn over(&self, reason: &str) {
        self.lock().end();
        self.enter_over(reason);
        self.bell.notify_one();
    }

    fn enter_over(&self, reason: &str) {
        self.enter(|state| match state {
            State::Over { .. } => None,
            _ => {
                let term = state.leadership().map(Leadership::token);
                Some(State::Over { term, reason: reason.to_owned() })
            }
        });
    }

    fn enter(&self, next: impl FnOnce(&State) -> Option<State>) {
        self.view.send_if_modified(|view| {
            let Some(state) = next(&view.state) else { return false };
            view.seen += 1;
            view.state = state;
            true
        });
    }
}

/// Runs a session to its end, and gives the member's term back. Whether the store has confirmed
/// that, if there was one.
pub(crate) async fn run(shared: &Shared, member: &Tenure, election: &str, priority: u16) -> bool {
    let standing = member.election(election).priority(priority);
    let won = tokio::select! {
        won = standing.campaign() => won,
        () = let_go(shared, member) => return true,
    };
    let leadership = match won {
        Ok(leadership) => leadership,
        Err(error) => {
            shared.over(&error.to_string());
            return true;
        }
    };
    let kept = Kept::new(leadership.clone(), member);
    shared.won(&leadership);
    tokio::select! {
        () = tell(shared, leadership) => {}
        () = let_go(shared, member) => {}
    }
    kept.release().await
}

/// Tells the client when it is asked to stop and when the term is lost. Never returns: what
/// becomes of the term then is not decided here.
async fn tell(shared: &Shared, leadership: Leadership) {
    if let Stopping::Asked { reason, drain_until, .. } = leadership.stopping().await {
        shared.asked_to_stop(reason.to_string(), drain_until);
    }
    let lost = leadership.lost().await;
    shared.over(&lost.to_string());
    std::future::pending().await
}

/// Returns when the client trusts nothing any more: it has stopped, or was silent and what it was
/// granted has ended.
async fn let_go(shared: &Shared, member: &Tenure) {
    loop {
        // Rung between the question and the wait, the bell is heard all the same.
        let rung = shared.bell.notified();
        let (next, over) = {
            let mut session = shared.lock();
            let now = member.now();
            (session.next(now), session.is_over(now))
        };
        if over {
            shared.enter_over(SILENT);
        }
        let Next::Wait(at) = next else { return };
        tokio::select! {
            () = rung => {}
            // Our own runtime's timer: the member's may have ended.
            () = tokio::time::sleep(member.until(at)) => {}
        }
    }
}
