//! A file that is copied away and back gives out no number twice (R6, rule M6).

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{claim, closed, join, member, ns};
use tenure_core::{
    Amend, Amended, Bind, BindAnswer, BindOp, Bindings, Claimed, Claims, Era, Finding, Name, Nonce,
    Note, Query, TermNumber, Token, Value, Verdict, WhichNames,
};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::Store;

/// Joins as a new member, wins one term after the other, and leaves. Says the first
/// number and the last.
async fn terms(file: &Path, life: u128, count: u64) -> (TermNumber, TermNumber) {
    let store = SqliteStore::open(file, SqliteOptions::new()).await.unwrap();
    let me = member("m", life);
    store.join(&ns(), &join(&me)).await.unwrap();
    let mut numbers = Vec::new();
    for nonce in 1..=count {
        let claims = store.claim(&ns(), &claim(&me, "e", nonce)).await.unwrap();
        let Claims::Answered(answers) = claims else { panic!("{claims:?}") };
        let [Claimed::Won(term)] = &answers[..] else { panic!("{answers:?}") };
        numbers.push(term.number);
    }
    store.leave(&ns(), &me).await.unwrap();
    drop(store);
    closed(file);
    (numbers[0], numbers[numbers.len() - 1])
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Puts a copy in the place of the file, as an operator who restores it does.
fn put_back(copy: &Path, file: &Path) {
    for end in ["", "-wal", "-shm"] {
        drop(fs::remove_file(beside(file, end)));
        if beside(copy, end).exists() {
            fs::copy(beside(copy, end), beside(file, end)).unwrap();
        }
    }
}

/// R6: with its log and without it, and more than once.
#[tokio::test]
async fn a_file_copied_back_gives_out_no_number_twice() {
    let dir = tempfile::tempdir().unwrap();
    for ends in [&[""][..], &["", "-wal"][..]] {
        let file = dir.path().join("t.db");
        let copy = dir.path().join("copy.db");
        let mut highest = terms(&file, 1, 3).await.1;
        for end in ends {
            if beside(&file, end).exists() {
                fs::copy(beside(&file, end), beside(&copy, end)).unwrap();
            }
        }
        highest = highest.max(terms(&file, 2, 3).await.1);
        for life in 3..5 {
            put_back(&copy, &file);
            let (first, last) = terms(&file, life, 3).await;
            assert!(first > highest, "{ends:?}: {first} after {highest} was given out");
            assert_eq!(last.get(), first.get() + 2, "{ends:?}: it jumps once");
            highest = last;
        }
        fs::remove_dir_all(beside(&file, "-live")).unwrap();
        for end in ["", "-wal", "-shm"] {
            drop(fs::remove_file(beside(&file, end)));
            drop(fs::remove_file(beside(&copy, end)));
        }
    }
}

/// R6, M6: a note that no store can have written is passed over, and what is noted beside it
/// counts as before.
#[tokio::test]
async fn a_note_that_makes_no_sense_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.db");
    let copy = dir.path().join("copy.db");
    terms(&file, 1, 1).await;
    fs::copy(&file, &copy).unwrap();
    let most = u64::MAX;
    for stray in [format!("1-{most}-0"), format!("{most}-1-0"), format!("0-0-{most}")] {
        fs::write(beside(&file, "-live").join(format!("highest-{stray}")), "").unwrap();
    }
    let (first, highest) = terms(&file, 2, 3).await;
    assert_eq!((first.get(), highest.get()), (2, 4));
    put_back(&copy, &file);
    let first = terms(&file, 3, 1).await.0;
    assert!(first > highest, "{first} after {highest} was given out");
}

/// R6, M6: what is written to a file that was put back, before any bid in it, does not
/// make up for what it lacks.
#[tokio::test]
async fn joins_do_not_hide_that_a_file_was_copied_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.db");
    let copy = dir.path().join("copy.db");
    terms(&file, 1, 1).await;
    fs::copy(&file, &copy).unwrap();
    let highest = terms(&file, 2, 3).await.1;
    put_back(&copy, &file);
    let store = SqliteStore::open(&file, SqliteOptions::new()).await.unwrap();
    for life in 10..30 {
        let me = member(&format!("m{life}"), life);
        store.join(&ns(), &join(&me)).await.unwrap();
        store.leave(&ns(), &me).await.unwrap();
    }
    drop(store);
    closed(&file);
    let first = terms(&file, 3, 1).await.0;
    assert!(first > highest, "{first} after {highest} was given out");
}

