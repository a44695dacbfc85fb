//! The books in a PostgreSQL database.

use std::time::Duration;

use tenure::FenceError;
use tokio_postgres::{Client, NoTls};

use super::{Fenced, TABLES, Written, signed, unsigned};
use crate::checker::{Ledger, Row};
use crate::failure::{Doing, Failure, Outcome};

/// How long anything may take before the connection is given up.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long to wait at the end for sessions of workers that are gone.
const QUIET: Duration = Duration::from_secs(30);

/// A connection of the application's own.
pub(crate) struct Postgres(Client);

/// Gives up what takes too long: the other end may be gone without a word.
async fn in_time<T, E: std::fmt::Display>(
    what: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Outcome<T> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done.doing(|| what.to_owned()),
        Err(_) => Err(Failure::new(format!("could not {what} within {PATIENCE:?}"))),
    }
}

impl Postgres {
    pub(crate) async fn open(url: &str) -> Outcome<Self> {
        let plain = url.split('?').next().unwrap_or(url);
        let (client, connection) =
            in_time("connect to the books", tokio_postgres::connect(plain, NoTls)).await?;
        // Its end shows in the client's next call.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self(client))
    }

    pub(crate) async fn make(&mut self) -> Outcome {
        in_time("make the tables of the books", self.0.batch_execute(TABLES)).await
    }

    pub(crate) async fn fenced(&mut self, write: Fenced<'_>) -> Outcome<Written> {
        in_time("write under the fence", fenced(&mut self.0, write)).await
    }

    pub(crate) async fn loose_value(&mut self) -> Outcome<u64> {
        in_time("read the loose counter", counter(&self.0, "loose")).await
    }

    pub(crate) async fn loose_write(&mut self, row: &Row) -> Outcome {
        let term = signed(row.term);
        let value = signed(row.value);
        let counter = "UPDATE chaos_counter SET value = $1 WHERE name = 'loose'";
        in_time("write the loose counter", self.0.execute(counter, &[&value])).await?;
        let set = "INSERT INTO chaos_loose VALUES ($1, $2, $3)";
        in_time("write the loose set", self.0.execute(set, &[&row.element, &term, &value])).await?;
        Ok(())
    }

    pub(crate) async fn ledger(&mut self, name: &str) -> Outcome<Ledger> {
        let read = format!("SELECT element, term, value FROM chaos_{name}");
        let rows = in_time("read a set", self.0.query(&read, &[])).await?;
        let rows = rows.iter().map(|row| {
            let term = unsigned(row.get(1));
            let value = unsigned(row.get(2));
            Row { element: row.get(0), term, value }
        });
        let rows = rows.collect();
        let counter = in_time("read a counter", counter(&self.0, name)).await?;
        Ok(Ledger { counter, rows })
    }

    /// Returns once no other session is left: what a killed worker had sent may
    /// still be on its way to a commit.
    pub(crate) async fn quiet(&mut self) -> Outcome {
        let others = "SELECT count(*) FROM pg_stat_activity \
                      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let end = crate::clock::now() + crate::clock::nanos(QUIET);
        while crate::clock::now() < end {
            let row = in_time("count the sessions", self.0.query_one(others, &[])).await?;
            if row.get::<_, i64>(0) == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(Failure::new("sessions of workers that are gone are still open in the store"))
    }
}

async fn counter(client: &Client, name: &str) -> Result<u64, tokio_postgres::Error> {
    let read = "SELECT value FROM chaos_counter WHERE name = $1";
    Ok(unsigned(client.query_one(read, &[&name]).await?.get(0)))
}

async fn fenced(client: &mut Client, write: Fenced<'_>) -> Result<Written, Failure> {
    let failed = |error: tokio_postgres::Error| Failure::new(error.to_string());
    let mut tx = client.transaction().await.map_err(failed)?;
    if write.fence {
        match write.leadership.fence(&mut tx).await {
            Ok(()) => {}
            Err(FenceError::Superseded { .. }) => return Ok(Written::Refused),
            Err(error) => return Err(Failure::new(error.to_string())),
        }
    }
    let read = "SELECT value FROM chaos_counter WHERE name = 'fenced'";
    let value: i64 = tx.query_one(read, &[]).await.map_err(failed)?.get(0);
    tokio::time::sleep(write.hold).await;
    let next = value + 1;
    let counter = "UPDATE chaos_counter SET value = $1 WHERE name = 'fenced'";
    tx.execute(counter, &[&next]).await.map_err(failed)?;
    let set = "INSERT INTO chaos_fenced VALUES ($1, $2, $3)";
    let token = signed(write.leadership.token());
    tx.execute(set, &[&write.element, &token, &next]).await.map_err(failed)?;
    tx.commit().await.map_err(failed)?;
    Ok(Written::Done)
}
