//! A second session for heartbeats, while the first waits.
//!
//! All members of a connection beat on one session, which does one thing after the other.
//! A heartbeat that waits for a lock on its member's row would make the heartbeats of
//! other members late, those of other namespaces too. So a heartbeat that finds another
//! under way gives the session a share of the request timeout, and then is sent a second
//! time, on a session that is made for it and closed when nothing uses it any more. The
//! first in line is never sent twice: what it waits for, it would wait for there as well.
//!
//! What could go wrong, and why it does not:
//!
//! - *Both are applied.* A heartbeat names its life and what its member holds; a second one
//!   renews the same ttl again. One that is applied late, after its answer was given up,
//!   keeps the member in the store for longer than the member believes, never shorter.
//! - *Both are applied, and the member was ended between.* The second finds no row of that
//!   life, and renews nothing. The answer that is given is the first that arrives: *alive*,
//!   for a heartbeat that was applied before the end. Trust counts from the sending of the
//!   request, which is before both.
//! - *The first session is given up meanwhile*, because the one in front timed out. Its
//!   error is not the answer while the second session may still give one, in the time that
//!   the heartbeat has left.
//! - *The one in front is given up by its caller.* The server works on it all the same. So
//!   what was dropped without an answer counts as in line, until an answer on that session
//!   proves that the server is past it.
//! - *One on the second session is given up by its caller.* A server process that waits for
//!   a lock does not notice that its client is gone. If the session were closed then, the
//!   next heartbeat would make another, and there would be more of them each time. So what
//!   was sent there is waited for in a task of its own, whatever the caller does.
//! - *The second session breaks, or cannot be made.* Then the first one's answer counts.
//! - *The second one waits as well*: a member further back is locked, too. Then those
//!   behind wait for it, at most for the time that a heartbeat waits for a lock. There is no
//!   third session for heartbeats: the number of connections stays bounded.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{Beat, Heartbeat, Namespace};
use tenure_store::{Error, Result};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use crate::link::Link;
use crate::store::Inner;
use crate::texts::Texts;
use crate::verbs::Verbs;

/// The share of the request timeout that the usual session gets.
const SHARE: u32 = 8;

/// The heartbeats on the usual session.
#[derive(Debug, Default)]
pub(crate) struct Line(Mutex<State>);

/// Heartbeats are numbered in the order of their sending, from 1.
#[derive(Debug, Default)]
struct State {
    sent: u64,
    /// How many are waited for.
    awaited: usize,
    /// The last that was answered.
    answered: u64,
    /// The last that was dropped without an answer.
    dropped: u64,
}

/// One of them. The server may be at work on it still when this is dropped.
#[derive(Debug)]
pub(crate) struct InLine<'a> {
    line: &'a Line,
    number: u64,
    behind: bool,
    answered: bool,
}

impl Line {
    pub(crate) fn enter(&self) -> InLine<'_> {
        let mut state = self.state();
        let behind = state.awaited > 0 || state.dropped > state.answered;
        state.sent += 1;
        state.awaited += 1;
        InLine { line: self, number: state.sent, behind, answered: false }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InLine<'_> {
    /// Whether the server may have others to do before it.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    /// The usual session is done with it, and so with those that were sent before.
    pub(crate) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut state = self.line.state();
        state.awaited -= 1;
        let last = if self.answered { &mut state.answered } else { &mut state.dropped };
        *last = self.number.max(*last);
    }
}

/// The second session, and how many heartbeats are under way on it.
#[derive(Debug)]
pub(crate) struct Spare {
    link: Link,
    texts: Arc<Texts>,
    lock_wait: i32,
    users: Mutex<usize>,
}

/// One of them. The last that is dropped closes the session.
struct User<'a>(&'a Spare);

impl Spare {
    pub(crate) fn new(link: Link, texts: Arc<Texts>, lock_wait: i32) -> Arc<Self> {
        Arc::new(Self { link, texts, lock_wait, users: Mutex::new(0) })
    }

    fn enter(&self) -> User<'_> {
        *self.users() += 1;
        User(self)
    }

    fn users(&self) -> MutexGuard<'_, usize> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The verb, to its end: it goes on when the caller no longer waits for the answer.
    fn send(self: &Arc<Self>, ns: &Namespace, beat: &Heartbeat) -> oneshot::Receiver<Result<Beat>> {
        let (tell, told) = oneshot::channel();
        let spare = Arc::clone(self);
        let ns = ns.clone();
        let beat = beat.clone();
        tokio::spawn(async move {
            let user = spare.enter();
            let Spare { link, texts, lock_wait, .. } = user.0;
            let verbs = Verbs { link, texts, lock_wait: *lock_wait };
            let answer = verbs.heartbeat(&ns, &beat).await.map(|(answer, _)| answer);
            drop(user);
            drop(tell.send(answer));
        });
        told
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        // Closed before the next one can enter, which then makes another.
        let mut users = self.0.users();
        *users -= 1;
        if *users == 0 {
            self.0.link.close();
        }
    }
}

impl Inner {
    /// A heartbeat that is not the first in line.
    pub(crate) async fn beat_behind(
        &self,
        turn: InLine<'_>,
        ns: &Namespace,
        beat: &Heartbeat,
    ) -> Result<Beat> {
        let limit = self.options.request_timeout;
        let until = Instant::now() + limit;
        let mut usual = pin!(self.heartbeat(ns, beat));
        tokio::select! {
            answer = &mut usual => {
                turn.answered();
                return answer;
            }
            () = sleep(limit / SHARE) => {}
        }
        let mut spare = self.spare.send(ns, beat);
        tokio::select! {
            answer = &mut usual => {
                turn.answered();
                let Err(error) = answer else { return answer };
                match timeout_at(until, spare).await {
                    Ok(Ok(answer)) => answer.map_err(|other| graver(error, other)),
                    // It may yet be applied there.
                    _ => Err(error.maybe_applied()),
                }
            }
            answer = &mut spare => match answer {
                Ok(Ok(answer)) => Ok(answer),
                other => {
                    let answer = usual.await;
                    turn.answered();
                    match other {
                        Ok(Err(other)) => answer.map_err(|error| graver(error, other)),
                        _ => answer,
                    }
                }
            },
        }
    }
}

/// Which of two errors of one request is told: that one after which it may have been applied.
fn graver(one: Error, other: Error) -> Error {
    if other.may_have_applied() && !one.may_have_applied() { other } else { one }
}

#[cfg(test)]
mod tests {
    use tenure_store::ErrorKind;

    use super::*;

    #[test]
    fn one_that_was_dropped_stays_in_line_until_a_later_one_is_answered() {
        let line = Line::default();
        let first = line.enter();
        assert!(!first.is_behind());
        let second = line.enter();
        assert!(second.is_behind());
        drop(second);
        first.answered();
        let third = line.enter();
        assert!(third.is_behind(), "the second was sent, and its outcome is unknown");
        third.answered();
        assert!(!line.enter().is_behind());
    }

    #[test]
    fn a_request_that_may_have_been_applied_on_one_session_may_have_been_applied() {
        let error = |text| Error::new(ErrorKind::Invalid, text);
        for (one, other, told) in [
            (error("one"), error("other"), "one"),
            (error("one").maybe_applied(), error("other"), "one"),
            (error("one"), error("other").maybe_applied(), "other"),
        ] {
            assert!(graver(one, other).to_string().contains(told));
        }
    }
}
