//! A path that no longer names the file that is open, and a file that has more
//! than one name: both mean two sets of lock files, and so two leaders. The
//! second is refused, the first is noticed at the next heartbeat.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::child::{can_unshare, hear, role, say, start, start_within};
use common::*;
use tenure_core::{Beat, MemberRef, Query};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{Error, ErrorKind, Store};

const ENTRY: &str = "a_child_plays_the_role_it_was_given";

/// Not a test of its own: what the processes of the tests below run. Without a
/// role there is nothing to play.
#[test]
fn a_child_plays_the_role_it_was_given() {
    let Some((role, file)) = role() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(play(&role, &file));
}

async fn play(role: &str, file: &Path) {
    let opened = SqliteStore::open(file, SqliteOptions::new()).await;
    match (role, opened) {
        ("open", Ok(store)) => {
            let path = store.path().display().to_string();
            say(&format!("opened {path}"));
        }
        ("open", Err(error)) => say(&error.to_string()),
        ("lead and beat", Ok(store)) => {
            let me = member("me", u128::from(std::process::id()));
            joins(&store, &me).await;
            say(&won(store.claim(&ns(), &claim(&me, "e", 1)).await.unwrap()).number.to_string());
            loop {
                hear();
                match store.heartbeat(&ns(), &beat(&me)).await {
                    Ok(beat) => say(&format!("{beat:?}")),
                    Err(error) => say(&format!("error: {error}")),
                }
            }
        }
        (other, opened) => panic!("{other}: {opened:?}"),
    }
}

fn says(error: &Error, words: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
    assert!(!error.may_have_applied(), "{error}");
    has(&error.to_string(), words);
}

fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// R4: a hard link is a second name, with lock files and a log of its own.
#[tokio::test]
async fn a_file_with_a_second_name_is_refused_by_either() {
    let place = Place::new();
    drop(place.open().await);
    let other = place.dir.path().join("other.db");
    fs::hard_link(place.path(), &other).unwrap();
    for path in [&place.path(), &other] {
        let error = SqliteStore::open(path, SqliteOptions::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        let shown = path.display().to_string();
        has(&error.to_string(), &[&shown, "2 names", "two leaders", "link to the directory"]);
    }
    assert!(!beside(&other, "-live").exists(), "nothing was made");
    fs::remove_file(&other).unwrap();
    drop(place.open().await);
}

/// R4: so is a mount of the file alone, as `docker run -v t.db:/t.db` makes it.
/// A mount of the directory brings everything along.
#[test]
fn a_file_that_is_mounted_by_itself_is_refused_and_its_directory_is_not() {
    let place = Place::new();
    drop(SqliteStore::open_blocking(place.path(), SqliteOptions::new()).unwrap());
    let there = tempfile::tempdir().unwrap();
    let file = there.path().join("t.db");
    let directory = there.path().join("dir");
    fs::write(&file, "").unwrap();
    fs::create_dir(&directory).unwrap();
    let bind = |from: &Path, to: &Path| format!("mount --bind {from:?} {to:?}");
    let script = bind(&place.path(), &file);
    if !can_unshare(&script) {
        return;
    }
    let mut alone = start_within(&script, ENTRY, "open", &file);
    let said = alone.hears();
    let shown = file.display().to_string();
    has(&said, &[&shown, "mounted by itself", "two leaders", "mount the directory"]);
    let script = bind(place.dir.path(), &directory);
    let inside = directory.join("tenure.db");
    let mut whole = start_within(&script, ENTRY, "open", &inside);
    assert_eq!(whole.hears(), format!("opened {}", inside.display()));
}

/// What can be done to a file under a process that has it open.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Removed,
    Renamed,
    Replaced,
}

const HARMS: [Harm; 3] = [Harm::Removed, Harm::Renamed, Harm::Replaced];

fn harm(how: Harm, path: &Path) {
    let aside = beside(path, ".aside");
    match how {
        Harm::Removed => fs::remove_file(path).unwrap(),
        Harm::Renamed => fs::rename(path, aside).unwrap(),
        Harm::Replaced => {
            fs::copy(path, &aside).unwrap();
            fs::rename(aside, path).unwrap();
        }
    }
}

/// What the first heartbeat after the harm says; by the second, the life is
/// over, and whatever else is asked says the same.
async fn noticed(store: &SqliteStore, me: &MemberRef) -> Error {
    let error = store.heartbeat(&ns(), &beat(me)).await.unwrap_err();
    let again = store.heartbeat(&ns(), &beat(me)).await.unwrap();
    assert_eq!(again, Beat::Ended { superseded: false });
    error
}

