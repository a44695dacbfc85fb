//! The books in a SQLite file.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};
use tenure::FenceError;

use super::{Fenced, TABLES, Written, signed, unsigned};
use crate::checker::{Ledger, Row};
use crate::failure::{Doing, Failure, Outcome};

/// How long a statement waits for its lock.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection of the application's own.
pub(crate) struct Sqlite(Connection);

impl Sqlite {
    pub(crate) fn open(path: &str) -> Outcome<Self> {
        let db = Connection::open(path).doing(|| format!("open {path}"))?;
        db.busy_timeout(PATIENCE).doing(|| "set the busy timeout".into())?;
        // Processes are killed here, not machines: what was handed to the kernel
        // is kept.
        db.pragma_update(None, "synchronous", "NORMAL").doing(|| "set synchronous".into())?;
        Ok(Self(db))
    }

    pub(crate) fn make(&mut self) -> Outcome {
        self.0.execute_batch(TABLES).doing(|| "make the tables of the books".into())
    }

    pub(crate) async fn fenced(&mut self, write: Fenced<'_>) -> Outcome<Written> {
        let failed = |error: rusqlite::Error| Failure::new(format!("a fenced write: {error}"));
        let begun = self.0.transaction_with_behavior(TransactionBehavior::Immediate);
        let mut tx = begun.map_err(failed)?;
        if write.fence {
            match write.leadership.fence(&mut tx).await {
                Ok(()) => {}
                Err(FenceError::Superseded { .. }) => return Ok(Written::Refused),
                Err(error) => return Err(Failure::new(error.to_string())),
            }
        }
        let read = "SELECT value FROM chaos_counter WHERE name = 'fenced'";
        let value: i64 = tx.query_row(read, [], |row| row.get(0)).map_err(failed)?;
        tokio::time::sleep(write.hold).await;
        let next = value + 1;
        tx.execute("UPDATE chaos_counter SET value = ?1 WHERE name = 'fenced'", [next])
            .map_err(failed)?;
        let row = params![write.element, signed(write.leadership.token()), next];
        tx.execute("INSERT INTO chaos_fenced VALUES (?1, ?2, ?3)", row).map_err(failed)?;
        tx.commit().map_err(failed)?;
        Ok(Written::Done)
    }

    pub(crate) fn loose_value(&mut self) -> Outcome<u64> {
        self.counter("loose")
    }

    pub(crate) fn loose_write(&mut self, row: &Row) -> Outcome {
        let term = signed(row.term);
        let value = signed(row.value);
        self.0
            .execute("UPDATE chaos_counter SET value = ?1 WHERE name = 'loose'", [value])
            .doing(|| "write the loose counter".into())?;
        self.0
            .execute(
                "INSERT INTO chaos_loose VALUES (?1, ?2, ?3)",
                params![row.element, term, value],
            )
            .doing(|| "write the loose set".into())?;
        Ok(())
    }

    fn counter(&self, name: &str) -> Outcome<u64> {
        let read = "SELECT value FROM chaos_counter WHERE name = ?1";
        let value: rusqlite::Result<i64> = self.0.query_row(read, [name], |row| row.get(0));
        value.map(unsigned).doing(|| format!("read the counter {name}"))
    }

    pub(crate) fn ledger(&mut self, name: &str) -> Outcome<Ledger> {
        let read = || -> rusqlite::Result<Vec<Row>> {
            let mut select =
                self.0.prepare(&format!("SELECT element, term, value FROM chaos_{name}"))?;
            let rows = select.query_map([], |row| {
                let term = unsigned(row.get(1)?);
                let value = unsigned(row.get(2)?);
                Ok(Row { element: row.get(0)?, term, value })
            })?;
            rows.collect()
        };
        let rows = read().doing(|| format!("read the set {name}"))?;
        Ok(Ledger { counter: self.counter(name)?, rows })
    }
}

/// Holds the write lock of the file for a while, as a long transaction would.
pub(crate) fn hog(path: &str, lasting: Duration) -> Outcome {
    let mut books = Sqlite::open(path)?;
    // One that only tries now and then may lose for long while a holder of many
    // elections wins them.
    books.0.busy_timeout(PATIENCE * 30).doing(|| "set the busy timeout".into())?;
    let held = books.0.transaction_with_behavior(TransactionBehavior::Immediate);
    let held = held.doing(|| "take the write lock".into())?;
    std::thread::sleep(lasting);
    held.rollback().doing(|| "give the write lock back".into())
}
