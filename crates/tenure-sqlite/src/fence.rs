//! The fence: a stale leader's write is refused in its own transaction.

use std::future::{Future, ready};

use rusqlite::{Connection, Savepoint, Transaction, params};
use tenure_store::{Error, ErrorKind, FenceBlocking, FenceError, FenceIn, Fenced, StoreId};

use crate::KIND;
use crate::error::Fault;

/// Marks the fences of this crate; see [`FenceIn`].
#[derive(Debug)]
pub enum Sqlite {}

/// Asks at once: SQLite blocks anyhow, and so the future borrows no transaction,
/// which could not be moved to another thread.
impl FenceIn<Sqlite> for Transaction<'_> {
    fn fence_in<'a>(
        &'a mut self,
        fenced: Fenced<'a>,
    ) -> impl Future<Output = Result<(), FenceError>> + Send + 'a {
        ready(fence(self, fenced))
    }
}

/// For a transaction that was begun by `BEGIN IMMEDIATE` on the connection itself. A
/// connection, unlike a [`Transaction`], may be kept across an `await` of a task that
/// moves between threads.
impl FenceIn<Sqlite> for Connection {
    fn fence_in<'a>(
        &'a mut self,
        fenced: Fenced<'a>,
    ) -> impl Future<Output = Result<(), FenceError>> + Send + 'a {
        ready(fence(self, fenced))
    }
}

impl FenceBlocking<Sqlite> for Transaction<'_> {
    fn fence_blocking(&self, fenced: Fenced<'_>) -> Result<(), FenceError> {
        fence(self, fenced)
    }
}

impl FenceBlocking<Sqlite> for Savepoint<'_> {
    fn fence_blocking(&self, fenced: Fenced<'_>) -> Result<(), FenceError> {
        fence(self, fenced)
    }
}

impl FenceBlocking<Sqlite> for Connection {
    fn fence_blocking(&self, fenced: Fenced<'_>) -> Result<(), FenceError> {
        fence(self, fenced)
    }
}

/// Proves, inside the caller's own transaction, that no newer term of the
/// election exists, and keeps it so until the transaction ends: the connection
/// holds the write lock of the file from here on (C40). The same of the binding of a name.
///
/// For applications whose own tables live in the same file, or in one to which
/// it is attached: of several, the file that gave the term out is the one that is
/// asked, and a term of any other file is refused (L1). Keep the transaction short:
/// no process can write meanwhile, not even this one its heartbeat. A transaction left open
/// longer than the busy timeout makes all other requests fail with an error
/// that says so, and costs this leader its term when its ttl has run out.
///
/// Applications call it by `Leadership::fence_blocking` and `Registration::fence_blocking` of
/// the crate `tenure`.
pub fn fence(db: &Connection, fenced: Fenced<'_>) -> Result<(), FenceError> {
    if db.is_autocommit() {
        // Nothing would hold the term still.
        return Err(Error::new(ErrorKind::Invalid, "the fence needs an open transaction")
            .remedy("begin one before, and write inside it")
            .into());
    }
    let (KIND, Some(id)) = (fenced.store().kind, fenced.store().id) else {
        return Err(fenced.stranger("an SQLite database"));
    };
    let mut ours = None;
    let mut others = Vec::new();
    for (name, file) in databases(db).map_err(unproven)? {
        let Some(found) = look(db, &name, fenced).map_err(unproven)? else { continue };
        if found.store != Some(id) {
            others.push(found.told(&file));
        } else if ours.replace(found).is_some() {
            let what = format!("two copies of the store {id} are attached to this connection");
            return Err(Error::new(ErrorKind::Invalid, what)
                .remedy("attach only the file that the elections are kept in")
                .into());
        }
    }
    match ours {
        Some(found) => found.verdict(fenced),
        None if others.is_empty() => Err(fenced.stranger("a database without Tenure's tables")),
        None => Err(fenced.stranger(others.join(", "))),
    }
}

/// What a database says of the term or the binding.
struct Found {
    store: Option<StoreId>,
    /// The newest number of the election, or the token of the name; zero if there is none.
    newest: u64,
    /// It is held by the life that it was given to.
    held: bool,
}

impl Found {
    fn told(&self, file: &str) -> String {
        let number = self.store.map(|id| id.to_string()).unwrap_or_default();
        format!("the sqlite store {number} ({file})")
    }

    fn verdict(&self, fenced: Fenced<'_>) -> Result<(), FenceError> {
        let number = fenced.number();
        let newest = self.newest;
        if newest == number && self.held {
            return Ok(());
        }
        // A name that was dropped leaves no row; the number of an election stays.
        if matches!(fenced, Fenced::Name(_)) {
            let is_void = newest == number;
            return Err(fenced.over(if is_void { 0 } else { newest }));
        }
        if newest >= number && newest > 0 {
            return Err(fenced.over(newest));
        }
        let what = format!("{fenced} is not in this database, whose newest is {newest}");
        Err(Error::new(ErrorKind::Foreign, what)
            .remedy("check that no older copy of the file was put in its place")
            .into())
    }
}

/// The databases of a connection: its own and what is attached, with their files.
fn databases(db: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut list = db.prepare_cached("SELECT name, file FROM pragma_database_list")?;
    let rows = list.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// The newest of the election or the name, with the write lock held; `None` if Tenure has
/// no tables there.
fn look(db: &Connection, database: &str, fenced: Fenced<'_>) -> rusqlite::Result<Option<Found>> {
    let quoted = format!("\"{}\"", database.replace('"', "\"\""));
    let put = |text: &str| text.replace("{database}", &quoted);
    let (lock, number) = match fenced {
        Fenced::Term(_) => {
            (include_str!("sql/fence_lock.sql"), include_str!("sql/fence_number.sql"))
        }
        Fenced::Name(_) => {
            (include_str!("sql/fence_name_lock.sql"), include_str!("sql/fence_name_token.sql"))
        }
    };
    let ns = fenced.ns().as_str();
    let subject = fenced.subject();
    // An update that changes nothing still takes the write lock, also in a
    // transaction that has only read so far. It comes before any look: a transaction
    // that has looked can only write if no other has since.
    match db.prepare_cached(&put(lock)) {
        Ok(mut lock) => lock.execute(params![ns, subject])?,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut select = db.prepare_cached(&put(number))?;
    let life = fenced.life().to_string();
    let found = select.query_row(params![ns, subject, life], |row| {
        Ok(Found {
            store: row.get::<_, String>(0)?.parse().ok(),
            newest: row.get(1)?,
            held: row.get(2)?,
        })
    })?;
    Ok(Some(found))
}

fn is_missing(error: &rusqlite::Error) -> bool {
    error.to_string().contains("no such table")
}

/// SQLite failed, so nothing is proven.
fn unproven(error: rusqlite::Error) -> FenceError {
    let kind = Fault::from(error);
    let busy = kind.is_busy();
    let error = Error::new(
        if busy { ErrorKind::Busy } else { ErrorKind::Unwritable },
        "fencing in SQLite failed",
    );
    error.caused_by(kind).remedy("begin again with BEGIN IMMEDIATE").into()
}
