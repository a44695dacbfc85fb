//! The two counters and sets that a leader writes, in the store's own database.
//!
//! Both are read, held for a moment, and written back one higher. The **fenced**
//! ones are so in one transaction that begins with the fence; the **loose** ones
//! as programs do it that only ask whether they lead. The tables have no unique
//! keys: what is written twice must show.

mod postgres;
mod sqlite;

use std::time::Duration;

use tenure::Leadership;

use crate::checker::{Ledger, Row};
use crate::failure::{Failure, Outcome};

pub(crate) use sqlite::hog;

/// Makes the tables; the counters begin with 0.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS chaos_counter (name TEXT NOT NULL, value BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS chaos_fenced
        (element TEXT NOT NULL, term BIGINT NOT NULL, value BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS chaos_loose
        (element TEXT NOT NULL, term BIGINT NOT NULL, value BIGINT NOT NULL);
    INSERT INTO chaos_counter VALUES ('fenced', 0), ('loose', 0);";

/// What became of a fenced write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is committed.
    Done,
    /// The fence refused it.
    Refused,
}

/// A write under the fence.
pub(crate) struct Fenced<'l> {
    pub(crate) leadership: &'l Leadership,
    /// False to leave the fence out on purpose.
    pub(crate) fence: bool,
    pub(crate) element: &'l str,
    /// How long the value is held between reading and writing.
    pub(crate) hold: Duration,
}

/// A connection to the books.
pub(crate) enum Books {
    Sqlite(sqlite::Sqlite),
    Postgres(postgres::Postgres),
}

impl Books {
    /// Opens the books that lie where the store at `url` does.
    pub(crate) async fn open(url: &str) -> Outcome<Self> {
        match url.split_once(':') {
            Some(("sqlite", path)) => Ok(Self::Sqlite(sqlite::Sqlite::open(path)?)),
            Some(("postgres", _)) => Ok(Self::Postgres(postgres::Postgres::open(url).await?)),
            _ => Err(Failure::new(format!("{url} names no store with books"))),
        }
    }

    /// Makes the tables, once for a run.
    pub(crate) async fn make(&mut self) -> Outcome {
        match self {
            Self::Sqlite(books) => books.make(),
            Self::Postgres(books) => books.make().await,
        }
    }

    /// Raises the fenced counter by one and puts the element into the set.
    pub(crate) async fn fenced(&mut self, write: Fenced<'_>) -> Outcome<Written> {
        match self {
            Self::Sqlite(books) => books.fenced(write).await,
            Self::Postgres(books) => books.fenced(write).await,
        }
    }

    /// What the loose counter is.
    pub(crate) async fn loose_value(&mut self) -> Outcome<u64> {
        match self {
            Self::Sqlite(books) => books.loose_value(),
            Self::Postgres(books) => books.loose_value().await,
        }
    }

    /// Sets the loose counter and puts the element into the loose set.
    pub(crate) async fn loose_write(&mut self, row: &Row) -> Outcome {
        match self {
            Self::Sqlite(books) => books.loose_write(row),
            Self::Postgres(books) => books.loose_write(row).await,
        }
    }

    /// Returns once nothing is on its way any more of those who are gone.
    pub(crate) async fn quiet(&mut self) -> Outcome {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(books) => books.quiet().await,
        }
    }

    /// Everything: the fenced and the loose.
    pub(crate) async fn read(&mut self) -> Outcome<(Ledger, Ledger)> {
        match self {
            Self::Sqlite(books) => Ok((books.ledger("fenced")?, books.ledger("loose")?)),
            Self::Postgres(books) => {
                Ok((books.ledger("fenced").await?, books.ledger("loose").await?))
            }
        }
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
