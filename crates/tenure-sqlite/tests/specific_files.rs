//! Bad input: each gives an error that names the thing and the remedy, loses
//! nothing, and never panics.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::child::{can_unshare, role, say, start_within};
use common::*;
use tenure_core::{Amend, Note, Query, TermNumber};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{Error, ErrorKind, Store};

const ENTRY: &str = "a_child_plays_the_role_it_was_given";

async fn refused(path: &Path) -> Error {
    SqliteStore::open(path, SqliteOptions::new()).await.unwrap_err()
}

fn says(error: &Error, kind: ErrorKind, words: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[tokio::test]
async fn a_directory_is_refused_with_a_file_to_give_instead() {
    let place = Place::new();
    let error = refused(place.dir.path()).await;
    let shown = place.dir.path().display().to_string();
    says(&error, ErrorKind::Invalid, &[&shown, "is a directory", "tenure.db"]);
    assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 0, "nothing was made");
}

/// Opens as a user that may not write, also if root runs the tests.
fn open_unprivileged(path: &Path) -> Error {
    let path = path.to_owned();
    let opening = move || {
        if rustix::process::geteuid().is_root() {
            // Of this thread alone, and of the ones it starts.
            let powerless = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(powerless, powerless, powerless).unwrap();
        }
        SqliteStore::open_blocking(path, SqliteOptions::new()).unwrap_err()
    };
    std::thread::spawn(opening).join().unwrap()
}

#[tokio::test]
async fn a_directory_that_may_not_be_written_is_named_with_the_remedy() {
    let place = Place::new();
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let error = open_unprivileged(&place.path());
    let shown = place.path().display().to_string();
    says(&error, ErrorKind::Unwritable, &[&shown, "this process may write"]);
}

