//! A store of one's own: four methods with compare-and-swap. This one is a table of any SQL
//! database. A real one is checked by the suite, `tenure-conformance`.
//!
//! ```sh
//! cargo run --example own_store -- /tmp/cells.db     # in two terminals
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension};
use tenure::{Tenure, WorkError, store::BootClock};
use tenure_cas::*;
use tenure_store::{Error, ErrorKind, Result};

/// No cell has the same content twice, so that its content tells its versions apart.
#[derive(Debug)]
struct Table(Mutex<Connection>);

impl Table {
    fn ask<T>(&self, ask: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let told = |e| Error::new(ErrorKind::Unreachable, "the table").caused_by(e).maybe_applied();
        ask(&self.0.lock().unwrap()).map_err(told)
    }
}

#[async_trait::async_trait]
impl Register for Table {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        let text = "SELECT content FROM cells WHERE key = ?1";
        let found = self.ask(|db| db.query_row(text, [key], |row| row.get(0)).optional())?;
        Ok(match found.map(|content: String| (Version::new(&content), content)) {
            None => Loaded::Absent,
            Some((version, _)) if Some(&version) == known => Loaded::Unchanged,
            Some((version, content)) => Loaded::Found { bytes: content.into(), version },
        })
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        let content = String::from_utf8_lossy(&bytes);
        let text = "UPDATE cells SET content = ?2 WHERE key = ?1 AND content = ?3";
        let made = "INSERT INTO cells (key, content) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let swapped = self.ask(|db| match &expect {
            Expect::Absent => db.execute(made, [key, &content]),
            Expect::Version(version) => db.execute(text, [key, &content, version.as_str()]),
        })?;
        Ok(if swapped == 1 { Swapped::Stored(Version::new(content)) } else { Swapped::Conflict })
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        let text = "DELETE FROM cells WHERE key = ?1 AND content = ?2";
        let removed = self.ask(|db| db.execute(text, [key, expect.as_str()]))?;
        let is_there = removed == 0 && self.load(key, None).await? != Loaded::Absent;
        Ok(if is_there { Removed::Conflict } else { Removed::Gone })
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let text = "SELECT key FROM cells WHERE substr(key, 1, length(?1)) = ?1";
        let listed =
            |row: &rusqlite::Row<'_>| Ok(Listed { key: row.get(0)?, version: None, bytes: None });
        self.ask(|db| db.prepare(text)?.query_map([prefix], listed)?.collect())
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let db = Connection::open(std::env::args().nth(1).as_deref().unwrap_or(":memory:"))?;
    db.execute_batch("CREATE TABLE IF NOT EXISTS cells (key TEXT PRIMARY KEY, content TEXT)")?;
    let db = Arc::new(Table(Mutex::new(db)));
    let store = CasStore::new(db, Arc::new(BootClock), CasOptions::default())?;
    let tenure = Tenure::with_store(Arc::new(store)).connect().await?;
    let election = tenure.election("own");
    let work = election.lead(|leadership| async move {
        println!("leads under token {}", leadership.token());
        tokio::signal::ctrl_c().await.map_err(WorkError::from)
    });
    work.await?;
    tenure.shutdown().await.map(drop).map_err(Into::into)
}
