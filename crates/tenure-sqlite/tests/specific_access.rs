//! Files that others lock, upgrade, or let us read only.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use common::child::{hear, role, say, start};
use common::*;
use rustix::fs::FlockOperation;
use tenure_core::{Amend, Hint, Note, Query};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{Error, ErrorKind, Followed, Page, Store};

const ENTRY: &str = "a_child_plays_the_role_it_was_given";

/// Not a test of its own: what the processes of the tests below run. Without a
/// role there is nothing to play.
#[test]
fn a_child_plays_the_role_it_was_given() {
    let Some((role, file)) = role() else { return };
    match role.as_str() {
        "lock" => {
            let db = rusqlite::Connection::open(file).unwrap();
            db.execute_batch("BEGIN EXCLUSIVE").unwrap();
            say("locked");
            hear();
        }
        "read" => {
            unprivileged();
            let mut memory = file.into_os_string();
            memory.push("-shm");
            let memory = fs::File::open(memory).unwrap();
            rustix::fs::fcntl_lock(&memory, FlockOperation::NonBlockingLockShared).unwrap();
            say("locked");
            hear();
        }
        "starve" => {
            // No more open files than a process has to begin with, and few more.
            let limit = rustix::process::Rlimit { current: Some(8), maximum: Some(8) };
            rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
            let error = SqliteStore::open_blocking(file, SqliteOptions::new()).unwrap_err();
            say(&error.to_string());
        }
        other => panic!("{other}"),
    }
}

fn says(error: &Error, kind: ErrorKind, words: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

fn pause() -> Amend {
    Amend::Pause { election: election("e"), reason: Note::default(), by: Note::default() }
}

/// R11: the process that holds the lock is named, before the caller gives up.
#[tokio::test]
async fn the_holder_of_the_write_lock_is_named_before_the_caller_gives_up() {
    let place = Place::new();
    let deadline = Duration::from_secs(2);
    let store = place.open_with(SqliteOptions::new().request_timeout(deadline)).await;
    let mut other = start(ENTRY, "lock", &place.path());
    assert_eq!(other.hears(), "locked");
    let namespace = ns();
    let pause = pause();
    let asked = tokio::time::timeout(deadline, store.amend(&namespace, &pause));
    let error = asked.await.expect("it answers before the caller gives up").unwrap_err();
    let process = format!("process {} (", other.id());
    says(&error, ErrorKind::Busy, &["tenure.db", &process, "write lock", "end its transaction"]);
    assert!(!error.may_have_applied());
    other.kill();
    store.amend(&namespace, &pause).await.unwrap();
}

/// R11: the application's own transaction is told apart from a stranger's.
#[tokio::test]
async fn a_transaction_of_this_very_process_is_named_as_such() {
    let place = Place::new();
    let quick = SqliteOptions::new().busy_timeout(Duration::from_millis(200));
    let store = place.open_with(quick).await;
    let own = place.sql();
    own.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.amend(&ns(), &pause()).await.unwrap_err();
    says(&error, ErrorKind::Busy, &["this very process", "write lock"]);
}

/// R13: tables that were upgraded under a running process are not written by
/// what does not know them.
#[tokio::test]
async fn tables_that_were_upgraded_meanwhile_are_neither_written_nor_read() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    joins(&store, &a).await;
    place.sql().execute_batch("UPDATE tenure_meta SET value = 2 WHERE name = 'schema'").unwrap();
    for error in [
        store.heartbeat(&ns(), &beat(&a)).await.unwrap_err(),
        store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap_err(),
        store.read(&ns(), &Query::members()).await.unwrap_err(),
    ] {
        says(&error, ErrorKind::Foreign, &["version 2", "knows version 1", "upgrade this program"]);
    }
    place.sql().execute_batch("UPDATE tenure_meta SET value = 1 WHERE name = 'schema'").unwrap();
    store.heartbeat(&ns(), &beat(&a)).await.unwrap();
    place.sql().execute_batch("DROP TABLE tenure_meta").unwrap();
    let error = store.heartbeat(&ns(), &beat(&a)).await.unwrap_err();
    says(&error, ErrorKind::Foreign, &["tenure_meta", "backup"]);
}

/// R16: who only looks makes nothing.
#[tokio::test]
async fn looking_at_a_file_that_is_not_there_makes_nothing() {
    let place = Place::new();
    for path in [place.path(), place.dir.path().join("no/such/home/t.db")] {
        let looking = SqliteOptions::new().read_only(true);
        let error = SqliteStore::open(&path, looking).await.unwrap_err();
        let shown = path.display().to_string();
        says(&error, ErrorKind::Absent, &[&shown, "not there yet"]);
    }
    assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 0);
}

/// R16: who only looks needs no right to write, sees what happens, and changes
/// nothing.
#[tokio::test]
async fn a_reader_sees_everything_and_changes_nothing() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    joins(&store, &a).await;
    won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    read_only(&place);
    let looking = look_unprivileged(&place.path()).unwrap();
    assert_eq!(view(&looking, "e").await.holder.unwrap().member, a);
    for error in [
        looking.join(&ns(), &join(&member("b", 2))).await.unwrap_err(),
        looking.heartbeat(&ns(), &beat(&a)).await.unwrap_err(),
        looking.amend(&ns(), &pause()).await.unwrap_err(),
    ] {
        says(&error, ErrorKind::Invalid, &["tenure.db", "opened to look only"]);
    }
    let seq = looking.read(&ns(), &Query::members()).await.unwrap().seq;
    let mut follower = looking.follow(&ns()).await.unwrap();
    follower.next().await.unwrap();
    store.amend(&ns(), &pause()).await.unwrap();
    let news = tokio::time::timeout(Duration::from_secs(20), follower.next()).await;
    assert!(matches!(news.unwrap().unwrap(), Followed::Hint(Hint::Election(_))));
    let page = looking.journal(&ns(), seq).await.unwrap();
    assert!(matches!(page, Page::Entries(entries) if entries.len() == 1));
    assert_eq!(place.lock_files().len(), 1);
}

