//! Following through faults: hints that are lost, doubled or forged, and
//! outages.

use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::Hint;

use super::control::{Control, HintFault, State, unreachable};
use tenure_store::{Followed, Following, Result};

#[derive(Debug)]
pub(super) struct Follower {
    inner: Box<dyn Following>,
    control: Arc<Control>,
    /// Whether anything was delivered yet.
    begun: bool,
    /// Whether an outage was reported and has not ended yet.
    cut_off: bool,
    /// The second copy of a doubled hint.
    again: Option<Hint>,
    /// How many forged hints this follower has had.
    forged: usize,
}

/// What a follower wakes up for.
enum Woken {
    Followed(Followed),
    Control,
}

impl Follower {
    pub(super) fn new(inner: Box<dyn Following>, control: Arc<Control>) -> Self {
        let forged = control.look(|state| state.forged.len());
        Self { inner, control, begun: false, cut_off: false, again: None, forged }
    }

    /// Waits for the store, or for the test to interfere.
    async fn wait(&mut self) -> Result<Woken> {
        let forged = self.forged;
        let interferes = move |state: &State| state.outage || state.forged.len() > forged;
        let control = Arc::clone(&self.control);
        tokio::select! {
            // The test goes first: an outage hides what the store has to say.
            biased;
            () = control.until(interferes) => Ok(Woken::Control),
            followed = self.inner.next() => Ok(Woken::Followed(followed?)),
        }
    }

    /// A forged hint that has not been given yet.
    fn forgery(&mut self) -> Option<Hint> {
        let forged = self.forged;
        let hint = self.control.look(|state| state.forged.get(forged).cloned())?;
        self.forged += 1;
        Some(hint)
    }

    /// What becomes of something followed; `None` if it is lost.
    fn delivered(&mut self, followed: Followed) -> Option<Followed> {
        let first = !std::mem::replace(&mut self.begun, true);
        let Followed::Hint(hint) = &followed else { return Some(followed) };
        match self.control.look(|state| state.hints) {
            HintFault::Deliver => {}
            HintFault::Drop if first => {}
            HintFault::Drop => return None,
            HintFault::Double => self.again = Some(hint.clone()),
        }
        Some(followed)
    }
}

#[async_trait]
impl Following for Follower {
    async fn next(&mut self) -> Result<Followed> {
        loop {
            if self.cut_off {
                self.control.until(|state| !state.outage).await;
                self.cut_off = false;
                // H13: a reconnect is itself a hint.
                return Ok(Followed::Hint(Hint::Anything));
            }
            if let Some(hint) = self.again.take() {
                return Ok(Followed::Hint(hint));
            }
            match self.wait().await? {
                Woken::Control if self.control.look(|state| state.outage) => {
                    self.cut_off = true;
                    return Err(unreachable());
                }
                Woken::Control => {
                    if let Some(hint) = self.forgery() {
                        return Ok(Followed::Hint(hint));
                    }
                }
                Woken::Followed(followed) => {
                    if let Some(followed) = self.delivered(followed) {
                        return Ok(followed);
                    }
                }
            }
        }
    }
}
