//! A session, as requests see it.

use std::time::Duration;

use tenure::{ElectionName, Mono, Tenure};
use tokio::sync::watch;

use super::task::{Shared, State, View};

/// A session that can be asked for its state.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) election: ElectionName,
    pub(crate) member: Tenure,
    pub(super) shared: Shared,
    /// Set when the term was given back: whether the store has confirmed it.
    pub(super) ended: watch::Sender<Option<bool>>,
}

impl Entry {
    /// A beat: proof of life, then news, or the state after `wait`.
    pub(crate) async fn beat(&self, seen: u64, wait: Duration) -> View {
        self.shared.heard(self.member.now());
        let view = self.shared.view();
        if seen != view.seen || wait.is_zero() {
            return view;
        }
        // An answer that comes late leaves little of the trust that it grants.
        let most = match view.state.leadership() {
            Some(leadership) => (self.ttl() / 4).min(leadership.remaining() / 4),
            None => self.ttl() / 2,
        };
        drop(view);
        self.shared.news(seen, wait.min(most)).await
    }

    /// How much longer the client may trust in its term, and until which moment of this
    /// machine's boot-time clock (W1, W3). Nothing if the session is over.
    pub(crate) fn grant(&self, view: &View) -> (Duration, Option<Mono>) {
        let Some(leadership) = view.state.leadership() else { return (Duration::ZERO, None) };
        let until = leadership.trusted_until();
        let mut session = self.shared.lock();
        let now = self.member.now();
        let span = session.grant(now, until);
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

    /// Why a client that waits does so, if something is in the way.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let status = self.member.status();
        let held_up = status.held_up.iter().find(|(election, _)| *election == self.election);
        let failing = || status.last_error.clone().filter(|_| status.failures > 0);
        status.conflict.clone().or_else(failing).or_else(|| held_up.map(|(_, why)| why.to_string()))
    }

    /// Returns when the session is over and its term is given back, and whether the store has
    /// confirmed that.
    pub(crate) async fn given_back(&self) -> bool {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as we do.
        let confirmed = ended.wait_for(Option::is_some).await;
        confirmed.is_ok_and(|confirmed| *confirmed == Some(true))
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.shared.view().state, State::Over { .. })
    }
}
