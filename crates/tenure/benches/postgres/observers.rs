//! A thousand observers in one process, against a thousand connections that
//! listen.

use std::time::{Duration, Instant};

use tenure::{Namespace, Observed, Tenure};
use tokio::sync::mpsc::unbounded_channel;

use crate::Outcome;
use crate::peers::listen;
use crate::report::Report;
use crate::server::{Server, connect};
use crate::words;

const OBSERVERS: usize = 1_000;
/// A thousand processes that wake push everything else out of the processor's
/// caches, so that each contender has a few turns in a row.
const SLICES: usize = 4;
const SLICE: usize = 4;

pub(crate) async fn run(report: &mut Report, run: usize, disk: &Server) -> Outcome {
    println!("\n{OBSERVERS} who want to know, until the last has heard");
    let url = disk.url("tenure");
    let ns = Namespace::new(format!("observers-{run}"))?;
    let tenure = Tenure::builder(&url).namespace(ns.as_str()).connect().await?;
    let (heard, mut hears) = unbounded_channel();
    for _ in 0..OBSERVERS {
        let mut observer = tenure.election("e").observe()?;
        let heard = heard.clone();
        tokio::spawn(async move {
            while let Some(seen) = observer.next().await {
                if matches!(seen.observed, Observed::Leads { .. }) && heard.send(()).is_err() {
                    return;
                }
            }
        });
    }
    // Their own database: a notification wakes all who listen in it.
    let peers = disk.url("peers");
    let mut listeners = Vec::new();
    let (told, mut tells) = unbounded_channel();
    for _ in 0..OBSERVERS {
        let (client, mut notes) = listen(&peers, "crowd").await?;
        let told = told.clone();
        tokio::spawn(async move { while notes.recv().await.is_some() && told.send(()).is_ok() {} });
        listeners.push(client);
    }
    let store = words::open(&url).await?;
    let sender = connect(&peers).await?;
    let me = words::join(&store, &ns, "me").await?;
    let mut shared = Vec::new();
    let mut crowd = Vec::new();
    for slice in 0..SLICES {
        for turn in 0..SLICE {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let nonce = (slice * SLICE + turn + 1) as u64;
            let from = Instant::now();
            let won = words::claim(&store, &ns, &me, std::iter::once("e".into()), nonce).await?;
            for _ in 0..OBSERVERS {
                hears.recv().await;
            }
            shared.push(from.elapsed().as_secs_f64() * 1e3);
            words::release(&store, &ns, &won[0]).await?;
        }
        for _ in 0..SLICE {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let from = Instant::now();
            sender.batch_execute("NOTIFY crowd").await?;
            for _ in 0..OBSERVERS {
                tells.recv().await;
            }
            crowd.push(from.elapsed().as_secs_f64() * 1e3);
        }
    }
    let ours = report.spread("observers of one process, from the claim on", &mut shared, "ms");
    let theirs = report.spread("connections that listen, from the NOTIFY on", &mut crowd, "ms");
    report.at_most("1,000 observers / 1,000 connections", ours / theirs, 0.1, "x");
    drop(listeners);
    tenure.shutdown().await?;
    Ok(())
}
