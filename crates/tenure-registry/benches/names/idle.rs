//! What a replica asks while nothing happens, and how often all are told while much does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::Outcome;
use crate::actor::Actor;
use crate::report::Report;
use crate::server::{Server, connect, statements};

/// By which what it asks is counted.
pub(crate) const ROLE: &str = "idle_replica";
const IDLE: Duration = Duration::from_secs(4);

pub(crate) async fn run(report: &mut Report, run: usize, memory: &Server) -> Outcome {
    println!("\nan idle replica, and notifications at full rate");
    let place = format!("idle-{run}");
    let admin = connect(&memory.url("tenure")).await?;
    let mut replica = Actor::start("replica", &memory.url_as(ROLE, "tenure"), &place)?;
    replica.hear("ready")?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = statements(&admin, ROLE).await?;
    if before < 1.0 {
        return Err("the replica's statements are not counted".into());
    }
    let texts = texts(&admin).await?;
    tokio::time::sleep(IDLE).await;
    let asked = statements(&admin, ROLE).await? - before;
    report.at_most("statements of an idle replica", asked, 0.0, "");
    if asked > 0.0 {
        let now = self::texts(&admin).await?;
        for (text, calls) in now.iter().filter(|(text, calls)| texts.get(*text) != Some(*calls)) {
            println!("    {} x {text}", calls - texts.get(text).unwrap_or(&0));
        }
    }

    let told = Arc::new(AtomicU64::new(0));
    let listener = listen(&memory.url("tenure"), told.clone()).await?;
    let mut writer = Actor::start("64-3", &memory.url("tenure"), &place)?;
    writer.hear("ready")?;
    let before = told.load(Ordering::Relaxed);
    let from = Instant::now();
    writer.order("go")?;
    // The listener's task must go on meanwhile.
    let counted = tokio::task::spawn_blocking(move || {
        writer.hear("count").map(|count| (count, writer)).map_err(|error| error.to_string())
    });
    let (count, writer) = counted.await??;
    let took = from.elapsed().as_secs_f64();
    let told = (told.load(Ordering::Relaxed) - before) as f64 / took;
    drop((writer, listener, replica));
    report.shown("names registered meanwhile", count / took, "/s");
    report.at_most("notifications of names at full rate", told, 50.0, "/s");
    Ok(())
}

/// How often the replica asked what.
async fn texts(admin: &Client) -> Outcome<BTreeMap<String, i64>> {
    let asked = "SELECT query, sum(calls)::int8 FROM pg_stat_statements s \
                 JOIN pg_roles r ON r.oid = s.userid WHERE r.rolname = $1 GROUP BY query";
    let rows = admin.query(asked, &[&ROLE]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Counts what is told of names.
async fn listen(url: &str, told: Arc<AtomicU64>) -> Outcome<Client> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(note) = message
                && note.payload().lines().skip(1).any(|line| line == "n")
            {
                told.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    client.batch_execute("LISTEN tenure").await?;
    Ok(client)
}
