//! Fenced writes: each that was acknowledged is there exactly once, none is there
//! that was refused, and none of an older term comes after one of a newer.

use std::collections::{HashMap, HashSet};

use super::{Evidence, Ledger, Rollback, Verdict, Violation};
use crate::clock::Nanos;
use crate::record::Line;

/// What workers said about their writes.
#[derive(Default)]
struct Said<'e> {
    tried: HashMap<&'e str, Nanos>,
    done: HashMap<&'e str, Nanos>,
    refused: HashSet<&'e str>,
    /// When each began and was answered.
    loose: Vec<(Nanos, Nanos)>,
}

fn said(evidence: &Evidence) -> Said<'_> {
    let mut said = Said::default();
    for line in evidence.logs.iter().flat_map(|(_, lines)| lines) {
        match line {
            Line::Try { element, at } => drop(said.tried.insert(element, *at)),
            Line::Done { element, at } => drop(said.done.insert(element, *at)),
            Line::Refused { element } => drop(said.refused.insert(element)),
            Line::Loose { from, at, .. } => said.loose.push((*from, *at)),
            Line::Trust { .. } | Line::Wall { .. } | Line::Won { .. } | Line::Holds { .. } => {}
        }
    }
    said
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The part of the verdict that is about writes.
pub(super) fn check(evidence: &Evidence) -> Verdict {
    let said = said(evidence);
    let rollbacks = &evidence.rollbacks;
    let mut violations = elements(&said, evidence);
    violations.extend(values(&evidence.fenced));
    Verdict {
        violations,
        forgotten: count(said.done.keys().filter(|e| said.is_forgotten(e, rollbacks)).count()),
        acknowledged: count(said.done.len()),
        in_doubt: count(said.tried.len().saturating_sub(said.done.len() + said.refused.len())),
        refused: count(said.refused.len()),
        loose: count(said.loose.len()),
        // What an older copy did not have was not lost to another leader.
        loose_lost: count(
            said.loose.iter().filter(|(from, at)| kept(rollbacks, *from, *at)).count(),
        )
        .saturating_sub(evidence.loose.counter),
        ..Verdict::default()
    }
}

/// Whether a write that began at `from` and was answered at `at` is in the store for
/// certain, whatever was put back.
fn kept(rollbacks: &[Rollback], from: Nanos, at: Nanos) -> bool {
    rollbacks.iter().all(|rollback| rollback.keeps(from, at))
}

impl Said<'_> {
    /// Whether a write must be gone with what an older copy did not have.
    fn is_forgotten(&self, element: &str, rollbacks: &[Rollback]) -> bool {
        let tried = self.tried.get(element);
        tried.is_some_and(|at| rollbacks.iter().any(|rollback| rollback.forgets(*at)))
    }
}

/// The set holds what was acknowledged, once, and nothing that was not asked for.
/// What was written between the making of a copy and its return is not there.
fn elements(said: &Said<'_>, evidence: &Evidence) -> Vec<Violation> {
    let rollbacks = &evidence.rollbacks;
    let mut times: HashMap<&str, u32> = HashMap::new();
    for row in &evidence.fenced.rows {
        *times.entry(&row.element).or_default() += 1;
    }
    let mut found = Vec::new();
    let owned = |element: &&str| (*element).to_owned();
    for (element, at) in &said.done {
        let from = said.tried.get(element).copied().unwrap_or(*at);
        if !times.contains_key(element) && kept(rollbacks, from, *at) {
            found.push(Violation::Lost(owned(element)));
        }
    }
    for (element, times) in &times {
        if *times > 1 {
            found.push(Violation::Doubled(owned(element)));
        }
        if said.is_forgotten(element, rollbacks) {
            found.push(Violation::Returned(owned(element)));
        }
        if !said.tried.contains_key(element) || said.refused.contains(element) {
            found.push(Violation::Unasked(owned(element)));
        }
    }
    found.sort_by_key(ToString::to_string);
    found
}

