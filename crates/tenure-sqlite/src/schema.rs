//! Opening the file: recognising it, and making the tables once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, MAIN_DB, OpenFlags, OptionalExtension};
use rustix::fs::Access;
use tenure_store::{BootClock, Error, ErrorKind, Result, StoreId};

use crate::error::{Fault, Outcome};
use crate::{SqliteOptions, filesystem, identity, limits};

/// The version of the tables that this code reads and writes.
pub(crate) const VERSION: i64 = 1;

/// The statements that make the tables, for an operator who wants to apply them by
/// hand to a file of their own; [`SqliteStore::open`](crate::SqliteStore::open)
/// does it by itself.
pub const SCHEMA: &str = include_str!("sql/schema.sql");

/// Marks a file that Tenure made: "Tenu" in ASCII, shown by `file(1)`.
const APPLICATION_ID: i64 = 0x5465_6e75;

/// Refuses what cannot be a database of ours before anything is created, and
/// gives the path in full, since the working directory may change.
pub(crate) fn check_path(path: &Path, options: &SqliteOptions) -> Result<PathBuf> {
    let refuse = |what: &str, remedy: &str| {
        Err(Error::new(ErrorKind::Invalid, what.to_owned()).remedy(remedy))
    };
    let shown = path.display();
    if path.as_os_str().is_empty() || path == Path::new(":memory:") {
        let what = format!("{shown:?} is not the path of a file");
        return refuse(&what, "give one, as in sqlite:/var/lib/app/tenure.db, or use memory:");
    }
    let full = std::path::absolute(path).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("the path {shown} cannot be made absolute"))
            .caused_by(error)
            .remedy("give an absolute path")
    })?;
    if let Ok(found) = fs::metadata(&full) {
        if found.is_dir() {
            let what = format!("{shown} is a directory");
            return refuse(&what, &format!("give a file in it, as in {shown}/tenure.db"));
        }
        if !found.is_file() {
            return refuse(&format!("{shown} is not a regular file"), "give another path");
        }
        identity::check_names(&full, &found)?;
    } else if options.read_only {
        return Err(absent(&full));
    }
    if !full.parent().is_some_and(Path::is_dir) {
        let what = format!("the directory that {shown} is to lie in does not exist");
        return refuse(&what, "create it, or give another path");
    }
    filesystem::check(&full)?;
    Ok(full)
}

/// Connects to a file whose path was checked, and makes it ready. Any number of
/// processes may do so at once (C33).
pub(crate) fn connect(path: &Path, options: &SqliteOptions) -> Result<Connection> {
    // `Instant` would do here, but there is one clock in this house.
    let deadline = BootClock::read() + options.busy_timeout;
    loop {
        match try_connect(path, options) {
            // Switching to the write-ahead log does not wait for its lock by
            // itself as other statements do.
            Err(fault) if fault.is_busy() && BootClock::read() < deadline => {
                std::thread::sleep(Duration::from_millis(3));
            }
            Err(fault) if options.read_only && fault.is_denied() && !limits::is_reached() => {
                return Err(unreadable(path));
            }
            done => return done.map_err(|fault| fault.told("opening the tables", path)),
        }
    }
}

fn try_connect(path: &Path, options: &SqliteOptions) -> Outcome<Connection> {
    let access = match options.read_only {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    let db = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(options.busy_timeout)?;
    db.set_prepared_statement_cache_capacity(64);
    if !options.read_only && db.is_readonly(MAIN_DB)? {
        return Err(read_only(path).into());
    }
    // A file that is not ours is left exactly as it was. It is looked at in one
    // transaction: between two looks another process may make the tables.
    db.execute_batch("BEGIN")?;
    let found = recognise(&db, path, options);
    undo(&db);
    let found = found?;
    if options.read_only {
        return if found == Found::Ours { Ok(db) } else { Err(absent(path).into()) };
    }
    let mode: String = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(no_log(path, &mode).into());
    }
    db.pragma_update(None, "synchronous", "FULL")?;
    if found == Found::Nothing {
        make_tables(&db, path, options)?;
    }
    Ok(db)
}

/// Which store the file is.
pub(crate) fn store_id(db: &Connection, path: &Path) -> Result<StoreId> {
    let told = |fault: Fault| fault.told("asking which store this is", path);
    let asked = db.query_row("SELECT id FROM tenure_store", [], |row| row.get::<_, String>(0));
    let text = asked.map_err(|error| told(error.into()))?;
    text.parse().map_err(|_| told(Fault::Damaged("id of tenure_store".into())))
}

