//! The end of a member that held very much, and a bid that loses in a crowd.

use std::time::{Duration, Instant};

use tenure::views::MemberRef;
use tenure::{Namespace, Tenure};
use tenure_core::{Bid, Claim, Heartbeat, Nonce};
use tenure_postgres::PostgresStore;
use tenure_store::Store;

use crate::actor::{Actor, Part};
use crate::report::Report;
use crate::server::Server;
use crate::{Outcome, words};

const MANY: usize = 100_000;
const BATCH: usize = 1_000;
const ROUNDS: usize = 7;
/// The fleet: so many members, with a batch of elections each.
const FLEET: usize = 100;
const TTL: Duration = Duration::from_secs(3);

pub(crate) async fn run(report: &mut Report, run: usize, disk: &Server) -> Outcome {
    take_over(report, run, disk).await?;
    crowd(report, run, disk).await?;
    fleet(report, run, disk).await
}

/// One election taken over from a dead member that held a hundred thousand, and from
/// one that held a single one, in turns.
async fn take_over(report: &mut Report, run: usize, disk: &Server) -> Outcome {
    println!("\ntaking one election over from a dead member, on disk");
    let store = words::open(&disk.url("tenure")).await?;
    let ns = Namespace::new(format!("endings-{run}"))?;
    let heir = words::join(&store, &ns, "heir").await?;
    let mut one = Vec::new();
    let mut many = Vec::new();
    for round in 0..ROUNDS {
        for (times, count) in [(&mut one, 1), (&mut many, MANY)] {
            let dead = words::join(&store, &ns, &format!("dead-{round}-{count}")).await?;
            for batch in 0..count.div_ceil(BATCH) {
                let names = (0..count.min(BATCH)).map(|n| format!("e-{round}-{count}-{batch}-{n}"));
                words::claim(&store, &ns, &dead, names, 1).await?;
            }
            die(&store, &ns, &dead).await?;
            let from = Instant::now();
            let name = format!("e-{round}-{count}-0-0");
            words::claim(&store, &ns, &heir, std::iter::once(name), 2).await?;
            times.push(from.elapsed().as_secs_f64() * 1e6);
        }
    }
    let one = report.spread("from one that held a single election", &mut one, "µs");
    let many = report.spread("from one that held 100,000", &mut many, "µs");
    report.at_most("taken over from a holder of 100,000 / of one", many / one, 1.5, "x");
    Ok(())
}

/// Lets a member's ttl run out.
async fn die(store: &PostgresStore, ns: &Namespace, member: &MemberRef) -> Outcome {
    let ttl = Duration::from_millis(1);
    store.heartbeat(ns, &Heartbeat::new(member.clone(), ttl)).await?;
    tokio::time::sleep(Duration::from_millis(60)).await;
    Ok(())
}

/// A bid that loses among 200 candidates, and among two.
async fn crowd(report: &mut Report, run: usize, disk: &Server) -> Outcome {
    println!("\na bid that loses, on disk");
    let store = words::open(&disk.url("tenure")).await?;
    let ns = Namespace::new(format!("crowd-{run}"))?;
    let leader = words::join(&store, &ns, "leader").await?;
    words::claim(&store, &ns, &leader, ["few", "many"].map(str::to_owned).into_iter(), 1).await?;
    let mut last = leader;
    for n in 0..200 {
        last = words::join(&store, &ns, &format!("m{n:03}")).await?;
        lose(&store, &ns, &last, "many", 1).await?;
    }
    lose(&store, &ns, &last, "few", 1).await?;
    let mut few = Vec::new();
    let mut many = Vec::new();
    for nonce in 2..502 {
        for (times, name) in [(&mut few, "few"), (&mut many, "many")] {
            let from = Instant::now();
            lose(&store, &ns, &last, name, nonce).await?;
            times.push(from.elapsed().as_secs_f64() * 1e6);
        }
    }
    let few = report.spread("among two candidates", &mut few, "µs");
    let many = report.spread("among 200 candidates", &mut many, "µs");
    report.at_most("a bid that loses among 200 / among two", many / few, 2.0, "x");
    Ok(())
}

async fn lose(
    store: &PostgresStore,
    ns: &Namespace,
    member: &MemberRef,
    name: &str,
    nonce: u64,
) -> Outcome {
    let election = tenure::ElectionName::new(name)?;
    let bids = vec![Bid::new(election, Nonce::new(nonce))];
    let claim = Claim::new(member.clone(), words::LONG, bids);
    store.claim(ns, &claim).await?;
    Ok(())
}

/// A hundred members with a thousand elections each; one process is killed, and
/// another leads all that it led.
async fn fleet(report: &mut Report, run: usize, disk: &Server) -> Outcome {
    println!("\na fleet of {FLEET} members with {BATCH} elections each, one is killed");
    let place = format!("fleet-{run}");
    let url = disk.url("tenure");
    let store = words::open(&url).await?;
    let ns = Namespace::new(&place)?;
    for n in 1..FLEET {
        let member = words::join(&store, &ns, &format!("fleet-{n}")).await?;
        words::claim(&store, &ns, &member, (0..BATCH).map(|e| format!("f-{n}-{e}")), 1).await?;
    }
    let mut doomed = Actor::start(Part::Holder(BATCH), &url, &place, TTL)?;
    doomed.hear("holding")?;
    let tenure = Tenure::builder(&url).namespace(&place).ttl(TTL).connect().await?;
    let mut campaigns = tenure.campaign_all((0..BATCH).map(|n| format!("shard-{n}")))?;
    tokio::time::sleep(TTL / 2).await;
    let from = Instant::now();
    doomed.kill()?;
    let mut led = Vec::new();
    while led.len() < BATCH {
        led.push(campaigns.next().await.ok_or("the campaigns ended")??);
    }
    let took = from.elapsed().as_secs_f64();
    report.at_most("kill -9 to 1,000 elections led again (ttl 3 s)", took, 4.0, "s");
    drop(led);
    tenure.shutdown().await?;
    Ok(())
}
