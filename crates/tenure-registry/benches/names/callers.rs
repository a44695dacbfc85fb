//! Many callers in several processes, and a leader that is killed beside them.

use std::time::{Duration, Instant};

use tenure::{Tenure, Value};
use tenure_registry::Registry;

use crate::Outcome;
use crate::actor::{Actor, TTL};
use crate::report::Report;
use crate::server::Server;
use crate::words::{self, micros, quantile};

const PROCESSES: usize = 3;
const CALLERS: usize = 64;
const SECONDS: f64 = 3.0;
const ROUNDS: usize = 2;

/// One caller in one process, and 64 in each of three, in turns, on every core.
pub(crate) async fn run(report: &mut Report, run: usize, wide: &Server) -> Outcome {
    println!("\n{PROCESSES} processes with {CALLERS} callers each, {SECONDS} s, on every core");
    let url = wide.url("tenure");
    let (mut one, mut many) = (Vec::new(), Vec::new());
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
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
            for actor in &mut actors {
                count += actor.hear("count")?;
                let (mid, most) = (actor.hear("p50")?, actor.hear("p99")?);
                if callers == 1 {
                    p50.push(mid);
                } else {
                    p99.push(most);
                }
            }
            if callers == 1 { &mut one } else { &mut many }.push(count / SECONDS);
        }
    }
    let one = report.spread("one caller", &mut one, "/s");
    let many = report.spread("3 processes with 64 callers each", &mut many, "/s");
    let p50 = report.spread("one caller, p50", &mut p50, "µs");
    let p99 = report.spread("64 callers, p99 of each process", &mut p99, "µs");
    report.at_least("3 x 64 callers, times the throughput of one", many / one, 20.0, "x");
    report.at_most("3 x 64 callers, p99 / p50 of one", p99 / p50, 15.0, "x");
    Ok(())
}

/// Registrations while the scope's leader is killed: nobody depends on it.
pub(crate) async fn leader(report: &mut Report, run: usize, wide: &Server) -> Outcome {
    println!("\nregistrations while the registry's leader is killed, ttl {TTL:?}");
    let (url, place) = (wide.url("tenure"), format!("leader-{run}"));
    let mut leader = Actor::start("leader", &url, &place)?;
    leader.hear("elected")?;
    let tenure = Tenure::builder(&url).namespace(&place).connect().await?;
    let registry = Registry::open(&tenure, "bench")?;
    registry.ready().await?;
    let (mut kept, mut refused) = (Vec::new(), 0.0);
    let mut times = [const { Vec::new() }; 2];
    for (when, times) in times.iter_mut().enumerate() {
        if when == 1 {
            leader.kill()?;
        }
        let from = Instant::now();
        while from.elapsed() < TTL + Duration::from_secs(2) {
            let name = format!("user/{when}-{}", times.len());
            let from = Instant::now();
            match registry.register(&name, Value::at(words::ENDPOINT)?).await {
                Ok(registered) => kept.push(registered),
                Err(_) => refused += 1.0,
            }
            times.push(micros(from));
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
