//! From the answer to a registration until another process sees it.

use std::time::{Duration, Instant};

use tenure::Tenure;
use tenure::naming::Value;
use tenure_registry::Registry;

use crate::Outcome;
use crate::actor::{Actor, now};
use crate::report::Report;
use crate::server::{Server, connect};
use crate::words::{self, micros};

const ROUNDS: usize = 150;
/// Longer than the pause between two notifications of names.
const PAUSE: Duration = Duration::from_millis(25);

pub(crate) async fn run(report: &mut Report, run: usize, disk: &Server) -> Outcome {
    println!("\nuntil another process sees a name, {ROUNDS} times in turns");
    let url = disk.url("tenure");
    let place = format!("seen-{run}");
    let tenure = Tenure::builder(&url).namespace(&place).connect().await?;
    let registry = Registry::open(&tenure, "bench")?;
    registry.ready().await?;
    let mut replica = Actor::start("replica", &url, &place)?;
    replica.hear("ready")?;
    // In a database of its own, where no other listener is woken.
    let mut hearer = Actor::start("hearer", &disk.url("bare"), "bare")?;
    hearer.hear("ready")?;
    let client = connect(&disk.url("bare")).await?;
    let reads = connect(&url).await?;
    let read = "SELECT name, token, owner FROM tenure.names WHERE ns = $1 AND name = $2";
    let read = reads.prepare(read).await?;
    let mut kept = Vec::new();
    let mut seen = Vec::new();
    let mut heard = Vec::new();
    let mut selects = Vec::new();
    for n in 0..ROUNDS {
        tokio::time::sleep(PAUSE).await;
        let name = format!("user/{n}");
        kept.push(registry.register(&name, Value::at(words::ENDPOINT)?).await?);
        let answered = now();
        seen.push(replica.hear("seen")? - answered);
        tokio::time::sleep(PAUSE).await;
        let from = now();
        client.batch_execute("NOTIFY bare").await?;
        heard.push(hearer.hear("heard")? - from);
        let from = Instant::now();
        reads.query(&read, &[&place, &format!("bench:{name}")]).await?;
        selects.push(micros(from));
    }
    let heard = report.spread("a bare NOTIFY, one way", &mut heard, "µs");
    let select = report.spread("a bare SELECT of one name", &mut selects, "µs");
    let seen = report.spread("answered, until another process sees it", &mut seen, "µs");
    report.at_most(
        "seen by another process / (NOTIFY + SELECT)",
        seen / (heard + select),
        2.0,
        "x",
    );
    drop(replica);
    tenure.shutdown().await?;
    Ok(())
}
