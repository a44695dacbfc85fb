//! Which functions each test calls, so that a mutant is not tried by tests that cannot
//! notice it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::failure::{Doing, Outcome};

/// The functions that each test called. Kept beside the build.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    called: BTreeMap<String, BTreeSet<String>>,
}

impl Reach {
    pub(super) fn open(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let parse = |line: &str| {
            let (test, functions) = line.split_once('\t')?;
            let functions = functions.split(' ').filter(|name| !name.is_empty());
            Some((test.to_owned(), functions.map(str::to_owned).collect()))
        };
        Self { called: text.lines().filter_map(parse).collect() }
    }

    pub(super) fn write(&self, path: &Path) -> Outcome {
        let line = |(test, functions): (&String, &BTreeSet<String>)| {
            let functions: Vec<_> = functions.iter().map(String::as_str).collect();
            format!("{test}\t{}\n", functions.join(" "))
        };
        let text: String = self.called.iter().map(line).collect();
        fs::write(path, text).doing(|| format!("write {}", path.display()))
    }

    /// From what the server counted: lines of `schema|function`. A test's schema is named
    /// after its process, as `t123_…`.
    pub(super) fn counted(processes: &BTreeMap<u32, String>, lines: &str) -> Self {
        let mut reach = Self::default();
        for test in processes.values() {
            reach.called.entry(test.clone()).or_default();
        }
        for (schema, function) in lines.lines().filter_map(|line| line.split_once('|')) {
            let process = schema.strip_prefix('t').and_then(|rest| rest.split('_').next());
            let process = process.and_then(|process| process.parse().ok());
            if let Some(test) = process.and_then(|process: u32| processes.get(&process)) {
                reach.called.entry(test.clone()).or_default().insert(function.to_owned());
            }
        }
        reach
    }

    /// Whether every one of these tests was looked at.
    pub(super) fn knows(&self, tests: &[String]) -> bool {
        tests.iter().all(|test| self.called.contains_key(test))
    }

    /// Whether a test may call a function. Of a test that called nothing that was counted
    /// it is not known: it may have a server of its own.
    pub(super) fn may(&self, test: &str, function: Option<&str>) -> bool {
        let called = self.called.get(test).filter(|called| !called.is_empty());
        match (called, function) {
            (Some(called), Some(function)) => called.contains(function),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_left_out_only_if_it_is_sure_not_to_call_the_function() {
        let processes = BTreeMap::from([(12, "s claims".to_owned()), (13, "s unit".to_owned())]);
        let reach = Reach::counted(&processes, "t12_0_ab|claims\nt99_0_cd|join\npublic|x\n");
        assert!(reach.may("s claims", Some("claims")) && !reach.may("s claims", Some("join")));
        assert!(reach.may("s claims", None), "it is not counted");
        assert!(reach.may("s unit", Some("join")), "it may have a server of its own");
        assert!(reach.may("s new", Some("join")));
        assert!(reach.knows(&["s unit".into()]) && !reach.knows(&["s new".into()]));
        let path = std::env::temp_dir().join(format!("tenure-reach-{}", std::process::id()));
        reach.write(&path).unwrap();
        assert_eq!(Reach::open(&path), reach);
        fs::remove_file(&path).unwrap();
    }
}
