//! The program's bars, measured: `cargo xtask bench cli`.
//!
//! - two hundred rounds of kill -9 (of the program, or of its guardian too), SIGSTOP
//!   past the ttl and store outages: no two children of one election overlap, none
//!   survives its term;
//! - after kill -9 of `tenure run` its group is gone within 100 ms;
//! - `tenure run -- true` costs less than 30 ms over `true`;
//! - `tenure status` answers in under 15 ms.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use common::overlap::{overlaps, play, stamp_if_child};
use common::{World, is_alive, pids, wait_for};
use rustix::process::Signal;

const CHILD: &str = "--stamp";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == CHILD) {
        stamp_if_child();
    }
    if !args.iter().any(|arg| arg == "--bench") {
        println!("run by cargo bench, or cargo xtask bench cli");
        return ExitCode::SUCCESS;
    }
    let rounds = args.iter().find_map(|arg| arg.strip_prefix("--rounds=")?.parse().ok());
    let rounds: usize = rounds.unwrap_or(200);
    let kept = [
        status_answers(),
        running_costs(),
        group_is_gone(),
        never_overlaps("SQLite", None, rounds),
        never_overlaps_on_postgres(rounds),
    ];
    if kept.iter().all(|kept| *kept) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a figure beside its bar.
fn bar(what: &str, figure: Duration, most: Duration) -> bool {
    let kept = figure <= most;
    let mark = if kept { "ok    " } else { "MISSED" };
    println!("{mark} {what}: {:.1} ms (bar {} ms)", figure.as_secs_f64() * 1e3, most.as_millis());
    kept
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() / 2]
}

/// The median of many runs, after a few that do not count.
fn timed(runs: usize, mut command: impl FnMut() -> Command) -> Duration {
    let once = |command: &mut Command| {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        assert!(command.status().unwrap().success());
        began.elapsed()
    };
    for _ in 0..3 {
        once(&mut command());
    }
    median((0..runs).map(|_| once(&mut command())).collect())
}

fn status_answers() -> bool {
    let world = World::new();
    world.text(&["run", "-q", "-e", "x", "--", "true"]);
    let took = timed(50, || world.tenure(&["status", "x"]));
    bar("tenure status, median of 50", took, Duration::from_millis(15))
}

fn running_costs() -> bool {
    let world = World::new();
    let direct = timed(50, || Command::new("true"));
    let guarded = timed(50, || world.tenure(&["run", "-q", "-e", "x", "--", "true"]));
    let cost = guarded.saturating_sub(direct);
    bar("tenure run -- true over true, median of 50", cost, Duration::from_millis(30))
}

fn group_is_gone() -> bool {
    let script = "echo $$; sh -c 'echo $$; exec sleep 1000' & \
                  setsid sh -c 'echo $$; exec sleep 1000' & wait";
    let mut took = Vec::new();
    for _ in 0..20 {
        let world = World::new();
        let run = world.run("a", &["-e", "x", "--", "sh", "-c", script]);
        let three = || Some(pids(&run.printed())).filter(|pids| pids.len() == 3);
        let pids = wait_for("three processes", three);
        let killed = Instant::now();
        run.signal(Signal::KILL);
        while pids.iter().any(|pid| is_alive(*pid)) {
            std::hint::spin_loop();
        }
        took.push(killed.elapsed());
    }
    let worst = took.iter().max().copied().unwrap_or_default();
    println!("       median {:.1} ms", median(took).as_secs_f64() * 1e3);
    bar("kill -9 to an empty group, worst of 20", worst, Duration::from_millis(100))
}

/// Where a server is at hand, as `cargo xtask serve` prints it.
fn never_overlaps_on_postgres(rounds: usize) -> bool {
    match std::env::var("TENURE_TEST_POSTGRES_URL") {
        Ok(url) => never_overlaps("PostgreSQL", Some(&url), rounds),
        Err(_) => {
            println!("       PostgreSQL: not measured, TENURE_TEST_POSTGRES_URL is not set");
            true
        }
    }
}

fn never_overlaps(store: &str, server: Option<&str>, rounds: usize) -> bool {
    let this = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let began = Instant::now();
    let lives = play(vec![this, CHILD.into()], server, rounds, |round| {
        if round % 20 == 0 {
            println!("       {round} of {rounds} rounds, {:.0} s", began.elapsed().as_secs_f64());
        }
    });
    let found = overlaps(&lives);
    for (first, second) in &found {
        println!("       {first:?} and {second:?}");
    }
    let gap = lives.windows(2).map(|pair| pair[1].first.saturating_sub(pair[0].last)).min();
    let mark = if found.is_empty() && lives.len() > rounds { "ok    " } else { "MISSED" };
    println!(
        "{mark} {store}: {rounds} rounds of kill -9, SIGSTOP and outage: {} children, {} overlaps, \
         narrowest gap {:.1} ms",
        lives.len(),
        found.len(),
        gap.unwrap_or_default() as f64 / 1e6
    );
    found.is_empty() && lives.len() > rounds
}
