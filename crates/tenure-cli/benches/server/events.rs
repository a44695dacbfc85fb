//! A thousand who want to know: clients of events, beside connections that listen.

use std::time::{Duration, Instant};

use tenure::Tenure;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::Outcome;
use crate::client::{Follower, rest};
use crate::report::Report;
use crate::served::Served;
use crate::server::{Server, connect};

const CLIENTS: usize = 1_000;
const SLICES: usize = 4;
const SLICE: usize = 4;

/// Clients that follow; each says when it was told of a term.
struct Crowd {
    heard: UnboundedReceiver<Instant>,
    _tasks: JoinSet<()>,
}

impl Crowd {
    async fn of(served: &Served, count: usize) -> Outcome<Self> {
        let (say, heard) = unbounded_channel();
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let mut follower = Follower::open(&served.at, None).await?;
            let say = say.clone();
            tasks.spawn(async move {
                while follower.elected().await.is_ok() && say.send(Instant::now()).is_ok() {}
            });
        }
        Ok(Self { heard, _tasks: tasks })
    }

    /// How long after `from` each heard.
    async fn after(&mut self, from: Instant, count: usize) -> Outcome<Vec<f64>> {
        let mut took = Vec::new();
        while took.len() < count {
            let at = self.heard.recv().await.ok_or("no client is left")?;
            took.push(at.duration_since(from).as_secs_f64() * 1e3);
        }
        took.sort_by(f64::total_cmp);
        Ok(took)
    }
}

fn place(run: usize, part: &str) -> String {
    format!("{part}-{run}")
}

/// The server on PostgreSQL, and a member beside it that wins terms.
async fn world(run: usize, part: &str, database: &Server) -> Outcome<(Served, Tenure)> {
    let url = database.url("tenure");
    let namespace = place(run, part);
    let served = Served::start(Some(&url), &["--namespace", &namespace])?;
    let tenure = Tenure::builder(&url).namespace(namespace).connect().await?;
    Ok((served, tenure))
}

/// A connection that listens, and what it is told.
async fn listen(url: &str) -> Outcome<(tokio_postgres::Client, UnboundedReceiver<()>)> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    let (say, heard) = unbounded_channel();
    tokio::spawn(async move {
        let mut messages = std::pin::pin!(futures_util::stream::poll_fn(move |context| {
            connection.poll_message(context)
        }));
        while let Some(Ok(message)) = futures_util::StreamExt::next(&mut messages).await {
            if matches!(message, AsyncMessage::Notification(_)) && say.send(()).is_err() {
                return;
            }
        }
    });
    client.batch_execute("LISTEN crowd").await?;
    Ok((client, heard))
}

/// From the campaign until the last client has heard who leads, beside a bare NOTIFY until the last
/// connection has heard it.
pub(crate) async fn last_to_hear(report: &mut Report, run: usize, database: &Server) -> Outcome {
    println!("\n{CLIENTS} who want to know, until the last has heard");
    let (served, tenure) = world(run, "events", database).await?;
    let mut crowd = Crowd::of(&served, CLIENTS).await?;
    let peers = database.url("peers");
    let (told, mut tells) = unbounded_channel();
    let mut listeners = Vec::new();
    for _ in 0..CLIENTS {
        let (client, mut notes) = listen(&peers).await?;
        let told = told.clone();
        tokio::spawn(async move { while notes.recv().await.is_some() && told.send(()).is_ok() {} });
        listeners.push(client);
    }
    let sender = connect(&peers).await?;
    let election = tenure.election("e");
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for _ in 0..SLICES {
        for _ in 0..SLICE {
            rest().await;
            let from = Instant::now();
            let leadership = election.campaign().await?;
            let took = crowd.after(from, CLIENTS).await?;
            ours.extend(took.last());
            leadership.resign().await?;
        }
        for _ in 0..SLICE {
            rest().await;
            let from = Instant::now();
            sender.batch_execute("NOTIFY crowd").await?;
            for _ in 0..CLIENTS {
                tells.recv().await;
            }
            theirs.push(from.elapsed().as_secs_f64() * 1e3);
        }
    }
    let ours = report.spread("clients of events, from the campaign on", &mut ours, "ms");
    let theirs = report.spread("connections that listen, from the NOTIFY on", &mut theirs, "ms");
    report.at_most("1,000 clients of events / 1,000 connections", ours / theirs, 0.2, "x");
    drop(listeners);
    tenure.shutdown().await?;
    Ok(())
}

