//! What opening and closing leaves behind in the process. In a file of its own,
//! since it counts the threads and files of the whole process.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::*;
use tenure_store::Store;

fn count(of: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{of}")).unwrap().count()
}

/// Lets handles come and go, and says how many threads and open files there are
/// once that number has settled: the threads end by themselves, a moment after
/// the handle is gone.
async fn left_behind(place: &Place, lives: std::ops::RangeInclusive<u128>) -> (usize, usize) {
    for life in lives {
        let store = place.open().await;
        let me = member(&format!("m{life}"), life);
        joins(&store, &me).await;
        won(store.claim(&ns(), &claim(&me, "e", 1)).await.unwrap());
        let mut following = store.follow(&ns()).await.unwrap();
        following.next().await.unwrap();
        store.leave(&ns(), &me).await.unwrap();
    }
    let mut settled = (usize::MAX, usize::MAX);
    loop {
        let_pass(Duration::from_millis(300), "the time in which nothing changes any more").await;
        let now = (count("task"), count("fd"));
        if std::mem::replace(&mut settled, now) == now {
            return now;
        }
    }
}

/// C11: no thread, no open file, no lock file and no row is left behind.
#[tokio::test]
async fn a_hundred_handles_come_and_go_without_a_trace() {
    let place = Place::new();
    let keeper = place.open().await;
    let first = left_behind(&place, 1..=10).await;
    let then = left_behind(&place, 11..=100).await;
    assert_eq!(first.0, then.0, "threads after 10 and after 100");
    // SQLite puts off closing a file while another connection of the process
    // has a lock on it, and uses it again: a few more or less are no leak. One
    // left behind by each of the ninety would be.
    assert!(then.1 < first.1 + 45, "open files after 10 and after 100: {first:?}, {then:?}");
    assert!(place.lock_files().is_empty());
    assert_eq!(view(&keeper, "e").await.number.get(), 100);
    let rows: i64 =
        place.sql().query_row("SELECT count(*) FROM tenure_members", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}