/// R16: the one case that SQLite does not allow is named.
#[tokio::test]
async fn what_cannot_be_read_without_writing_is_said() {
    let place = Place::new();
    drop(place.open().await);
    closed(&place.path());
    for suffix in ["-wal", "-shm"] {
        let mut file = place.path().into_os_string();
        file.push(suffix);
        assert!(!Path::new(&file).exists(), "{}", file.display());
    }
    read_only(&place);
    let error = look_unprivileged(&place.path()).unwrap_err();
    says(&error, ErrorKind::Denied, &["tenure.db", "no other process has it open", "may write"]);
}

fn read_only(place: &Place) {
    for entry in fs::read_dir(place.dir.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = if entry.file_type().unwrap().is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
}

/// Opens to look as a user that may not write, also if root runs the tests.
fn look_unprivileged(path: &Path) -> Result<SqliteStore, Error> {
    let path = path.to_owned();
    let opening = move || {
        unprivileged();
        SqliteStore::open_blocking(path, SqliteOptions::new().read_only(true))
    };
    std::thread::spawn(opening).join().unwrap()
}

/// If root runs the tests, this thread goes on as another user, with those that it starts.
fn unprivileged() {
    if rustix::process::geteuid().is_root() {
        let powerless = rustix::process::Uid::from_raw(65_534);
        rustix::thread::set_thread_res_uid(powerless, powerless, powerless).unwrap();
    }
}

/// R16, R2: a user who may only read locks no file of a member. A lock on that of a dead
/// leader's work would keep all members from its terms.
#[tokio::test]
async fn a_reader_locks_no_file_of_a_member() {
    let place = Place::new();
    let (clock, options) = manual();
    let store = place.open_with(options).await;
    let a = member("a", 1);
    let b = member("b", 2);
    joins(&store, &a).await;
    won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    drop(store.liveness_lock(a.incarnation).unwrap());
    read_only(&place);
    let live = place.dir.path().join("tenure.db-live");
    let locks = ["line", &format!("{}.lock", a.incarnation), &format!("{}.work", a.incarnation)]
        .map(|name| live.join(name));
    for file in &locks {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    if rustix::process::geteuid().is_root() {
        let tries = move || {
            unprivileged();
            locks.map(|file| fs::File::open(file).unwrap_err().kind())
        };
        let tries = std::thread::spawn(tries).join().unwrap();
        assert_eq!(tries, [std::io::ErrorKind::PermissionDenied; 3]);
    }
    clock.advance(TTL * 3);
    joins(&store, &b).await;
    won(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
}

/// R11, R16: what a user who may only read can still do is delay all members, by a lock on the
/// memory that SQLite reads its log through. Its process is named, and when it is gone all
/// goes on.
#[tokio::test]
async fn a_reader_that_holds_all_up_is_named() {
    let place = Place::new();
    let quick = SqliteOptions::new().busy_timeout(Duration::from_millis(200));
    let store = place.open_with(quick).await;
    read_only(&place);
    let mut reader = start(ENTRY, "read", &place.path());
    assert_eq!(reader.hears(), "locked");
    let error = store.amend(&ns(), &pause()).await.unwrap_err();
    let process = format!("process {} (", reader.id());
    says(&error, ErrorKind::Busy, &["tenure.db", &process, "write lock", "or the process"]);
    assert!(!error.may_have_applied());
    reader.kill();
    store.amend(&ns(), &pause()).await.unwrap();
}

/// R19: too few open files are neither a missing /proc nor a missing directory.
#[test]
fn a_low_limit_on_open_files_is_named_as_such() {
    let place = Place::new();
    drop(SqliteStore::open_blocking(place.path(), SqliteOptions::new()).unwrap());
    let mut child = start(ENTRY, "starve", &place.path());
    let said = child.hears();
    assert!(said.contains("too many open files") && said.contains("ulimit -n"), "{said}");
    assert!(!said.contains("mount /proc") && !said.contains("directory that exists"), "{said}");
}

/// R10: a span that SQLite cannot count is refused, not a panic.
#[test]
fn options_beyond_what_can_be_counted_are_refused() {
    let place = Place::new();
    let long = Duration::from_millis(3_000_000_000);
    for (options, what, limit) in [
        (SqliteOptions::new().busy_timeout(long), "busy timeout", "at most"),
        (SqliteOptions::new().busy_timeout(Duration::MAX), "busy timeout", "at most"),
        (SqliteOptions::new().poll(Duration::MAX), "poll interval", "to one day"),
        (SqliteOptions::new().journal_keep(u64::MAX), "journal", "at most"),
    ] {
        let error = SqliteStore::open_blocking(place.path(), options).unwrap_err();
        says(&error, ErrorKind::Invalid, &[what, limit]);
    }
    assert!(!place.path().exists());
}
