//! A campaign of a process that talks to a member through a server.
//!
//! The application is another process than the member: its trust is not the member's, and it
//! is counted twice. The server's half is [`Session`], the client's is [`SessionTrust`]. Time
//! is an argument of both; what travels between them is a span, never a moment.
//!
//! - **W1** An answer says for how much longer the term may be trusted. The client trusts until
//!   *its own clock before it sent the request* plus that span, and no longer than the
//!   session's ttl.
//! - **W2** An event never extends trust. It may end it.
//! - **W3** On one host an answer also carries the moment at which trust ends, of the clock that
//!   both have: exact, also after a suspend.
//! - **W4** The client's beat is its proof of life. A client that is silent for the session's
//!   ttl is over for the server. A term is given back when the client says that it has stopped,
//!   or when everything that it was granted has ended, **however the term ended for the
//!   member**.
//! - **W5** When the server dies, the client's trust runs out by itself, before the member's
//!   ttl does.
//!
//! # Interleavings
//!
//! - **A slow answer.** The server grants at 10, the answer arrives at 14. The client had sent
//!   at 9: it counts from there, so that its trust ends before the server's.
//! - **A server that pauses between the grant and the answer.** To the client that is a slow
//!   answer.
//! - **A client that pauses.** Its clock counts on, its trust runs out. The server hears no
//!   beat, waits until the trust that it granted has ended, and releases.
//! - **Two beats at once.** The client gave the first one up and sent another. The server grants
//!   both, and remembers the later end. The client counts each from its own sending, and an
//!   answer to an older beat never takes trust back that a newer one gave, nor gives trust
//!   after a newer one said that the term is over: answers are ordered by when they were sent.
//! - **A beat that arrives after the silence was noticed.** The session is over: the answer
//!   says so, and grants nothing, although the term may still be held.
//! - **A beat just before the drain is over.** The member trusts for seconds more, and yet it
//!   gives the term up when the drain ends. So what is granted while stopping ends with the
//!   drain, and what was granted *before* the client was asked to stop is waited for.
//! - **The member loses the term while it trusts it**: the drain is over, or the store was
//!   rolled back. The member would give the term back after its margin; the client is told
//!   with its next beat, or not at all. So a member that stands for clients keeps a lost term
//!   for as long as a grant may last, unless it hears sooner that the work has stopped
//!   ([`SettingsBuilder::trusted_elsewhere`](crate::SettingsBuilder::trusted_elsewhere)); and
//!   the session says that ([`Next::LetGo`]) when all that was granted has ended.
//! - **A grant between the loss and the word of it.** The member has lost the term, the session
//!   has not yet been told, a beat is granted what the member trusted. That is no longer than
//!   the member's trust at the loss, for which the member waits; and the session, told of the
//!   loss, waits for that grant too.
//! - **The client resigns while it waits for a beat's answer.** It has ended its trust for good
//!   before it sent that: a session has one term.
//! - **A server whose death is proven.** A store that proves death by a lock of the host would
//!   end the server's members at once, while the client trusts on. A member that stands for
//!   clients must not be one whose death can be proven; then W5 holds by its ttl.
//! - **A server that is torn down without a word.** The hold on the term is not let go by that:
//!   the member drains, says *lost*, and waits as above, or its ttl runs out.
//! - **Drift.** The span is counted by the client's clock, and was reckoned by the server's. With
//!   both wrong by the bound in opposite directions the sum is still no more than what one slow
//!   holder may trust (rule T1), since the span ends with the member's own trust. The server
//!   waits by its own, perhaps fast, clock for a client whose clock may be slow
//!   ([`Grants::waited`]).

mod grants;
#[cfg(test)]
mod tests;
mod trust;

use core::time::Duration;

pub use grants::Grants;
pub use trust::SessionTrust;

use crate::Mono;

