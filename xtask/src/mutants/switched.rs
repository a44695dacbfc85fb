//! Runs the tests of a crate on each of its switches (see [`super::switches`]). The crate is
//! built once, and a mutant costs as long as the tests that reach it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Options;
use super::ledger::{Entry, Fate, Ledger};
use super::programs::tests;
use super::runner::{self, Ended, Finished, Task};
use super::scratch::{Built, Scratch};
use super::switches::{SUPPORT, Switch, switched};
use crate::failure::{Doing, Failure, Outcome};
use crate::servers::Servers;
use crate::steps::{cargo, root};

/// How often what does not compile is left out, before it is given up.
const ROUNDS: usize = 40;
/// The least time that a test has before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many tests of a crate one process runs on a mutant.
const TOGETHER: usize = 60;
/// And how many at first.
const FIRST: usize = 8;

/// One crate with its switches, built.
struct Crate {
    switches: Vec<Switch>,
    programs: Vec<Built>,
    /// The tests, each with the place of its program.
    tests: Vec<(usize, String)>,
    /// By the number of a switch, the tests that reach it, the quickest first.
    reached: BTreeMap<u32, Vec<usize>>,
    took: Vec<Duration>,
}

/// Breaks one crate, and says what became of it.
pub(super) fn run(kept: &Path, package: &str, options: &Options, servers: &Servers) -> Outcome {
    let ledger = root().join(format!("docs/mutants/{package}.rust.tsv"));
    let mut ledger = Ledger::open(&ledger);
    let logs = kept.join(format!("switched-{package}-logs"));
    fs::create_dir_all(&logs).doing(|| format!("make {}", logs.display()))?;
    let built = build(kept, &logs, package, options, servers)?;
    let here = |switch: &&Switch| {
        options.names(&switch.name)
            && (options.again || !ledger.is_final(&switch.name, &switch.digest))
    };
    let open: Vec<_> = built.switches.iter().filter(here).cloned().collect();
    println!("{package}: {} switches, {} to try", built.switches.len(), open.len());
    let known: BTreeSet<_> = built.switches.iter().map(|switch| switch.name.clone()).collect();
    ledger.forget(|name| !known.contains(name));
    for (place, switch) in open.iter().enumerate() {
        let from = Instant::now();
        let (fate, by) = judge(&built, switch, &logs, servers)?;
        let took = from.elapsed().as_secs_f32();
        println!(
            "{:>5}/{} {took:>5.1} s {:<8} {}  {by}",
            place + 1,
            open.len(),
            fate.name(),
            switch.name
        );
        let entry = Entry { fate, digest: switch.digest.clone(), by };
        ledger.note(&switch.name, entry)?;
    }
    println!("{package}: {}", ledger.summary());
    Ok(())
}

/// What the tests say of one switch.
fn judge(
    built: &Crate,
    switch: &Switch,
    logs: &Path,
    servers: &Servers,
) -> Outcome<(Fate, String)> {
    let Some(reaching) = built.reached.get(&switch.number) else {
        return Ok((Fate::Survived, "no test reaches it".into()));
    };
    // Most are noticed by the quickest.
    let (first, rest) = reaching.split_at(reaching.len().min(FIRST));
    for chunk in std::iter::once(first).chain(rest.chunks(TOGETHER)) {
        let mut by_program: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for test in chunk {
            by_program.entry(built.tests[*test].0).or_default().push(*test);
        }
        for (program, chosen) in by_program {
            let fate = match together(&built.programs[program], built, &chosen, switch, servers)? {
                Ended::Passed => continue,
                Ended::Failed => Fate::Caught,
                Ended::Hung => Fate::Hung,
            };
            // By itself, to name it; and with nothing broken it has to pass.
            let Some(failed) = alone(built, &chosen, Some(switch), logs, servers)? else {
                continue;
            };
            if alone(built, &[failed], None, logs, servers)?.is_none() {
                let (program, name) = &built.tests[failed];
                return Ok((fate, format!("{} {name}", built.programs[*program].target)));
            }
        }
    }
    Ok((Fate::Survived, String::new()))
}

