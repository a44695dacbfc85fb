//! `tenure serve` beside what it is made of: an empty handler, connections that listen. The server
//! is the real program in a process of its own, and so is what it is compared with. Contenders take
//! turns, figures are medians, each bar is a ratio of one run, or a count. There are three runs,
//! and a bar is missed when all three miss it.
//!
//! `TENURE_BENCH_RUNS=1` makes one run; `TENURE_BENCH_ONLY=leader,events` makes only those parts.
//! `TENURE_BENCH_BEFORE` names a `tenure` to compare the start of `tenure status` with.

#![allow(clippy::print_stdout, missing_docs)]

#[path = "../../../tenure/benches/common/mod.rs"]
mod common;
#[path = "../../../tenure/benches/postgres/report.rs"]
#[allow(dead_code)] // Shared with the other benchmarks.
mod report;
#[path = "../../../tenure/benches/postgres/server.rs"]
#[allow(dead_code)]
mod server;

mod client;
mod events;
mod leader;
mod served;
mod status;

use std::path::Path;
use std::process::ExitCode;

use report::Report;
use server::Server;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<ExitCode> {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|word| word == leader::FLOOR) {
        runtime()?.block_on(leader::floor())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.iter().any(|arg| arg == "--bench") {
        println!("run by cargo bench, or cargo xtask bench server");
        return Ok(ExitCode::SUCCESS);
    }
    served::raise_the_limit_of_files()?;
    let held = runtime()?.block_on(all())?;
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

async fn all() -> Outcome<bool> {
    let only = std::env::var("TENURE_BENCH_ONLY").unwrap_or_default();
    let wanted = |part: &str| only.is_empty() || only.split(',').any(|word| word == part);
    let runs: usize = std::env::var("TENURE_BENCH_RUNS").map_or(Ok(3), |runs| runs.parse())?;
    let needs_server = ["events", "stopped", "memory"].into_iter().any(wanted);
    // In memory: what is compared is telling, and a flush would be most of both.
    let database = match needs_server {
        true => Some(Server::start(Path::new("/dev/shm"), &[]).await?),
        false => None,
    };
    let mut report = Report::default();
    for run in 1..=runs {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("\n=== run {run} of {runs}; load {}", load.trim_end());
        if wanted("leader") {
            leader::run(&mut report).await?;
        }
        if let Some(database) = &database {
            if wanted("events") {
                events::last_to_hear(&mut report, run, database).await?;
            }
            if wanted("stopped") {
                events::stopped(&mut report, run, database).await?;
            }
            if wanted("memory") {
                events::memory(&mut report, run, database).await?;
            }
        }
        if wanted("resumed") {
            events::resumed(&mut report).await?;
        }
        if wanted("status") {
            status::run(&mut report)?;
        }
    }
    Ok(report.finish())
}
