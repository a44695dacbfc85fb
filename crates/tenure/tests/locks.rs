//! Locks and semaphores over elections, among tasks, members and processes.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{secs, until, within};
use tenure::testing::{Stage, StoreVerb};
use tenure::{Error, Tenure};

/// How many are inside, and the most there ever were.
#[derive(Debug, Default)]
struct Inside {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Inside {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// L23: tasks of one member and of another take one lock in turn: never two at a time, each
/// with a higher token, and in the order in which the tasks of a member began to wait.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_lock_is_held_by_one_task_of_one_member_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let inside = Arc::new(Inside::default());
    let mut tasks = tokio::task::JoinSet::new();
    for id in ["a", "b"] {
        let tenure = Tenure::builder(&url).id(id).ttl(secs(60)).connect().await.unwrap();
        for task in 0..8 {
            let lock = tenure.lock("x");
            let inside = inside.clone();
            tasks.spawn(async move {
                let place = lock.take().await.unwrap();
                inside.enter();
                assert!(place.is_current());
                for _ in 0..task {
                    tokio::task::yield_now().await;
                }
                let token = place.token();
                inside.leave();
                // Some wait for the store's word, some do not.
                if task % 2 == 0 {
                    place.release().await.unwrap()
                } else {
                    drop(place)
                }
                token
            });
        }
    }
    let mut tokens: Vec<_> = within(tasks.join_all()).await;
    assert_eq!(inside.most.load(Ordering::SeqCst), 1);
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 16, "no token twice: {tokens:?}");
}

/// L23: a semaphore of three has three inside at the most, and at least twice that many who
/// want in are all served.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_semaphore_never_has_more_inside_than_places() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let inside = Arc::new(Inside::default());
    let mut tasks = tokio::task::JoinSet::new();
    for id in ["a", "b"] {
        let tenure = Tenure::builder(&url).id(id).ttl(secs(60)).connect().await.unwrap();
        for _ in 0..8 {
            let semaphore = tenure.semaphore("x", 3);
            let inside = inside.clone();
            tasks.spawn(async move {
                let place = semaphore.take().await.unwrap();
                inside.enter();
                assert!(place.index() < 3 && place.is_current());
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                inside.leave();
                place.release().await.unwrap();
            });
        }
    }
    within(tasks.join_all()).await;
    assert!(inside.most.load(Ordering::SeqCst) <= 3, "{inside:?}");
}

/// A place that is lost is another's soon, under a higher token; and the task that lost it is
/// told without the store.
#[tokio::test]
async fn a_place_that_is_lost_is_the_next_ones() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let lost = within(a.lock("x").take()).await.unwrap();
    let waits = {
        let lock = b.lock("x");
        tokio::spawn(async move { lock.take().await.unwrap() })
    };
    until("the second to wait", || async { b.status().standing == 1 }).await;
    stage.lose("x").await.unwrap();
    within(lost.lost()).await;
    assert!(!lost.is_current());
    stage.advance(secs(30)).await;
    let next = within(waits).await.unwrap();
    assert!(next.token() > lost.token());
    drop(lost);
    stage.settle().await;
    assert!(next.is_current(), "the late one gives back what it had, not this");
}

/// A task that waits in the line of its own process, or at the store, takes no place with it when
/// it stops waiting.
#[tokio::test]
async fn who_stops_waiting_holds_nothing_up() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let held = within(a.lock("x").take()).await.unwrap();
    for other in [a.lock("x"), b.lock("x")] {
        let waits = tokio::spawn(async move { other.take().await });
        stage.settle().await;
        waits.abort();
        let _ = waits.await;
    }
    let limit = tokio::spawn({
        let lock = b.lock("x");
        async move { lock.take_timeout(secs(1)).await }
    });
    until("the one with a limit to wait", || async { b.status().standing == 1 }).await;
    stage.advance(secs(2)).await;
    let late = within(limit).await.unwrap();
    assert!(matches!(&late, Err(Error::NotElected { .. })), "{late:?}");
    assert!(within(b.lock("x").try_take()).await.unwrap().is_none());
    drop(held);
    drop(within(b.lock("x").take()).await.unwrap());
    drop(within(a.lock("x").take()).await.unwrap());
}

