//! What a store forgets when an older copy of it is put back, and what that excuses:
//! the writes that the copy did not have, and a forgotten leader that trusts itself
//! for the rest of its ttl. Nothing else: numbers rise across it.

use std::collections::HashSet;
use std::time::Duration;

use super::TrustSpan;
use crate::clock::{self, Nanos};

/// From one moment to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub from: Nanos,
    /// The last.
    pub to: Nanos,
}

/// An older copy of the store was put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rollback {
    /// From before the store was stopped for the copy until after it was made.
    pub copied: Span,
    /// Before the store was stopped to put it back.
    pub stopping: Nanos,
    /// After it had stopped.
    pub stopped: Nanos,
    /// After it answered again.
    pub up: Nanos,
}

impl Rollback {
    /// Whether a write that began at `from` and was answered at `at` must still be
    /// there: the copy had it, or it came after. One that was under way when the
    /// copy was made may be in it or not.
    pub(super) fn keeps(&self, from: Nanos, at: Nanos) -> bool {
        at < self.copied.from || from > self.up
    }

    /// Whether a write that began at `from` must be gone. One that had begun on a
    /// connection to the store before it was stopped cannot end after that.
    pub(super) fn forgets(&self, from: Nanos) -> bool {
        from > self.copied.to && from < self.stopping
    }

    /// Whether two may trust beside each other, as the guarantees say: the store has
    /// forgotten the first, who has heard nothing since it was stopped, and elected
    /// the second after that. No trust outlasts its ttl.
    pub(super) fn excuses(&self, first: Span, second: Span, ttl: Duration) -> bool {
        first.from < self.stopped
            && second.from >= self.stopped
            && first.to <= self.stopped + clock::nanos(ttl)
    }
}

/// The terms that were won after a copy was made and before it was put back. A
/// leader that was elected before the copy trusts for a ttl at the most until it
/// writes that down.
pub(super) fn terms(rollbacks: &[Rollback], spans: &[TrustSpan], ttl: Duration) -> HashSet<u64> {
    let ttl = clock::nanos(ttl);
    let forgotten = |span: &&TrustSpan| {
        let from = span.from;
        rollbacks.iter().any(|r| from > r.copied.to + ttl && from < r.stopping)
    };
    spans.iter().filter(forgotten).map(|span| span.term).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Evidence, Ledger, Row, Violation, Worker, check};
    use super::*;
    use crate::record::Line;

    const TTL: Duration = Duration::from_nanos(10);

    fn evidence(first: (u64, Nanos, Nanos), second: (u64, Nanos, Nanos)) -> Evidence {
        let log = |slot, (term, from, to): (u64, Nanos, Nanos)| {
            (Worker { slot, life: 1 }, vec![Line::Trust { term, from, to }])
        };
        let copied = Span { from: 100, to: 110 };
        Evidence {
            logs: vec![log(0, first), log(1, second)],
            ttl: TTL,
            rollbacks: vec![Rollback { copied, stopping: 198, stopped: 200, up: 205 }],
            ..Evidence::default()
        }
    }

    fn found(first: (u64, Nanos, Nanos), second: (u64, Nanos, Nanos)) -> (usize, usize) {
        let verdict = check(&evidence(first, second));
        (verdict.violations.len(), verdict.excused)
    }

    /// Promise 2 does not hold for the moment of a rollback, and for no other.
    #[test]
    fn a_forgotten_leader_is_excused_for_the_rest_of_its_trust() {
        assert_eq!(found((5, 150, 207), (6, 204, 300)), (0, 1));
        assert_eq!(found((5, 150, 211), (6, 204, 300)), (1, 0), "beyond its ttl");
        assert_eq!(found((5, 150, 199), (6, 195, 300)), (1, 0), "before the store stopped");
        assert_eq!(found((5, 201, 207), (6, 204, 300)), (1, 0), "both elected after it");
    }

    /// M6: nothing excuses a number that comes back.
    #[test]
    fn a_number_that_was_forgotten_and_is_given_again_is_found() {
        for term in [4, 5] {
            let verdict = check(&evidence((5, 150, 160), (term, 220, 300)));
            assert!(matches!(verdict.violations[..], [Violation::NotRising { .. }]));
        }
    }

    /// Promise 3: a forgotten term is refused by the fence.
    #[test]
    fn a_write_under_a_forgotten_term_is_found() {
        let mut evidence = evidence((5, 150, 160), (6, 220, 300));
        let row = Row { element: "x".into(), term: 5, value: 1 };
        evidence.logs[0].1.push(Line::Try { element: "x".into(), at: 206 });
        evidence.fenced = Ledger { counter: 1, rows: vec![row.clone()] };
        assert_eq!(check(&evidence).violations, [Violation::Forgotten(row)]);
        // One elected just before the copy was made is not forgotten.
        evidence.logs[0].1[0] = Line::Trust { term: 5, from: 115, to: 160 };
        assert_eq!(check(&evidence).violations, []);
    }
}
