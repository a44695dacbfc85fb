//! What the server costs those who do not use it: the start of `tenure status`.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Outcome;
use crate::report::Report;
use crate::served::PROGRAM;

/// Another `tenure`, for example one of a time before there was a server.
const BEFORE: &str = "TENURE_BENCH_BEFORE";

pub(crate) fn run(report: &mut Report) -> Outcome {
    let Some(before) = std::env::var_os(BEFORE) else {
        println!("\ntenure status: not measured, {BEFORE} names no other program");
        return Ok(());
    };
    println!("\ntenure status on SQLite, from its start to its end");
    let home = tempfile::tempdir()?;
    let file = format!("sqlite:{}", home.path().join("t.db").display());
    let status = |program: &std::ffi::OsStr| -> Outcome<f64> {
        let mut command = Command::new(program);
        command.args(["status", "x"]).env("TENURE_STORE", &file).env("HOME", home.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let from = Instant::now();
        command.status()?;
        Ok(from.elapsed().as_secs_f64() * 1e3)
    };
    let mut run = Command::new(PROGRAM);
    run.args(["run", "-q", "-e", "x", "--", "true"]).env("TENURE_STORE", &file);
    assert!(run.env("HOME", home.path()).status()?.success());
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for n in 0..200 {
        let now = status(PROGRAM.as_ref())?;
        let then = status(&before)?;
        // The first few bring the programs into memory.
        if n >= 10 {
            ours.push(now);
            theirs.push(then);
        }
    }
    let ours = report.spread("this program", &mut ours, "ms");
    let theirs = report.spread("the other", &mut theirs, "ms");
    report.at_most("tenure status / before", ours / theirs, 1.05, "x");
    Ok(())
}
