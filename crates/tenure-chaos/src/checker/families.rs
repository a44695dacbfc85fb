//! The families of guarded commands: a command with all its descendants, from the first
//! stamp of any of them to the last. Those of different terms have no moment in common.

use std::time::Duration;

use super::{Rollback, Span, Violation, Worker};
use crate::clock::{self, Nanos};

/// What one process of a command stamped: it ran from `from` to `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The program that ran the command.
    pub program: Worker,
    /// The term that the command was told.
    pub term: u64,
    /// The first moment that is known.
    pub from: Nanos,
    /// The last moment that is known.
    pub to: Nanos,
}

/// A command with its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The program that ran it.
    pub program: Worker,
    /// Under which term.
    pub term: u64,
    /// When the first of its processes had begun.
    pub from: Nanos,
    /// When the last of them still ran.
    pub to: Nanos,
    /// How many there were.
    pub processes: usize,
}

/// Something was done to a program of which it is not promised that its command is gone
/// before the next begins. It was over at `until`: what was stopped went on, what was left
/// behind had been killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excuse {
    /// Whose command.
    pub program: Worker,
    /// When it was done.
    pub from: Nanos,
    /// When it was over.
    pub until: Nanos,
}

impl Excuse {
    /// Whether it is the reason why `first` runs beside `second`. A guardian that goes on
    /// ends its command at once; on a busy machine that may take up to a ttl.
    fn covers(&self, first: &Family, second: &Family, ttl: Duration) -> bool {
        first.program == self.program
            && second.from >= self.from
            && first.to <= self.until.saturating_add(clock::nanos(ttl))
    }
}

/// Overlaps that break no promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// After something of which nothing is promised.
    pub unpromised: usize,
    /// A forgotten term beside the next, after an older copy of the store was put back.
    pub forgotten: usize,
}

/// All families, in the order in which they began.
pub(super) fn families(stamped: &[Stamped]) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for one in stamped {
        let Stamped { program, term, from, to } = *one;
        let own = |family: &&mut Family| family.program == program && family.term == term;
        match families.iter_mut().find(own) {
            Some(family) => {
                family.from = family.from.min(from);
                family.to = family.to.max(to);
                family.processes += 1;
            }
            None => families.push(Family { program, term, from, to, processes: 1 }),
        }
    }
    families.sort_by_key(|family| (family.from, family.term));
    families
}

/// What must not be, and what is not promised. `families` is in the order in which they
/// began.
pub(super) fn check(
    families: &[Family],
    excuses: &[Excuse],
    rollbacks: &[Rollback],
    ttl: Duration,
) -> (Vec<Violation>, Beside) {
    let mut found = Vec::new();
    let mut beside = Beside::default();
    for (at, second) in families.iter().enumerate() {
        let before = &families[..at];
        let mut worst: Option<&Family> = None;
        for first in before.iter().filter(|first| first.to >= second.from) {
            let is_forgotten =
                |rollback: &Rollback| rollback.excuses(span(first), span(second), ttl);
            if excuses.iter().any(|excuse| excuse.covers(first, second, ttl)) {
                beside.unpromised += 1;
            } else if rollbacks.iter().any(is_forgotten) {
                beside.forgotten += 1;
            } else if worst.is_none_or(|worst| worst.to < first.to) {
                worst = Some(first);
            }
        }
        found.extend(worst.map(|first| {
            let first = first.clone();
            let second = second.clone();
            Violation::Beside { first, second }
        }));
        if let Some(earlier) =
            before.iter().max_by_key(|f| f.term).filter(|f| f.term >= second.term)
        {
            let earlier = earlier.clone();
            let later = second.clone();
            found.push(Violation::CommandNotRising { earlier, later });
        }
    }
    (found, beside)
}

fn span(family: &Family) -> Span {
    Span { from: family.from, to: family.to }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_nanos(10);

    fn stamped(slot: usize, term: u64, from: Nanos, to: Nanos) -> Stamped {
        Stamped { program: Worker { slot, life: 1 }, term, from, to }
    }

    fn found(stamps: &[Stamped], excuses: &[Excuse]) -> (Vec<String>, Beside) {
        let (found, beside) = check(&families(stamps), excuses, &[], TTL);
        (found.iter().map(Violation::to_string).collect(), beside)
    }

    /// A family is all of its processes: a grandchild counts as the command does.
    #[test]
    fn a_family_lasts_as_long_as_any_of_its_processes() {
        let stamps = [stamped(5, 1, 12, 15), stamped(5, 1, 10, 20), stamped(6, 2, 21, 30)];
        let both = families(&stamps);
        assert_eq!((both.len(), both[0].from, both[0].to, both[0].processes), (2, 10, 20, 2));
        assert_eq!(found(&stamps, &[]), (vec![], Beside::default()));
    }

    /// R2: one moment in common is too much, whichever process it is.
    #[test]
    fn a_descendant_that_runs_beside_the_next_command_is_found() {
        for (from, to) in [(20, 30), (15, 16), (11, 40)] {
            let stamps = [stamped(5, 1, 10, 12), stamped(5, 1, 10, 20), stamped(6, 2, from, to)];
            let found = found(&stamps, &[]).0;
            assert!(found.len() == 1 && found[0].starts_with("two commands"), "{found:?}");
        }
        // Two terms of one program are two families, too.
        assert_eq!(found(&[stamped(5, 1, 10, 20), stamped(5, 2, 20, 30)], &[]).0.len(), 1);
    }

    /// A number that stays or goes back.
    #[test]
    fn commands_whose_terms_do_not_rise_are_found() {
        for later in [4, 5] {
            let found = found(&[stamped(5, 5, 10, 20), stamped(6, later, 30, 40)], &[]).0;
            assert!(found.len() == 1 && found[0].starts_with("terms do not rise"), "{found:?}");
        }
    }

    /// What is not promised is counted, of that program alone, and from then on until it
    /// was over.
    #[test]
    fn what_is_not_promised_is_counted_apart() {
        let stamps = [stamped(5, 1, 10, 50), stamped(6, 2, 30, 60)];
        let excuse =
            |slot, from, until| vec![Excuse { program: Worker { slot, life: 1 }, from, until }];
        let (none, beside) = found(&stamps, &excuse(5, 20, 45));
        assert_eq!((none.len(), beside), (0, Beside { unpromised: 1, forgotten: 0 }));
        for other in [excuse(6, 20, 45), excuse(5, 31, 45), excuse(5, 20, 39)] {
            assert_eq!(found(&stamps, &other).0.len(), 1, "{other:?}");
        }
    }

    /// A rollback excuses what it does for any other leader, and no more.
    #[test]
    fn a_forgotten_command_may_run_for_the_rest_of_its_trust() {
        let copied = Span { from: 1, to: 2 };
        let rollback = |stopped| Rollback { copied, stopping: stopped - 1, stopped, up: stopped };
        let families = families(&[stamped(5, 1, 10, 35), stamped(6, 2, 30, 60)]);
        let beside = |stopped| check(&families, &[], &[rollback(stopped)], TTL);
        assert_eq!(beside(28), (vec![], Beside { unpromised: 0, forgotten: 1 }));
        assert_eq!(beside(20).0.len(), 1, "beyond its ttl");
        assert_eq!(beside(31).0.len(), 1, "before the store stopped");
    }
}
