//! Many who write at once: everybody's turn comes.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use common::*;
use tenure_sqlite::SqliteOptions;
use tenure_store::Store;

/// C1: twelve handles write without a pause until one of them has written 200
/// times. Whoever waits in line is overtaken by nobody again and again, so none
/// is left behind then.
#[test]
fn nobody_who_writes_is_overtaken_again_and_again() {
    const WRITERS: u32 = 12;
    const WRITES: u32 = 200;
    let place = Place::new();
    let path = place.path();
    drop(tenure_sqlite::SqliteStore::open_blocking(&path, SqliteOptions::new()).unwrap());
    let (ready, done) =
        (Arc::new(std::sync::Barrier::new(WRITERS as usize)), AtomicBool::new(false));
    let written: Vec<_> = (0..WRITERS).map(|_| AtomicU32::new(0)).collect();
    std::thread::scope(|scope| {
        for (n, written) in written.iter().enumerate() {
            let (path, ready, done) = (&path, ready.clone(), &done);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    let store =
                        tenure_sqlite::SqliteStore::open(path, SqliteOptions::new()).await.unwrap();
                    let me = member(&format!("m{n}"), n as u128 + 1);
                    joined(&store, &me).await;
                    ready.wait();
                    while !done.load(Ordering::Relaxed) {
                        store.heartbeat(&ns(), &beat(&me)).await.unwrap();
                        if written.fetch_add(1, Ordering::Relaxed) + 1 == WRITES {
                            done.store(true, Ordering::Relaxed);
                        }
                    }
                });
            });
        }
    });
    let written: Vec<_> = written.into_iter().map(AtomicU32::into_inner).collect();
    assert!(written.iter().all(|n| *n > WRITES / 8), "{written:?}");
}

/// The line is a courtesy: one who is stopped at its head (or anybody who locks
/// the file) delays the others, and does not stop them.
#[tokio::test]
async fn one_who_is_stopped_at_the_head_of_the_line_stops_nobody() {
    let place = Place::new();
    let store = place.open().await;
    let me = member("a", 1);
    joined(&store, &me).await;
    let mut line = place.path().into_os_string();
    line.push("-live/line");
    let head = std::fs::File::open(line).unwrap();
    rustix::fs::flock(&head, rustix::fs::FlockOperation::LockExclusive).unwrap();
    for _ in 0..5 {
        let (ns, beat) = (ns(), beat(&me));
        let written = tokio::time::timeout(Duration::from_secs(5), store.heartbeat(&ns, &beat));
        written.await.expect("not stopped").unwrap();
    }
    drop(head);
}
