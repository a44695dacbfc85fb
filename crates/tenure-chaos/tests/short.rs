//! Short runs on SQLite: a good one passes, and broken ones are found. They start `tenure`
//! too, which `cargo xtask test` builds.

#![allow(clippy::unwrap_used)]

use tenure_testkit::wait_for;

use std::process::{Command, Output};

fn chaos(args: &str, out: &tempfile::TempDir) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure-chaos"))
        .args(args.split_whitespace())
        .arg("--out")
        .arg(out.path())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let out = &output.stdout;
    let err = &output.stderr;
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Promises 1 to 3, M1, M2, T1 to T4, C40: no two leaders overlap, and nothing fenced is
/// lost, under faults under which unfenced writes are. P2, M5: a member of many
/// elections that is killed is taken over. R6, M6: a copy of the file that is put back
/// gives out no number twice. B9, R2, R3: no two commands of `tenure run` overlap, also
/// when it is killed or stopped together with its guardian and its watchman.
#[test]
fn faults_cost_no_fenced_write_and_make_no_two_leaders() {
    let out = tempfile::tempdir().unwrap();
    let run = chaos("--store sqlite --seconds 28 --seed 11 --held 2000", &out);
    let said = said(&run);
    assert!(run.status.success(), "{said}");
    assert!(said.contains("copy put back 1"), "{said}");
    assert!(said.contains("it led 2000 further elections"), "{said}");
    assert!(said.contains("verdict           passed"), "{said}");
    for blow in ["both killed", "all three killed"] {
        assert!(said.contains(blow), "{blow}: {said}");
    }
    let commands = said.lines().find(|line| line.starts_with("commands ")).unwrap();
    assert!(commands.contains("; 0 overlaps; 0 more where nothing is promised"), "{commands}");
    let folder = out.path().join("sqlite-11");
    let report = std::fs::read_to_string(folder.join("report.txt")).unwrap();
    assert!(said.contains(&report), "{said}\nis not\n{report}");
    let picture = std::fs::read_to_string(folder.join("timeline.svg")).unwrap();
    assert!(picture.contains(">term 1: s") && picture.contains(">command of term 1: s"));
    none_is_left(out.path().to_str().unwrap());
}

/// The checker sees through real runs: workers that believe without asking
/// overlap (H4), workers that do not fence write under old terms (B15), and what a
/// guarded command leaves behind outside of the lock of its work runs beside the next (R2).
#[test]
fn workers_that_do_not_ask_and_do_not_fence_are_found() {
    let out = tempfile::tempdir().unwrap();
    let run = chaos("--store sqlite --seconds 25 --seed 11 --sabotage all", &out);
    let said = said(&run);
    assert!(!run.status.success(), "{said}");
    assert!(said.contains("VIOLATION         overlap"), "{said}");
    let fenced = said.lines().find(|line| line.starts_with("fenced writes")).unwrap();
    assert!(!fenced.contains("; 0 lost"), "{said}");
    assert!(said.contains("VIOLATION         two commands: "), "{said}");
    assert!(said.contains("--sabotage all"), "the command that shows it again: {said}");
}

/// Killed like its own workers, the program leaves none of them behind, nor a command of
/// `tenure run` with what that started.
#[test]
fn no_worker_outlives_a_run_that_is_killed() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_tenure-chaos"))
        .args(["--seconds", "600", "--seed", "3", "--out", folder])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for("its workers to begin", || {
        assert_eq!(run.try_wait().unwrap(), None, "it ended before its workers began");
        let commands = with_words(&["command"], folder);
        (with_words(&["worker"], folder) >= 5 && commands >= 3).then_some(())
    });
    run.kill().unwrap();
    run.wait().unwrap();
    none_is_left(folder);
}

/// How many processes have this folder on their command line and one of these roles.
fn with_words(roles: &[&str], folder: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    let has = |line: &String| roles.iter().any(|role| line.contains(&format!("\0{role}\0")));
    lines.filter(|line| has(line) && line.contains(folder)).count()
}

/// The kernel may take a moment to bury them. The command's line is part of that of the
/// program and of the guardian that run it.
fn none_is_left(folder: &str) {
    wait_for("all of them to be gone", || {
        (with_words(&["worker", "holder", "command"], folder) == 0).then_some(())
    });
}
