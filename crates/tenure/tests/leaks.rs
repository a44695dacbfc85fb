//! Starting and stopping leaves nothing behind. A binary of its own, since it
//! counts what the whole process has open.

#![allow(clippy::unwrap_used)]
#![cfg(all(target_os = "linux", feature = "sqlite"))]

mod common;

use std::time::Instant;

use common::{secs, within};
use tenure::Tenure;

fn open(what: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count()
}

/// C11: 500 starts and stops from 10 tasks: no leak of threads or descriptors,
/// every stop within 5 seconds, nothing left in the store.
#[tokio::test]
async fn five_hundred_starts_and_stops_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let cycle = |url: String, n: usize| async move {
        let tenure = Tenure::builder(&url).id(format!("m{n}")).connect().await.unwrap();
        let election = tenure.election(format!("e{}", n % 3));
        let mut observer = election.observe().unwrap();
        observer.next().await.unwrap();
        // Some lead, some only tried, some are stopped in the middle.
        let leadership = match n % 4 {
            0 => None,
            _ => election.try_campaign().await.unwrap(),
        };
        drop(leadership);
        let stop = Instant::now();
        assert!(tenure.shutdown().await.unwrap());
        assert!(stop.elapsed() < secs(5), "stopping took {:?}", stop.elapsed());
    };
    // What the first one allocates for good is not a leak.
    within(cycle(url.clone(), 0)).await;
    within(cycle(url.clone(), 1)).await;
    let before = (open("task"), open("fd"));
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..10 {
        let url = url.clone();
        tasks.spawn(async move {
            for n in 0..50 {
                cycle(url.clone(), task * 50 + n).await;
            }
        });
    }
    let done = async {
        while let Some(done) = tasks.join_next().await {
            done.unwrap()
        }
    };
    tokio::time::timeout(secs(300), done).await.expect("no hang");
    // Threads that were told to end may need a moment to be gone.
    let left = || (open("task"), open("fd"));
    within(async {
        while left().0 > before.0 || left().1 > before.1 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    let last = Tenure::connect(&url).await.unwrap();
    assert!(within(last.members()).await.unwrap().is_empty());
    for view in within(last.elections()).await.unwrap() {
        assert!(view.holder.is_none() && view.candidates.is_empty(), "{view:?}");
    }
    let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert!(files.len() < 12, "beside the database: {files:?}");
}
