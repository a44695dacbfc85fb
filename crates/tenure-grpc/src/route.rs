//! A route as calls see it: the term, its connections, and the gate while its leader refuses.
//!
//! # The gate
//!
//! A leader refuses calls while it hands over, and an heir until it has taken its term on. All
//! calls of the moment are refused then; if each asked again by itself, a thousand of them would
//! keep both servers busy. So after a refusal **one** call asks again, and the others wait: sixteen
//! times as soon as it is refused, then after a pause that grows from one millisecond to fifty.
//! When it is answered, or not refused within a tenth of a second since its handler takes long, or
//! another route is there, all go. A call that is dropped while it asks leaves its place to the
//! next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderValue;
use tenure::Mono;
use tokio::sync::Notify;
use tonic::transport::Channel;

use crate::connection::{self, Connection};

/// So often a leader that refuses is asked again without a pause: a timer's step is longer than an
/// heir takes to learn of its term.
const AT_ONCE: usize = 16;
/// No connection of the route was picked yet.
const NONE: usize = usize::MAX;

/// The way to the leader of one term.
pub(crate) struct Route {
    pub(crate) number: u64,
    pub(crate) header: HeaderValue,
    pub(crate) leader: String,
    /// Why none of its endpoints can be used, if so.
    pub(crate) unusable: Option<String>,
    until: AtomicU64,
    pub(crate) connections: Vec<Arc<Connection>>,
    picked: AtomicUsize,
    first: AtomicUsize,
    pub(crate) gate: Gate,
}

impl Route {
    pub(crate) fn new(
        number: u64,
        leader: String,
        until: Mono,
        connections: Vec<Arc<Connection>>,
        wrong: &[String],
    ) -> Self {
        let unusable = connections.is_empty().then(|| {
            if wrong.is_empty() { "it publishes no endpoint".to_owned() } else { wrong.join("; ") }
        });
        Self {
            number,
            header: HeaderValue::from(number),
            leader,
            unusable,
            until: AtomicU64::new(until.as_nanos()),
            connections,
            picked: AtomicUsize::new(NONE),
            first: AtomicUsize::new(0),
            gate: Gate::default(),
        }
    }

    /// Whether its leader's ttl has not run out at this moment.
    pub(crate) fn lives(&self, now: Mono) -> bool {
        now.as_nanos() < self.until.load(Ordering::Acquire)
    }

    pub(crate) fn lives_until(&self, until: Mono) {
        self.until.store(until.as_nanos(), Ordering::Release);
    }

    /// The channel to the endpoint that was picked, if it is connected.
    pub(crate) fn channel(&self) -> Option<(usize, Channel)> {
        let picked = self.picked.load(Ordering::Acquire);
        let channel = self.connections.get(picked)?.up()?;
        Some((picked, channel))
    }

    /// Connects to the first endpoint that answers.
    pub(crate) async fn connect(&self) -> Result<(usize, Channel), String> {
        let first = self.first.load(Ordering::Acquire);
        let made = connection::first_of(&self.connections, first).await?;
        self.picked.store(made.0, Ordering::Release);
        Ok(made)
    }

    /// The endpoint could not be reached.
    pub(crate) fn broke(&self, index: usize) {
        self.connections[index].broke();
        self.pass_over(index);
    }

    /// The endpoint does not lead, although its member does: another host may have its address.
    /// The next endpoint is tried first from now on.
    pub(crate) fn pass_over(&self, index: usize) {
        let count = self.connections.len();
        self.first.store((index + 1) % count, Ordering::Release);
        let one = count == 1;
        let order = Ordering::AcqRel;
        if !one {
            let _ = self.picked.compare_exchange(index, NONE, order, Ordering::Acquire);
        }
    }
}

/// Lets one call at a time ask a leader that refuses.
#[derive(Default)]
pub(crate) struct Gate {
    refuses: AtomicBool,
    asked: AtomicBool,
    /// How often in a row it has refused.
    times: AtomicUsize,
    opened: Notify,
}

impl Gate {
    /// The leader has refused a call.
    pub(crate) fn shut(&self) {
        self.refuses.store(true, Ordering::Release);
    }

    /// The leader has answered a call.
    pub(crate) fn open(&self) {
        if self.refuses.swap(false, Ordering::AcqRel) {
            self.times.store(0, Ordering::Release);
            self.opened.notify_waiters();
        }
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.refuses.load(Ordering::Acquire)
    }

    /// Waits until it is open, or until it is this call's turn to ask: then with a pass, which
    /// is to be kept until the answer is there.
    pub(crate) async fn pass(&self) -> Option<Pass<'_>> {
        loop {
            let opened = self.opened.notified();
            tokio::pin!(opened);
            opened.as_mut().enable();
            if !self.is_shut() {
                return None;
            }
            if !self.asked.swap(true, Ordering::AcqRel) {
                let pass = Pass(self);
                let times = self.times.fetch_add(1, Ordering::AcqRel);
                match times.checked_sub(AT_ONCE) {
                    None => tokio::task::yield_now().await,
                    Some(times) => {
                        let pause = Duration::from_millis((1 << times.min(6)).min(50));
                        tokio::time::sleep(pause).await;
                    }
                }
                return Some(pass);
            }
            opened.await;
        }
    }
}

/// The right to ask a leader that refuses.
pub(crate) struct Pass<'g>(&'g Gate);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.asked.store(false, Ordering::Release);
        self.0.opened.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many calls one asks; when it is dropped the next does, and an answer lets all go.
    #[tokio::test]
    async fn one_call_asks_a_leader_that_refuses() {
        let gate = Arc::new(Gate::default());
        assert!(gate.pass().await.is_none(), "it is open");
        gate.shut();
        let first = gate.pass().await.expect("the first asks");
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let gate = gate.clone();
                tokio::spawn(async move {
                    let pass = gate.pass().await;
                    // It is answered.
                    gate.open();
                    pass.is_some()
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(waiting.iter().all(|task| !task.is_finished()));
        drop(first); // refused again, or given up
        let mut asked = 0;
        for task in waiting {
            asked += usize::from(task.await.unwrap());
        }
        assert_eq!(asked, 1);
    }
}
