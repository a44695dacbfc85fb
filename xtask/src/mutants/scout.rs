//! The random histories, on many mutants in one process: a function is broken where it
//! is, in a schema that is there, and mended again. That costs a few steps of a history,
//! where a mutant of its own costs a database and a schema.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use super::Statement;
use super::ledger::{Entry, Fate, Ledger};
use super::scratch::Built;
use crate::failure::{Doing, Failure, Outcome};

/// The program, and the test that has the mutants looked at.
const PROGRAM: &str = "histories";
const TEST: &str = "broken::a_history_notices_what_is_broken";

/// What the test says of one mutant.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    number: usize,
    fate: Fate,
    /// The test that noticed it.
    by: String,
    /// And which history.
    seed: Option<String>,
}

/// Whether these programs have random histories that break functions.
pub(super) fn is_in(built: &[Built]) -> bool {
    built.iter().any(|built| built.target == PROGRAM)
}

/// Has all of these mutants looked at that are in a function, and notes what became of
/// them. Gives the names of those that were.
pub(super) fn run(
    built: &[Built],
    mutants: &[&Statement],
    folder: &Path,
    environment: &[(String, String)],
    by: &[String],
    ledger: &Mutex<Ledger>,
) -> Outcome<BTreeSet<String>> {
    let mut seen = BTreeSet::new();
    let Some(program) = built.iter().find(|built| built.target == PROGRAM) else {
        return Ok(seen);
    };
    let all: Vec<_> = mutants.iter().filter(|mutant| mutant.body.is_some()).collect();
    drop(fs::remove_dir_all(folder));
    fs::create_dir_all(folder).doing(|| format!("make {}", folder.display()))?;
    for (number, mutant) in all.iter().enumerate() {
        let Some((function, body)) = &mutant.body else { continue };
        let path = folder.join(format!("{number}.sql"));
        let text = format!("{function}\n{body}");
        fs::write(&path, text).doing(|| format!("write {}", path.display()))?;
    }
    if all.is_empty() {
        return Ok(seen);
    }
    let mut child = Command::new(&program.path)
        .args(["--exact", TEST, "--nocapture"])
        .current_dir(&program.folder)
        .envs(environment.iter().map(|(key, value)| (key, value)))
        .env("TENURE_BROKEN", folder)
        .env("TENURE_BROKEN_BY", by.join(","))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .doing(|| format!("start {}", program.path.display()))?;
    let from = Instant::now();
    let out = child.stdout.take().ok_or_else(|| Failure::new("a child has no output"))?;
    for line in BufReader::new(out).lines() {
        let line = line.doing(|| "read what the histories say".into())?;
        let Some((said, mutant)) = parse(&line).and_then(|s| all.get(s.number).map(|m| (s, m)))
        else {
            continue;
        };
        seen.insert(mutant.name.clone());
        let done = seen.len();
        let count = all.len();
        let after = from.elapsed().as_secs();
        let fate = said.fate.name();
        let by = said.by;
        let seed = said.seed.unwrap_or_default();
        println!("{done:>4}/{count} {after:>5} s {fate:<8} {}  {by} {seed}", mutant.name);
        let entry = Entry { fate: said.fate, digest: mutant.digest.clone(), by };
        let broken = |_| Failure::new("a worker panicked");
        ledger.lock().map_err(broken)?.note(&mutant.name, entry)?;
    }
    let ended = child.wait().doing(|| "wait for the histories".into())?;
    if ended.success() && seen.len() == all.len() {
        return Ok(seen);
    }
    Err(Failure::new(format!("the histories judged {} of {} mutants", seen.len(), all.len())))
}

fn parse(line: &str) -> Option<Said> {
    let mut words = line.strip_prefix("broken ")?.splitn(3, ' ');
    let number = words.next()?.parse().ok()?;
    let fate = match words.next()? {
        "noticed" => Fate::Caught,
        "unnoticed" => Fate::Open,
        "refused" => Fate::Unviable,
        _ => return None,
    };
    let mut by = words.next().unwrap_or_default().split('\t').map(str::to_owned);
    Some(Said { number, fate, by: by.next().unwrap_or_default(), seed: by.next() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_histories_say_is_understood() {
        let said = |number, fate, by: &str, seed: Option<&str>| {
            Some(Said { number, fate, by: by.to_owned(), seed: seed.map(str::to_owned) })
        };
        let noticed = parse("broken 7 noticed histories random\t31");
        assert_eq!(noticed, said(7, Fate::Caught, "histories random", Some("31")));
        assert_eq!(parse("broken 7 noticed s t"), said(7, Fate::Caught, "s t", None));
        assert_eq!(parse("broken 8 unnoticed"), said(8, Fate::Open, "", None));
        assert_eq!(parse("broken 9 refused"), said(9, Fate::Unviable, "", None));
        assert_eq!(parse("test broken::x ... ok"), None);
    }
}