/// The server's half of a session: when the client was heard, what it was granted, and when its
/// term may be given back.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::{Mono, Next, Session};
///
/// let at = Mono::from_millis;
/// let mut session = Session::new(at(0), Duration::from_secs(10), 1_000);
/// session.won();
/// assert!(session.heard(at(1_000)));
/// // The member trusts until 9,000: the client may trust for eight seconds.
/// assert_eq!(session.grant(at(1_000), at(9_000)), Duration::from_secs(8));
/// assert_eq!(session.next(at(1_000)), Next::Wait(at(11_000)));
/// assert!(!session.heard(at(11_000)), "it was silent for ten seconds");
/// assert_eq!(session.grant(at(11_000), at(19_000)), Duration::ZERO);
/// // The term may be given back now: what was granted has ended.
/// assert_eq!(session.next(at(11_000)), Next::LetGo);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    ttl: Duration,
    heard: Mono,
    grants: Grants,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Waiting,
    Leading,
    Stopping {
        drain_until: Mono,
    },
    /// Nothing is granted any more.
    Over,
    /// And the client said that it trusts nothing.
    Stopped,
}

/// What the server is to do about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// Nothing before this moment, unless something is said.
    Wait(Mono),
    /// Give the term back, or stop standing: the client trusts nothing.
    LetGo,
}

impl Session {
    /// A session that begins with a request that arrived at `now`. Clocks may be wrong by
    /// `drift_ppm` millionths.
    #[must_use]
    pub fn new(now: Mono, ttl: Duration, drift_ppm: u32) -> Self {
        Self { ttl, heard: now, grants: Grants::new(drift_ppm), stage: Stage::Waiting }
    }

    /// How long the client may be silent.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// A beat arrived. `false` if the session is over: the client was silent for too long.
    #[must_use]
    pub fn heard(&mut self, now: Mono) -> bool {
        if self.is_over(now) {
            return false;
        }
        self.heard = self.heard.max(now);
        true
    }

    /// The member leads for the client from now on.
    pub fn won(&mut self) {
        if self.stage == Stage::Waiting {
            self.stage = Stage::Leading;
        }
    }

    /// The client is asked to stop. It may take until `drain_until`, when the member gives the
    /// term up.
    pub fn asked_to_stop(&mut self, drain_until: Mono) {
        if matches!(self.stage, Stage::Leading | Stage::Stopping { .. }) {
            self.stage = Stage::Stopping { drain_until };
        }
    }

    /// The session is over before its time: the member has lost the term, or the server ends
    /// the session. Nothing is granted any more.
    pub fn end(&mut self) {
        if self.stage != Stage::Stopped {
            self.stage = Stage::Over;
        }
    }

    /// The client says that it has stopped, and trusts nothing any more.
    pub fn stopped(&mut self) {
        self.stage = Stage::Stopped;
    }

    /// For how long an answer that is given at `now` lets the client trust a term that the
    /// member trusts until `trusted_until`. Nothing once the session is over (W4), and no longer
    /// than the drain.
    #[must_use]
    pub fn grant(&mut self, now: Mono, trusted_until: Mono) -> Duration {
        if self.is_over(now) {
            return Duration::ZERO;
        }
        let until = match self.stage {
            Stage::Leading => trusted_until,
            Stage::Stopping { drain_until } => trusted_until.min(drain_until),
            _ => return Duration::ZERO,
        };
        self.grants.give(now, until.since(now).min(self.ttl))
    }

    /// When the session is over, unless a beat arrives.
    #[must_use]
    pub fn silent_at(&self) -> Mono {
        self.heard + self.ttl
    }

    /// Whether the session is over; for ever, once it is.
    #[must_use]
    pub fn is_over(&mut self, now: Mono) -> bool {
        if !matches!(self.stage, Stage::Over | Stage::Stopped) && now >= self.silent_at() {
            self.stage = Stage::Over;
        }
        matches!(self.stage, Stage::Over | Stage::Stopped)
    }

    /// From when on the client trusts nothing that it was granted: the term may be given back
    /// then without its word.
    #[must_use]
    pub fn release_from(&self) -> Mono {
        match self.stage {
            Stage::Stopped => Mono::ZERO,
            _ => self.grants.over_at(),
        }
    }

    /// What is to be done at `now`. Ask again at the moment that it names, and after each call
    /// of another method.
    #[must_use]
    pub fn next(&mut self, now: Mono) -> Next {
        if !self.is_over(now) {
            return Next::Wait(self.silent_at());
        }
        let from = self.release_from();
        if now >= from { Next::LetGo } else { Next::Wait(from) }
    }
}