/// Runs tests of one program in one process, on a mutant.
fn together(
    program: &Built,
    built: &Crate,
    chosen: &[usize],
    switch: &Switch,
    servers: &Servers,
) -> Outcome<Ended> {
    let names = chosen.iter().map(|test| &built.tests[*test].1);
    let limit = chosen.iter().map(|test| built.took[*test] * 8).sum::<Duration>() + PATIENCE;
    let mut child = Command::new(&program.path)
        .arg("--exact")
        .args(names)
        .current_dir(&program.folder)
        .env("TENURE_SWITCH", switch.number.to_string())
        .envs(servers.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .doing(|| format!("start {}", program.path.display()))?;
    let from = Instant::now();
    loop {
        match child.try_wait().doing(|| "wait for tests".into())? {
            Some(status) if status.success() => return Ok(Ended::Passed),
            Some(_) => return Ok(Ended::Failed),
            None if from.elapsed() > limit => {
                drop(child.kill());
                drop(child.wait());
                return Ok(Ended::Hung);
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Runs tests one by one until one fails, and says which.
fn alone(
    built: &Crate,
    chosen: &[usize],
    switch: Option<&Switch>,
    logs: &Path,
    servers: &Servers,
) -> Outcome<Option<usize>> {
    let task = |test: &usize| {
        let (program, name) = &built.tests[*test];
        let Built { path, folder, .. } = &built.programs[*program];
        let limit = built.took[*test] * 8 + PATIENCE;
        Task {
            test: *test,
            program: path.clone(),
            folder: folder.clone(),
            name: name.clone(),
            limit,
        }
    };
    let number = switch.map(|switch| ("TENURE_SWITCH".into(), switch.number.to_string()));
    let environment: Vec<_> = servers.environment().into_iter().chain(number).collect();
    let mut failed = None;
    runner::run(chosen.iter().map(task).collect(), 2, &environment, logs, |finished| {
        if finished.ended != Ended::Passed {
            failed = Some(finished.test);
        }
        failed.is_none()
    })?;
    Ok(failed)
}

/// Builds the crate with all switches that compile, and finds out which test reaches which.
fn build(
    kept: &Path,
    logs: &Path,
    package: &str,
    options: &Options,
    servers: &Servers,
) -> Outcome<Crate> {
    let sources = Path::new("crates").join(package).join("src");
    let tree = kept.join(format!("switched-{package}"));
    // What comes out as it was keeps its time, and is not built again.
    let before = kept.join(format!("switched-{package}-before"));
    drop(fs::remove_dir_all(&before));
    drop(fs::rename(tree.join(&sources), &before));
    let scratch = Scratch::copy(&root(), &tree, &[])?;
    let files = files(&root().join(&sources))?;
    let mut without = BTreeSet::new();
    let mut switches = Vec::new();
    for round in 0.. {
        switches = put(&files, &sources, &tree, &before, &without)?;
        let refused = refused(&scratch, package, &tree, &switches)?;
        if refused.is_empty() {
            break;
        }
        println!("{package}: {} switches do not compile", refused.len());
        without.extend(refused);
        if round == ROUNDS {
            return Err(Failure::new(format!("{package} does not compile with switches")));
        }
    }
    let mut programs = scratch.build(package, &[])?;
    for other in &options.with {
        programs.extend(scratch.build(other, &[])?);
    }
    let tests = tests(&programs)?;
    let chosen = |test: &(usize, String)| {
        options.by.is_empty() || options.by.iter().any(|by| test.1.contains(by.as_str()))
    };
    let tests: Vec<_> = tests.into_iter().filter(chosen).collect();
    let mut built = Crate { switches, programs, tests, reached: BTreeMap::new(), took: Vec::new() };
    measure(&mut built, logs, servers)?;
    Ok(built)
}

/// Writes the files with their switches.
fn put(
    files: &[PathBuf],
    sources: &Path,
    tree: &Path,
    before: &Path,
    without: &BTreeSet<String>,
) -> Outcome<Vec<Switch>> {
    let mut all = Vec::new();
    for file in files {
        let path = root().join(sources).join(file);
        let text = fs::read_to_string(&path).doing(|| format!("read {}", path.display()))?;
        let from = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let name = file.to_string_lossy();
        let is_test =
            file.ends_with("tests.rs") || name.contains("tests/") || name.contains("fuzzing");
        let mut text = match is_test {
            true => text,
            false => {
                let made = switched(&name, &text, from, without);
                let made = made.doing(|| format!("parse {}", path.display()))?;
                all.extend(made.switches);
                made.text
            }
        };
        if file == Path::new("lib.rs") {
            text = format!("#![allow(warnings, clippy::all)]\n{text}{SUPPORT}");
        }
        let copy = tree.join(sources).join(file);
        if fs::read_to_string(&copy).is_ok_and(|there| there == text) {
            continue;
        }
        let doing = || format!("write {}", copy.display());
        let kept = before.join(file);
        match fs::read_to_string(&kept).is_ok_and(|there| there == text) {
            true => fs::rename(&kept, &copy).doing(doing)?,
            false => fs::write(&copy, text).doing(doing)?,
        }
    }
    Ok(all)
}

/// The Rust files below a folder.
fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = fs::read_dir(&next).doing(|| format!("read {}", next.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.extend(path.strip_prefix(folder).map(Path::to_owned));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The switches that the compiler refuses, by their names: of each error, the one that
/// stands last before it.
fn refused(
    scratch: &Scratch,
    package: &str,
    tree: &Path,
    switches: &[Switch],
) -> Outcome<BTreeSet<String>> {
    let output = scratch
        .command(cargo(&["check", "--lib", "--all-features", "--message-format", "json"]))
        .args(["--package", package])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .doing(|| "start cargo".into())?;
    let mut found = BTreeSet::new();
    let said = String::from_utf8_lossy(&output.stdout);
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for message in messages.filter(|message| message["message"]["level"] == "error") {
        for span in message["message"]["spans"].as_array().into_iter().flatten() {
            let (Some(file), Some(at)) = (span["file_name"].as_str(), span["byte_start"].as_u64())
            else {
                continue;
            };
            if span["is_primary"] == true
                && let Some(number) = before(&tree.join(file), usize::try_from(at).unwrap_or(0))
                && let Some(switch) = switches.get(number)
            {
                found.insert(switch.name.clone());
            }
        }
    }
    if found.is_empty() && !output.status.success() {
        return Err(Failure::new(format!("{package} does not compile: {said}")));
    }
    Ok(found)
}

/// The number of the switch that stands last before a byte of a file.
fn before(file: &Path, at: usize) -> Option<usize> {
    let text = fs::read(file).ok()?;
    let text = String::from_utf8_lossy(text.get(..at)?).into_owned();
    // The one whose call is under way, if the error is in it.
    let last = text.rfind("__switch ::")?;
    let digits = text[last..].find(|c: char| c.is_ascii_digit())? + last;
    let number: String = text[digits..].chars().take_while(char::is_ascii_digit).collect();
    number.parse().ok()
}

/// Runs each test once with nothing broken: how long it takes, and what it reaches.
fn measure(built: &mut Crate, logs: &Path, servers: &Servers) -> Outcome {
    let log = logs.join("reached");
    let mut failed = BTreeSet::new();
    for place in 0..built.tests.len() {
        drop(fs::remove_file(&log));
        let (program, name) = &built.tests[place];
        let Built { path, folder, .. } = &built.programs[*program];
        let limit = Duration::from_secs(600);
        let task = Task {
            test: place,
            program: path.clone(),
            folder: folder.clone(),
            name: name.clone(),
            limit,
        };
        let reached = ("TENURE_SWITCH_REACHED".into(), log.display().to_string());
        let environment: Vec<_> = servers.environment().into_iter().chain([reached]).collect();
        let mut took = Duration::ZERO;
        runner::run(vec![task], 1, &environment, logs, |Finished { ended, took: t, .. }| {
            took = t;
            if ended != Ended::Passed {
                println!("left out, since it fails with nothing broken: {name}");
                failed.insert(place);
            }
            true
        })?;
        built.took.push(took);
        if failed.contains(&place) {
            continue;
        }
        for number in fs::read_to_string(&log).unwrap_or_default().lines() {
            if let Ok(number) = number.parse() {
                built.reached.entry(number).or_default().push(place);
            }
        }
    }
    drop(fs::remove_file(&log));
    let took = &built.took;
    for tests in built.reached.values_mut() {
        tests.sort_unstable();
        tests.dedup();
        tests.sort_by_key(|test| took[*test]);
    }
    Ok(())
}
