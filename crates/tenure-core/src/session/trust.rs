//! The client's half of a session.

use core::time::Duration;

use crate::{Mono, TermNumber};

/// The client's half of a session: until when it may trust its term, by its own clock.
///
/// Clients in other languages follow this type line by line.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::{Mono, SessionTrust, TermNumber};
///
/// let at = Mono::from_millis;
/// let mut trust = SessionTrust::new(Duration::from_secs(10));
/// // Sent at 1,000, answered at 3,000: "you lead with term 7, for eight seconds more".
/// trust.leads(at(1_000), TermNumber::new(7), Duration::from_secs(8));
/// assert!(trust.is_current(at(8_999)));
/// assert!(!trust.is_current(at(9_000)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionTrust {
    ttl: Duration,
    term: TermNumber,
    until: Mono,
    /// When the newest beat was sent whose answer was heeded, or the newest word that the term
    /// is over was received.
    newest: Mono,
    lost: bool,
}

impl SessionTrust {
    /// Of a session of this ttl, before any answer.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self { ttl, term: TermNumber::NONE, until: Mono::ZERO, newest: Mono::ZERO, lost: false }
    }

    /// The answer to the beat that was sent at `sent` says that the client leads for
    /// `remaining`. An answer to an older beat than one that was heeded, or of an older term,
    /// changes nothing; so does one after the term was lost, since a session has one term.
    pub fn leads(&mut self, sent: Mono, term: TermNumber, remaining: Duration) {
        if self.lost || sent < self.newest || term < self.term {
            return;
        }
        self.newest = sent;
        self.term = term;
        self.until = self.until.max(sent + remaining.min(self.ttl));
    }

    /// The answer to a beat says that the term is over or was never won, or an event does (W2).
    pub fn lost(&mut self, received: Mono) {
        self.newest = self.newest.max(received);
        self.lost |= self.term != TermNumber::NONE;
        self.until = Mono::ZERO;
    }

    /// Whether the client leads at this instant.
    #[must_use]
    pub fn is_current(&self, now: Mono) -> bool {
        !self.lost && now < self.until
    }

    /// The term that was granted last; [`TermNumber::NONE`] before the first.
    #[must_use]
    pub fn term(&self) -> TermNumber {
        self.term
    }

    /// Until when the term may be trusted; [`Mono::ZERO`] if it may not.
    #[must_use]
    pub fn until(&self) -> Mono {
        self.until
    }
}
