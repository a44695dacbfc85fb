//! A lookup among very many names, alone and beside a writer, in turns.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tenure::Tenure;
use tenure::naming::Value;
use tenure_registry::Registry;

use crate::report::Report;
use crate::{Outcome, words};

const MANY: usize = 200_000;
const SLICES: usize = 400;
const SLICE: usize = 1_000;
/// The writer works in so many turns, each as long.
const TURNS: usize = 10;
const TURN: Duration = Duration::from_millis(200);
/// So many names are written in each pause: 10,000 in a second.
const WRITTEN: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// On every core: the writer has one of its own.
pub(crate) fn run(report: &mut Report) -> Outcome {
    println!("\nlookups among {MANY} names, {SLICES} times {SLICE} of each in turns");
    // On a thread that belongs to no runtime: it waits for one of its own.
    let measured = std::thread::spawn(|| measure().map_err(|error| error.to_string()));
    let measured = measured.join().map_err(|_| "the lookups panicked")??;
    judge(report, measured);
    Ok(())
}

struct Measured {
    map: Vec<f64>,
    ours: Vec<f64>,
    beside: Vec<f64>,
    written: f64,
}

fn judge(report: &mut Report, mut measured: Measured) {
    let map = report.spread("HashMap::get", &mut measured.map, "ns");
    let ours = report.spread("lookup()", &mut measured.ours, "ns");
    let beside = report.spread("lookup() beside a writer", &mut measured.beside, "ns");
    let written = "names written meanwhile, and as many dropped";
    report.at_least(written, measured.written, 9_000.0, "/s");
    report.at_most("lookup / HashMap::get", ours / map, 3.0, "x");
    report.at_most("lookup beside a writer / alone", beside / ours, 1.3, "x");
}

fn measure() -> Outcome<Measured> {
    let mut workers = tokio::runtime::Builder::new_multi_thread();
    let runtime = workers.worker_threads(1).enable_all().build()?;
    let (tenure, registry, kept) = runtime.block_on(open())?;
    let names: Vec<String> = (0..MANY).map(|n| format!("user/{n}")).collect();
    let map: HashMap<String, u64> = names.iter().cloned().zip(0..).collect();
    let order = words::shuffled(MANY)?;
    let mut asked = order.iter().cycle().map(|at| names[*at].as_str());
    let mut slice = |get: &dyn Fn(&str) -> bool| -> Outcome<f64> {
        let asked: Vec<&str> = asked.by_ref().take(SLICE).collect();
        let from = Instant::now();
        let found = asked.iter().filter(|name| get(name)).count();
        let took = from.elapsed().as_secs_f64() * 1e9 / SLICE as f64;
        if found < SLICE { Err("a name is missing".into()) } else { Ok(took) }
    };
    let in_map = |name: &str| black_box(map.get(black_box(name))).is_some();
    let in_copy = |name: &str| black_box(registry.lookup(black_box(name))).is_some();
    let mut measured =
        Measured { map: Vec::new(), ours: Vec::new(), beside: Vec::new(), written: 0.0 };
    WRITES.store(0, Ordering::Relaxed);
    let writer = runtime.spawn(write(registry.clone()));
    let mut took = 0.0;
    for _ in 0..TURNS {
        // What the writer began before it was stopped is done by then.
        std::thread::sleep(PAUSE * 2);
        for _ in 0..SLICES / TURNS {
            measured.map.push(slice(&in_map)?);
            measured.ours.push(slice(&in_copy)?);
        }
        WRITES_ON.store(true, Ordering::Relaxed);
        let from = Instant::now();
        while from.elapsed() < TURN {
            measured.beside.push(slice(&in_copy)?);
        }
        WRITES_ON.store(false, Ordering::Relaxed);
        took += from.elapsed().as_secs_f64();
    }
    writer.abort();
    measured.written = WRITES.swap(0, Ordering::Relaxed) as f64 / took;
    drop(kept);
    runtime.block_on(tenure.shutdown())?;
    Ok(measured)
}

/// Whether the writer writes now.
static WRITES_ON: AtomicBool = AtomicBool::new(false);
/// How many names the writer has registered.
static WRITES: AtomicUsize = AtomicUsize::new(0);

type Kept = Vec<tenure_registry::Registered>;

async fn open() -> Outcome<(Tenure, Registry, Kept)> {
    let tenure = Tenure::builder("memory:").ttl(words::LONG).connect().await?;
    let registry = Registry::open(&tenure, "bench")?;
    registry.ready().await?;
    let mut kept = Vec::new();
    for from in (0..MANY).step_by(1_000) {
        kept.extend(register(&registry, from..from + 1_000, "user").await?);
    }
    Ok((tenure, registry, kept))
}

async fn register(registry: &Registry, which: std::ops::Range<usize>, kind: &str) -> Outcome<Kept> {
    let value = Value::at(words::ENDPOINT)?;
    let names = which.map(|n| (format!("{kind}/{n}"), value.clone()));
    let all = registry.register_all(names).await?;
    all.into_iter().map(|one| one.map_err(Into::into)).collect()
}

/// Registers names, and drops those of the pause before.
async fn write(registry: Registry) {
    let mut ticks = tokio::time::interval(PAUSE);
    let mut kept = Vec::new();
    for round in 0.. {
        ticks.tick().await;
        while !WRITES_ON.load(Ordering::Relaxed) {
            ticks.tick().await;
        }
        let from = round * WRITTEN;
        let Ok(names) = register(&registry, from..from + WRITTEN, "other").await else { return };
        drop(std::mem::replace(&mut kept, names));
        WRITES.fetch_add(WRITTEN, Ordering::Relaxed);
    }
}
