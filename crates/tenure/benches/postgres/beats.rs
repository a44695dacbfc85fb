//! One heartbeat: against a bare update and the peers' renewals, and what it
//! leaves in the log and the table.

use std::time::Instant;

use tenure::Namespace;
use tenure_store::Store;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::peers::{FLOOR, Gemstone, river_renewal, shuffled};
use crate::report::Report;
use crate::server::{Server, connect};
use crate::{Outcome, words};

const SLICES: usize = 120;
const SLICE: usize = 40;
const COUNTED: u32 = 2_000;

/// On disk, where all that is durable waits for the same flush, and in memory,
/// where what remains is what each costs besides.
pub(crate) async fn run(report: &mut Report, disk: &Server, memory: &Server) -> Outcome {
    println!("\nheartbeats, {} of each in turns of {SLICE}", SLICES * SLICE);
    for (place, server) in [("disk", disk), ("memory", memory)] {
        compare(report, place, server).await?;
    }
    storage(report, disk).await
}

async fn compare(report: &mut Report, place: &str, server: &Server) -> Outcome {
    let client = connect(&server.url("peers")).await?;
    client
        .batch_execute(
            "INSERT INTO recipe VALUES ('mine', 'me', 1, now()) ON CONFLICT (service) DO NOTHING; \
             UPDATE river_leader SET expires_at = now() + interval '1 day'; \
             UPDATE river_leader_durable SET expires_at = now() + interval '1 day'",
        )
        .await?;
    let durable = river_renewal("river_leader_durable");
    let unlogged = river_renewal("river_leader");
    // As programs send them: what is theirs comes as parameters.
    let texts: [(&str, &str, &[&(dyn ToSql + Sync)]); 4] = [
        ("a bare prepared update of one row by its key", FLOOR, &[&1_i64]),
        ("the recipe's leader_heartbeat()", "SELECT leader_heartbeat($1, $2)", &[&"mine", &"me"]),
        ("River's renewal, on a durable table", &durable, &[&"2026-01-01", &"me"]),
        (
            "River's renewal as it is, unlogged: a crash empties it",
            &unlogged,
            &[&"2026-01-01", &"me"],
        ),
    ];
    let mut prepared = Vec::new();
    for (name, text, params) in texts {
        prepared.push((name, client.prepare(text).await?, params, Vec::new()));
    }
    let gemstone = Gemstone::prepare(&client).await?;
    let store = words::open(&server.url("tenure")).await?;
    let ns = Namespace::new("beats")?;
    let me = words::join(&store, &ns, "me").await?;
    let beat = words::beat(&me);
    let guest = words::open(&server.url_as("guest", "tenure")).await?;
    let its_beat = words::beat(&words::join(&guest, &ns, "guest").await?);
    // A program that leads has timers; waiting takes a little longer where one runs.
    let _timer = tokio::spawn(tokio::time::sleep(words::LONG));
    let mut ours = Vec::new();
    let mut guests = Vec::new();
    let mut elects = Vec::new();
    let took = |from: Instant| from.elapsed().as_secs_f64() * 1e6;
    for _ in 0..SLICES {
        // In any order: who always came after one that leaves the disk busy, or idle,
        // would pay for that, or gain.
        for kind in shuffled(prepared.len() + 3)? {
            if let Some((_, statement, params, times)) = prepared.get_mut(kind) {
                for _ in 0..SLICE {
                    let from = Instant::now();
                    client.query(statement, params).await?;
                    times.push(took(from));
                }
            } else if kind == prepared.len() {
                for _ in 0..SLICE {
                    let from = Instant::now();
                    store.heartbeat(&ns, &beat).await?;
                    ours.push(took(from));
                }
            } else if kind == prepared.len() + 1 {
                for _ in 0..SLICE {
                    let from = Instant::now();
                    guest.heartbeat(&ns, &its_beat).await?;
                    guests.push(took(from));
                }
            } else {
                for _ in 0..SLICE / 4 {
                    let from = Instant::now();
                    gemstone.elect(&client).await?;
                    elects.push(took(from));
                }
            }
        }
    }
    let spread =
        |what: &str, times: &mut [f64]| report.spread(&format!("{place}: {what}"), times, "µs");
    let mids: Vec<f64> =
        prepared.iter_mut().map(|(what, _, _, times)| spread(what, times)).collect();
    let elect = spread("gemstone's elect()", &mut elects);
    let ours = spread("a heartbeat through the library", &mut ours);
    let guests = spread("the same by a role that may only call the verbs", &mut guests);
    judge(report, place, &Medians { texts: mids, elect, ours, guests });
    Ok(())
}

