//! What is known of the tests: how long they take, how often they passed, and which of
//! them caught what. It decides the order in which they are tried.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ledger::{Fate, Ledger};
use crate::failure::{Doing, Outcome};

/// A test that passed so often, also in this run, and never failed without a reason, is
/// believed when it fails twice.
const BELIEVED: u32 = 5;
/// How many tests that caught others of the same function, or file, are tried first.
const KILLERS: usize = 6;
/// By how much a test is preferred that is named after the function or its file.
const NEAR: f64 = 8.0;
/// What a test is taken to need before it was seen.
const UNSEEN: f64 = 1.0;

/// One test, as it was seen.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    passed: u32,
    /// How often it failed although nothing was wrong.
    doubted: u32,
    seconds: f64,
}

/// All tests of one crate. Kept beside the build, since times are of one machine.
#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
    seen: BTreeMap<String, Seen>,
    /// What passed in this very run: elsewhere a test may lack what it needs.
    here: BTreeSet<String>,
}

impl Record {
    pub(super) fn open(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let parse = |line: &str| {
            let mut fields = line.splitn(4, '\t');
            let passed = fields.next()?.parse().ok()?;
            let doubted = fields.next()?.parse().ok()?;
            let seconds = fields.next()?.parse().ok()?;
            Some((fields.next()?.to_owned(), Seen { passed, doubted, seconds }))
        };
        let seen = text.lines().filter_map(parse).collect();
        Self { path: path.to_owned(), seen, here: BTreeSet::new() }
    }

    pub(super) fn write(&self) -> Outcome {
        let line = |(test, s): (&String, &Seen)| {
            format!("{}\t{}\t{:.2}\t{test}\n", s.passed, s.doubted, s.seconds)
        };
        let text: String = self.seen.iter().map(line).collect();
        fs::write(&self.path, text).doing(|| format!("write {}", self.path.display()))
    }

    pub(super) fn passed(&mut self, test: &str, took: Duration) {
        self.here.insert(test.to_owned());
        let seen = self.seen.entry(test.to_owned()).or_default();
        let took = took.as_secs_f64();
        seen.seconds = if seen.passed == 0 { took } else { seen.seconds * 0.7 + took * 0.3 };
        seen.passed += 1;
    }

    /// It failed although nothing was wrong: it is not believed again without a proof.
    pub(super) fn doubt(&mut self, test: &str) {
        self.seen.entry(test.to_owned()).or_default().doubted += 1;
    }

    pub(super) fn is_believed(&self, test: &str) -> bool {
        let sound = |seen: &Seen| seen.passed >= BELIEVED && seen.doubted == 0;
        self.here.contains(test) && self.seen.get(test).is_some_and(sound)
    }

    pub(super) fn seconds(&self, test: &str) -> f64 {
        self.seen.get(test).filter(|seen| seen.passed > 0).map_or(UNSEEN, |seen| seen.seconds)
    }

    /// The tests in the order in which they are tried for a mutant of this name: what
    /// caught it before, what caught most in the same function, in the same file, and
    /// then what catches most in a second, those first that are named after the function
    /// or its file.
    pub(super) fn order<'a>(
        &self,
        tests: &'a [String],
        name: &str,
        ledger: &Ledger,
    ) -> Vec<&'a str> {
        let function = name.split(": ").next().unwrap_or(name);
        let file = name.split(' ').next().unwrap_or(name);
        let mut here: BTreeMap<&str, u32> = BTreeMap::new();
        let mut beside: BTreeMap<&str, u32> = BTreeMap::new();
        let mut anywhere: BTreeMap<&str, u32> = BTreeMap::new();
        for (other, entry) in ledger.entries().filter(|(_, entry)| entry.fate == Fate::Caught) {
            *anywhere.entry(&entry.by).or_default() += 1;
            if other.split(' ').next() == Some(file) {
                *beside.entry(&entry.by).or_default() += 1;
            }
            if other.split(": ").next() == Some(function) {
                *here.entry(&entry.by).or_default() += 1;
            }
        }
        let before = ledger.entry(name).map(|entry| entry.by.as_str());
        let mut first: Vec<&str> = before.into_iter().collect();
        for caught in [here, beside] {
            let mut best: Vec<_> = caught.into_iter().collect();
            best.sort_by_key(|(_, count)| Reverse(*count));
            first.extend(best.into_iter().take(KILLERS).map(|(test, _)| test));
        }
        let words: Vec<&str> = function.split(['_', '.', ' ']).filter(|w| w.len() > 3).collect();
        let rate = |test: &str| {
            let caught = f64::from(anywhere.get(test).copied().unwrap_or(0)) + 0.5;
            let near = words.iter().any(|word| test.contains(word));
            caught / self.seconds(test).max(0.2) * if near { NEAR } else { 1.0 }
        };
        let place = |test: &str| first.iter().position(|t| *t == test).unwrap_or(first.len());
        let mut order: Vec<&str> = tests.iter().map(String::as_str).collect();
        order.sort_by(|a, b| place(a).cmp(&place(b)).then(rate(b).total_cmp(&rate(a))));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Entry;
    use super::*;

    fn caught(by: &str) -> Entry {
        Entry { fate: Fate::Caught, digest: String::new(), by: by.into() }
    }

    #[test]
    fn what_caught_a_neighbour_is_tried_first() {
        let dir = std::env::temp_dir().join(format!("tenure-record-{}", std::process::id()));
        let mut ledger = Ledger::open(&dir.join("l.tsv"));
        ledger.note("a.sql f: negate x", caught("s slow")).unwrap();
        ledger.note("a.sql g: negate x", caught("s other")).unwrap();
        ledger.note("b.sql h: negate x", caught("s far")).unwrap();
        let mut record = Record::open(&dir.join("r.tsv"));
        record.passed("s slow", Duration::from_secs(20));
        record.passed("s quick", Duration::from_millis(100));
        record.passed("s dull", Duration::from_secs(2));
        let tests: Vec<String> =
            ["dull", "quick", "far", "other", "slow"].iter().map(|t| format!("s {t}")).collect();
        let order = record.order(&tests, "a.sql f: remove y", &ledger);
        assert_eq!(order, ["s slow", "s other", "s quick", "s far", "s dull"]);
        let order = record.order(&tests, "c.sql _dull: remove y", &ledger);
        assert_eq!(order[..2], ["s quick", "s dull"], "it has the function's name");
        record.write().unwrap();
        assert_eq!(Record::open(&dir.join("r.tsv")).seen, record.seen);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_test_is_believed_after_it_passed_often_and_never_failed_without_a_reason() {
        let mut record = Record::open(Path::new("missing.tsv"));
        for _ in 0..BELIEVED {
            assert!(!record.is_believed("s t"));
            record.passed("s t", Duration::from_secs(1));
        }
        assert!(record.is_believed("s t"));
        record.here.clear();
        assert!(!record.is_believed("s t"), "not in this run");
        record.passed("s t", Duration::from_secs(1));
        record.doubt("s t");
        assert!(!record.is_believed("s t"));
    }
}
