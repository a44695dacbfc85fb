//! Intervals of trust: those of different workers have no moment in common, and
//! a later one has a higher term.

use std::time::Duration;

use super::{Reign, Rollback, Violation, Worker};
use crate::record::Line;

/// The reigns in all logs, in the order in which they began.
pub(super) fn reigns(logs: &[(Worker, Vec<Line>)]) -> Vec<Reign> {
    let mut reigns: Vec<Reign> = Vec::new();
    for (worker, lines) in logs {
        let own = reigns.len();
        for line in lines {
            let Line::Trust { term, from, to } = *line else { continue };
            // A worker says again and again how long it has trusted so far.
            match reigns[own..].iter_mut().find(|reign| reign.term == term) {
                Some(reign) => {
                    reign.from = reign.from.min(from);
                    reign.to = reign.to.max(to);
                }
                None => reigns.push(Reign { worker: *worker, term, from, to }),
            }
        }
    }
    reigns.sort_by_key(|reign| (reign.from, reign.term));
    reigns
}

/// What must not be, and how many overlaps are excused by an older copy of the store
/// that was put back. `reigns` is in the order in which they began.
pub(super) fn check(
    reigns: &[Reign],
    rollbacks: &[Rollback],
    ttl: Duration,
) -> (Vec<Violation>, usize) {
    let mut found = Vec::new();
    let mut excused = 0;
    for (at, second) in reigns.iter().enumerate() {
        let before = &reigns[..at];
        // Both ends are moments of trust, so meeting in one is too much.
        let others = before.iter().filter(|first| first.worker != second.worker);
        let beside = others.filter(|first| first.to >= second.from);
        let is_excused = |first: &&Reign| rollbacks.iter().any(|r| r.excuses(first, second, ttl));
        let (excusable, broken): (Vec<_>, Vec<_>) = beside.partition(is_excused);
        excused += excusable.len();
        if let Some(first) = broken.into_iter().max_by_key(|first| first.to) {
            let first: &Reign = first;
            let (first, second) = (first.clone(), second.clone());
            found.push(Violation::Overlap { first, second });
        }
        if let Some(earlier) =
            before.iter().max_by_key(|r| r.term).filter(|r| r.term >= second.term)
        {
            let (earlier, later) = (earlier.clone(), second.clone());
            found.push(Violation::NotRising { earlier, later });
        }
    }
    (found, excused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(slot: usize, trusts: &[(u64, u64, u64)]) -> (Worker, Vec<Line>) {
        let lines = trusts.iter().map(|&(term, from, to)| Line::Trust { term, from, to });
        (Worker { slot, life: 1 }, lines.collect())
    }

    fn found(logs: &[(Worker, Vec<Line>)]) -> Vec<String> {
        let (found, excused) = check(&reigns(logs), &[], Duration::ZERO);
        assert_eq!(excused, 0);
        found.iter().map(Violation::to_string).collect()
    }

    /// One after the other, however close.
    #[test]
    fn reigns_that_follow_each_other_are_fine() {
        let logs = [log(0, &[(1, 10, 12), (1, 10, 20), (3, 31, 40)]), log(1, &[(2, 21, 30)])];
        assert_eq!(found(&logs), [""; 0]);
        assert_eq!(reigns(&logs).len(), 3, "lines of one term are one reign");
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

    /// A short reign between does not hide one that began earlier and lasts.
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
