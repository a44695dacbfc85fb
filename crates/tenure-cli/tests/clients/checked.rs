//! What the members of a run have written, and whether it holds together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// From when to when one life of a member certainly led a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Led {
    pub(crate) life: String,
    pub(crate) token: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// What was read from the logs of all lives.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    pub(crate) led: Vec<Led>,
    /// Token and number of each write whose commit was confirmed.
    pub(crate) confirmed: BTreeSet<(u64, u64)>,
}

impl Logs {
    /// Each file of the folder is one life, and has its name.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut logs = Self::default();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let life = path.file_name().unwrap().to_string_lossy().into_owned();
            logs.add(&life, &std::fs::read_to_string(&path).unwrap());
        }
        logs
    }

    /// `L token at`: it led at that moment. `C token number`: that number was written. A life that
    /// was killed may have left half a line at the end.
    fn add(&mut self, life: &str, text: &str) {
        let mut led: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            match words[0] {
                "L" => led.entry(number(1)).or_insert((number(2), 0)).1 = number(2),
                "C" => drop(self.confirmed.insert((number(1), number(2)))),
                _ => {}
            }
        }
        let led = led.into_iter().map(|(token, (first, last))| {
            let life = life.to_owned();
            Led { life, token, first, last }
        });
        self.led.extend(led);
    }

    /// What is wrong: two that led at one moment, or one term that two led.
    pub(crate) fn overlaps(&self) -> Vec<String> {
        let mut led: Vec<&Led> = self.led.iter().collect();
        led.sort_by_key(|one| (one.first, one.last));
        let mut found = Vec::new();
        let mut before: Option<&Led> = None;
        for one in led {
            if let Some(other) = before.filter(|other| other.last >= one.first) {
                let time = (other.last.min(one.last) - one.first) / 1_000;
                found.push(format!("for {time} us both led: {other:?}, {one:?}"));
            }
            if before.is_some_and(|other| other.token >= one.token) {
                found.push(format!("a later term has no higher number: {before:?}, {one:?}"));
            }
            before = before.filter(|other| other.last > one.last).or(Some(one));
        }
        found
    }
}

/// What is wrong with what was written: token and number of each write in the ledger, and where
/// the counter stands.
pub(crate) fn lost(ledger: &[(u64, u64)], counter: u64, logs: &Logs) -> Vec<String> {
    let mut found = Vec::new();
    for (n, pair) in (1..).zip(ledger) {
        if pair.1 != n {
            found.push(format!("write {n} of the ledger has the number {}", pair.1));
        }
    }
    if counter != u64::try_from(ledger.len()).unwrap() {
        found.push(format!("the counter stands at {counter} after {} writes", ledger.len()));
    }
    for pair in ledger.windows(2).filter(|pair| pair[0].0 > pair[1].0) {
        found.push(format!("a deposed leader wrote: {pair:?}"));
    }
    let written: BTreeSet<(u64, u64)> = ledger.iter().copied().collect();
    for write in logs.confirmed.difference(&written) {
        found.push(format!("{write:?} was confirmed, and is lost"));
    }
    found
}

/// Each kind of damage is found, and none where there is none.
#[test]
fn a_record_of_a_run_that_does_not_hold_is_found() {
    let read = |texts: &[&str]| {
        let mut logs = Logs::default();
        for (n, text) in texts.iter().enumerate() {
            logs.add(&format!("life-{n}"), text);
        }
        logs
    };
    let good =
        read(&["L 1 1000\nL 1 5000\nC 1 1\nL 3 9000\nE late\n", "L 2 6000\nL 2 8000\nL 2 8"]);
    assert_eq!(good.led.len(), 3);
    assert_eq!(good.overlaps(), [""; 0]);
    assert_eq!(lost(&[(1, 1), (2, 2)], 2, &good), [""; 0]);

    assert_eq!(read(&["L 1 1000\nL 1 5000\n", "L 2 4999\nL 2 9000\n"]).overlaps().len(), 1);
    assert_eq!(read(&["L 1 1000\nL 1 5000\n", "L 1 6000\n"]).overlaps().len(), 1);
    assert_eq!(read(&["L 2 1000\nL 2 5000\n", "L 1 6000\n"]).overlaps().len(), 1);
    let inside = read(&["L 1 1000\nL 1 9000\n", "L 2 2000\n", "L 3 8000\n"]).overlaps();
    assert_eq!(inside.len(), 2, "{inside:?}");
    for (ledger, counter) in
        [(&[(1, 1), (1, 1)][..], 2), (&[(1, 1)], 2), (&[(1, 1), (2, 2), (1, 3)], 3), (&[], 0)]
    {
        assert!(!lost(ledger, counter, &good).is_empty(), "{ledger:?} {counter}");
    }
}