/// One client that never reads, beside 200 that do.
pub(crate) async fn stopped(report: &mut Report, run: usize, database: &Server) -> Outcome {
    const READERS: usize = 200;
    println!("\n{READERS} readers, without and with one that has stopped");
    let (served, tenure) = world(run, "stopped", database).await?;
    let election = tenure.election("e");
    // What the one that stops has not read is more than the system keeps for it.
    for _ in 0..1_000 {
        election.campaign().await?.resign().await?;
    }
    let mut crowd = Crowd::of(&served, READERS).await?;
    let mut without = Vec::new();
    let mut with = Vec::new();
    for turn in 0..24 {
        let stuck = match turn % 2 {
            0 => None,
            _ => Some(Follower::stopped(&served.at).await?),
        };
        // What it is sent before nothing more fits is no part of this.
        tokio::time::sleep(Duration::from_millis(400)).await;
        let mut took = Vec::new();
        for _ in 0..10 {
            let from = Instant::now();
            let leadership = election.campaign().await?;
            took.extend(crowd.after(from, READERS).await?);
            leadership.resign().await?;
        }
        took.sort_by(f64::total_cmp);
        let p99 = took[took.len() * 99 / 100];
        if stuck.is_some() { with.push(p99) } else { without.push(p99) }
    }
    let with = report.spread("p99 of the readers with it", &mut with, "ms");
    let without = report.spread("p99 of the readers without it", &mut without, "ms");
    report.at_most("p99 with a stopped reader / without", with / without, 1.1, "x");
    tenure.shutdown().await?;
    Ok(())
}

/// What the server's process has in memory for each client of events that was told something.
pub(crate) async fn memory(report: &mut Report, run: usize, database: &Server) -> Outcome {
    println!("\nmemory of the server's process");
    let (served, tenure) = world(run, "memory", database).await?;
    let election = tenure.election("e");
    let mut warm = Crowd::of(&served, 10).await?;
    let from = Instant::now();
    election.campaign().await?.resign().await?;
    warm.after(from, 10).await?;
    let empty = served.resident()?;
    let mut crowd = Crowd::of(&served, CLIENTS).await?;
    for _ in 0..3 {
        election.campaign().await?.resign().await?;
        crowd.after(from, CLIENTS).await?;
    }
    let each = (served.resident()? - empty) / CLIENTS as f64;
    report.at_most("memory for each client of events", each, 32.0, "KiB");
    tenure.shutdown().await?;
    Ok(())
}

/// A client that comes back a hundred times, by the id of its last event.
pub(crate) async fn resumed(report: &mut Report) -> Outcome {
    println!("\none client that comes back 100 times while terms come and go");
    let home = tempfile::tempdir()?;
    let url = format!("sqlite:{}", home.path().join("t.db").display());
    let served = Served::start(Some(&url), &[])?;
    let tenure = Tenure::builder(&url).connect().await?;
    let election = tenure.election("e");
    let churn = tokio::spawn(async move {
        loop {
            let Ok(leadership) = election.campaign().await else { return };
            if leadership.resign().await.is_err() {
                return;
            }
        }
    });
    let mut last = 0;
    let mut missing = 0;
    for _ in 0..100 {
        let mut follower = Follower::open(&served.at, Some(last)).await?;
        let places =
            tokio::time::timeout(Duration::from_secs(30), follower.places(last, 3)).await??;
        for place in places {
            missing += place.saturating_sub(last + 1);
            last = place;
        }
    }
    churn.abort();
    report.shown("entries that were told", last as f64, "");
    report.at_most("events missing after 100 reconnections", missing as f64, 0.0, "");
    tenure.shutdown().await?;
    Ok(())
}
