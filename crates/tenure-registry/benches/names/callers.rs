//! Many callers in several processes, and a leader that is killed beside them.

use std::time::{Duration, Instant};

use tenure::Tenure;
use tenure::naming::Value;
use tenure_registry::{Registered, Registry};

use crate::Outcome;
use crate::actor::{Actor, TTL};
use crate::report::Report;
use crate::server::Server;
use crate::words::{self, micros, quantile};

const PROCESSES: usize = 3;
const CALLERS: usize = 64;
const SECONDS: f64 = 3.0;
const ROUNDS: usize = 2;
/// So many callers there are in this process while a leader is killed.
const BESIDE: usize = 16;

/// One caller in one process, and 64 in each of three, in turns, on every core.
pub(crate) async fn run(report: &mut Report, run: usize, wide: &Server) -> Outcome {
    println!("\n{PROCESSES} processes with {CALLERS} callers each, {SECONDS} s, on every core");
    let url = wide.url("tenure");
    let mut one = Vec::new();
    let mut many = Vec::new();
    let mut p50 = Vec::new();
    let mut p99 = Vec::new();
    for round in 0..ROUNDS {
        for (callers, processes) in [(1, 1), (CALLERS, PROCESSES)] {
            let place = format!("callers-{run}-{round}-{callers}");
            let part = format!("{callers}-{SECONDS}");
            let mut actors = Vec::new();
            for _ in 0..processes {
                actors.push(Actor::start(&part, &url, &place)?);
            }
            for actor in &mut actors {
                actor.hear("ready")?;
            }
            for actor in &mut actors {
                actor.order("go")?;
            }
            let mut count = 0.0;
            let mut times = Vec::new();
            for actor in &mut actors {
                count += actor.hear("count")?;
                times.extend(actor.hear_all("times")?);
            }
            if callers == 1 {
                p50.push(quantile(&mut times, 0.5));
                one.push(count / SECONDS);
            } else {
                p99.push(quantile(&mut times, 0.99));
                many.push(count / SECONDS);
            }
        }
    }
    let one = report.spread("one caller", &mut one, "/s");
    let many = report.spread("3 processes with 64 callers each", &mut many, "/s");
    let p50 = report.spread("one caller, p50", &mut p50, "µs");
    let p99 = report.spread("3 x 64 callers, p99 of all of them", &mut p99, "µs");
    report.at_least("3 x 64 callers, times the throughput of one", many / one, 20.0, "x");
    report.at_most("3 x 64 callers, p99 / p50 of one", p99 / p50, 15.0, "x");
    Ok(())
}

/// Registrations while the scope's leader is killed, in turns with as long before it: no
/// registration depends on it.
pub(crate) async fn leader(report: &mut Report, run: usize, wide: &Server) -> Outcome {
    println!("\n{BESIDE} callers while the registry's leader is killed, ttl {TTL:?}");
    let url = wide.url("tenure");
    let place = format!("leader-{run}");
    let tenure = Tenure::builder(&url).namespace(&place).connect().await?;
    let registry = Registry::open(&tenure, "bench")?;
    registry.ready().await?;
    let mut kept = Vec::new();
    let mut times = [const { Vec::new() }; 2];
    let mut refused = 0.0;
    for round in 0..ROUNDS {
        // Elected only when the one before it is over.
        let mut leader = Actor::start("leader", &url, &place)?;
        leader.hear("elected")?;
        for (when, times) in times.iter_mut().enumerate() {
            if when == 1 {
                leader.kill()?;
            }
            let callers = (0..BESIDE).map(|caller| {
                let prefix = format!("user/{round}-{when}-{caller}");
                tokio::spawn(call(registry.clone(), prefix))
            });
            for caller in callers.collect::<Vec<_>>() {
                let called = caller.await??;
                kept.extend(called.kept);
                times.extend(called.times);
                refused += called.refused;
            }
        }
    }
    let [before, after] = times.map(|mut times| quantile(&mut times, 0.99));
    report.shown("p99 before", before, "µs");
    report.shown("p99 while the leader is dead, and its ttl runs out", after, "µs");
    report.at_most("p99 with a killed leader / before", after / before, 1.2, "x");
    report.at_most("registrations refused meanwhile", refused, 0.0, "");
    tenure.shutdown().await?;
    Ok(())
}

/// What one caller did.
struct Called {
    kept: Vec<Registered>,
    times: Vec<f64>,
    refused: f64,
}

/// Registers one name after the other, for the ttl of the leader and two seconds more.
async fn call(registry: Registry, prefix: String) -> Result<Called, String> {
    let value = Value::at(words::ENDPOINT).map_err(|error| error.to_string())?;
    let mut called = Called { kept: Vec::new(), times: Vec::new(), refused: 0.0 };
    let begun = Instant::now();
    while begun.elapsed() < TTL + Duration::from_secs(2) {
        let name = format!("{prefix}-{}", called.times.len());
        let from = Instant::now();
        match registry.register(&name, value.clone()).await {
            Ok(registered) => called.kept.push(registered),
            Err(_) => called.refused += 1.0,
        }
        called.times.push(micros(from));
    }
    Ok(called)
}