/// Makes the tables, unless another process has just done so.
fn make_tables(db: &Connection, path: &Path, options: &SqliteOptions) -> Outcome<()> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    let made = recognise(db, path, options).and_then(|found| {
        if found == Found::Nothing {
            if is_empty(db)? {
                db.pragma_update(None, "application_id", APPLICATION_ID)?;
            }
            db.execute_batch(SCHEMA)?;
        }
        Ok(db.execute_batch("COMMIT")?)
    });
    if made.is_err() {
        undo(db);
    }
    made
}

/// Ends a transaction without a trace. The error that counts is the one before.
fn undo(db: &Connection) {
    if !db.is_autocommit() {
        drop(db.execute_batch("ROLLBACK"));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing of ours, in a place where we may begin.
    Nothing,
    /// Our tables, of the version we know.
    Ours,
}

fn recognise(db: &Connection, path: &Path, options: &SqliteOptions) -> Outcome<Found> {
    let ours = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'tenure_meta'";
    let ours: Option<i64> = db.query_row(ours, [], |row| row.get(0)).optional()?;
    if ours.is_none() {
        return if options.share_file || is_empty(db)? {
            Ok(Found::Nothing)
        } else {
            Err(foreign(path).into())
        };
    }
    let version = "SELECT value FROM tenure_meta WHERE name = 'schema'";
    let version: Option<i64> = db.query_row(version, [], |row| row.get(0)).optional()?;
    check_version(version, Some(path))?;
    Ok(Found::Ours)
}

/// Refuses tables of a version that this code does not know.
pub(crate) fn check_version(version: Option<i64>, path: Option<&Path>) -> Outcome<()> {
    match version {
        Some(VERSION) => Ok(()),
        Some(newer) if newer > VERSION => {
            Err(too_new(path.unwrap_or(Path::new("the database")), newer).into())
        }
        _ => Err(Fault::Damaged("schema of tenure_meta".into())),
    }
}

/// Whether there is nothing in the file yet.
fn is_empty(db: &Connection) -> Outcome<bool> {
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(tables == 0 && pragma("application_id")? == 0 && pragma("user_version")? == 0)
}

/// There is nothing to look at.
fn absent(path: &Path) -> Error {
    let what = format!("{} is not there yet: no member has joined in it", path.display());
    Error::new(ErrorKind::Absent, what)
        .remedy("the first member makes it; if there should be one, look at the path")
}

/// SQLite reads a log through memory that is shared with its writers. Where
/// there are none, it has to make that memory.
fn unreadable(path: &Path) -> Error {
    if rustix::fs::access(path, Access::READ_OK).is_err() {
        let what = format!("{} may not be read by this process", path.display());
        return Error::new(ErrorKind::Denied, what)
            .remedy("let it read the file, its directory, and what lies beside it");
    }
    let what = format!(
        "{} cannot be read by a process that may not write: no other process has it open, and \
         SQLite then has to make files beside it in order to read",
        path.display()
    );
    Error::new(ErrorKind::Denied, what)
        .remedy("look while a member runs, or as a user who may write the file and its directory")
}

fn foreign(path: &Path) -> Error {
    let what = format!("{} is an SQLite file of something else than Tenure", path.display());
    Error::new(ErrorKind::Foreign, what).remedy(
        "give another path, or open it with share_file if the elections are to live in the \
         application's own database",
    )
}

fn too_new(path: &Path, version: i64) -> Error {
    let what = format!(
        "{} has tables of version {version}, and this program knows version {VERSION}",
        path.display()
    );
    Error::new(ErrorKind::Foreign, what)
        .remedy("upgrade this program to the version that the others run, or give another path")
}

fn read_only(path: &Path) -> Error {
    Error::new(ErrorKind::Unwritable, format!("{} cannot be written", path.display())).remedy(
        "let this process write the file and its directory, and see that the file system is not \
         mounted read-only",
    )
}

fn no_log(path: &Path, mode: &str) -> Error {
    let what = format!(
        "{} stays in journal mode {mode}: its file system gives SQLite no shared memory",
        path.display()
    );
    Error::new(ErrorKind::Invalid, what).remedy("give a path on a local disk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_text_says_the_version_the_code_knows() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(SCHEMA).unwrap();
        let found = recognise(&db, Path::new("x"), &SqliteOptions::new()).unwrap();
        assert_eq!(found, Found::Ours);
    }

    #[test]
    fn paths_that_name_no_file_are_refused_with_what_to_give_instead() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().to_str().unwrap().to_owned();
        let missing = format!("{here}/missing/t.db");
        let pipe = format!("{here}/socket");
        let _socket = std::os::unix::net::UnixListener::bind(&pipe).unwrap();
        for (path, word) in [
            ("", "memory:"),
            (":memory:", "memory:"),
            (&here, &*format!("{here}/tenure.db")),
            (&pipe, "regular file"),
            (&missing, "create it"),
        ] {
            let error = check_path(Path::new(path), &SqliteOptions::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