/// Binds names without an owner, one after the other, without a member: the journal has nothing of
/// it. Says the first token and the last.
async fn tokens(file: &Path, texts: [&str; 3]) -> (Token, Token) {
    let store = SqliteStore::open(file, SqliteOptions::new()).await.unwrap();
    let mut tokens = Vec::new();
    for text in texts {
        // Each is an attempt of its own: names of an older copy are not there.
        let nonce = Nonce::new(u64::from(text.as_bytes()[0]));
        let op = BindOp::post(Name::new(text).unwrap(), nonce, Value::empty());
        let bindings = store.bind(&ns(), &Bind::anonymous([op])).await.unwrap();
        let Bindings::Answered(answers) = bindings else { panic!("{bindings:?}") };
        let [BindAnswer::Bound(binding)] = &answers[..] else { panic!("{answers:?}") };
        tokens.push(binding.token);
    }
    drop(store);
    closed(file);
    (tokens[0], tokens[tokens.len() - 1])
}

/// R6, M6: also where only names were bound, of which the journal knows nothing; and also
/// if the journal has grown since the copy was put back.
#[tokio::test]
async fn a_file_copied_back_gives_out_no_token_twice() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.db");
    let copy = dir.path().join("copy.db");
    let first = tokens(&file, ["a", "b", "c"]).await.1;
    for end in ["", "-wal"] {
        if beside(&file, end).exists() {
            fs::copy(beside(&file, end), beside(&copy, end)).unwrap();
        }
    }
    let mut highest = tokens(&file, ["d", "e", "f"]).await.1;
    assert_eq!(highest.get(), first.get() + 3);
    for life in 1..4 {
        put_back(&copy, &file);
        if life > 1 {
            let store = SqliteStore::open(&file, SqliteOptions::new()).await.unwrap();
            store.join(&ns(), &join(&member("m", life))).await.unwrap();
            drop(store);
            closed(&file);
        }
        let (next, last) = tokens(&file, ["d", "e", "f"]).await;
        assert!(next > highest, "{next} after {highest} was given out");
        assert_eq!(last.get(), next.get() + 2, "it jumps once");
        highest = last;
    }
    let store = SqliteStore::open(&file, SqliteOptions::new()).await.unwrap();
    let all = store.names(&ns(), &WhichNames::Prefix(String::new())).await.unwrap();
    assert_eq!(all.bindings.len(), 6);
    assert_eq!(all.rev.get(), highest.get());
}

/// R6, M6: a file that was put back says so when it is examined, until something is written to
/// it; and one that was not says nothing.
#[tokio::test]
async fn a_file_that_was_put_back_says_so_until_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.db");
    let copy = dir.path().join("copy.db");
    let rolled_back = async |store: &SqliteStore| {
        let examined = store.read(&ns(), &Query::examination()).await.unwrap().examined.unwrap();
        examined.findings.into_iter().find(|finding| finding.code == Finding::ROLLED_BACK)
    };
    terms(&file, 1, 1).await;
    fs::copy(&file, &copy).unwrap();
    let highest = terms(&file, 2, 3).await.1;
    let store = SqliteStore::open(&file, SqliteOptions::new()).await.unwrap();
    assert_eq!(rolled_back(&store).await, None);
    drop(store);
    closed(&file);
    put_back(&copy, &file);
    for read_only in [true, false] {
        let _open = SqliteStore::open(&file, SqliteOptions::new()).await.unwrap();
        let options = SqliteOptions::new().read_only(read_only);
        let store = SqliteStore::open(&file, options).await.unwrap();
        let finding = rolled_back(&store).await.expect("nothing was written since");
        assert_eq!(finding.verdict, Verdict::Note);
        let numbers = format!("numbers up to {highest}");
        assert!(finding.found.contains(&numbers), "{}", finding.found);
    }
    closed(&file);
    assert!(terms(&file, 3, 1).await.0 > highest);
    let store = SqliteStore::open(&file, SqliteOptions::new()).await.unwrap();
    assert_eq!(rolled_back(&store).await, None);
}

/// R6: a copy of the file alone, made after a clean exit, has everything.
#[tokio::test]
async fn a_copy_of_the_file_alone_after_a_clean_exit_has_every_term() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.db");
    let copy = dir.path().join("copy.db");
    let (_, last) = terms(&file, 1, 3).await;
    fs::copy(&file, &copy).unwrap();
    assert_eq!(terms(&copy, 2, 1).await.0, last.next());
}

/// M6: the operator's word, where nothing lies beside the file that knows better.
#[tokio::test]
async fn an_operator_raises_the_era_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.db");
    let (_, last) = terms(&file, 1, 3).await;
    let store = SqliteStore::open(&file, SqliteOptions::new()).await.unwrap();
    let restored = Amend::Restored { by: Note::new("ops") };
    let done = store.amend(&ns(), &restored).await.unwrap();
    assert_eq!(done, Amended::Restored { before: 0, after: 1 });
    drop(store);
    assert!(terms(&file, 2, 1).await.0.get() > last.get() + Era::JUMP);
}
