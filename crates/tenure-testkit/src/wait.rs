//! Waiting for something that happens.
//!
//! A test names what it waits for and goes on as soon as it has happened. The limit only
//! ends a test that has failed: it is far beyond what anything takes on a busy machine.

use std::time::{Duration, Instant};

/// A wait that takes longer has failed.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How often a condition is looked at that cannot tell when it changes.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits for `work` to end.
///
/// # Panics
///
/// If it does not within [`LIMIT`].
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.expect("the test does not come to its end")
}

/// Waits until `done` says so.
///
/// # Panics
///
/// If it does not within [`LIMIT`].
pub async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let looked = async {
        while !done().await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    let limited = tokio::time::timeout(LIMIT, looked).await;
    assert!(limited.is_ok(), "waited {LIMIT:?} in vain for {what}");
}

/// Looks again and again until there is something to see; for tests without a runtime.
///
/// # Panics
///
/// If there is nothing within [`LIMIT`].
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < LIMIT, "waited {LIMIT:?} in vain for {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Lets real time pass, in a test that is about just that: a real ttl that runs out, work
/// that takes a while, the pace of a loop that takes samples. `why` says which.
///
/// What waits for something that happens uses [`until`], [`wait_for`] or [`within`];
/// `cargo xtask tidy` refuses a sleep in a test that is none of these.
///
/// # Panics
///
/// If `why` says nothing.
pub async fn let_pass(time: Duration, why: &str) {
    assert!(!why.is_empty(), "{time:?} pass for no reason");
    tokio::time::sleep(time).await;
}

/// The same, for what has no runtime or is to block its thread.
///
/// # Panics
///
/// If `why` says nothing.
pub fn let_pass_blocking(time: Duration, why: &str) {
    assert!(!why.is_empty(), "{time:?} pass for no reason");
    std::thread::sleep(time);
}
