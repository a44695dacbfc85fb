//! Past terms, as `tenure history` answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Cause, Moment, millis};

/// So many terms that begin within such a time are worth a word.
const TOO_MANY: (usize, Duration) = (5, Duration::from_secs(600));

/// A term, with its end if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastTerm {
    /// Its number.
    pub term: u64,
    /// The member that led.
    pub member: String,
    /// Which life of the member.
    pub incarnation: String,
    /// When it began, by the store's clock.
    pub from: Moment,
    /// When it ended; `null` while it stands, and if that is not written down.
    pub to: Option<Moment>,
    /// From its beginning to its end.
    pub lasted_ms: Option<u64>,
    /// Why it ended.
    pub ended: Option<Cause>,
    /// Whether it stands.
    pub stands: bool,
    /// While it stands: what is left of the leader's ttl.
    pub remaining_ms: Option<u64>,
    /// Where its beginning stands in the journal.
    pub seq: u64,
}

/// Too many terms in too short a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flapping {
    /// How many terms began.
    pub terms: usize,
    /// Within what time.
    pub within_ms: u64,
}

/// The terms of one election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectionHistory {
    /// The election.
    pub election: String,
    /// Its newest terms, oldest first.
    pub terms: Vec<PastTerm>,
    /// Set if its leadership flaps.
    pub flapping: Option<Flapping>,
}

/// The answer of `tenure history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The namespace.
    pub namespace: String,
    /// Its elections.
    pub elections: Vec<ElectionHistory>,
}

impl Flapping {
    /// The most terms that began within ten minutes, if they are too many. `starts` are
    /// milliseconds of one clock, in order.
    ///
    /// ```
    /// let minute = 60_000;
    /// let calm: Vec<u64> = (0..9).map(|n| n * 3 * minute).collect();
    /// assert_eq!(tenure_api::Flapping::of(&calm), None);
    /// let burst = [0, 100, 101, 102, 103, 104].map(|n| n * minute);
    /// let flapping = tenure_api::Flapping::of(&burst).unwrap();
    /// assert_eq!((flapping.terms, flapping.within_ms), (5, 4 * minute));
    /// ```
    #[must_use]
    pub fn of(starts: &[u64]) -> Option<Self> {
        let window = millis(TOO_MANY.1);
        let counts = starts.iter().enumerate().map(|(at, first)| {
            let within = starts[at..].iter().take_while(|s| s.saturating_sub(*first) <= window);
            let last = within.clone().last().copied().unwrap_or(*first);
            Self { terms: within.count(), within_ms: last.saturating_sub(*first) }
        });
        counts.max_by_key(|found| found.terms).filter(|found| found.terms >= TOO_MANY.0)
    }
}
