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
//! - **W4** The client's beat is its proof of life. A client that is silent for the session's
//!   ttl is over for the server, which gives the term back only when the trust that it granted
//!   has ended.
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
//! - **A server whose death is proven.** A store that proves death by a lock of the host would
//!   end the server's members at once, while the client trusts on. A member that stands for
//!   clients must not be one whose death can be proven; then W5 holds by its ttl.
//! - **Drift.** The span is counted by the client's clock, and was reckoned by the server's. With
//!   both wrong by the bound in opposite directions the sum is still no more than what one slow
//!   holder may trust (rule T1), since the span ends with the member's own trust. The server
//!   waits by its own, perhaps fast, clock for a client whose clock may be slow: the span is
//!   widened twice.

use core::time::Duration;

use crate::{Mono, TermNumber, widened};

/// The server's half of a session: when the client was heard, and what it was granted.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::{Mono, Session};
///
/// let at = Mono::from_millis;
/// let mut session = Session::new(at(0), Duration::from_secs(10), 1_000);
/// assert!(session.heard(at(1_000)));
/// // The member trusts until 9,000: the client may trust for eight seconds.
/// assert_eq!(session.grant(at(1_000), at(9_000)), Duration::from_secs(8));
/// assert_eq!(session.silent_at(), at(11_000));
/// assert!(!session.heard(at(11_000)), "it was silent for ten seconds");
/// assert_eq!(session.grant(at(11_000), at(19_000)), Duration::ZERO);
/// // The term may be given back now: what was granted has ended.
/// assert!(session.release_from() <= at(11_000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    ttl: Duration,
    drift_ppm: u32,
    heard: Mono,
    granted_until: Mono,
    over: bool,
}

impl Session {
    /// A session that begins with a request that arrived at `now`.
    #[must_use]
    pub fn new(now: Mono, ttl: Duration, drift_ppm: u32) -> Self {
        Self { ttl, drift_ppm, heard: now, granted_until: Mono::ZERO, over: false }
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

    /// For how long an answer that is given at `now` lets the client trust a term that the
    /// member trusts until `trusted_until`. Nothing once the session is over (W4).
    #[must_use]
    pub fn grant(&mut self, now: Mono, trusted_until: Mono) -> Duration {
        if self.is_over(now) {
            return Duration::ZERO;
        }
        let span = trusted_until.since(now).min(self.ttl);
        if !span.is_zero() {
            let waited = widened(widened(span, self.drift_ppm), self.drift_ppm);
            self.granted_until = self.granted_until.max(now + waited);
        }
        span
    }

    /// When the session is over, unless a beat arrives.
    #[must_use]
    pub fn silent_at(&self) -> Mono {
        self.heard + self.ttl
    }

    /// Whether the session is over; for ever, once it is.
    #[must_use]
    pub fn is_over(&mut self, now: Mono) -> bool {
        self.over |= now >= self.silent_at();
        self.over
    }

    /// The session is over before its time: the server ends it, or was told that the client is
    /// gone. Nothing is granted any more.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// From when on the client trusts nothing that it was granted: the term may be given back
    /// then without its word.
    #[must_use]
    pub fn release_from(&self) -> Mono {
        self.granted_until
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn at(millis: u64) -> Mono {
        Mono::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// W1: a slow answer does not stretch trust, and no answer grants more than the ttl.
    #[test]
    fn trust_is_counted_from_before_the_request() {
        let mut trust = SessionTrust::new(TTL);
        trust.leads(at(1_000), TermNumber::new(3), ms(2_000));
        assert!(trust.is_current(at(2_999)) && !trust.is_current(at(3_000)));
        trust.leads(at(2_000), TermNumber::new(3), ms(60_000));
        assert!(trust.is_current(at(11_999)) && !trust.is_current(at(12_000)));
    }

    /// W2: a word that the term is over counts at once, and an older answer that arrives after
    /// it gives nothing back.
    #[test]
    fn what_was_lost_stays_lost() {
        let mut trust = SessionTrust::new(TTL);
        trust.leads(at(1_000), TermNumber::new(3), ms(9_000));
        trust.lost(at(1_500));
        assert!(!trust.is_current(at(1_500)));
        trust.leads(at(1_400), TermNumber::new(3), ms(9_000));
        trust.leads(at(1_600), TermNumber::new(4), ms(9_000));
        assert!(!trust.is_current(at(1_600)), "a session has one term");
    }

    /// An answer that overtakes another is not undone by the one that it overtook.
    #[test]
    fn answers_are_ordered_by_when_they_were_asked_for() {
        let mut trust = SessionTrust::new(TTL);
        trust.leads(at(2_000), TermNumber::new(3), ms(5_000));
        trust.leads(at(1_000), TermNumber::new(3), ms(5_000));
        assert_eq!(trust.until(), at(7_000));
        // Before the first term, a word that nothing is led ends nothing.
        let mut waiting = SessionTrust::new(TTL);
        waiting.lost(at(500));
        waiting.leads(at(600), TermNumber::new(1), ms(1_000));
        assert!(waiting.is_current(at(700)));
    }

    /// W4: the release waits for the longest grant, widened for both clocks.
    #[test]
    fn a_silent_client_is_waited_for() {
        let mut session = Session::new(at(0), TTL, 1_000);
        assert_eq!(session.release_from(), Mono::ZERO, "nothing was granted");
        assert!(session.heard(at(2_000)));
        assert_eq!(session.grant(at(4_000), at(12_000)), ms(8_000));
        assert_eq!(session.grant(at(4_500), at(12_000)), ms(7_500));
        assert!(session.release_from() >= at(12_016));
        assert!(!session.is_over(at(11_999)));
        assert!(session.is_over(at(12_000)));
        assert!(!session.heard(at(11_000)), "a late beat brings nothing back");
        assert_eq!(session.grant(at(12_000), at(20_000)), Duration::ZERO);
    }

    /// A session that was ended grants nothing, however young it is.
    #[test]
    fn an_ended_session_grants_nothing() {
        let mut session = Session::new(at(0), TTL, 1_000);
        session.end();
        assert!(!session.heard(at(1)));
        assert_eq!(session.grant(at(1), at(9_000)), Duration::ZERO);
    }
}