/// How long each takes, in microseconds.
struct Medians {
    /// Of the bare update, the recipe, and River's renewal, durable and unlogged.
    texts: Vec<f64>,
    elect: f64,
    ours: f64,
    guests: f64,
}

fn judge(report: &mut Report, place: &str, medians: &Medians) {
    let Medians { texts, elect, ours, guests } = medians;
    let ratio = |what: &str| format!("{place}: heartbeat / {what}");
    let of_guest = format!("{place}: heartbeat of a role that may only call / of the owner");
    report.at_most(&of_guest, guests / ours, 1.2, "x");
    if place == "memory" {
        report.shown(&ratio("bare update"), ours / texts[0], "x");
        report.shown(&ratio("the recipe's leader_heartbeat"), ours / texts[1], "x");
        report.shown(&ratio("River's renewal on a durable table"), ours / texts[2], "x");
        report.at_most(&ratio("gemstone's elect"), ours / elect, 0.5, "x");
    } else {
        // Nearly all of it is the flush, so near one a verdict is its noise.
        report.at_most(&ratio("bare update"), ours / texts[0], 1.10, "x");
        report.at_most(&ratio("the recipe's leader_heartbeat"), ours / texts[1], 1.0, "x");
        report.at_most(&ratio("River's renewal on a durable table"), ours / texts[2], 1.0, "x");
        report.shown(&ratio("gemstone's elect"), ours / elect, "x");
    }
    report.shown(&ratio("River's renewal as it is, unlogged"), ours / texts[3], "x");
}

/// The bytes of log and the updates within the page, away from a checkpoint:
/// after one, the first change of a page writes the whole page.
async fn storage(report: &mut Report, disk: &Server) -> Outcome {
    let admin = connect(&disk.url("tenure")).await?;
    let store = words::open(&disk.url("tenure")).await?;
    let ns = &Namespace::new("storage")?;
    let beat = &words::beat(&words::join(&store, ns, "me").await?);
    store.heartbeat(ns, beat).await?;
    let from = place(&admin).await?;
    let before = updates(&admin).await?;
    for _ in 0..COUNTED {
        store.heartbeat(ns, beat).await?;
    }
    let bytes = (place(&admin).await? - from) / f64::from(COUNTED);
    report.at_most("bytes of WAL for each heartbeat", bytes, 120.0, "B");
    // The server's own counting lags behind by up to a second.
    let mut after = updates(&admin).await?;
    while after.0 - before.0 < f64::from(COUNTED) {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        after = updates(&admin).await?;
    }
    let hot = (after.1 - before.1) / (after.0 - before.0) * 100.0;
    report.at_least("heartbeats that stay in their page (HOT)", hot, 99.0, "%");
    Ok(())
}

async fn place(admin: &Client) -> Outcome<f64> {
    let asked = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8";
    Ok(admin.query_one(asked, &[]).await?.get(0))
}

async fn updates(admin: &Client) -> Outcome<(f64, f64)> {
    let asked = "SELECT n_tup_upd::float8, n_tup_hot_upd::float8 FROM pg_stat_user_tables \
                 WHERE schemaname = 'tenure' AND relname = 'members'";
    let row = admin.query_one(asked, &[]).await?;
    Ok((row.get(0), row.get(1)))
}
