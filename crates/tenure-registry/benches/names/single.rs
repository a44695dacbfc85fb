//! One name, and a thousand in one request, on disk.

use std::time::Instant;

use tenure::naming::Value;
use tenure::{Namespace, Tenure};
use tenure_registry::Registry;

use crate::Outcome;
use crate::etcd::{self, Etcd};
use crate::report::Report;
use crate::server::{Server, connect};
use crate::words::{self, micros};

const SLICES: usize = 40;
const SLICE: usize = 20;
const ROUNDS: usize = 12;
const BATCH: usize = 1_000;
/// So many of a round are taken one by one.
const ALONE: usize = 40;
const IN_FLIGHT: usize = 256;

pub(crate) const FLOOR_TABLE: &str = "CREATE TABLE bare (ns text COLLATE \"C\" NOT NULL, \
    name text COLLATE \"C\" NOT NULL, owner text NOT NULL, endpoint text NOT NULL, \
    PRIMARY KEY (ns, name))";
const FLOOR: &str = "INSERT INTO bare VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";

/// One registration beside a bare insert and etcd, in turns.
pub(crate) async fn one(
    report: &mut Report,
    run: usize,
    disk: &Server,
    etcd: &Result<Etcd, String>,
) -> Outcome {
    println!("\none name, {} of each in turns of {SLICE}, on disk", SLICES * SLICE);
    let place = format!("single-{run}");
    let client = connect(&disk.url("floor")).await?;
    let floor = client.prepare(FLOOR).await?;
    let url = disk.url("tenure");
    let store = words::open(&url).await?;
    let ns = Namespace::new(&place)?;
    let me = words::join(&store, &ns, "me").await?;
    let tenure = Tenure::builder(&url).namespace(&place).connect().await?;
    let registry = Registry::open(&tenure, "bench")?;
    registry.ready().await?;
    let mut peer = match etcd {
        Ok(etcd) => Some(etcd.caller().await?),
        Err(_) => None,
    };
    let mut kept = Vec::new();
    let mut times = [const { Vec::new() }; 4];
    for slice in 0..SLICES {
        for kind in words::shuffled(4)? {
            for n in 0..SLICE {
                let name = format!("user/{run}-{slice}-{n}");
                let from = Instant::now();
                match kind {
                    0 => {
                        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                            [&place, &name, &"me", &words::ENDPOINT];
                        client.execute(&floor, &values).await?;
                    }
                    1 => {
                        words::take(&store, &ns, &me, std::iter::once(name)).await?;
                    }
                    2 => kept.push(registry.register(&name, Value::at(words::ENDPOINT)?).await?),
                    _ => match &mut peer {
                        Some(peer) => peer.put_if_absent(&name).await?,
                        None => continue,
                    },
                }
                times[kind].push(micros(from));
            }
        }
    }
    let [bare, bind, whole, other] = &mut times;
    let bare = report.spread("a bare durable INSERT … ON CONFLICT DO NOTHING", bare, "µs");
    let bind = report.spread("one name bound by the store", bind, "µs");
    let whole = report.spread("one registration, through the registry", whole, "µs");
    report.shown("one name bound by the store / bare insert", bind / bare, "x");
    report.at_most("one registration / bare insert", whole / bare, 2.0, "x");
    match etcd {
        Ok(_) => {
            let other = report.spread("etcd, put-if-absent by its JSON gateway", other, "µs");
            report.at_most("one registration / etcd's put-if-absent", whole / other, 1.0, "x");
        }
        Err(why) => println!("  one registration / etcd's put-if-absent: not measured: {why}"),
    }
    // What is dropped is given back, name by name, after it was measured.
    tenure.shutdown().await?;
    Ok(())
}

/// A thousand in one request, beside elections, one by one, and etcd.
pub(crate) async fn batches(
    report: &mut Report,
    run: usize,
    disk: &Server,
    etcd: &Result<Etcd, String>,
) -> Outcome {
    println!("\n{BATCH} names in one request, {ROUNDS} times, on disk");
    let store = words::open(&disk.url("tenure")).await?;
    let ns = Namespace::new(format!("batches-{run}"))?;
    let me = words::join(&store, &ns, "me").await?;
    let mut callers = Vec::new();
    if let Ok(etcd) = etcd {
        for _ in 0..IN_FLIGHT {
            callers.push(etcd.caller().await?);
        }
    }
    let mut times = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        let names = || (0..BATCH).map(move |n| format!("user/{run}-{round}-{n}"));
        for kind in words::shuffled(4)? {
            let from = Instant::now();
            match kind {
                0 => {
                    words::take(&store, &ns, &me, names()).await?;
                }
                1 => {
                    words::claim(&store, &ns, &me, names()).await?;
                }
                2 => {
                    for n in 0..ALONE {
                        let name = format!("alone/{round}-{n}");
                        words::take(&store, &ns, &me, std::iter::once(name)).await?;
                    }
                    times[2].push(micros(from) * BATCH as f64 / ALONE as f64);
                    continue;
                }
                _ if callers.is_empty() => continue,
                _ => {
                    let prefix = format!("batch/{run}-{round}-");
                    times[3].push(etcd::put_all(&mut callers, &prefix, BATCH).await?);
                    continue;
                }
            }
            times[kind].push(micros(from));
        }
    }
    let [names, elections, alone, other] = &mut times;
    let names = report.spread("1,000 names in one request", names, "µs");
    let elections = report.spread("1,000 new elections claimed", elections, "µs");
    let alone = report.spread("1,000 names one by one, by a part of them", alone, "µs");
    report.at_most("1,000 names / 1,000 new elections", names / elections, 1.0, "x");
    report.at_least("1,000 in one request, times faster than alone", alone / names, 50.0, "x");
    match etcd {
        Ok(_) => {
            let other = report.spread("1,000 by etcd, 256 in flight", other, "µs");
            report.at_least(
                "1,000 in one request, times faster than etcd",
                other / names,
                5.0,
                "x",
            );
        }
        Err(why) => println!("  1,000 in one request / etcd: not measured: {why}"),
    }
    Ok(())
}