#[tokio::test]
async fn a_file_that_may_not_be_written_is_named_with_the_remedy() {
    let place = Place::new();
    drop(place.open().await);
    closed(&place.path());
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let error = open_unprivileged(&place.path());
    let shown = place.path().display().to_string();
    says(&error, ErrorKind::Unwritable, &[&shown, "let this process write"]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_was() {
    let place = Place::new();
    let text = "these are my notes, not a database\n".repeat(100);
    fs::write(place.path(), &text).unwrap();
    let error = refused(&place.path()).await;
    says(&error, ErrorKind::Foreign, &["tenure.db", "not an SQLite database", "another path"]);
    assert_eq!(fs::read_to_string(place.path()).unwrap(), text);
}

#[tokio::test]
async fn a_foreign_database_is_refused_and_left_as_it_was() {
    for sql in [
        "CREATE TABLE mine (x); INSERT INTO mine VALUES (7);",
        "PRAGMA application_id = 77;",
        "PRAGMA user_version = 3;",
    ] {
        let place = Place::new();
        place.sql().execute_batch(sql).unwrap();
        let before = fs::read(place.path()).unwrap();
        let error = refused(&place.path()).await;
        says(&error, ErrorKind::Foreign, &["tenure.db", "something else", "share_file"]);
        assert_eq!(fs::read(place.path()).unwrap(), before, "{sql}");
        // Asked for, it is shared.
        let shared = place.open_with(SqliteOptions::new().share_file(true)).await;
        joined(&shared, "a", 1).await;
        // And from then on it is known.
        drop(place.open().await);
    }
}

#[tokio::test]
async fn tables_of_a_newer_version_are_refused_and_left_as_they_were() {
    let place = Place::new();
    drop(place.open().await);
    place.sql().execute_batch("UPDATE tenure_meta SET value = 2 WHERE name = 'schema'").unwrap();
    let error = refused(&place.path()).await;
    says(&error, ErrorKind::Foreign, &["version 2", "knows version 1", "upgrade this program"]);
    place.sql().execute_batch("UPDATE tenure_meta SET value = 1 WHERE name = 'schema'").unwrap();
    drop(place.open().await);
}

/// Wherever the damage lies, it ends in an error, not in a panic, a hang or a
/// wrong answer.
#[tokio::test]
async fn a_damaged_file_gives_an_error_that_says_so() {
    let good = Place::new();
    let a = member("a", 1);
    {
        let store = good.open().await;
        joins(&store, &a).await;
        let names: Vec<_> = (0..300).map(|n| format!("election-{n}")).collect();
        store.claim(&ns(), &claim_all(&a, names, 1)).await.unwrap();
        good.sql().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    }
    let bytes = fs::read(good.path()).unwrap();
    let mut told = 0;
    for page in 0..bytes.len() / 4096 {
        let place = Place::new();
        let mut bad = bytes.clone();
        let from = if page == 0 { 100 } else { page * 4096 };
        bad[from..(page + 1) * 4096].fill(0xa5);
        fs::write(place.path(), bad).unwrap();
        let Ok(store) = SqliteStore::open(place.path(), SqliteOptions::new()).await else {
            told += 1;
            continue;
        };
        let query = Query { history: 10_000, ..Query::everything() };
        if let Err(error) = store.read(&ns(), &query).await {
            says(&error, ErrorKind::Foreign, &["tenure.db", "backup"]);
            told += 1;
        }
        let b = member("b", 2);
        for error in [
            store.join(&ns(), &join(&b)).await.err(),
            store.claim(&ns(), &claim(&b, "election-7", 1)).await.err(),
        ] {
            assert!(error.is_none_or(|error| error.kind() == ErrorKind::Foreign));
        }
    }
    assert!(told > bytes.len() / 4096 / 2, "only {told} pages mattered");
}

#[tokio::test]
async fn a_row_that_cannot_be_ours_gives_an_error_that_says_which() {
    let place = Place::new();
    let store = place.open().await;
    joined(&store, "a", 1).await;
    place.sql().execute_batch("UPDATE tenure_members SET incarnation = 'nonsense'").unwrap();
    let error = store.read(&ns(), &Query::members()).await.unwrap_err();
    says(&error, ErrorKind::Foreign, &["nonsense", "backup"]);
}

/// A symbolic link to the file is the same file: what lies beside it is shared.
#[tokio::test]
async fn a_process_that_comes_by_a_link_shares_the_locks() {
    let place = Place::new();
    let direct = place.open().await;
    let other = tempfile::tempdir().unwrap();
    let link = other.path().join("link.db");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    let linked = SqliteStore::open(&link, SqliteOptions::new()).await.unwrap();
    joined(&linked, "a", 1).await;
    assert_eq!(place.lock_files().len(), 1);
    drop(direct);
}

/// Not a test of its own: what the process of the test below runs. Without a
/// role there is nothing to play.
#[test]
fn a_child_plays_the_role_it_was_given() {
    let Some((_, directory)) = role() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fill_the_disk(&directory));
    say("recovered");
}

/// A disk that is really full, in a mount of the test's own that goes with its
/// process. Where the system lets no process mount, the store's own tests still
/// have SQLite refuse to grow.
#[test]
fn a_full_disk_is_an_error_and_after_it_everything_is_there() {
    let mount = tempfile::tempdir().unwrap();
    let script = format!("mount -t tmpfs -o size=2m tmpfs {}", mount.path().display());
    if !can_unshare(&script) {
        return;
    }
    let mut child = start_within(&script, ENTRY, "fill", mount.path());
    assert_eq!(child.hears(), "recovered");
}

async fn fill_the_disk(directory: &Path) {
    let store = SqliteStore::open(directory.join("t.db"), SqliteOptions::new()).await.unwrap();
    let a = member("a", 1);
    let ballast = directory.join("ballast");
    joins(&store, &a).await;
    let first = won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    let full = fs::write(&ballast, vec![7; 4 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);

    let mut error = None;
    for nonce in 2..5_000 {
        match store.claim(&ns(), &claim(&a, "e", nonce)).await {
            Ok(claims) => assert!(won(claims).number > first.number),
            Err(failed) => {
                error = Some(failed);
                break;
            }
        }
    }
    let error = error.expect("the disk is full");
    says(&error, ErrorKind::Unwritable, &["t.db", "free some space"]);
    assert!(!error.may_have_applied(), "{error}");
    let query = Query { history: 1, ..Query::elections([election("e")]) };
    let before = store.read(&ns(), &query).await.unwrap();
    let pause =
        Amend::Pause { election: election("e"), reason: Note::default(), by: Note::default() };
    store.amend(&ns(), &pause).await.unwrap_err();
    assert_eq!(store.read(&ns(), &query).await.unwrap().seq, before.seq, "nothing was written");

    fs::remove_file(&ballast).unwrap();
    let number = before.elections[0].number;
    let next = won(store.claim(&ns(), &claim(&a, "e", 5_000)).await.unwrap());
    assert_eq!(next.number, TermNumber::new(number.get() + 1));
}
