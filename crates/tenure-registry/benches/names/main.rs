//! Names beside what they are made of: a bare insert, elections, etcd, a `HashMap`. The same
//! servers, one run, contenders in turns, medians and the middle half around them, each bar
//! a ratio to a peer or to a floor. Three runs in a row; a bar is missed when all three miss
//! it.
//!
//! The program starts servers of its own: PostgreSQL on disk and in memory, and etcd where
//! it is installed. Everything runs on one core, where the system lets us choose it, but for
//! the parts that are about many callers and about a writer beside readers.
//!
//! `TENURE_BENCH_RUNS=1` makes one run; `TENURE_BENCH_ONLY=single,lookup` makes only those
//! parts.

#![allow(clippy::print_stdout, missing_docs)]

#[path = "../../../tenure/benches/common/mod.rs"]
mod common;
#[path = "../../../tenure/benches/postgres/report.rs"]
mod report;
#[allow(dead_code)] // Shared with the benchmark of PostgreSQL, which counts more.
#[path = "../../../tenure/benches/postgres/server.rs"]
mod server;

mod actor;
mod callers;
mod counted;
mod endings;
mod etcd;
mod idle;
mod load;
mod lookup;
mod seen;
mod single;
mod sqlite;
mod words;

use std::path::Path;
use std::process::ExitCode;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use etcd::Etcd;
use report::Report;
use server::Server;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<ExitCode> {
    let args: Vec<String> = std::env::args().collect();
    if let [_, role, part, url, place] = &args[..]
        && role == actor::PART
    {
        let played = runtime()?.block_on(actor::play(part, url, place));
        return played.map(|()| ExitCode::SUCCESS);
    }
    let cores = Cores::find();
    let held = runtime()?.block_on(all(&cores))?;
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// The cores that this program may use, and the last of them.
struct Cores {
    all: Option<CpuSet>,
    one: Option<(usize, CpuSet)>,
}

impl Cores {
    fn find() -> Self {
        let all = sched_getaffinity(None).ok();
        let last = |all: &CpuSet| (0..CpuSet::MAX_CPU).rev().find(|core| all.is_set(*core));
        let one = all.as_ref().and_then(last).map(|core| {
            let mut one = CpuSet::new();
            one.set(core);
            (core, one)
        });
        Self { all, one }
    }

    /// Keeps this thread, and all that it starts from now on, to one core.
    fn pin(&self) {
        if let Some((_, one)) = &self.one {
            let _ = sched_setaffinity(None, one);
        }
    }

    fn free(&self) {
        if let Some(all) = &self.all {
            let _ = sched_setaffinity(None, all);
        }
    }
}

async fn all(cores: &Cores) -> Outcome<bool> {
    let only = std::env::var("TENURE_BENCH_ONLY").unwrap_or_default();
    let wanted = |part: &str| only.is_empty() || only.split(',').any(|word| word == part);
    let runs: usize = std::env::var("TENURE_BENCH_RUNS").map_or(Ok(3), |runs| runs.parse())?;
    // Servers may use every core; what is measured on one of them is started after pinning.
    cores.pin();
    let disk = Server::start(&std::env::temp_dir(), &[]).await?;
    let etcd = Etcd::start().await;
    cores.free();
    let wide = Server::start(&std::env::temp_dir(), &[]).await?;
    let counting = ["shared_preload_libraries=pg_stat_statements"];
    let memory = Server::start(Path::new("/dev/shm"), &counting).await?;
    prepare(&disk, &wide, &memory).await?;
    describe(cores, &disk, &etcd).await?;
    let mut report = Report::default();
    for run in 1..=runs {
        println!("\n=== run {run} of {runs}; load {}", load_average());
        cores.pin();
        if wanted("single") {
            single::one(&mut report, run, &disk, &etcd).await?;
        }
        if wanted("batch") {
            single::batches(&mut report, run, &disk, &etcd).await?;
        }
        if wanted("sqlite") {
            sqlite::run(&mut report).await?;
        }
        if wanted("load") {
            load::run(&mut report, run, &disk).await?;
        }
        if wanted("endings") {
            endings::run(&mut report, run, &disk).await?;
        }
        if wanted("seen") {
            seen::run(&mut report, run, &disk).await?;
        }
        cores.free();
        if wanted("lookup") {
            lookup::run(&mut report)?;
        }
        if wanted("callers") {
            callers::run(&mut report, run, &wide).await?;
        }
        if wanted("leader") {
            callers::leader(&mut report, run, &wide).await?;
        }
        if wanted("idle") {
            idle::run(&mut report, run, &memory).await?;
        }
    }
    Ok(report.finish())
}

/// The schema is there before anything is measured, and so is the floor's table.
async fn prepare(disk: &Server, wide: &Server, memory: &Server) -> Outcome {
    for server in [disk, wide, memory] {
        drop(words::open(&server.url("tenure")).await?);
    }
    let floor = server::connect(&disk.url("floor")).await?;
    floor.batch_execute(single::FLOOR_TABLE).await?;
    let admin = server::connect(&memory.url("tenure")).await?;
    admin.batch_execute("CREATE EXTENSION pg_stat_statements").await?;
    admin.batch_execute(&format!("CREATE ROLE {} LOGIN SUPERUSER", idle::ROLE)).await?;
    Ok(())
}

async fn describe(cores: &Cores, disk: &Server, etcd: &Result<Etcd, String>) -> Outcome {
    let admin = server::connect(&disk.url("postgres")).await?;
    for name in ["server_version", "fsync", "synchronous_commit", "wal_sync_method"] {
        let row = admin.query_one(&format!("SHOW {name}"), &[]).await?;
        println!("{name} = {}", row.get::<_, String>(0));
    }
    println!("data on {}", disk.file_system()?);
    match &cores.one {
        Some((core, _)) => {
            println!("one core of {}: {core}", std::thread::available_parallelism()?);
        }
        None => println!("not pinned: the system does not let us"),
    }
    match etcd {
        Ok(etcd) => println!("etcd: {}", etcd.version),
        Err(why) => println!("etcd: lines with it are not measured: {why}"),
    }
    Ok(())
}

/// How busy the machine is otherwise.
fn load_average() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
