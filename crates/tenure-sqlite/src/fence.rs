//! The fence: a stale leader's write is refused in its own transaction.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use tenure_core::{Namespace, Term, TermNumber, TermRef};
use tenure_store::{Error, ErrorKind, FenceError, FenceIn};

use crate::error::Fault;

/// Marks the fences of this crate; see [`FenceIn`].
#[derive(Debug)]
pub enum Sqlite {}

impl FenceIn<Sqlite> for Transaction<'_> {
    async fn fence_in(&mut self, ns: &Namespace, term: &Term) -> Result<(), FenceError> {
        let term = TermRef { election: term.election.clone(), number: term.number };
        fence(self, ns, &term)
    }
}

/// Proves, inside the caller's own transaction, that no newer term of the
/// election exists, and keeps it so until the transaction ends: the connection
/// holds the write lock of the file from here on (C40).
///
/// For applications whose own tables live in the same file, or in one to which
/// it is attached. Keep the transaction short: nobody can write meanwhile, not
/// even this process's own heartbeat. One left open longer than the busy
/// timeout makes everybody else's requests fail with an error that says so, and
/// costs this leader its term when its ttl has run out.
///
/// ```no_run
/// # use tenure_core::{ElectionName, Namespace, TermNumber, TermRef};
/// # fn example(term: TermRef) -> Result<(), Box<dyn std::error::Error>> {
/// let mut db = rusqlite::Connection::open("app.db")?;
/// let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
/// tenure_sqlite::fence(&tx, &Namespace::default(), &term)?;
/// tx.execute("UPDATE reports SET sent = 1 WHERE day = 7", [])?;
/// tx.commit()?;
/// # Ok(())
/// # }
/// ```
pub fn fence(db: &Connection, ns: &Namespace, term: &TermRef) -> Result<(), FenceError> {
    if db.is_autocommit() {
        // Nothing would hold the term still.
        return Err(Error::new(ErrorKind::Invalid, "the fence needs an open transaction")
            .remedy("begin one before, and write inside it")
            .into());
    }
    let newest = newest(db, ns, term).map_err(unproven)?;
    if newest == term.number && newest > TermNumber::NONE {
        return Ok(());
    }
    let (election, number) = (term.election.clone(), term.number);
    if newest > number {
        return Err(FenceError::Superseded { election, number, newest });
    }
    let what = format!(
        "term {number} of election {election} is not in this database, whose newest is {newest}"
    );
    Err(Error::new(ErrorKind::Foreign, what)
        .remedy("check that this is the file and namespace the elections are kept in")
        .into())
}

/// The newest term of the election, with the write lock held.
fn newest(db: &Connection, ns: &Namespace, term: &TermRef) -> rusqlite::Result<TermNumber> {
    let key = params![ns.as_str(), term.election.as_str()];
    // An update that changes nothing still takes the write lock, also in a
    // transaction that has only read so far.
    db.prepare_cached(include_str!("sql/fence_lock.sql"))?.execute(key)?;
    let mut select = db.prepare_cached(include_str!("sql/fence_number.sql"))?;
    let newest: Option<u64> = select.query_row(key, |row| row.get(0)).optional()?;
    Ok(TermNumber::new(newest.unwrap_or(0)))
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
