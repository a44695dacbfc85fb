//! Following a namespace: what notifications say is passed on without a query; where
//! they do not arrive, a look at the journal says it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{Entry, Hint, Namespace, Seq};
use tenure_store::{Followed, Following, Result};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::store::{Inner, PAGE};
use crate::watch::{Event, Interest};

/// Someone who follows one namespace.
pub(crate) struct Follower {
    inner: Arc<Inner>,
    ns: Namespace,
    interest: Interest,
    events: broadcast::Receiver<Event>,
    /// Up to where the journal was turned into hints by looks.
    position: Seq,
    /// Where the journal stood at the beginning: what is older is no news.
    begun: Seq,
    /// There may be entries after `position` of which no notification told.
    pending: bool,
    /// What is not delivered yet.
    ready: VecDeque<Followed>,
}

impl Follower {
    pub(crate) async fn new(inner: Arc<Inner>, ns: &Namespace) -> Result<Self> {
        // Listening begins before looking, so that no change falls between.
        let events = inner.notifications.subscribe();
        let interest = inner.notifications.follow(ns);
        // Where it stands, and whether notifications are sent.
        let places = inner.positions(&[ns.to_string()]).await?;
        let (here, rev) = places.first().map_or((0, 0), |place| (place.seq, place.rev));
        inner.notifications.begun_at(ns, here, rev);
        if places.iter().any(|place| place.quiet) {
            inner.notifications.hushed();
        }
        let ns = ns.clone();
        let position = Seq::new(here);
        let ready = VecDeque::from([Followed::Hint(Hint::Anything)]);
        Ok(Self { inner, ns, interest, events, position, begun: position, pending: false, ready })
    }

    /// Looks for entries, and takes what they amount to. Nothing moves before the answer
    /// is there, so that a future dropped while waiting loses nothing.
    async fn look(&mut self) -> Result<()> {
        let page = self.inner.journal(&self.ns, self.position).await?;
        let behind = page.seq.get().saturating_sub(self.position.get());
        if let Some(place) = page.place_to_go_on_from(self.position) {
            self.position = place;
            self.ready.push_back(Followed::Hint(Hint::Anything));
        } else if behind > PAGE.unsigned_abs() {
            self.position = page.seq;
            self.ready.push_back(Followed::Hint(Hint::Anything));
        } else if let Some(last) = page.entries.last() {
            self.position = last.seq;
            self.ready.extend(Entry::hints(&page.entries).map(Followed::Hint));
        } else {
            self.pending = false;
            return Ok(());
        }
        self.ready.push_back(Followed::Grown(page.seq));
        Ok(())
    }

    /// Takes note of an event.
    fn take(&mut self, event: Event) {
        match event {
            // What a look finds is told besides; the hint itself is that there was a gap.
            Event::Reconnected => self.ready.push_back(Followed::Hint(Hint::Anything)),
            Event::News { ns, .. } if *ns != *self.interest.name() => {}
            Event::News { seq, hints: Some(told), .. } => {
                // The number may be forged: it must not make us deaf (N1). And names are not
                // in the journal: it stays where it was when they change.
                let always = [Hint::Anything, Hint::Names];
                if seq > self.begun.get() || told.iter().any(|hint| always.contains(hint)) {
                    self.ready.extend(told.iter().cloned().map(Followed::Hint));
                }
                self.ready.push_back(Followed::Grown(Seq::new(seq)));
            }
            Event::News { seq, hints: None, .. } => self.pending |= seq != self.position.get(),
        }
    }
}

#[async_trait]
impl Following for Follower {
    async fn next(&mut self) -> Result<Followed> {
        loop {
            if let Some(followed) = self.ready.pop_front() {
                return Ok(followed);
            }
            if self.pending {
                self.look().await?;
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
