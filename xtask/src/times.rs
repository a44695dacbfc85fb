//! Where the time of a test run goes: by crate, and the slowest tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::steps::root;

/// How many tests are named.
const NAMED: usize = 20;

/// One test, as the runner's report tells of it.
#[derive(Debug, PartialEq)]
struct Timed {
    /// The crate, and the program if it is not the crate's own.
    program: String,
    name: String,
    seconds: f64,
}

/// The report that nextest writes (`.config/nextest.toml`).
fn report() -> PathBuf {
    let built = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |folder| root().join(folder));
    built.join("nextest/default/times.xml")
}

/// The table that closes a run which began at `since`; nothing, if there is no report of
/// it.
pub(crate) fn table(since: SystemTime) -> Option<String> {
    let path = report();
    let written = fs::metadata(&path).and_then(|about| about.modified()).ok()?;
    let text = fs::read_to_string(&path).ok().filter(|_| written >= since)?;
    Some(shown(&parse(&text)).trim_end().to_owned())
}

fn shown(tests: &[Timed]) -> String {
    let mut crates: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for test in tests {
        let name = test.program.split("::").next().unwrap_or_default();
        let entry = crates.entry(name).or_default();
        entry.0 += 1;
        entry.1 += test.seconds;
    }
    let mut crates: Vec<_> = crates.into_iter().collect();
    crates.sort_by(|(_, a), (_, b)| b.1.total_cmp(&a.1));
    let total: f64 = tests.iter().map(|test| test.seconds).sum();
    let mut text = format!("tests by crate: {total:.0} s, if one ran after the other\n");
    for (name, (count, seconds)) in crates {
        text += &format!("{seconds:>9.1} s  {name} ({count} tests)\n");
    }
    let mut slowest: Vec<_> = tests.iter().collect();
    slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    text += "the slowest tests:\n";
    for test in slowest.into_iter().take(NAMED) {
        text += &format!("{:>9.1} s  {} {}\n", test.seconds, test.program, test.name);
    }
    text
}

/// The tests of a report in JUnit's form. Names of tests and programs need no escapes.
fn parse(report: &str) -> Vec<Timed> {
    let cases = report.split("<testcase ").skip(1);
    let attribute = |case: &str, key: &str| -> Option<String> {
        let tag = case.split('>').next()?;
        let value = tag.split(&format!("{key}=\"")).nth(1)?;
        value.split('"').next().map(str::to_owned)
    };
    cases
        .filter_map(|case| {
            // A space before `name`, so that it is not found in `classname`.
            let case = format!(" {case}");
            Some(Timed {
                program: attribute(&case, " classname")?,
                name: attribute(&case, " name")?,
                seconds: attribute(&case, " time")?.parse().ok()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<testsuites><testsuite name="one::suite" tests="2">
        <testcase name="a::b" classname="one::suite" timestamp="2026-01-01" time="1.500">
        </testcase>
        <testcase name="c" classname="one" time="0.5"><failure type="x">time="9"</failure>
        </testcase></testsuite>
        <testsuite name="two"><testcase name="d" classname="two" time="3"/></testsuite>"#;

    #[test]
    fn a_report_is_read() {
        let found = parse(REPORT);
        assert_eq!(found.len(), 3);
        let first = Timed { program: "one::suite".into(), name: "a::b".into(), seconds: 1.5 };
        assert_eq!(found[0], first);
    }

    /// The slowest first, crates and tests.
    #[test]
    fn the_table_says_where_the_time_goes() {
        let table = shown(&parse(REPORT));
        let lines: Vec<_> = table.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "tests by crate: 5 s, if one ran after the other",
                "3.0 s  two (1 tests)",
                "2.0 s  one (2 tests)",
                "the slowest tests:",
                "3.0 s  two d",
                "1.5 s  one::suite a::b",
                "0.5 s  one c",
            ]
        );
    }
}
