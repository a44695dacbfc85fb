//! The fence: a stale leader's write is refused in its own transaction.

use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::{Namespace, TermNumber, TermRef};

/// Why a fence did not let a transaction through. Roll it back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// A newer term exists: whoever asks no longer leads.
    #[error(
        "term {number} of {election:?} was superseded by term {newest}; roll back, and stop \
         leading"
    )]
    Superseded {
        /// The election.
        election: String,
        /// The term that was to be proven.
        number: TermNumber,
        /// The newest one.
        newest: TermNumber,
    },
    /// The file knows of no such term: it is the wrong file or namespace, or
    /// was restored from a backup.
    #[error(
        "term {number} of {election:?} is not in this database, whose newest is term {newest}; \
         roll back, and check that this is the file and namespace the elections are kept in"
    )]
    Unknown {
        /// The election.
        election: String,
        /// The term that was to be proven.
        number: TermNumber,
        /// The newest one in the file; 0 if there is none.
        newest: TermNumber,
    },
    /// There is no transaction, so that nothing would hold the term still.
    #[error("the fence needs an open transaction; begin one before and write inside it")]
    NoTransaction,
    /// SQLite failed; nothing is proven.
    #[error("fencing failed: {0}; roll back and begin again with BEGIN IMMEDIATE")]
    Sqlite(#[from] rusqlite::Error),
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
        return Err(FenceError::NoTransaction);
    }
    let key = params![ns.as_str(), term.election.as_str()];
    // An update that changes nothing still takes the write lock, also in a
    // transaction that has only read so far.
    db.prepare_cached(include_str!("sql/fence_lock.sql"))?.execute(key)?;
    let mut select = db.prepare_cached(include_str!("sql/fence_number.sql"))?;
    let newest: Option<u64> = select.query_row(key, |row| row.get(0)).optional()?;
    let (election, number) = (term.election.as_str().to_owned(), term.number);
    match TermNumber::new(newest.unwrap_or(0)) {
        newest if newest == number && number > TermNumber::NONE => Ok(()),
        newest if newest > number => Err(FenceError::Superseded { election, number, newest }),
        newest => Err(FenceError::Unknown { election, number, newest }),
    }
}