/// The counter went up by one with each write: its values are 1, 2, 3 … without
/// a gap or a repetition, it stands at the last, and terms never went back.
fn values(ledger: &Ledger) -> Vec<Violation> {
    let mut rows: Vec<_> = ledger.rows.iter().collect();
    rows.sort_by_key(|row| (row.value, row.term));
    let mut found = Vec::new();
    let mut newest = 0;
    for pair in rows.windows(2) {
        if pair[0].value == pair[1].value {
            found.push(Violation::Doubled(format!("the counter's value {}", pair[1].value)));
        }
    }
    for row in &rows {
        if row.term < newest {
            found.push(Violation::Stale { row: (*row).clone(), after: newest });
        }
        newest = newest.max(row.term);
    }
    let counted = count(rows.len());
    let last = rows.last().map_or(0, |row| row.value);
    if ledger.counter != counted || last != counted {
        found.push(Violation::Sum { counter: ledger.counter, rows: counted });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{Row, Span, Worker};
    use super::*;

    fn row(element: &str, term: u64, value: u64) -> Row {
        Row { element: element.into(), term, value }
    }

    /// a and b acknowledged, c in doubt but there, d in doubt and not, e refused.
    fn good() -> Evidence {
        let text = "try a 10\ndone a 11\ntry b 20\ndone b 21\ntry c 30\ntry d 40\ntry e 50\n\
             refused e\nloose x 10 11\nloose y 20 21\n";
        let lines = crate::record::parse(text).unwrap();
        let rows = vec![row("a", 1, 1), row("b", 1, 2), row("c", 2, 3)];
        Evidence {
            logs: vec![(Worker { slot: 0, life: 1 }, lines)],
            fenced: Ledger { counter: 3, rows },
            loose: Ledger { counter: 2, rows: vec![row("x", 1, 1), row("y", 1, 2)] },
            ..Evidence::default()
        }
    }

    fn found(evidence: &Evidence) -> Vec<String> {
        check(evidence).violations.iter().map(Violation::to_string).collect()
    }

    /// What is in doubt may be there or not.
    #[test]
    fn a_whole_ledger_is_fine() {
        let verdict = check(&good());
        assert_eq!(verdict.violations, []);
        assert_eq!((verdict.acknowledged, verdict.in_doubt, verdict.refused), (2, 2, 1));
        assert_eq!((verdict.loose, verdict.loose_lost), (2, 0));
    }

    /// Promise 3: an update that another overwrote leaves a gap.
    #[test]
    fn an_acknowledged_write_that_is_gone_is_found() {
        let mut evidence = good();
        evidence.fenced.rows.remove(0);
        let found = found(&evidence);
        assert!(found.iter().any(|v| v.starts_with("lost: a")), "{found:?}");
        assert!(found.iter().any(|v| v.contains("counter is 3 after 2")), "{found:?}");
    }

    #[test]
    fn a_write_that_was_applied_twice_is_found() {
        let mut evidence = good();
        evidence.fenced.rows.push(row("c", 2, 4));
        evidence.fenced.counter = 4;
        assert_eq!(found(&evidence), ["doubled: c is there more than once"]);
    }

    /// Two who read the same value and wrote the same next one.
    #[test]
    fn a_value_that_was_given_twice_is_found() {
        let mut evidence = good();
        evidence.fenced.rows[2].value = 2;
        evidence.fenced.counter = 2;
        let found = found(&evidence);
        assert!(found.iter().any(|v| v.contains("value 2 is there more than once")), "{found:?}");
        assert!(found.iter().any(|v| v.contains("counter is 2 after 3")), "{found:?}");
    }

    /// Promise 3: a deposed leader's write that came through.
    #[test]
    fn a_write_of_an_older_term_after_a_newer_is_found() {
        let mut evidence = good();
        evidence.fenced.rows[0].term = 2;
        assert_eq!(
            found(&evidence),
            ["stale: b was accepted under term 1 after a write under term 2"]
        );
    }

    #[test]
    fn a_write_that_was_refused_or_never_tried_is_found() {
        for element in ["e", "z"] {
            let mut evidence = good();
            evidence.fenced.rows.push(row(element, 2, 4));
            evidence.fenced.counter = 4;
            let found = found(&evidence);
            assert!(found.len() == 1 && found[0].starts_with("unasked"), "{found:?}");
        }
    }

    /// The counter alone may be wrong.
    #[test]
    fn a_counter_that_went_back_is_found() {
        let mut evidence = good();
        evidence.fenced.counter = 1;
        assert_eq!(found(&evidence), ["the counter is 1 after 3 increments"]);
    }

    fn rollback(copied: (Nanos, Nanos), stopped: Nanos) -> Rollback {
        let copied = Span { from: copied.0, to: copied.1 };
        Rollback { copied, stopping: stopped, stopped, up: stopped + 2 }
    }

    /// A copy that was made before b was written, and put back after c.
    #[test]
    fn what_a_copy_did_not_have_is_excused_and_nothing_else() {
        let mut evidence = good();
        evidence.rollbacks = vec![rollback((12, 14), 35)];
        let all = found(&evidence);
        assert!(all.iter().any(|v| v.starts_with("returned: b")), "{all:?}");
        assert!(all.iter().any(|v| v.starts_with("returned: c")), "{all:?}");

        evidence.fenced = Ledger { counter: 1, rows: vec![row("a", 1, 1)] };
        evidence.loose.counter = 1;
        let verdict = check(&evidence);
        assert_eq!(verdict.violations, []);
        assert_eq!((verdict.acknowledged, verdict.forgotten, verdict.loose_lost), (2, 1, 0));

        // What the copy had is missed; so is what was written after it was back.
        evidence.fenced = Ledger::default();
        assert_eq!(found(&evidence), ["lost: a was acknowledged and is not there"]);
        evidence.rollbacks = vec![rollback((1, 2), 5)];
        assert_eq!(found(&evidence).len(), 2, "a and b");
    }

    /// What was under way when the copy was made may be in it or not.
    #[test]
    fn what_was_in_the_air_may_be_there_or_not() {
        let mut evidence = good();
        evidence.rollbacks = vec![rollback((20, 22), 25)];
        assert_eq!(found(&evidence), [""; 0]);
        evidence.fenced = Ledger { counter: 2, rows: vec![row("a", 1, 1), row("c", 2, 2)] };
        assert_eq!(found(&evidence), [""; 0]);
        assert_eq!(check(&evidence).forgotten, 0);
    }

    /// Lost updates without a fence are counted, and are no violation.
    #[test]
    fn losses_without_a_fence_are_counted() {
        let mut evidence = good();
        evidence.loose.counter = 1;
        let verdict = check(&evidence);
        assert_eq!((verdict.violations.len(), verdict.loose_lost), (0, 1));
    }
}
