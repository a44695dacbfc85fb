//! One session, from the campaign to the release.
//!
//! # Interleavings
//!
//! - **The client dies while it leads.** No beat for the ttl: the session is over, nothing is
//!   granted any more, the term is renewed until what was granted has ended, then released (W4).
//! - **A beat on its way when the silence is noticed.** Both take the session's lock: either the
//!   beat comes first and the session lives, or it is answered *lost*.
//! - **The member loses the term.** The client's trust has ended by itself, since it was granted
//!   no more than the member had (W1). The state is *lost*, which wakes the waiting beat.
//! - **The client says that it has stopped** (`resign`). It has ended its trust before it sent
//!   that, so that the term is released at once.
//! - **An operator asks for a step-down.** The state is *stopping*, the beat returns, the client
//!   drains and resigns. The drain bounds it: after that the member gives the term up, *lost* is
//!   told, and the client's grant ends with the member's trust.
//! - **The server stops.** Its members are shut down: as a step-down of every session, within
//!   the drain.
//! - **The server dies.** Nobody renews: the client's trust runs out before the member's ttl
//!   (W5). The server's members are never proven dead.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::session::Session;
use tenure::{Leadership, LostReason, Mono, Stopping, Tenure};
use tokio::sync::{Notify, watch};

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
    /// The client said that it has stopped.
    resigned: Notify,
}

impl Shared {
    pub(crate) fn new(session: Session) -> Self {
        let (view, _) = watch::channel(View { seen: 1, state: State::Waiting });
        Self { session: Mutex::new(session), view, resigned: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn view(&self) -> View {
        self.view.borrow().clone()
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
        self.resigned.notify_one();
    }

    fn enter(&self, state: State) {
        self.view.send_modify(|view| {
            view.seen += 1;
            view.state = state;
        });
    }

    fn over(&self, term: Option<u64>, reason: impl Into<String>) {
        self.lock().end();
        self.enter(State::Over { term, reason: reason.into() });
    }
}

/// Why a session stopped waiting for what it waited for.
enum Cut {
    /// The client was silent for its ttl.
    Silent,
    /// The client said that it has stopped.
    Resigned,
}

/// Runs a session to its end, and gives the member's term back.
pub(crate) async fn run(shared: &Shared, member: &Tenure, election: &str, priority: u16) {
    let standing = member.election(election).priority(priority);
    let won = tokio::select! {
        won = standing.campaign() => won,
        cut = cut(shared, member) => {
            return shared.over(None, cut.reason());
        }
    };
    let leadership = match won {
        Ok(leadership) => leadership,
        Err(error) => return shared.over(None, error.to_string()),
    };
    shared.enter(State::Leading(leadership.clone()));
    let term = Some(leadership.token());
    let ended = tokio::select! {
        lost = lead(shared, &leadership) => Err(lost),
        cut = cut(shared, member) => Ok(cut),
    };
    match ended {
        Err(lost) => shared.over(term, lost.to_string()),
        Ok(cut) => {
            shared.over(term, cut.reason());
            if let Cut::Silent = cut {
                let until = shared.lock().release_from();
                tokio::select! {
                    () = member.sleep_until(until) => {}
                    _ = leadership.lost() => return,
                }
            }
            // What the store has not confirmed is repeated in the background.
            let _ = leadership.resign().await;
        }
    }
}

/// Tells the client when it is asked to stop; returns when the term is lost.
async fn lead(shared: &Shared, leadership: &Leadership) -> LostReason {
    if let Stopping::Asked { reason, drain_until, .. } = leadership.stopping().await {
        let leadership = leadership.clone();
        shared.enter(State::Stopping { leadership, reason: reason.to_string(), drain_until });
    }
    leadership.lost().await
}

/// Returns when the client was silent for too long, or has stopped.
async fn cut(shared: &Shared, member: &Tenure) -> Cut {
    loop {
        let silent_at = shared.lock().silent_at();
        tokio::select! {
            () = shared.resigned.notified() => return Cut::Resigned,
            () = member.sleep_until(silent_at) => {}
        }
        if shared.lock().is_over(member.now()) {
            return Cut::Silent;
        }
    }
}

impl Cut {
    fn reason(&self) -> &'static str {
        match self {
            Cut::Silent => "the client was silent for the session's ttl",
            Cut::Resigned => "the client resigned",
        }
    }
}