/// A place without candidates is taken by a task that stands for another, as soon as it is
/// told; and while nothing happens the store is asked once in a ttl.
#[tokio::test]
async fn one_who_waits_goes_to_a_place_that_is_free_and_asks_little() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(within(a.semaphore("x", 3).take()).await.unwrap());
    }
    let semaphore = b.semaphore("x", 3);
    let waits = tokio::spawn(async move { semaphore.take().await.unwrap() });
    until("it to wait", || async { b.status().standing == 1 }).await;
    let stands_for = || async {
        let views = a.elections().await.unwrap();
        let stands = |id: &tenure::MemberId| *id == *b.id();
        let of = views.iter().find(|v| v.candidates.iter().any(|c| stands(&c.member.id)));
        of.and_then(|view| view.election.as_str()[2..].parse::<usize>().ok())
    };
    until("the store to know it", || async { stands_for().await.is_some() }).await;
    let before = stage.faults().counts().calls(StoreVerb::Read);
    stage.advance(secs(60)).await;
    let reads = stage.faults().counts().calls(StoreVerb::Read) - before;
    assert!(reads <= 30, "{reads} reads in six times the ttl");

    let at = stands_for().await.unwrap();
    let other = held.iter().position(|place| place.index() != at).unwrap();
    let freed = held.remove(other);
    let index = freed.index();
    drop(freed);
    stage.advance(Duration::from_millis(500)).await;
    stage.advance(Duration::from_millis(500)).await;
    let place = within(waits).await.unwrap();
    assert_eq!(place.index(), index);
}

/// What cannot be is refused, by the first call that needs it.
#[tokio::test]
async fn a_semaphore_without_places_is_refused() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    for places in [0, 1_001] {
        let said = within(tenure.semaphore("x", places).take()).await.unwrap_err();
        assert!(said.to_string().contains("1 to 1000"), "{said}");
    }
    assert!(matches!(within(tenure.lock("").take()).await, Err(Error::Name(_))));
    let _leads = within(tenure.election("x").campaign()).await.unwrap();
    let taken = within(tenure.lock("x").take()).await;
    assert!(matches!(taken, Err(Error::AlreadyStanding(_))), "{taken:?}");
}

#[cfg(all(target_os = "linux", feature = "sqlite"))]
mod processes {
    use super::*;
    use tenure_testkit::Process;
    use tenure_testkit::process::{hear, say};

    const ROLE: &str = "TENURE_TEST_LOCK_URL";

    /// Not a test by itself: takes a place of a semaphore of one, says under which token, and
    /// keeps it until it is told to go on.
    #[test]
    fn a_child_takes_a_place() {
        let Ok(url) = std::env::var(ROLE) else { return };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let tenure = Tenure::builder(url).ttl(secs(4)).connect().await.unwrap();
            let place = tenure.semaphore("x", 2).take().await.unwrap();
            say(&format!("{} {}", place.index(), place.token()));
            hear();
        });
    }

    /// L23: of three processes two have a place; a third gets one when the first is killed,
    /// under a higher token.
    #[tokio::test]
    async fn a_place_of_a_process_that_was_killed_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
        let start = || {
            let mut command = Process::again("processes::a_child_takes_a_place");
            Process::start(command.env(ROLE, &url))
        };
        let mut first = start();
        let mut second = start();
        let has = |line: String| -> (usize, u64) {
            let (index, token) = line.split_once(' ').unwrap();
            (index.parse().unwrap(), token.parse().unwrap())
        };
        let mine = has(first.says().await);
        let others = has(second.says().await);
        assert_ne!(mine.0, others.0);
        let tenure = Tenure::builder(&url).ttl(secs(4)).connect().await.unwrap();
        let semaphore = tenure.semaphore("x", 2);
        assert!(within(semaphore.try_take()).await.unwrap().is_none());
        let waits = tokio::spawn(async move { semaphore.take().await.unwrap() });
        first.kill();
        let place = within(waits).await.unwrap();
        assert_eq!(place.index(), mine.0);
        assert!(place.token() > mine.1);
    }
}
