//! Starting and stopping leaves nothing behind. A binary of its own, since it
//! counts what the whole process has open.

#![allow(clippy::print_stderr, clippy::unwrap_used)]
#![cfg(all(target_os = "linux", feature = "sqlite"))]

mod common;

use std::time::{Duration, Instant};

use common::{secs, until, within};
use tenure::{Left, Tenure};

/// What this process has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    threads: usize,
    descriptors: usize,
    tasks: usize,
}

impl Open {
    fn now() -> Self {
        let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        Self { threads: count("task"), descriptors: count("fd"), tasks }
    }

    fn is_within(self, limit: Self) -> bool {
        self.threads <= limit.threads
            && self.descriptors <= limit.descriptors
            && self.tasks <= limit.tasks
    }
}

/// Threads that were told to end may need a moment to be gone. A leak never is.
async fn is_back_at(before: Open, starts: usize) {
    let what = format!("what {starts} starts and stops left beside {before:?} to be gone");
    until(&what, || async { Open::now().is_within(before) }).await;
}

/// Ends the process if a stop never returns: it waits for its thread, so that no
/// timer of this runtime could tell.
fn stop_within(limit: Duration) -> std::sync::mpsc::Sender<()> {
    let (stopped, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        if wait.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            eprintln!("a stop has not returned within {limit:?}");
            std::process::exit(1);
        }
    });
    stopped
}

/// C11: 500 starts and stops from 10 tasks: no leak of threads, tasks or descriptors,
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
            _ => election.try_campaign().await.unwrap().leadership(),
        };
        drop(leadership);
        let stop = Instant::now();
        let stopped = stop_within(secs(20));
        assert_eq!(tenure.shutdown().await.unwrap(), Left::Confirmed);
        assert!(stop.elapsed() < secs(5), "stopping took {:?}", stop.elapsed());
        drop(stopped);
    };
    // What the first one allocates for good is not a leak.
    within(cycle(url.clone(), 0)).await;
    within(cycle(url.clone(), 1)).await;
    let before = Open::now();
    // In rounds, so that a leak is told of before it has used up the machine.
    for round in 0..10 {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..10 {
            let url = url.clone();
            tasks.spawn(async move {
                for n in 0..5 {
                    cycle(url.clone(), round * 50 + task * 5 + n).await;
                }
            });
        }
        while let Some(done) = within(tasks.join_next()).await {
            done.unwrap();
        }
        is_back_at(before, (round + 1) * 50).await;
    }
    let last = Tenure::connect(&url).await.unwrap();
    assert!(within(last.members()).await.unwrap().is_empty());
    for view in within(last.elections()).await.unwrap() {
        assert!(view.holder.is_none() && view.candidates.is_empty(), "{view:?}");
    }
    let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert!(files.len() < 12, "beside the database: {files:?}");
}