/// R5: the database and what SQLite keeps beside it.
#[tokio::test]
async fn a_leader_notices_at_its_next_heartbeat_that_a_file_is_not_the_one_it_has_open() {
    for suffix in ["", "-wal", "-shm"] {
        for how in HARMS {
            let place = Place::new();
            let store = place.open().await;
            let me = member("a", 1);
            joins(&store, &me).await;
            won(store.claim(&ns(), &claim(&me, "e", 1)).await.unwrap());
            let file = beside(&place.path(), suffix);
            harm(how, &file);
            let error = noticed(&store, &me).await;
            let shown = file.display().to_string();
            let word = if let Harm::Replaced = how { "replaced" } else { "removed or renamed" };
            says(&error, &[&shown, word, "stop every process", "two leaders"]);
            let b = member("b", 2);
            let query = Query::members();
            for error in [
                store.join(&ns(), &join(&b)).await.unwrap_err(),
                store.claim(&ns(), &claim(&me, "f", 2)).await.unwrap_err(),
                store.read(&ns(), &query).await.unwrap_err(),
            ] {
                says(&error, &[&shown, word]);
            }
        }
    }
}

/// R5: what is back where it was is trusted again.
#[tokio::test]
async fn a_file_that_is_put_back_is_the_one_that_is_open() {
    let place = Place::new();
    let store = place.open().await;
    let aside = beside(&place.path(), ".aside");
    fs::rename(place.path(), &aside).unwrap();
    store.join(&ns(), &join(&member("a", 1))).await.unwrap_err();
    fs::rename(&aside, place.path()).unwrap();
    joined(&store, "a", 1).await;
}

/// R5, M6: with another process that has made a new file in the meantime, and leads
/// in it, under a higher number: what is kept beside the file knows of the first.
#[test]
fn a_leader_whose_database_was_removed_gives_up_beside_the_leader_of_the_new_one() {
    let place = Place::new();
    let mut first = start(ENTRY, "lead and beat", &place.path());
    assert_eq!(first.hears(), "1");
    first.tell("beat");
    has(&first.hears(), &["Alive"]);
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(beside(&place.path(), suffix)).unwrap();
    }
    let mut second = start(ENTRY, "lead and beat", &place.path());
    assert!(second.hears().parse::<u64>().unwrap() > 1, "a number is not given out twice");
    first.tell("beat");
    has(&first.hears(), &["error: ", "replaced while it was open", "two leaders"]);
    first.tell("beat");
    has(&first.hears(), &["Ended"]);
    second.tell("beat");
    has(&second.hears(), &["Alive"]);
}

/// R5: the lock file that proves a member's life.
#[tokio::test]
async fn a_member_whose_lock_file_is_not_the_one_it_holds_gives_up() {
    for how in HARMS {
        let place = Place::new();
        let store = place.open().await;
        let me = member("a", 1);
        joins(&store, &me).await;
        let lock = beside(&place.path(), "-live").join(format!("{}.lock", me.incarnation));
        harm(how, &lock);
        let error = noticed(&store, &me).await;
        let word = if let Harm::Replaced = how { "replaced" } else { "removed or renamed" };
        says(&error, &[&lock.display().to_string(), word, "do not touch"]);
        // The next life has a lock of its own, and all is well.
        let next = member("b", 2);
        joins(&store, &next).await;
        let beat = store.heartbeat(&ns(), &beat(&next)).await.unwrap();
        assert!(matches!(beat, Beat::Alive { .. }), "{how:?}: {beat:?}");
    }
}

/// R5: the lock file of what other processes do under a member's term, also after the work
/// has ended: the next one would lock a file that no other looks at.
#[tokio::test]
async fn a_member_whose_work_file_is_not_the_one_that_is_locked_gives_up() {
    for (how, at_work) in HARMS.into_iter().flat_map(|how| [(how, true), (how, false)]) {
        let place = Place::new();
        let store = place.open().await;
        let me = member("a", 1);
        joins(&store, &me).await;
        let work = store.liveness_lock(me.incarnation).filter(|_| at_work);
        let alive = store.heartbeat(&ns(), &beat(&me)).await.unwrap();
        assert!(matches!(alive, Beat::Alive { .. }), "{how:?}: {alive:?}");
        let file = beside(&place.path(), "-live").join(format!("{}.work", me.incarnation));
        harm(how, &file);
        let error = noticed(&store, &me).await;
        let word = if let Harm::Replaced = how { "replaced" } else { "removed or renamed" };
        says(&error, &[&file.display().to_string(), "that this member works", word]);
        drop(work);
    }
}

/// R5: a file that lies where a lock was, and is free, proves no death.
#[tokio::test]
async fn a_lock_file_that_was_put_in_place_of_another_proves_no_death() {
    let place = Place::new();
    let first = place.open().await;
    let second = place.open().await;
    let a = member("a", 1);
    let b = member("b", 2);
    joins(&first, &a).await;
    joins(&second, &b).await;
    won(first.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    let lock = beside(&place.path(), "-live").join(format!("{}.lock", a.incarnation));
    harm(Harm::Replaced, &lock);
    let view = held(second.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    assert_eq!(view.holder.unwrap().member, a);
}

/// R5: the whole directory of locks is gone; the next member that joins makes it anew.
#[tokio::test]
async fn locks_that_were_all_removed_are_made_anew_by_the_next_lives() {
    let place = Place::new();
    let store = place.open().await;
    let me = member("a", 1);
    joins(&store, &me).await;
    fs::remove_dir_all(beside(&place.path(), "-live")).unwrap();
    noticed(&store, &me).await;
    joined(&store, "b", 2).await;
    assert_eq!(place.lock_files().len(), 1);
}
