//! One name and a thousand in SQLite, beside bare inserts into a file of the same settings.

use std::time::Instant;

use rusqlite::Connection;
use tenure::Namespace;
use tenure_sqlite::{SqliteOptions, SqliteStore};

use crate::Outcome;
use crate::report::Report;
use crate::words::{self, micros};

const SLICES: usize = 30;
const SLICE: usize = 10;
const ROUNDS: usize = 12;
const BATCH: usize = 1_000;

const TABLE: &str = "CREATE TABLE bare (ns TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, \
    endpoint TEXT NOT NULL, PRIMARY KEY (ns, name)) WITHOUT ROWID";
const INSERT: &str = "INSERT INTO bare VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";

pub(crate) async fn run(report: &mut Report) -> Outcome {
    println!("\nSQLite: one name, and {BATCH}, in turns");
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("names.db"), SqliteOptions::default()).await?;
    let ns = Namespace::new("bench")?;
    let me = words::join(&store, &ns, "me").await?;
    let mut db = Connection::open(dir.path().join("bare.db"))?;
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.execute_batch(TABLE)?;
    let mut ours = Vec::new();
    let mut bare = Vec::new();
    for slice in 0..SLICES {
        for kind in words::shuffled(2)? {
            for n in 0..SLICE {
                let name = format!("user/{slice}-{n}");
                let from = Instant::now();
                if kind == 0 {
                    words::take(&store, &ns, &me, std::iter::once(name)).await?;
                    ours.push(micros(from));
                } else {
                    let values = ["bench", &name, "me", words::ENDPOINT];
                    db.prepare_cached(INSERT)?.execute(values)?;
                    bare.push(micros(from));
                }
            }
        }
    }
    let bare = report.spread("SQLite: a bare durable insert", &mut bare, "µs");
    let ours = report.spread("SQLite: one name", &mut ours, "µs");
    report.at_most("SQLite: one name / bare insert", ours / bare, 1.5, "x");
    let mut ours = Vec::new();
    let mut bare = Vec::new();
    for round in 0..ROUNDS {
        let names = || (0..BATCH).map(move |n| format!("batch/{round}-{n}"));
        for kind in words::shuffled(2)? {
            let from = Instant::now();
            if kind == 0 {
                words::take(&store, &ns, &me, names()).await?;
                ours.push(micros(from));
            } else {
                let step = db.transaction()?;
                let mut insert = step.prepare_cached(INSERT)?;
                for name in names() {
                    insert.execute(["bench", &name, "me", words::ENDPOINT])?;
                }
                drop(insert);
                step.commit()?;
                bare.push(micros(from));
            }
        }
    }
    let bare = report.spread("SQLite: a bare transaction of 1,000 inserts", &mut bare, "µs");
    let ours = report.spread("SQLite: 1,000 names in one request", &mut ours, "µs");
    report.at_most("SQLite: 1,000 names / bare transaction", ours / bare, 2.0, "x");
    Ok(())
}
