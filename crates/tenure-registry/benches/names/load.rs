//! Loading a copy of very many names, and what each takes in memory.

use std::time::{Duration, Instant};

use tenure::views::MemberRef;
use tenure::{Namespace, Tenure};
use tenure_registry::Registry;
use tenure_store::Store;

use crate::report::Report;
use crate::server::{Server, connect};
use crate::words::{self, micros};
use crate::{Outcome, counted};

pub(crate) const MANY: usize = 200_000;
const BATCH: usize = 1_000;
const ROUNDS: usize = 3;

/// Names `bench:user/<prefix>n` for a member.
pub(crate) async fn fill(
    store: &dyn Store,
    ns: &Namespace,
    member: &MemberRef,
    prefix: &str,
    count: usize,
) -> Outcome {
    for from in (0..count).step_by(BATCH) {
        let names = (from..count.min(from + BATCH)).map(|n| format!("bench:user/{prefix}{n}"));
        words::take(store, ns, member, names).await?;
    }
    Ok(())
}

pub(crate) async fn run(report: &mut Report, run: usize, disk: &Server) -> Outcome {
    println!("\nloading {MANY} names, on disk, {ROUNDS} times in turns");
    let url = disk.url("tenure");
    let place = format!("load-{run}");
    let store = words::open(&url).await?;
    let ns = Namespace::new(&place)?;
    let owner = words::join(&store, &ns, "owner").await?;
    fill(&store, &ns, &owner, "", MANY).await?;
    let client = connect(&url).await?;
    client.batch_execute("VACUUM ANALYZE tenure.names").await?;
    let bare = "SELECT name, token, rev, owner, life::text, endpoint, idx::text, data \
                FROM tenure.names WHERE ns = $1 ORDER BY name";
    let bare = client.prepare(bare).await?;
    let mut selects = Vec::new();
    let mut loads = Vec::new();
    let mut bytes = Vec::new();
    for _ in 0..ROUNDS {
        let from = Instant::now();
        let rows = client.query(&bare, &[&place]).await?;
        selects.push(micros(from) / 1e3);
        if rows.len() != MANY {
            return Err(format!("{} rows", rows.len()).into());
        }
        drop(rows);
        let tenure = Tenure::builder(&url).namespace(&place).connect().await?;
        let before = counted::bytes();
        let from = Instant::now();
        let registry = Registry::open(&tenure, "bench")?;
        registry.ready().await?;
        loads.push(micros(from) / 1e3);
        // What it was made of is freed by other threads.
        tokio::time::sleep(Duration::from_millis(200)).await;
        bytes.push((counted::bytes() - before - own_bytes(&registry)?) / MANY as f64);
        drop(registry);
        tenure.shutdown().await?;
    }
    let selects = report.spread("the bare SELECT of 200,000 rows", &mut selects, "ms");
    let loads = report.spread("until the copy of 200,000 is ready", &mut loads, "ms");
    report.at_most("loading 200,000 / the bare SELECT", loads / selects, 2.0, "x");
    let bytes = report.spread("memory per name beside name and value", &mut bytes, "B");
    report.at_most("replica's memory per name beside name and value", bytes, 160.0, "B");
    Ok(())
}

/// The bytes of the names themselves, and of the value that all of them have: once, since the
/// copy has it once.
fn own_bytes(registry: &Registry) -> Outcome<f64> {
    let scope = "bench:".len();
    let mut sum = words::ENDPOINT.len();
    for n in 0..MANY {
        let found = registry.lookup(&format!("user/{n}")).ok_or("a name is missing")?;
        sum += scope + found.as_str().len();
    }
    Ok(sum as f64)
}
