//! Following the journal, or the hints it amounts to.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{Entry, Hint, Namespace, Seq};
use tenure_store::{Followed, Following, From, Result};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::store::Inner;
use crate::watch::{Event, Interest};

/// The most entries taken at a time.
const BATCH: i64 = 500;

/// Someone who follows one namespace from a position on.
pub(crate) struct Follower {
    inner: Arc<Inner>,
    ns: Namespace,
    interest: Interest,
    events: broadcast::Receiver<Event>,
    position: Seq,
    /// Where the journal stood at the beginning: what is older is no news.
    begun: Seq,
    /// There may be entries after `position`.
    pending: bool,
    /// Hints not delivered yet; `None` for one who follows the entries.
    hints: Option<VecDeque<Hint>>,
}

impl Follower {
    pub(crate) async fn new(inner: Arc<Inner>, ns: &Namespace, from: From) -> Result<Self> {
        // Listening begins before looking, so that no change falls between.
        let (events, interest) = (inner.hub.subscribe(), inner.hub.follow(ns));
        // Where it stands, and whether anybody would be notified.
        let places = inner.positions(&[ns.to_string()]).await?;
        let here = places.first().map_or(0, |place| place.seq);
        inner.hub.begun_at(ns, here);
        if places.iter().any(|place| place.quiet) {
            inner.hub.hushed();
        }
        let (position, hints) = match from {
            From::After(position) => (position, None),
            From::Hints => (Seq::new(here), Some(VecDeque::from([Hint::Anything]))),
        };
        let pending = hints.is_none();
        let (ns, begun) = (ns.clone(), position);
        Ok(Self { inner, ns, interest, events, position, begun, pending, hints })
    }

    /// Looks for entries, and takes them. Nothing moves before the answer is
    /// there, so that a future dropped while waiting loses nothing.
    async fn look(&mut self) -> Result<Option<Followed>> {
        let page = self.inner.journal(&self.ns, self.position, BATCH).await?;
        // Entries may be gone at either end: trimmed, or forgotten by a server
        // that was promoted or restored.
        if self.position < page.trimmed || self.position > page.seq {
            self.position = page.trimmed.max(self.position.min(page.seq));
            let Some(hints) = &mut self.hints else {
                return Ok(Some(Followed::Trimmed(self.position)));
            };
            hints.push_back(Hint::Anything);
            return Ok(None);
        }
        let behind = page.seq.get().saturating_sub(self.position.get());
        if let Some(hints) = self.hints.as_mut().filter(|_| behind > BATCH.unsigned_abs()) {
            self.position = page.seq;
            hints.push_back(Hint::Anything);
            return Ok(None);
        }
        match page.entries.last() {
            Some(last) => self.position = last.seq,
            None => self.pending = false,
        }
        let Some(hints) = &mut self.hints else {
            let entries = page.entries;
            return Ok((!entries.is_empty()).then_some(Followed::Entries(entries)));
        };
        hints.extend(Entry::hints(&page.entries));
        Ok(None)
    }

    /// Takes note of an event.
    fn take(&mut self, event: Event) {
        match (event, &mut self.hints) {
            (Event::Reconnected, hints) => {
                // What the look finds is told besides; the hint itself is that
                // there was a gap.
                hints.as_mut().into_iter().for_each(|hints| hints.push_back(Hint::Anything));
                self.pending |= hints.is_none();
            }
            (Event::News { ns, .. }, _) if *ns != *self.interest.name() => {}
            (Event::News { seq, hints: Some(told), .. }, Some(hints)) => {
                // The number may be forged: it must not make us deaf (N1).
                if seq > self.begun.get() || told.contains(&Hint::Anything) {
                    hints.extend(told.iter().cloned());
                }
            }
            (Event::News { seq, .. }, _) => self.pending |= seq != self.position.get(),
        }
    }
}

#[async_trait]
impl Following for Follower {
    async fn next(&mut self) -> Result<Followed> {
        loop {
            if let Some(hint) = self.hints.as_mut().and_then(VecDeque::pop_front) {
                return Ok(Followed::Hint(hint));
            }
            if self.pending {
                if let Some(followed) = self.look().await? {
                    return Ok(followed);
                }
                continue;
            }
            match self.events.recv().await {
                Ok(event) => self.take(event),
                // The sender is held by `inner`: it cannot be gone before us.
                Err(RecvError::Lagged(_) | RecvError::Closed) => self.take(Event::Reconnected),
            }
        }
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("ns", &self.ns)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
