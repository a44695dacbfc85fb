//! The line in which writers wait their turn.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::*;
use tenure_store::Store;

/// C1: a process that finds others in line waits for its turn. The line is a courtesy,
/// though: a process that is stopped at its head (or any that locks the file) delays
/// the others, and does not stop them.
#[tokio::test]
async fn writers_wait_their_turn_but_a_stopped_one_at_the_head_stops_no_other() {
    let place = Place::new();
    let store = place.open().await;
    let me = member("a", 1);
    joins(&store, &me).await;
    let mut line = place.path().into_os_string();
    line.push("-live/line");
    let head = std::fs::File::open(line).unwrap();
    rustix::fs::flock(&head, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let ns = ns();
    let beat = beat(&me);
    for n in 0..5 {
        let began = Instant::now();
        let written = tokio::time::timeout(Duration::from_secs(30), store.heartbeat(&ns, &beat));
        written.await.expect("not stopped").unwrap();
        let waited = began.elapsed();
        assert!(n > 0 || waited >= Duration::from_millis(200), "out of turn after {waited:?}");
    }
    drop(head);
}
