//! Tenure on PostgreSQL beside its peers: the same servers, one run, contenders
//! in turns, medians and the middle half around them, each bar a ratio to a peer
//! or to a floor. Three runs in a row; a bar is missed when all three miss it.
//!
//! The program starts servers of its own: one on disk, and one whose data lies
//! in memory, on which statements are counted. Servers, clients and peers all
//! run on one core, where the system lets us choose it.
//!
//! `TENURE_BENCH_RUNS=1` makes one run; `TENURE_BENCH_ONLY=heartbeats,crash`
//! makes only those parts.

#![allow(clippy::print_stdout, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod actor;
mod beats;
mod crash;
mod endings;
mod hand_over;
mod keeping;
mod observers;
mod peers;
mod reigns;
mod report;
mod server;
mod words;

use std::path::Path;
use std::process::ExitCode;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use reigns::Reigns;
use report::Report;
use server::Server;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<ExitCode> {
    let args: Vec<String> = std::env::args().collect();
    if let [_, role, part, url, place, ttl] = &args[..]
        && role == actor::PART
    {
        let played = runtime()?.block_on(actor::play(part, url, place, ttl));
        return played.map(|()| ExitCode::SUCCESS);
    }
    let core = pin();
    let held = runtime()?.block_on(all(core))?;
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Keeps this program, and all that it starts, to the last core that it may use.
fn pin() -> Option<usize> {
    let allowed = sched_getaffinity(None).ok()?;
    let core = (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core))?;
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).ok().map(|()| core)
}

async fn all(core: Option<usize>) -> Outcome<bool> {
    let disk = Server::start(&std::env::temp_dir(), &[]).await?;
    let counting = ["shared_preload_libraries=pg_stat_statements"];
    let memory = Server::start(Path::new("/dev/shm"), &counting).await?;
    prepare(&disk, &memory).await?;
    describe(core, &disk, &memory).await?;
    let only = std::env::var("TENURE_BENCH_ONLY").unwrap_or_default();
    let wanted = |part: &str| only.is_empty() || only.split(',').any(|word| word == part);
    let runs: usize = std::env::var("TENURE_BENCH_RUNS").map_or(Ok(3), |runs| runs.parse())?;
    let mut report = Report::default();
    let mut reigns = Reigns::default();
    for run in 1..=runs {
        println!("\n=== run {run} of {runs}; load {}", load());
        if wanted("heartbeats") {
            beats::run(&mut report, &disk, &memory).await?;
        }
        if wanted("claims") {
            keeping::claiming(&mut report, run, &disk).await?;
        }
        if wanted("keeping") {
            keeping::keeping(&mut report, run, &memory).await?;
        }
        if wanted("crash") {
            crash::run(&mut report, &mut reigns, run, &disk).await?;
        }
        if wanted("endings") {
            endings::run(&mut report, run, &disk).await?;
        }
        if wanted("hand-over") {
            hand_over::run(&mut report, &mut reigns, run, [&disk, &memory]).await?;
        }
        if wanted("observers") {
            observers::run(&mut report, run, &disk).await?;
        }
        let overlaps = reigns.overlaps() as f64;
        println!("\n{} reigns in the log so far", reigns.count());
        report.at_most("overlaps of two leaders", overlaps, 0.0, "");
    }
    Ok(report.finish())
}

/// The peers' tables, the roles that are counted, and the counting.
async fn prepare(disk: &Server, memory: &Server) -> Outcome {
    for server in [disk, memory] {
        for database in ["peers", "floor"] {
            let client = server::connect(&server.url(database)).await?;
            client.batch_execute(peers::TABLES).await?;
        }
        // The schema is there before anything is measured.
        drop(words::open(&server.url("tenure")).await?);
        // A role that may only call the verbs, as the pages recommend.
        let owner = server::connect(&server.url("tenure")).await?;
        owner.batch_execute("CREATE ROLE guest LOGIN; SELECT tenure.grant_to('guest')").await?;
    }
    let admin = server::connect(&memory.url("tenure")).await?;
    admin.batch_execute("CREATE EXTENSION pg_stat_statements").await?;
    for role in ["holds_1", "holds_100", "holds_10000", "holds_recipe", "idle_tenure", "idle_river"]
    {
        admin.batch_execute(&format!("CREATE ROLE {role} LOGIN SUPERUSER")).await?;
    }
    Ok(())
}

async fn describe(core: Option<usize>, disk: &Server, memory: &Server) -> Outcome {
    let admin = server::connect(&disk.url("postgres")).await?;
    for name in
        ["server_version", "fsync", "synchronous_commit", "wal_sync_method", "full_page_writes"]
    {
        let row = admin.query_one(&format!("SHOW {name}"), &[]).await?;
        println!("{name} = {}", row.get::<_, String>(0));
    }
    println!("data on {}, and in memory on {}", disk.file_system()?, memory.file_system()?);
    match core {
        Some(core) => println!("all on core {core} of {}", std::thread::available_parallelism()?),
        None => println!("not pinned: the system does not let us"),
    }
    Ok(())
}

/// How busy the machine is otherwise.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
