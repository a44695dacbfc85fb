//! Intervals of trust: those of different workers have no moment in common, and
//! a later one has a higher term.

use std::time::Duration;

use super::{Rollback, Span, TrustSpan, Violation, Worker};
use crate::record::Line;

/// The spans in all logs, in the order in which they began.
pub(super) fn spans(logs: &[(Worker, Vec<Line>)]) -> Vec<TrustSpan> {
    let mut spans: Vec<TrustSpan> = Vec::new();
    for (worker, lines) in logs {
        let own = spans.len();
        for line in lines {
            let Line::Trust { term, from, to } = *line else { continue };
            // A worker says again and again how long it has trusted so far.
            match spans[own..].iter_mut().find(|span| span.term == term) {
                Some(span) => {
                    span.from = span.from.min(from);
                    span.to = span.to.max(to);
                }
                None => spans.push(TrustSpan { worker: *worker, term, from, to }),
            }
        }
    }
    spans.sort_by_key(|span| (span.from, span.term));
    spans
}

/// What must not be, and how many overlaps are excused by an older copy of the store
/// that was put back. `spans` is in the order in which they began.
pub(super) fn check(
    spans: &[TrustSpan],
    rollbacks: &[Rollback],
    ttl: Duration,
) -> (Vec<Violation>, usize) {
    let mut found = Vec::new();
    let mut excused = 0;
    for (at, second) in spans.iter().enumerate() {
        let before = &spans[..at];
        // Both ends are moments of trust, so meeting in one is too much.
        let others = before.iter().filter(|first| first.worker != second.worker);
        let beside = others.filter(|first| first.to >= second.from);
        let is_excused = |first: &&TrustSpan| {
            rollbacks.iter().any(|r| r.excuses(span(first), span(second), ttl))
        };
        let (excusable, broken): (Vec<_>, Vec<_>) = beside.partition(is_excused);
        excused += excusable.len();
        if let Some(first) = broken.into_iter().max_by_key(|first| first.to) {
            let first: &TrustSpan = first;
            let first = first.clone();
            let second = second.clone();
            found.push(Violation::Overlap { first, second });
        }
        if let Some(earlier) =
            before.iter().max_by_key(|r| r.term).filter(|r| r.term >= second.term)
        {
            let earlier = earlier.clone();
            let later = second.clone();
            found.push(Violation::NotRising { earlier, later });
        }
    }
    (found, excused)
}

fn span(trust: &TrustSpan) -> Span {
    Span { from: trust.from, to: trust.to }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(slot: usize, trusts: &[(u64, u64, u64)]) -> (Worker, Vec<Line>) {
        let lines = trusts.iter().map(|&(term, from, to)| Line::Trust { term, from, to });
        (Worker { slot, life: 1 }, lines.collect())
    }

    fn found(logs: &[(Worker, Vec<Line>)]) -> Vec<String> {
        let (found, excused) = check(&spans(logs), &[], Duration::ZERO);
        assert_eq!(excused, 0);
        found.iter().map(Violation::to_string).collect()
    }

    /// One after the other, however close.
    #[test]
    fn reigns_that_follow_each_other_are_fine() {
        let logs = [log(0, &[(1, 10, 12), (1, 10, 20), (3, 31, 40)]), log(1, &[(2, 21, 30)])];
        assert_eq!(found(&logs), [""; 0]);
        assert_eq!(spans(&logs).len(), 3, "lines of one term are one span");
    }

    /// Promise 2: one moment in common is too much, wherever it lies.
    #[test]
    fn two_who_trust_at_once_are_found() {
        for (from, to) in [(20, 30), (15, 16), (10, 20), (11, 40)] {
            let logs = [log(0, &[(1, 10, 20)]), log(1, &[(2, from, to)])];
            let found = found(&logs);
            assert!(found.iter().any(|v| v.starts_with("overlap")), "{from}..{to}: {found:?}");
        }
    }

    /// A short span between does not hide one that began earlier and lasts.
    #[test]
    fn an_overlap_with_a_long_gone_beginning_is_found() {
        let logs = [log(0, &[(1, 10, 100)]), log(1, &[(2, 20, 21)]), log(2, &[(3, 50, 60)])];
        assert_eq!(found(&logs).len(), 2, "both met the first");
    }

    /// Another life of the same place is another process.
    #[test]
    fn two_lives_of_one_place_may_not_overlap_either() {
        let mut second = log(0, &[(2, 15, 30)]);
        second.0.life = 2;
        assert_eq!(found(&[log(0, &[(1, 10, 20)]), second]).len(), 1);
    }

    /// Promise 1: a number that stays or goes back.
    #[test]
    fn terms_that_do_not_rise_are_found() {
        for later in [4, 5] {
            let found = found(&[log(0, &[(5, 10, 20)]), log(1, &[(later, 30, 40)])]);
            assert!(found.len() == 1 && found[0].starts_with("terms do not rise"), "{found:?}");
        }
    }
}
